"""The life of channels: started again for ever, watched where messages arrive, and no concern of others."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from adapters.channel import (
    Acceptance,
    ChannelCapabilities,
    ChannelHealth,
    Failure,
    OnInbound,
)
from adapters.login_errors import LoginRefused
from gateway.channels.supervisor import (
    BACKOFF_S,
    ENDING_S,
    ChannelStatus,
    ChannelSupervisor,
    any_alive,
    channel_lines,
)
from gateway.channels.token_lease import TokenInUse
from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import ConfigurationError, MediaUnavailable
from pipeline.domain.messages import Inbound, MediaRef

Life = Callable[["_Scripted"], Awaitable[None]]


class _Scripted:
    """A channel whose lives are written by the test: the last one again when there are no more."""

    name = "telegram"
    account = "main"

    def __init__(self, clock: ManualClock, *lives: Life, silence_limit_s: float = 0.0) -> None:
        self.capabilities = ChannelCapabilities(text_limit=100, silence_limit_s=silence_limit_s)
        self.clock = clock
        self.begun: list[float] = []
        self.running = 0
        self.received_at: float | None = None
        self._lives = list(lives)

    async def run(self, on_inbound: OnInbound) -> None:
        assert self.running == 0, "two runs of one adapter side by side"
        self.running += 1
        self.begun.append(round(self.clock.monotonic(), 3))
        life = self._lives.pop(0) if len(self._lives) > 1 else self._lives[0]
        try:
            await life(self)
        finally:
            self.running -= 1

    async def download(self, ref: MediaRef, *, max_bytes: int) -> bytes:
        raise MediaUnavailable("nothing here")

    def classify(self, error: Exception) -> Failure:
        return Failure(kind="unknown", message="")

    def health(self) -> ChannelHealth:
        return ChannelHealth(state="up", detail="long poll", received_at=self.received_at)


class _Lease:
    """A lease whose holder the test names."""

    def __init__(self) -> None:
        self.holder = ""
        self.lose: Callable[[], None] = lambda: None
        self.story: list[str] = []

    @asynccontextmanager
    async def held(self, on_lost: Callable[[], None]) -> AsyncIterator[None]:
        if self.holder:
            raise TokenInUse(f"the telegram bot token is in use by {self.holder}; stop that one")
        self.lose = on_lost
        self.story.append("taken")
        try:
            yield
        finally:
            self.story.append("given back")


async def _accept(item: Inbound) -> Acceptance:
    return Acceptance(status="accepted", message_id=item.message_id)


_TOKEN = ":".join(("1234567", "SECRET"))


async def _fails(_channel: _Scripted) -> None:
    raise OSError(f"https://api.telegram.org/bot{_TOKEN}/getUpdates did not answer")


async def _refused(_channel: _Scripted) -> None:
    raise ConfigurationError("channels.telegram.token: refused by Telegram; make a new one with @BotFather")


async def _lives_on(_channel: _Scripted) -> None:
    await asyncio.Event().wait()


async def _ends(_channel: _Scripted) -> None:
    return


def _for_seconds(seconds: float) -> Life:
    async def life(channel: _Scripted) -> None:
        await channel.clock.sleep(seconds)
        raise OSError

    return life


@asynccontextmanager
async def _supervised(
    channel: _Scripted, *, lease: _Lease | None = None, chance: float = 0.0
) -> AsyncIterator[ChannelSupervisor]:
    supervisor = ChannelSupervisor(channel, clock=channel.clock, lease=lease, chance=lambda: chance)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(supervisor.run(_accept))
        await channel.clock.advance(0)
        yield supervisor
        task.cancel()


async def test_a_failing_channel_is_started_again_for_ever_and_ever_less_often() -> None:
    channel = _Scripted(ManualClock(), _fails)
    async with _supervised(channel) as supervisor:
        await channel.clock.advance(100)
        assert channel.begun == [0, 1, 3, 8, 18, 33, 63, 93]
        assert supervisor.status.restarts == 7
        assert BACKOFF_S == (1, 2, 5, 10, 15, 30)


async def test_the_waits_are_spread_by_chance() -> None:
    channel = _Scripted(ManualClock(), _fails)
    async with _supervised(channel, chance=0.5):
        await channel.clock.advance(10)
        assert channel.begun == [0, 1.1, 3.3, 8.8]


async def test_a_minute_of_good_life_makes_the_next_failure_the_first_again() -> None:
    lives = (_fails, _fails, _for_seconds(60), _for_seconds(59), _fails)
    channel = _Scripted(ManualClock(), *lives)
    async with _supervised(channel):
        await channel.clock.advance(130)
        assert channel.begun == [0, 1, 3, 64, 125, 130]


async def test_one_failing_channel_neither_stops_nor_delays_another() -> None:
    clock = ManualClock()
    broken, healthy = _Scripted(clock, _fails), _Scripted(clock, _for_seconds(10))
    async with _supervised(broken), _supervised(healthy):
        await clock.advance(12)
        assert healthy.begun == [0, 11]
        assert len(broken.begun) == 4


async def test_neither_the_words_nor_the_log_repeat_what_an_sdk_put_into_its_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    channel = _Scripted(ManualClock(), _fails)
    async with _supervised(channel) as supervisor:
        status = supervisor.status
        assert (status.state, status.words) == ("down", "it failed with OSError; it starts again within 1 s")
        record = caplog.records[-1]
        assert record.getMessage() == "channel failed"
        assert "_fails" in vars(record)["where"]
        assert _TOKEN not in str(vars(record)) + caplog.text


class _Understanding(_Scripted):
    """Its adapter knows what its own errors mean."""

    def classify(self, error: Exception) -> Failure:
        return Failure(kind="transient", message="Telegram cannot be reached")


async def test_what_the_adapter_understands_is_said_in_its_words_and_without_a_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with _supervised(_Understanding(ManualClock(), _fails)) as supervisor:
        words = "Telegram cannot be reached; it starts again within 1 s"
        assert supervisor.status.words == words
        assert "where" not in vars(caplog.records[-1])


async def _login_refused(_channel: _Scripted) -> None:
    raise LoginRefused("channels.discord: the intents are off; make a new one with @BotFather")


@pytest.mark.parametrize(("life", "every_s"), [(_refused, 15), (_login_refused, 120)])
async def test_what_only_the_operator_can_help_is_reported_once_and_tried_as_often_as_the_platform_bears(
    life: Life,
    every_s: int,
    caplog: pytest.LogCaptureFixture,
) -> None:
    channel = _Scripted(ManualClock(), life)
    async with _supervised(channel) as supervisor:
        await channel.clock.advance(3 * every_s - 1)
        assert channel.begun == [0, every_s, 2 * every_s]
        assert supervisor.status.state == "down"
        assert "make a new one with @BotFather" in supervisor.status.words
    reported = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert [vars(record)["channel"] for record in reported] == ["telegram"]


async def test_a_configuration_error_out_of_a_task_group_is_still_one() -> None:
    async def in_a_group(channel: _Scripted) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(_lives_on(channel))
            group.create_task(_refused(channel))

    channel = _Scripted(ManualClock(), in_a_group)
    async with _supervised(channel) as supervisor:
        await channel.clock.advance(1)
        assert supervisor.status.words.startswith("channels.telegram.token: refused")


async def test_a_channel_that_ends_by_itself_is_not_started_again() -> None:
    channel = _Scripted(ManualClock(), _ends)
    supervisor = ChannelSupervisor(channel, clock=channel.clock)
    await supervisor.run(_accept)
    assert supervisor.status.state == "ended"
    assert any_alive([supervisor.status])
    assert channel.begun == [0]


async def test_a_run_that_is_cancelled_from_inside_is_a_failed_one() -> None:
    async def cancelled(_channel: _Scripted) -> None:
        raise asyncio.CancelledError

    channel = _Scripted(ManualClock(), cancelled)
    async with _supervised(channel) as supervisor:
        assert supervisor.status.words.startswith("its run was cancelled from inside")
        await channel.clock.advance(1)
        assert channel.begun == [0, 1]


async def test_a_silent_channel_is_run_again_and_one_that_hears_is_left_alone() -> None:
    async def hears_for_a_minute(channel: _Scripted) -> None:
        for _ in range(6):
            channel.received_at = channel.clock.monotonic()
            await channel.clock.sleep(10)
        await asyncio.Event().wait()

    channel = _Scripted(ManualClock(), hears_for_a_minute, silence_limit_s=30)
    async with _supervised(channel) as supervisor:
        await channel.clock.advance(79)
        assert channel.begun == [0]
        assert supervisor.status.received_ago_s == 29
        await channel.clock.advance(2)
        assert channel.begun == [0, 81]


async def test_a_run_that_never_hears_anything_has_its_own_time_from_its_start() -> None:
    channel = _Scripted(ManualClock(), _lives_on, silence_limit_s=30)
    channel.received_at = 0.0
    async with _supervised(channel) as supervisor:
        await channel.clock.advance(30)
        assert supervisor.status.words.startswith("nothing was received for 30 seconds")
        await channel.clock.advance(33)
        assert channel.begun == [0, 31, 63]


async def test_a_channel_where_silence_is_normal_is_never_restarted() -> None:
    channel = _Scripted(ManualClock(), _lives_on)
    async with _supervised(channel):
        await channel.clock.advance(100_000)
        assert channel.begun == [0]


async def test_a_run_that_does_not_end_is_reported_and_no_second_one_starts_before_it_has(
    caplog: pytest.LogCaptureFixture,
) -> None:
    gate = asyncio.Event()

    async def clings(_channel: _Scripted) -> None:
        while not gate.is_set():
            try:
                await gate.wait()
            except asyncio.CancelledError:
                continue

    channel = _Scripted(ManualClock(), clings, _lives_on, silence_limit_s=30)
    async with _supervised(channel) as supervisor:
        await channel.clock.advance(100)
        assert channel.begun == [0]
        assert (supervisor.status.state, "does not end" in supervisor.status.words) == ("down", True)
        assert "channel does not end" in caplog.text
        gate.set()
        await channel.clock.advance(1)
        assert (channel.begun, supervisor.status.state) == ([0, 101], "up")


async def test_a_token_in_use_keeps_the_channel_down_until_it_is_free(
    caplog: pytest.LogCaptureFixture,
) -> None:
    lease = _Lease()
    lease.holder = "process 4711"
    channel = _Scripted(ManualClock(), _lives_on)
    async with _supervised(channel, lease=lease) as supervisor:
        await channel.clock.advance(35)
        assert channel.begun == []
        assert "in use by process 4711" in supervisor.status.words
        assert not any_alive([supervisor.status])
        lease.holder = ""
        await channel.clock.advance(5)
        assert channel.begun == [40]
        assert lease.story == ["taken"]
        assert (supervisor.status.state, supervisor.status.restarts) == ("up", 0)
    assert lease.story == ["taken", "given back"]
    assert [record.levelname for record in caplog.records] == ["WARNING"]


async def test_a_lost_lease_ends_the_run() -> None:
    lease = _Lease()
    channel = _Scripted(ManualClock(), _lives_on)
    async with _supervised(channel, lease=lease) as supervisor:
        lease.holder = "process 4711"
        lease.lose()
        await channel.clock.advance(0.5)
        assert not channel.running
        assert "taken its bot token over" in supervisor.status.words
        await channel.clock.advance(0.5)
        assert "process 4711" in supervisor.status.words


async def test_cancelling_the_supervisor_leaves_no_task_behind() -> None:
    channel = _Scripted(ManualClock(), _lives_on, silence_limit_s=30)
    before = asyncio.all_tasks()
    async with _supervised(channel):
        assert len(asyncio.all_tasks() - before) == 3
    assert asyncio.all_tasks() == before


async def test_a_run_that_swallowed_its_cancellation_is_cancelled_again_when_the_gateway_stops() -> None:
    async def swallows_one(_channel: _Scripted) -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await asyncio.Event().wait()

    channel = _Scripted(ManualClock(), swallows_one)
    supervisor = ChannelSupervisor(channel, clock=channel.clock)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(supervisor.run(_accept))
        await channel.clock.advance(0)
        task.cancel()
        await channel.clock.advance(ENDING_S - 1)
        assert (task.done(), channel.running) == (False, 1)
        await channel.clock.advance(1)
        assert (task.done(), channel.running) == (True, 0)


def test_lines_are_one_per_channel_whatever_the_words_hold() -> None:
    statuses = (
        ChannelStatus(channel="web", account="local", state="up", words="2 open pages"),
        ChannelStatus(
            channel="slack",
            account="main",
            state="down",
            words="a\nforged: ready" + "x" * 1000,
            received_ago_s=12.4,
            restarts=3,
        ),
    )
    first, second = channel_lines(statuses)
    assert first == "web:local up (2 open pages)"
    assert second.startswith("slack:main down, heard 12 s ago, started again 3 times (a forged: ready")
    assert "\n" not in second
    assert len(second) < 400


@pytest.mark.parametrize(
    ("states", "alive"),
    [((), True), (("down",), False), (("down", "up"), True), (("down", "starting"), True)],
)
def test_a_gateway_is_ready_while_not_every_channel_is_down(states: tuple[str, ...], alive: bool) -> None:
    statuses = [ChannelStatus(channel=f"c{n}", account="a", state=s) for n, s in enumerate(states)]  # type: ignore[arg-type]  # literals
    assert any_alive(statuses) is alive
