"""The fault run of a cluster: people write on three platforms and on the page, while processes are killed,
frozen and cut off from Postgres, which restarts, and Valkey is killed and emptied.

Two processes hold accounts and run turns, one runs turns alone. What people see in the end judges the run
(`channel_ledger`, `kill_ledger`), and beside it the rows of the database.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

from redis.asyncio import Redis

from pipeline.domain.clock import SystemClock
from tests.support.channel_faults import ChannelFaultPlan, Crowd, hearing
from tests.support.channel_ledger import ChannelVerdict
from tests.support.cluster import Cluster, cluster
from tests.support.cluster_rows import (
    StoredFigures,
    accepted_texts,
    running_turns,
    shrunk_edits,
    stored_figures,
    takeovers,
)
from tests.support.gateway_process import GatewayProcess, slow_echo
from tests.support.kill_harness import Stage
from tests.support.kill_ledger import ChatHistory, Verdict, judge
from tests.support.kill_run import HEARD, KillPlan, Talker
from tests.support.platforms.platform import FakePlatform
from tests.support.time_limit import time_limit
from tests.support.web_client import Disconnected, WebChat

TTL_S = 2.0
BEAT_S = 0.5
FROZEN_S = TTL_S + 1.0
"""Longer than the time to live: others have taken over when a frozen process continues."""
_PAUSE_S = (0.3, 1.2)
"""Seconds between two faults."""
_SETTLE_S = 150.0
_PART_S = 180.0
"""The longest that one fault, and one part of what is around them, may take on a busy machine."""
_SAID_EACH = 10
_FLUSHED_SHARE = 0.5
"""Of the faults of Valkey those in which it is emptied and lives; else it is killed, and starts empty."""
_CLOCK = SystemClock()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFaultPlan:
    """How hard to try."""

    kills: int = 200
    freezes: int = 100
    postgres_restarts: int = 5
    valkey_kills: int = 20
    partitions: int = 20
    """Between a process and Postgres."""
    messages: int = 200
    """On each platform; the page's chats write all the time."""
    chats: int = 6
    seed: int = 1

    def actions(self, chance: random.Random) -> list[str]:
        """Every fault, in an order of chance."""
        actions = [
            *("kill",) * self.kills,
            *("freeze",) * self.freezes,
            *("postgres",) * self.postgres_restarts,
            *("valkey",) * self.valkey_kills,
            *("partition",) * self.partitions,
        ]
        chance.shuffle(actions)
        return actions


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFaultRun:
    """The results of a run."""

    plan: ClusterFaultPlan
    channels: Mapping[str, ChannelVerdict]
    page: Verdict
    stored: StoredFigures
    shrunk: int
    """Edits on the platforms that left less of an answer than was visible before."""
    takeovers_s: Sequence[float] = field(default=())
    """Seconds from a kill until another process had begun each turn that it interrupted."""
    seconds: float

    @property
    def broken(self) -> dict[str, object]:
        """The failed guarantees, by where they were seen."""
        found: dict[str, object] = {name: one.broken for name, one in self.channels.items() if one.broken}
        if self.page.broken:
            found["page"] = self.page.broken
        stored = {
            name: count
            for name in ("unanswered", "unsent", "order_errors")
            if (count := getattr(self.stored, name))
        }
        return (
            found | ({"store": stored} if stored else {}) | ({"shrunk": self.shrunk} if self.shrunk else {})
        )


class StuckRun(AssertionError):
    """The run itself did not continue; what hangs is named."""


class _PageStage(Stage):
    """The address of a process that may have the page's account: each of them in turn."""

    def __init__(self, edges: Sequence[GatewayProcess]) -> None:
        self._edges = cycle(edges)
        self.up = asyncio.Event()
        self.stopping = False
        self.token = edges[0].token
        self.up.set()

    @property
    def url(self) -> str:  # type: ignore[override]  # a new one for each attempt
        return next(self._edges).url


async def run_cluster_faults(
    folder: Path,
    plan: ClusterFaultPlan,
    platforms: Sequence[FakePlatform],
    say: Callable[[str], None] = lambda _line: None,
) -> ClusterFaultRun:
    """Run `plan` with everything under `folder`; `say` gets lines about how far it is. The platforms are not
    running yet. Raises NoServer, and StuckRun if the run itself does not continue."""
    try:
        return await _run(folder, plan, platforms, say)
    except BaseExceptionGroup as group:
        if (stuck := group.subgroup(StuckRun)) is None:
            raise
        words = "; ".join(str(one) for one in _leaves(stuck))
        raise StuckRun(words) from None


def _leaves(group: BaseExceptionGroup[StuckRun]) -> Iterator[StuckRun]:
    for one in group.exceptions:
        if isinstance(one, StuckRun):
            yield one
        else:
            yield from _leaves(one)


async def _run(
    folder: Path, plan: ClusterFaultPlan, platforms: Sequence[FakePlatform], say: Callable[[str], None]
) -> ClusterFaultRun:
    began = _CLOCK.monotonic()
    async with AsyncExitStack() as stack:
        settings = [
            *slow_echo(0.03),
            "turn.max_attempts=20",
            # A summary would take the scripted model 20 s, and hardly a process lives so long here.
            "agent.summarise_above=10000",
            "llm.context_tokens=1000000",
            'log.level="warning"',
            f"cluster.ttl_s={TTL_S}",
            f"cluster.beat_s={BEAT_S}",
        ]
        crowds: list[Crowd] = []
        people = ChannelFaultPlan(
            messages=plan.messages,
            chats=plan.chats,
            kills=len(plan.actions(random.Random(0))),
            seed=plan.seed,
        )
        for platform in platforms:
            await stack.enter_async_context(platform)
            platform.lenient = True
            platform.faults = people.faults()
            place = folder / platform.name
            place.mkdir(parents=True)
            settings += [*platform.overrides(place), f"channels.{platform.name}.rate=0"]
            crowds.append(Crowd(platform, people))
        made = await stack.enter_async_context(cluster(folder / "cluster", settings=settings))
        roles = {"one": "all", "two": "all", "three": "work"}
        gateways = [await made.add_apart(stack, name, role) for name, role in roles.items()]
        await gateways[0].start()
        await hearing(gateways[0], platforms)
        for gateway in gateways[1:]:
            await gateway.spawn()
        stage = _PageStage(gateways[:2])
        chats: list[Talker] = []
        kill_plan = KillPlan(chats=plan.chats, seed=plan.seed, voice_share=0.0)
        async with _within("the first messages", _PART_S), asyncio.TaskGroup() as group:
            for crowd in crowds:
                group.create_task(crowd.greet())
        say("faults: everybody is answered once, the faults begin")
        talking = await _with_faults(made, plan, crowds, kill_plan, stage, chats, say)
        async with _within("the page's histories", _PART_S):
            histories = [await _history(chat, stage) for chat in chats]
        stored, accepted = await stored_figures(made.postgres.url), await accepted_texts(made.postgres.url)
        taken_over = await takeovers(made.postgres.url, talking)
        shrunk = sum(shrunk_edits(platform) for platform in platforms)
        for gateway in gateways:
            await gateway.stop()
        return ClusterFaultRun(
            plan=plan,
            channels={crowd.platform.name: crowd.verdict(accepted) for crowd in crowds},
            page=judge(histories),
            stored=stored,
            shrunk=shrunk,
            takeovers_s=taken_over,
            seconds=_CLOCK.monotonic() - began,
        )


async def _with_faults(
    made: Cluster,
    plan: ClusterFaultPlan,
    crowds: Sequence[Crowd],
    kill_plan: KillPlan,
    stage: Stage,
    chats: list[Talker],
    say: Callable[[str], None],
) -> dict[str, float]:
    """Everybody writes while the faults happen, and until everything is answered. Returns when the last kill
    that interrupted it was, by message, as Unix time."""
    kills: dict[str, float] = {}
    try:
        async with asyncio.timeout(None) as patience, asyncio.TaskGroup() as group:
            for number in range(plan.chats):
                talker = Talker(str(number), kill_plan, stage)
                chats.append(talker)
                group.create_task(talker.run())
            await _play(made, plan, crowds, kills, say)
            say("faults: all have happened; the rest is to be answered")
            stage.stopping = True
            patience.reschedule(asyncio.get_running_loop().time() + _SETTLE_S)
            while not all(crowd.is_answered() for crowd in crowds):
                await _CLOCK.sleep(0.2)
            while (left := await stored_figures(made.postgres.url)).unanswered or left.unsent:
                await _CLOCK.sleep(0.2)
    except TimeoutError:
        pass  # what is still unanswered is lost, and the judges count it
    return kills


async def _play(
    made: Cluster,
    plan: ClusterFaultPlan,
    crowds: Sequence[Crowd],
    kills: dict[str, float],
    say: Callable[[str], None],
) -> None:
    chance = random.Random(plan.seed)
    actions = plan.actions(chance)
    for life, action in enumerate(actions):
        if life % _SAID_EACH == 0:
            say(f"faults: {life} of {len(actions)}, next is {action}")
        async with _within(f"fault {life + 1}, {action}", _PART_S), asyncio.TaskGroup() as group:
            for crowd in crowds:
                group.create_task(crowd.talk(life, 0.8))
            await _CLOCK.sleep(chance.uniform(*_PAUSE_S))
            name = chance.choice(list(made.gateways))
            await _strike(made, name, action, chance, kills)
    async with _within("the last messages", _PART_S), asyncio.TaskGroup() as group:
        for crowd in crowds:
            group.create_task(crowd.talk(len(actions), 0.5))
    for gateway in made.gateways.values():
        if gateway.returncode is not None:
            await gateway.spawn()


async def _strike(
    made: Cluster, name: str, action: str, chance: random.Random, kills: dict[str, float]
) -> None:
    """Carry out one fault, of the gateway `name` if it is one of a process. Notes in `kills` when a kill
    interrupted which turns."""
    gateway = made.gateways[name]
    match action:
        case "kill":
            lives, at = gateway.returncode is None, _CLOCK.now()
            await gateway.kill()
            if lives:
                kills |= dict.fromkeys(await running_turns(made.postgres.url, name), at)
            await gateway.spawn()
        case "freeze":
            await _freeze(gateway)
        case "postgres":
            await asyncio.to_thread(made.postgres.stop)
            await _CLOCK.sleep(chance.uniform(0.1, 1.5))
            await asyncio.to_thread(made.postgres.start)
        case "partition":
            made.partitions[name].cut()
            await _CLOCK.sleep(FROZEN_S)
            made.partitions[name].mend()
        case "valkey" if chance.random() < _FLUSHED_SHARE:
            await _flush(made.valkey.url)
        case "valkey":
            await made.valkey.kill()
            await _CLOCK.sleep(chance.uniform(0.1, 1.5))
            await made.valkey.start()


async def _flush(url: str) -> None:
    """Empty the server, which keeps running."""
    client = Redis.from_url(url, socket_timeout=_PART_S)
    try:
        await client.flushall()
    finally:
        await client.aclose()


def _within(what: str, limit_s: float) -> AbstractAsyncContextManager[None]:
    """Let the block take so many seconds at most. Raises StuckRun."""
    return time_limit(limit_s, StuckRun(f"{what}: not over within {limit_s:.0f} s"))


async def _freeze(gateway: GatewayProcess) -> None:
    """Stop the process for longer than the time to live; it continues without having noticed."""
    if gateway.returncode is not None:
        await gateway.spawn()
        return
    os.kill(gateway.pid, signal.SIGSTOP)
    try:
        await _CLOCK.sleep(FROZEN_S)
    finally:
        os.kill(gateway.pid, signal.SIGCONT)


async def _history(talker: Talker, stage: Stage) -> ChatHistory:
    """What the chat's client received, and what a new one is shown by the process that has the page."""
    chat = talker.chat
    final = WebChat(chat=chat.chat)
    async with final:
        while chat.chat is not None:
            try:
                await final.connect(stage.url, stage.token, after=0)
                break
            except Disconnected:
                await _CLOCK.sleep(0.1)
    return ChatHistory(
        sent=talker.texts,
        expected={name: f"You said: {text or HEARD}" for name, text in talker.texts.items()},
        seen=chat.seen,
        final=final.seen.lines,
    )
