"""The driver of the kill run with several accounts: two Telegram bots, a Slack app and the page in one
gateway, which is killed repeatedly. Three agents answer them; the one of the Slack app is a document that
calls the model, waits and replies, so that kills hit its runs between their steps.

The people and the platforms are those of `channel_faults`, the page's chats those of `kill_run`.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from pipeline.domain.clock import SystemClock
from tests.support.channel_faults import ChannelFaultPlan, Crowd, is_sent
from tests.support.channel_ledger import ECHO, ChannelVerdict
from tests.support.gateway_process import GatewayProcess, slow_echo
from tests.support.kill_harness import Stage
from tests.support.kill_ledger import Verdict, judge
from tests.support.kill_run import KillPlan, Talker, talk_on
from tests.support.platforms.platform import Faults
from tests.support.platforms.slack import FakeSlack
from tests.support.platforms.telegram import FakeTelegram
from tests.support.store_file import (
    StoredMessage,
    agents_by_account,
    integrity,
    resumed_runs,
    stored_messages,
)

_WORD_DELAY_S = 0.02
_SHORTEST_LIFE_S, _LONGEST_LIFE_S = 0.5, 1.5
_SETTLE_S = 120.0
_WAIT_S = 0.15
_SHOP, _SALES = "The shop heard:", "The sales team heard:"
_CLOCK = SystemClock()


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountKills:
    """The results of a run."""

    posted: Mapping[str, ChannelVerdict]
    """By account."""
    page: Verdict
    agents: Mapping[str, Mapping[str, int]]
    """The agents that answered, by channel and account, with the number of messages."""
    turns_begun_again: int
    document_runs_resumed: int
    """Runs of the Slack app's document that a later process continued after a step."""
    exit_code: int
    integrity: str
    stored: Mapping[str, StoredMessage]

    def figures(self) -> dict[str, object]:
        """The numbers, for one line of JSON."""
        broken = {name: verdict.broken for name, verdict in self.posted.items()}
        accepted = {name: verdict.accepted for name, verdict in self.posted.items()}
        return {
            "accepted": {**accepted, "page": self.page.accepted},
            "broken": {**broken, "page": self.page.broken},
            "labelled_repeats": sum(verdict.labelled_repeats for verdict in self.posted.values()),
            "agents": self.agents,
            "turns_begun_again": self.turns_begun_again,
            "document_runs_resumed": self.document_runs_resumed,
        }


async def run_account_kills(folder: Path, plan: ChannelFaultPlan) -> AccountKills:
    """Run `plan` on each account, and as many kills on the page's chats."""
    shop, sales = echo_document(folder, "shop", _SHOP), _steps_document(folder, "sales", _SALES)
    async with AsyncExitStack() as stack:
        first, second, slack = FakeTelegram(), FakeTelegram(), FakeSlack()
        settings = [
            *slow_echo(_WORD_DELAY_S),
            *("turn.max_attempts=20", 'log.level="warning"'),
            *(f'agents.shop.graph="{shop}"', f'agents.sales.graph="{sales}"'),
            *("channels.telegram.2.account=shop", "channels.telegram.2.agent=shop"),
            *("channels.slack.agent=sales", "channels.telegram.2.rate=0"),
            *("channels.telegram.rate=0", "channels.slack.rate=0"),
        ]
        crowds: dict[str, Crowd] = {}
        for name, platform, says in (
            ("telegram", first, ECHO),
            ("telegram.2", second, _SHOP),
            ("slack", slack, _SALES),
        ):
            await stack.enter_async_context(platform)
            platform.lenient = True
            platform.faults = Faults(duplicate_share=plan.duplicate_share, seed=plan.seed)
            (folder / name).mkdir()
            own = platform.overrides(folder / name)
            settings += [line.replace(f"channels.{platform.name}.", f"channels.{name}.", 1) for line in own]
            crowds[name] = Crowd(platform, plan, says)
        gateway = await stack.enter_async_context(GatewayProcess(folder, overrides=settings))
        talkers, kills = await _talk_and_kill(gateway, list(crowds.values()), plan)
        await _settle(gateway, list(crowds.values()))
        histories = [await talker.history(gateway) for talker in talkers]
        exit_code = await gateway.stop()
        stored = stored_messages(gateway.store_path)
        return AccountKills(
            posted={name: crowd.verdict() for name, crowd in crowds.items()},
            page=judge(histories),
            agents=agents_by_account(gateway.store_path),
            turns_begun_again=sum(message.attempts - 1 for message in stored.values()),
            document_runs_resumed=resumed_runs(gateway.store_path, "slack:", kills),
            exit_code=exit_code,
            integrity=integrity(gateway.store_path),
            stored=stored,
        )


def echo_document(folder: Path, name: str, says: str) -> Path:
    """A graph document whose agent says `says` and the message."""
    path = folder / f"{name}.json"
    node = {"id": "say", "run": "reply", "with": {"text": f"{says} {{message}}"}}
    document = {"name": name, "version": "1", "entry": "say", "terminals": ["say"], "nodes": [node]}
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def _steps_document(folder: Path, name: str, says: str) -> Path:
    """As `echo_document`, in three steps: a call of the model, a wait, the reply."""
    path = folder / f"{name}.json"
    nodes = [
        {"id": "think", "run": "model", "with": {"prompt": "What is it about?", "output": "thought"}},
        {"id": "wait", "run": "delay", "with": {"seconds": _WAIT_S}},
        {"id": "say", "run": "reply", "with": {"text": f"{says} {{message}}"}},
    ]
    edges = [{"source": "think", "target": "wait"}, {"source": "wait", "target": "say"}]
    document = {"name": name, "entry": "think", "terminals": ["say"], "nodes": nodes, "edges": edges}
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


async def _talk_and_kill(
    gateway: GatewayProcess, crowds: list[Crowd], plan: ChannelFaultPlan
) -> tuple[list[Talker], list[float]]:
    """The page's talkers, once every life is over and their last message is answered, and the Unix times of
    the kills."""
    stage, talkers, chance = Stage(), list[Talker](), random.Random(plan.seed)
    kills: list[float] = []
    page = KillPlan(kills=plan.kills, chats=plan.chats, seed=plan.seed, attempts=20)
    await stage.raise_curtain(gateway)
    async with asyncio.TaskGroup() as greetings:
        for crowd in crowds:
            greetings.create_task(crowd.greet())
    try:
        async with asyncio.timeout(None) as patience, asyncio.TaskGroup() as group:
            for number in range(plan.chats):
                group.create_task(talk_on(number, page, stage, talkers))
            for life in range(plan.kills + 1):
                seconds = chance.uniform(_SHORTEST_LIFE_S, _LONGEST_LIFE_S)
                async with asyncio.TaskGroup() as lives:
                    for crowd in crowds:
                        lives.create_task(crowd.talk(life, seconds))
                    if life < plan.kills:
                        await _CLOCK.sleep(seconds)
                        await stage.kill(gateway)
                        kills.append(_CLOCK.now())
                        await stage.raise_curtain(gateway)
            stage.stopping = True
            patience.reschedule(asyncio.get_running_loop().time() + _SETTLE_S)
    except TimeoutError:
        pass  # messages that are still unanswered are lost, and the judge counts them
    return talkers, kills


async def _settle(gateway: GatewayProcess, crowds: list[Crowd]) -> None:
    try:
        async with asyncio.timeout(_SETTLE_S):
            for crowd in crowds:
                await crowd.all_answered()
            while not all(map(is_sent, stored_messages(gateway.store_path).values())):
                await _CLOCK.sleep(0.1)
    except TimeoutError:
        pass  # as above
