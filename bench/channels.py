"""What the gateway adds to a message on Telegram, Slack and Discord, beside a bare echo bot on the same SDK.

Both bots use fake platforms in this process, each a separate one, and are measured by the calls that the
platform receives. The fault figures are `tests.support.channel_faults`'.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from asyncio.subprocess import DEVNULL, PIPE, create_subprocess_exec
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.report import ROOT, Report, median, percentile, scratch_folder
from gateway.config import environment
from pipeline.domain.clock import SystemClock
from tests.support.channel_faults import ChannelFaultPlan, ChannelFaultRun, hearing, run_channel_faults
from tests.support.channel_ledger import has_acks
from tests.support.gateway_process import SCRIPTED, GatewayProcess
from tests.support.platforms.discord import FakeDiscord
from tests.support.platforms.platform import FakePlatform, Person, Place
from tests.support.platforms.slack import FakeSlack
from tests.support.platforms.telegram import FakeTelegram

PLATFORMS: Mapping[str, Callable[[], FakePlatform]] = {
    "telegram": FakeTelegram,
    "slack": FakeSlack,
    "discord": FakeDiscord,
}
_ROUNDS = 5
_MESSAGES_A_ROUND = 20
_CHATS = 24
_CROWDS = 3
_CROWD_S = 2.0
_PATIENCE_S = 30.0
_SHOWS = frozenset(
    (
        *("sendMessage", "editMessageText", "create_message", "edit_message"),
        *("chat.postMessage", "chat.update", "chat.startStream"),
    )
)
"""The calls that put the answer, or its placeholder, on a screen."""
_TOKEN = re.compile(r"\bt(\d+)x\b")
_CLOCK = SystemClock()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bot:
    """One bot on one platform, in a separate process."""

    platform: FakePlatform
    pid: int


@dataclass(slots=True, kw_only=True)
class _Crowd:
    """A bot's figures under load."""

    messages: int = 0
    seconds: float = 0.0
    cpu_s: float = 0.0
    acks_s: list[float] = field(default_factory=list)

    @property
    def per_core(self) -> float:
        """Messages for each second of processor time."""
        return self.messages / self.cpu_s


async def run(*, seed: int) -> Report:
    """Latency and throughput of both bots on every platform, then the fault run of all three."""
    overheads: dict[str, tuple[list[float], list[float]]] = {}
    crowds: dict[str, tuple[_Crowd, _Crowd]] = {}
    with scratch_folder() as folder:
        for name in PLATFORMS:
            async with _gateway(name, folder / name) as ours, _echo(name, folder / f"{name}-echo") as echo:
                overheads[name] = await _overheads(ours, echo)
                crowds[name] = await _crowds(ours, echo)
        (folder / "faults").mkdir()
        platforms = [make() for make in PLATFORMS.values()]
        faults = await run_channel_faults(folder / "faults", ChannelFaultPlan(seed=seed), platforms)
    return _report(overheads, crowds, faults, seed)


@asynccontextmanager
async def _gateway(name: str, folder: Path) -> AsyncIterator[_Bot]:
    async with _platform(name, folder) as (platform, overrides):
        section = f"channels.{name}"
        unlimited = (f"{section}.rate=0", f"{section}.open_messages_per_day=100000")
        settings = (*SCRIPTED, *overrides, *unlimited, "log.level=warning")
        async with GatewayProcess(folder, overrides=settings, executed=True) as gateway:
            await gateway.start()
            await hearing(gateway, [platform])
            yield _Bot(platform=platform, pid=gateway.pid)
            await gateway.stop()


@asynccontextmanager
async def _echo(name: str, folder: Path) -> AsyncIterator[_Bot]:
    async with _platform(name, folder) as (platform, overrides):
        process = await create_subprocess_exec(
            *(sys.executable, "-m", "bench.channels_echo", name, *overrides),
            stdout=PIPE,
            stderr=DEVNULL,
            cwd=ROOT,
            env=dict(environment()),
        )
        try:
            assert process.stdout is not None
            async with asyncio.timeout(_PATIENCE_S):
                await process.stdout.readline()
            yield _Bot(platform=platform, pid=process.pid)
        finally:
            process.kill()
            await process.wait()


@asynccontextmanager
async def _platform(name: str, folder: Path) -> AsyncIterator[tuple[FakePlatform, Sequence[str]]]:
    await asyncio.to_thread(folder.mkdir)
    async with AsyncExitStack() as stack:
        platform = await stack.enter_async_context(PLATFORMS[name]())
        platform.lenient = True
        yield platform, platform.overrides(folder)


async def _overheads(ours: _Bot, echo: _Bot) -> tuple[list[float], list[float]]:
    """Milliseconds from the platform's event to the first call that answers it, in alternation."""
    found: tuple[list[float], list[float]] = ([], [])
    for round_ in range(_ROUNDS + 1):
        for bot, times in zip((ours, echo), found, strict=True):
            for number in range(_MESSAGES_A_ROUND):
                took = await _first_call_ms(bot.platform, f"t{round_ * _MESSAGES_A_ROUND + number}x")
                if round_:  # the first round warms both up
                    times.append(took)
    return found


async def _first_call_ms(platform: FakePlatform, text: str) -> float:
    person = platform.person("ann")
    place = platform.private_chat(person)
    before, began = len(platform.calls), _CLOCK.monotonic()
    await platform.say(place, person, text)
    # Until the whole answer is there, so that the next message finds the bot idle.
    await platform.until(lambda: any(text in shown for shown in platform.bot_texts(place)[-3:]))
    await platform.until(lambda: not has_acks(platform) or not platform.unacknowledged())
    first = next(call for call in platform.calls[before:] if call.method in _SHOWS)
    return (first.at - began) * 1e3


async def _crowds(ours: _Bot, echo: _Bot) -> tuple[_Crowd, _Crowd]:
    """Both bots under load, in alternation."""
    found = (_Crowd(), _Crowd())
    for _ in range(_CROWDS):
        for bot, crowd in zip((ours, echo), found, strict=True):
            await _crowd(bot, crowd)
    return found


async def _crowd(bot: _Bot, found: _Crowd) -> None:
    """Many chats, each sending its next message when the last one is answered."""
    platform, load = bot.platform, _Load(bot.platform)
    cpu_before, began = _cpu_s(bot.pid), _CLOCK.monotonic()
    while (now := _CLOCK.monotonic()) < began + _CROWD_S:
        await load.speak(now)
        await platform.until(load.look, timeout_s=_PATIENCE_S)
    await platform.until(lambda: load.look() and not load.waiting, timeout_s=_PATIENCE_S)
    found.messages += load.answered
    found.acks_s += load.acks_s
    found.seconds += _CLOCK.monotonic() - began
    found.cpu_s += _cpu_s(bot.pid) - cpu_before


class _Load:
    """The chats of a crowd: who may write, who waits, and how long acknowledgements took."""

    def __init__(self, platform: FakePlatform) -> None:
        self._platform = platform
        people = [platform.person(f"person{number}") for number in range(_CHATS)]
        self._silent: deque[tuple[Place, Person]] = deque(
            (platform.private_chat(person), person) for person in people
        )
        self.waiting: dict[str, tuple[Place, Person]] = {}
        self.answered = 0
        self.acks_s: list[float] = []
        self._unacked: deque[float] = deque()
        # Calls outnumber messages, so no number comes twice on a platform.
        self._said = len(platform.calls)
        self._looked = len(platform.calls)

    async def speak(self, now: float) -> None:
        """Send a new message from each person who was answered."""
        while self._silent:
            place, person = self._silent.popleft()
            self._said += 1
            self.waiting[str(self._said)] = (place, person)
            self._unacked.append(now)
            await self._platform.say(place, person, f"t{self._said}x")

    def look(self) -> bool:
        """Evaluate the bot's new calls. Returns whether a person may write again."""
        calls = self._platform.calls
        for call in calls[self._looked :]:
            found = _TOKEN.search(str(call.payload)) if call.method in _SHOWS else None
            chat = self.waiting.pop(found.group(1), None) if found else None
            if chat is not None:
                self.answered += 1
                self._silent.append(chat)
        self._looked = len(calls)
        if has_acks(self._platform):
            now, left = _CLOCK.monotonic(), self._platform.unacknowledged()
            while len(self._unacked) > left:
                self.acks_s.append(now - self._unacked.popleft())
        return bool(self._silent)


def _cpu_s(pid: int) -> float:
    """Processor seconds of a process, user and system, all threads. Linux."""
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")


def _report(
    overheads: Mapping[str, tuple[list[float], list[float]]],
    crowds: Mapping[str, tuple[_Crowd, _Crowd]],
    faults: ChannelFaultRun,
    seed: int,
) -> Report:
    figures: dict[str, dict[str, float | None]] = {}
    for name in PLATFORMS:
        (ours_ms, echo_ms), (ours, echo) = overheads[name], crowds[name]
        figures[name] = {
            **faults.figures(name),
            "overhead_ms": round(median(ours_ms), 2),
            "overhead_p99_ms": round(percentile(ours_ms, 0.99), 2),
            "echo_ms": round(median(echo_ms), 2),
            "msgs_per_s": round(ours.per_core, 1),
            "echo_msgs_per_s": round(echo.per_core, 1),
            "msgs_per_s_wall": round(ours.messages / ours.seconds, 1),
            "echo_msgs_per_s_wall": round(echo.messages / echo.seconds, 1),
            "slowest_ack_ms": _slowest_ms(ours),
            "echo_slowest_ack_ms": _slowest_ms(echo),
        }
    names = list(dict.fromkeys(name for found in figures.values() for name in found))
    return Report(
        bench="channels",
        title="channels: the gateway's share on Telegram, Slack and Discord, scripted model, fake platforms",
        head=("", *figures),
        rows=[
            (_ROWS.get(name, name.replace("_", " ")), *(_cell(found[name]) for found in figures.values()))
            for name in names
        ],
        notes=(
            f"{_ROUNDS * _MESSAGES_A_ROUND} messages to each idle bot in alternation, then {_CHATS} chats",
            "the platforms' own rate limits and ours are off",
            "the echo bot stores nothing, keeps no order and deletes no repeats",
            "Discord has no acknowledgements; the gateway reads back missed messages",
            f"faults: all channels in one gateway, kill -9 10 times in {faults.seconds:.0f} s, seed {seed}",
            f"turns that were interrupted and started again: {faults.turns_begun_again}",
        ),
        figures=figures,
    )


_ROWS = {
    "overhead_ms": "platform's event to first call, p50, ms",
    "overhead_p99_ms": "platform's event to first call, p99, ms",
    "echo_ms": "the same, bare SDK echo bot, p50, ms",
    "msgs_per_s": f"{_CHATS} chats: messages per processor second",
    "echo_msgs_per_s": "the same, bare SDK echo bot",
    "msgs_per_s_wall": f"{_CHATS} chats: messages per second, platform on the same machine",
    "echo_msgs_per_s_wall": "the same, bare SDK echo bot",
    "slowest_ack_ms": "slowest acknowledgement during that, ms",
    "echo_slowest_ack_ms": "the same, bare SDK echo bot, ms",
    "accepted": "fault run: accepted",
    "lost": "fault run: lost",
    "duplicates": "fault run: answers shown twice",
    "order_errors": "fault run: answers out of order",
    "strangers": "fault run: messages that answer nothing",
    "labelled_repeats": "fault run: labelled repeats",
    "placeholders": "fault run: left-over placeholders",
    "fragments": "fault run: left-over previews",
    "deletions": "fault run: messages deleted",
    "rate_limited": "fault run: calls answered 429",
    "failed_after": "fault run: calls done and answered 5xx",
}


def _slowest_ms(crowd: _Crowd) -> float | None:
    return round(max(crowd.acks_s) * 1e3, 1) if crowd.acks_s else None


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"
