"""The driver of the channels' fault runs: people who keep writing, platforms that misbehave, and a gateway
that is killed repeatedly.

The platforms live in this process and outlive the gateway, which runs in a separate one. Judging is
`channel_ledger`'s.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from pipeline.domain.clock import SystemClock
from tests.support.channel_ledger import (
    ECHO,
    ChannelVerdict,
    answered,
    has_acks,
    judge_channel,
    unacknowledged,
)
from tests.support.gateway_process import GatewayProcess, slow_echo
from tests.support.platforms.platform import FakePlatform, Faults, Person, Place
from tests.support.store_file import StoredMessage, integrity, stored_messages

WORD_DELAY_S = 0.03
SHORTEST_LIFE_S, LONGEST_LIFE_S = 0.6, 2.2
_LONGEST_WORDS = 25
"""An answer of this many words takes 0.8 s: long enough for a preview, which remains after a kill."""
_TALK_PAST_DEATH = 1.3
"""The people write for this many times the gateway's life, so also while it is down."""
_CONNECT_S = 30.0
_GREETING_S = 60.0
_SETTLE_S = 60.0
_CLOCK = SystemClock()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelFaultPlan:
    """How hard to try, on each channel."""

    messages: int = 200
    chats: int = 8
    kills: int = 10
    seed: int = 1
    duplicate_share: float = 0.05
    rate_limit_share: float = 0.05
    error_after_share: float = 0.02

    def faults(self) -> Faults:
        """What the platforms do to the bot."""
        return Faults(
            duplicate_share=self.duplicate_share,
            rate_limit_share=self.rate_limit_share,
            error_after_share=self.error_after_share,
            retry_after_s=1.0,
            seed=self.seed,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelFaultRun:
    """The results of a run. The verdicts come from the platforms, the rest from the process and its file."""

    verdicts: Mapping[str, ChannelVerdict]
    """By channel."""
    turns_begun_again: int
    """Turns that a kill interrupted and the next process restarted."""
    exit_code: int
    integrity: str
    stored: Mapping[str, StoredMessage]
    seconds: float

    def figures(self, channel: str) -> dict[str, int]:
        """One channel's counts by name."""
        return self.verdicts[channel].figures()


async def run_channel_faults(
    folder: Path,
    plan: ChannelFaultPlan,
    platforms: Sequence[FakePlatform],
    *,
    overrides: Sequence[str] = (),
) -> ChannelFaultRun:
    """Run `plan` on all `platforms` at once, on one gateway with everything in `folder`, which exists. The
    platforms are not running yet; their own rate limits are left out, so that 429 comes as often as the
    plan says."""
    began = _CLOCK.monotonic()
    async with AsyncExitStack() as stack:
        # A kill may hit a message more often than the limit for poison messages.
        settings = [*slow_echo(WORD_DELAY_S), "turn.max_attempts=20", 'log.level="warning"']
        crowds: list[Crowd] = []
        for platform in platforms:
            await stack.enter_async_context(platform)
            platform.lenient = True
            platform.faults = plan.faults()
            settings += [*platform.overrides(folder), f"channels.{platform.name}.rate=0"]
            crowds.append(Crowd(platform, plan))
        gateway = await stack.enter_async_context(GatewayProcess(folder, overrides=[*settings, *overrides]))
        await gateway.start()
        await hearing(gateway, platforms)
        await _greet(crowds)
        await _kill_again_and_again(gateway, crowds, plan)
        await _settle(crowds, gateway)
        exit_code = await gateway.stop()
        stored = stored_messages(gateway.store_path)
        return ChannelFaultRun(
            verdicts={crowd.platform.name: crowd.verdict() for crowd in crowds},
            turns_begun_again=sum(message.attempts - 1 for message in stored.values()),
            exit_code=exit_code,
            integrity=integrity(gateway.store_path),
            stored=stored,
            seconds=_CLOCK.monotonic() - began,
        )


async def hearing(gateway: GatewayProcess, platforms: Sequence[FakePlatform]) -> None:
    """Return when the gateway receives new messages. Only a platform without acknowledgements needs this:
    the others keep undelivered messages. Raises TimeoutError."""
    names = {platform.name for platform in platforms if not has_acks(platform)}
    async with asyncio.timeout(_CONNECT_S), aiohttp.ClientSession() as session:
        while True:
            async with session.get(f"{gateway.url}/readyz") as response:
                lines = (await response.text()).splitlines()
            up = {line.partition(":")[0] for line in lines if " up" in line}
            if up >= names:
                return
            await _CLOCK.sleep(0.02)


async def _greet(crowds: Sequence[Crowd]) -> None:
    """Have the first message of every chat answered before the first kill: a channel without replay can look
    for missed messages only in chats that it knows."""
    async with asyncio.TaskGroup() as group:
        for crowd in crowds:
            group.create_task(crowd.greet())


async def _kill_again_and_again(
    gateway: GatewayProcess, crowds: Sequence[Crowd], plan: ChannelFaultPlan
) -> None:
    chance = random.Random(plan.seed)
    for life in range(plan.kills + 1):
        seconds = chance.uniform(SHORTEST_LIFE_S, LONGEST_LIFE_S)
        async with asyncio.TaskGroup() as group:
            for crowd in crowds:
                group.create_task(crowd.talk(life, seconds * _TALK_PAST_DEATH))
            if life < plan.kills:
                await _CLOCK.sleep(seconds)
                await gateway.kill()
                await gateway.start()


async def _settle(crowds: Sequence[Crowd], gateway: GatewayProcess) -> None:
    try:
        async with asyncio.timeout(_SETTLE_S):
            for crowd in crowds:
                await crowd.all_answered()
            # A platform may show an answer and report an error for it: the gateway posts it again.
            while not all(is_sent(message) for message in stored_messages(gateway.store_path).values()):
                await _CLOCK.sleep(0.1)
    except TimeoutError:
        pass  # messages that are still unanswered are lost, and the judge counts them


def is_sent(message: StoredMessage) -> bool:
    return [state for state, _ in message.outbox] == ["sent"]


class Crowd:
    """The people of one platform, each in a separate chat with the bot, whose answers begin with `says`."""

    def __init__(self, platform: FakePlatform, plan: ChannelFaultPlan, says: str = ECHO) -> None:
        self.platform = platform
        self._says = says
        self._plan = plan
        self._people: dict[Place, Person] = {}
        self._asked: dict[Place, list[str]] = {}
        self._chance = random.Random(f"{plan.seed}/{platform.name}")
        for number in range(plan.chats):
            person = platform.person(f"person{number}")
            place = platform.private_chat(person)
            self._people[place] = person
            self._asked[place] = []

    async def greet(self) -> None:
        """Each person writes once; returns when all are answered."""
        for place in self._people:
            await self._say(place)
        await self.platform.until(self._all_answered, timeout_s=_GREETING_S)

    async def talk(self, life: int, seconds: float) -> None:
        """Write this life's share of the messages, at random moments of the next `seconds`."""
        moments = sorted(
            (self._chance.uniform(0.0, seconds), number, place)
            for number, place in enumerate(self._people)
            for _ in range(self._share(life, number))
        )
        began = _CLOCK.monotonic()
        for moment, _, place in moments:
            await _CLOCK.sleep(began + moment - _CLOCK.monotonic())
            await self._say(place)

    async def all_answered(self) -> None:
        """Return when every message has its whole answer, and none waits for its acknowledgement."""
        await self.platform.until(self.is_answered, timeout_s=2 * _SETTLE_S)

    def is_answered(self) -> bool:
        """Whether every message has its whole answer, and none waits for its acknowledgement."""
        return self._all_answered() and not unacknowledged(self.platform)

    def verdict(self, accepted: Sequence[str] = ()) -> ChannelVerdict:
        """The judge's verdict on the people's chats; `accepted` are all texts in the order in which they were
        accepted, where that may be another than the one in which they were said."""
        places = {text: place for place, text in enumerate(accepted)}
        asked = {
            place: sorted(texts, key=lambda text: places.get(text, len(places))) if places else texts
            for place, texts in self._asked.items()
        }
        return judge_channel(self.platform, asked, self._says)

    def _share(self, life: int, number: int) -> int:
        """How many messages the chat writes in this life, so that all lives come to the plan's number."""
        plan, lives = self._plan, self._plan.kills + 1
        whole = plan.messages // plan.chats + (number < plan.messages % plan.chats) - 1
        return whole * (life + 1) // lives - whole * life // lives

    async def _say(self, place: Place) -> None:
        asked = self._asked[place]
        words = " word" * self._chance.randint(1, _LONGEST_WORDS)
        text = f"n{len(asked)}p{place.chat[-4:]}{words}"
        asked.append(text)
        await self.platform.say(place, self._people[place], text)

    def _all_answered(self) -> bool:
        return all(
            answered(asked, self.platform.bot_texts(place), self._says)
            for place, asked in self._asked.items()
        )
