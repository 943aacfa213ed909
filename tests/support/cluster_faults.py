"""The fault run of a cluster: people write on three platforms and on the page, while processes are killed,
frozen and cut off from Postgres, which restarts, and Valkey is killed and emptied.

Two processes hold accounts and run turns, one runs turns alone. What people see in the end judges the run
(`channel_ledger`, `kill_ledger`), and beside it the rows of the database.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import cycle, pairwise
from pathlib import Path

import asyncpg

from pipeline.domain.clock import SystemClock
from tests.support.channel_faults import ChannelFaultPlan, Crowd, hearing
from tests.support.channel_ledger import ChannelVerdict
from tests.support.cluster import Cluster, cluster
from tests.support.gateway_process import GatewayProcess, slow_echo
from tests.support.kill_harness import Stage
from tests.support.kill_ledger import ChatHistory, Verdict, judge
from tests.support.kill_run import HEARD, KillPlan, Talker
from tests.support.platforms.platform import FakePlatform
from tests.support.web_client import Disconnected, WebChat

TTL_S = 2.0
BEAT_S = 0.5
FROZEN_S = TTL_S + 1.0
"""Longer than the time to live: others have taken over when a frozen process continues."""
_PAUSE_S = (0.3, 1.2)
"""Seconds between two faults."""
_SETTLE_S = 150.0
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
class StoredFigures:
    """What the database says in the end."""

    messages: int
    unanswered: int
    """Messages without exactly one answer on record."""
    unsent: int
    """Answers that are not on record as sent exactly once."""
    order_errors: int
    """Neighbouring entries of a thread whose answers are in another order."""
    begun_again: int
    """Turns that another process, or the same one after a restart, has begun again."""


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
    folder: Path, plan: ClusterFaultPlan, platforms: Sequence[FakePlatform]
) -> ClusterFaultRun:
    """Run `plan` with everything under `folder`. The platforms are not running yet. Raises NoServer."""
    began = _CLOCK.monotonic()
    async with AsyncExitStack() as stack:
        settings = [
            *slow_echo(0.03),
            "turn.max_attempts=20",
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
        async with asyncio.TaskGroup() as group:
            for crowd in crowds:
                group.create_task(crowd.greet())
        talking = await _with_faults(made, plan, crowds, kill_plan, stage, chats)
        histories = [await _history(chat, stage) for chat in chats]
        stored, accepted = await _stored(made.postgres.url), await _accepted(made.postgres.url)
        takeovers = await _takeovers(made.postgres.url, talking)
        shrunk = sum(_shrunk(platform) for platform in platforms)
        for gateway in gateways:
            await gateway.stop()
        return ClusterFaultRun(
            plan=plan,
            channels={crowd.platform.name: crowd.verdict(accepted) for crowd in crowds},
            page=judge(histories),
            stored=stored,
            shrunk=shrunk,
            takeovers_s=takeovers,
            seconds=_CLOCK.monotonic() - began,
        )


async def _with_faults(
    made: Cluster,
    plan: ClusterFaultPlan,
    crowds: Sequence[Crowd],
    kill_plan: KillPlan,
    stage: Stage,
    chats: list[Talker],
) -> list[float]:
    """Everybody writes while the faults happen, and until everything is answered; the Unix times of kills."""
    kills: list[float] = []
    try:
        async with asyncio.timeout(None) as patience, asyncio.TaskGroup() as group:
            for number in range(plan.chats):
                talker = Talker(str(number), kill_plan, stage)
                chats.append(talker)
                group.create_task(talker.run())
            await _play(made, plan, crowds, kills)
            stage.stopping = True
            patience.reschedule(asyncio.get_running_loop().time() + _SETTLE_S)
            while not all(crowd.is_answered() for crowd in crowds):
                await _CLOCK.sleep(0.2)
            while (left := await _stored(made.postgres.url)).unanswered or left.unsent:
                await _CLOCK.sleep(0.2)
    except TimeoutError:
        pass  # what is still unanswered is lost, and the judges count it
    return kills


async def _play(made: Cluster, plan: ClusterFaultPlan, crowds: Sequence[Crowd], kills: list[float]) -> None:
    chance = random.Random(plan.seed)
    for life, action in enumerate(plan.actions(chance)):
        async with asyncio.TaskGroup() as group:
            for crowd in crowds:
                group.create_task(crowd.talk(life, 0.8))
            await _CLOCK.sleep(chance.uniform(*_PAUSE_S))
            name = chance.choice(list(made.gateways))
            if action == "kill":
                kills.append(_CLOCK.now())
            await _strike(made, name, action, chance)
    async with asyncio.TaskGroup() as group:
        for crowd in crowds:
            group.create_task(crowd.talk(len(plan.actions(random.Random(0))), 0.5))
    for gateway in made.gateways.values():
        if gateway.returncode is not None:
            await gateway.spawn()


async def _strike(made: Cluster, name: str, action: str, chance: random.Random) -> None:
    """Carry out one fault, of the gateway `name` if it is one of a process."""
    gateway = made.gateways[name]
    match action:
        case "kill":
            await gateway.kill()
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
        case "valkey":
            await made.valkey.kill()
            await _CLOCK.sleep(chance.uniform(0.1, 1.5))
            await made.valkey.start()


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


async def _rows(url: str, query: str) -> list[asyncpg.Record]:
    connection = await asyncpg.connect(url, server_settings={"search_path": "parlour"})
    try:
        return list(await connection.fetch(query))
    finally:
        await connection.close()


async def _stored(url: str) -> StoredFigures:
    rows = await _rows(
        url,
        """
            SELECT inbox.seq, inbox.thread, inbox.attempts, inbox.outcome,
                (SELECT count(*) FROM log WHERE log.thread = inbox.thread
                    AND log.message_id = inbox.message_id AND kind = 'assistant') AS answers,
                (SELECT min(id) FROM log WHERE log.thread = inbox.thread
                    AND log.message_id = inbox.message_id AND kind = 'assistant') AS place,
                (SELECT array_agg(state) FROM outbox WHERE outbox.thread = inbox.thread
                    AND outbox.message_id = inbox.message_id) AS states
            FROM inbox WHERE inbox.kind = 'message' ORDER BY inbox.thread, inbox.seq""",
    )
    return StoredFigures(
        messages=len(rows),
        unanswered=sum(row["outcome"] != "answered" or row["answers"] != 1 for row in rows),
        unsent=sum(row["states"] != ["sent"] for row in rows),
        order_errors=sum(
            one["thread"] == other["thread"] and (one["place"] or 0) > (other["place"] or 0)
            for one, other in pairwise(rows)
        ),
        begun_again=sum(max(0, row["attempts"] - 1) for row in rows),
    )


async def _accepted(url: str) -> Sequence[str]:
    """The texts of all messages, in the order in which they were accepted. A platform delivers again what a
    frozen process did not acknowledge, and by then later messages are accepted."""
    rows = await _rows(
        url,
        "SELECT body FROM inbox WHERE kind = 'message' ORDER BY seq",
    )
    return [json.loads(row["body"])["text"] for row in rows]


async def _takeovers(url: str, kills: Sequence[float]) -> list[float]:
    """Seconds from each kill to the first record that another run of an interrupted turn wrote: the answer of
    a message that was accepted before the kill and answered after it, for turns that were begun twice."""
    rows = await _rows(
        url,
        """
            SELECT inbox.received_at, inbox.attempts, array_agg(log.at ORDER BY log.id) AS at
            FROM inbox JOIN log ON log.thread = inbox.thread AND log.message_id = inbox.message_id
            WHERE inbox.kind = 'message' AND inbox.attempts = 2 AND log.kind IN ('user', 'step')
            GROUP BY inbox.seq, inbox.received_at, inbox.attempts""",
    )
    found = []
    for row in rows:
        times = list(row["at"])
        for kill in kills:
            after = [at for at in times if at > kill]
            if after and times[0] < kill and len(after) < len(times):
                found.append(min(after) - kill)
                break
    return sorted(found)


def _shrunk(platform: FakePlatform) -> int:
    """How often an edit left a shorter answer than the one before on the same message."""
    longest: dict[str, int] = {}
    shrunk = 0
    for call in platform.calls:
        if "edit" not in call.method.lower() and "update" not in call.method.lower():
            continue
        payload = call.payload
        native = str(payload.get("message_id") or payload.get("ts") or payload.get("id") or "")
        place = str(payload.get("chat_id") or payload.get("channel") or "")
        text = payload.get("text") or payload.get("content")
        if not native or not isinstance(text, str) or call.status >= 400 or not text.startswith("You said"):
            continue
        key = f"{place}/{native}"
        shrunk += len(text) < longest.get(key, 0)
        longest[key] = max(longest.get(key, 0), len(text))
    return shrunk
