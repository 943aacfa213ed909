"""Run one channel for ever: start its adapter, watch it and restart it after failures.

One supervisor per channel, so that a failing channel neither stops nor delays another. It handles no
messages: they go from the adapter straight to the inbox.
"""

from __future__ import annotations

import asyncio
import logging
import random
import traceback
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Literal, Protocol

from adapters.channel import ChannelAdapter, ChannelHealth, OnInbound
from adapters.login_errors import LoginRefused
from gateway.channels.token_lease import HeldElsewhere, TokenInUse
from pipeline.domain.clock import Clock
from pipeline.domain.errors import ConfigurationError, ParlourError
from pipeline.domain.frozen import dataclass

_log = logging.getLogger(__name__)

BACKOFF_S = (1.0, 2.0, 5.0, 10.0, 15.0, 30.0)
_JITTER = 0.2
"""The largest random fraction added to a pause, so that channels that failed together restart apart."""
GOOD_RUN_S = 60.0
"""Seconds after which a run counts as good: the next failure is the first again."""
OPERATOR_S = 15.0
"""Seconds between retries of an error that the operator must fix."""
COUNTED_LOGIN_S = 120.0
"""The same where each attempt uses one of the day's log-ins: after 1,000 of them Discord resets the token."""
TOKEN_IN_USE_S = 10.0
SHARED_AGAIN_S = 1.0
"""The same where another process of this gateway may hold the account: this one takes over when that ends."""
ENDING_S = 5.0
"""Seconds for a run to end; with the time for turns, within the 30 s of common service managers."""
_WORDS_CHARS = 300

ChannelState = Literal["starting", "up", "down", "ended"]


class ReceivingLease(Protocol):
    """A lease that must be held while the channel receives."""

    def held(self, on_lost: Callable[[], None]) -> AbstractAsyncContextManager[None]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelStatus:
    """A channel's status, for people and for metrics. Public: the words hold no secret."""

    channel: str
    account: str
    state: ChannelState
    words: str = ""
    received_ago_s: float | None = None
    """Seconds since the last data from the platform; None before the first."""
    restarts: int = 0

    @property
    def up(self) -> bool:
        """Whether it receives now."""
        return self.state == "up"


class ChannelSupervisor:
    """Runs one adapter until it ends by itself or `run` is cancelled. Never two runs side by side."""

    def __init__(
        self,
        adapter: ChannelAdapter,
        *,
        clock: Clock,
        lease: ReceivingLease | None = None,
        chance: Callable[[], float] = random.random,
        token_again_s: float = TOKEN_IN_USE_S,
    ) -> None:
        self._token_again_s = token_again_s
        self._adapter = adapter
        self._clock = clock
        self._lease = lease
        self._chance = chance
        self._failures = 0
        self._begun = 0
        self._ended = False
        self._down = ""
        """Why the supervisor considers it down, whatever the adapter reports; empty if it does not."""
        self._logged = ""
        """The last lasting problem that was logged; each is logged once."""

    @property
    def adapter(self) -> ChannelAdapter:
        """The channel's adapter."""
        return self._adapter

    @property
    def status(self) -> ChannelStatus:
        """The channel's current status."""
        health = self._health()
        state: ChannelState = health.state
        words = health.detail
        if self._ended:
            state, words = "ended", "its input has ended"
        elif self._down:
            state, words = "down", self._down
        received_at = health.received_at
        ago = None if received_at is None else self._clock.monotonic() - received_at
        return ChannelStatus(
            channel=self._adapter.name,
            account=self._adapter.account,
            state=state,
            words=words,
            received_ago_s=None if ago is None else max(0.0, ago),
            restarts=max(0, self._begun - 1),
        )

    def _health(self) -> ChannelHealth:
        """The adapter's health; down if it gives none. A plug-in's mistake must not take /healthz with it."""
        try:
            health = self._adapter.health()
        except Exception as error:  # noqa: BLE001 - as above
            return ChannelHealth(state="down", detail=f"its health cannot be read ({type(error).__name__})")
        if _is_health(health):
            return health
        return ChannelHealth(state="down", detail="its health is not a ChannelHealth")

    async def run(self, on_inbound: OnInbound) -> None:
        """Run until the channel ends by itself. After a failure it is started again."""
        while True:
            began = self._clock.monotonic()
            error = await self._run_once(on_inbound)
            if error is None:
                self._ended = True
                return
            if self._clock.monotonic() - began >= GOOD_RUN_S:
                self._failures, self._logged = 0, ""
            await self._clock.sleep(self._pause_after(error))

    async def _run_once(self, on_inbound: OnInbound) -> Exception | None:
        """Run once under the lease; return the error, None if the channel ended by itself."""
        interrupted = _Interruption()
        try:
            async with self._held(interrupted):
                return await self._run_watched(on_inbound, interrupted)
        except Exception as error:  # noqa: BLE001 - any error of a lease, a store or an SDK leads to a retry
            return _cause(error)

    def _held(self, interrupted: _Interruption) -> AbstractAsyncContextManager[None]:
        if self._lease is None:
            return nullcontext()
        return self._lease.held(lambda: interrupted.ask("another process has taken its bot token over"))

    async def _run_watched(self, on_inbound: OnInbound, interrupted: _Interruption) -> Exception | None:
        self._begun += 1
        self._down = ""
        async with asyncio.TaskGroup() as group:
            run = group.create_task(_outcome(self._adapter, on_inbound), name=f"run of {self._adapter.name}")
            watch = group.create_task(self._watch(run, interrupted))
            try:
                await asyncio.wait((run,))
            finally:
                watch.cancel()
                await self._ended_run(run, "the gateway stops")
        if interrupted.why:
            return _Interrupted(interrupted.why)
        # An SDK may raise a cancellation that this code did not request.
        return run.result() if not run.cancelled() else _Interrupted("its run was cancelled from inside")

    async def _watch(self, run: asyncio.Task[Exception | None], interrupted: _Interruption) -> None:
        """Cancel the run when it receives nothing for too long or loses its lease; wait until it ended."""
        await self._until_interrupted(interrupted)
        self._down = f"{interrupted.why}; it is being started again"
        await self._ended_run(run, interrupted.why)

    async def _ended_run(self, run: asyncio.Task[Exception | None], why: str) -> None:
        """Cancel the run until it has ended. Repeatedly, because an SDK may swallow a cancellation."""
        while not run.done():
            run.cancel()
            try:
                async with self._clock.timeout(ENDING_S):
                    await asyncio.wait((run,))
            except TimeoutError:
                # No second run starts: it would take this one's messages, or be refused.
                self._down = f"{why}; its last run does not end, and no new one starts before that"
                _log.error("channel does not end", extra={**self._names(), "reason": why})

    async def _until_interrupted(self, interrupted: _Interruption) -> None:
        limit = self._adapter.capabilities.silence_limit_s
        began = self._clock.monotonic()
        while not interrupted.why:
            left = None
            if limit > 0:
                # The last data may be from an earlier run: this run gets the full time for its first.
                last = max(began, self._health().received_at or began)
                left = last + limit - self._clock.monotonic()
                if left <= 0:
                    interrupted.ask(f"nothing was received for {limit:g} seconds")
                    return
            try:
                async with self._clock.timeout(left):
                    await interrupted.asked.wait()
            except TimeoutError:
                continue

    def _pause_after(self, error: Exception) -> float:
        """Record the failure; return the seconds to wait before the next start."""
        if isinstance(error, ConfigurationError):
            pause = COUNTED_LOGIN_S if isinstance(error, LoginRefused) else OPERATOR_S
            self._note(str(error), pause, level=logging.ERROR)
            return pause
        if isinstance(error, TokenInUse):
            level = logging.INFO if isinstance(error, HeldElsewhere) else logging.WARNING
            self._note(str(error), self._token_again_s, level=level)
            return self._token_again_s
        base = BACKOFF_S[min(self._failures, len(BACKOFF_S) - 1)]
        self._failures += 1
        pause = base * (1.0 + _JITTER * self._chance())
        words, understood = self._words(error)
        self._down = f"{words}; it starts again within {pause:.0f} s"
        report = {**self._names(), "reason": words, "again_in_s": round(pause, 1)}
        if not understood:
            # Without the error's text and the traceback's last line: an SDK's may hold the token.
            report["where"] = "".join(traceback.format_tb(error.__traceback__))
        _log.error("channel failed", extra=report)
        return pause

    def _words(self, error: Exception) -> tuple[str, bool]:
        """What went wrong, and whether the error is known: the adapter classifies its platform's errors."""
        if isinstance(error, ParlourError):
            return str(error), True
        try:
            failure = self._adapter.classify(error)
        except Exception:  # noqa: BLE001 - an adapter bug in classifying must not stop this
            failure = None
        if failure is None or failure.kind == "unknown" or not failure.message:
            return f"it failed with {type(error).__name__}", False
        return failure.message, True

    def _note(self, words: str, pause_s: float, *, level: int) -> None:
        """Record a problem that lasts until a person acts: shown all the time, logged once."""
        self._down = f"{words} (tried again every {pause_s:g} s)"
        if self._logged != words:
            self._logged = words
            _log.log(level, "channel is down", extra={**self._names(), "reason": words})

    def _names(self) -> dict[str, str]:
        return {"channel": self._adapter.name, "account": self._adapter.account}


def channel_lines(statuses: Iterable[ChannelStatus]) -> tuple[str, ...]:
    """One line per channel, for /readyz and the doctor: `telegram:main up, heard 3 s ago (long poll)`."""
    return tuple(_line(status) for status in statuses)


def any_alive(statuses: Iterable[ChannelStatus]) -> bool:
    """Whether messages can arrive: not every channel is down. True without channels."""
    states = [status.state for status in statuses]
    return not states or any(state != "down" for state in states)


def _is_health(health: object) -> bool:
    """Whether an adapter returned what its type says."""
    if not isinstance(health, ChannelHealth):
        return False
    parts: tuple[object, ...] = (health.detail, health.received_at)
    return (
        health.state in ("starting", "up", "down")
        and isinstance(parts[0], str)
        and isinstance(parts[1], int | float | None)
    )


class _Interruption:
    """A request to end a run, with its reason."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.why = ""

    def ask(self, why: str) -> None:
        self.why = self.why or why
        self.asked.set()


class _Interrupted(ParlourError):
    """A run that did not end by itself."""

    code = "channel_interrupted"
    permanent = False


async def _outcome(adapter: ChannelAdapter, on_inbound: OnInbound) -> Exception | None:
    try:
        await adapter.run(on_inbound)
    except Exception as error:  # noqa: BLE001 - any error of an SDK is a failed run
        return _cause(error)
    return None


def _cause(error: Exception) -> Exception:
    """The error from a task group inside the run: one for the operator, if there is one."""
    if not isinstance(error, ExceptionGroup):
        return error
    causes = [_cause(one) for one in error.exceptions]
    return next((one for one in causes if isinstance(one, ConfigurationError)), causes[0])


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _line(status: ChannelStatus) -> str:
    received = "" if status.received_ago_s is None else f", heard {status.received_ago_s:.0f} s ago"
    again = f", started again {_times(status.restarts)}" if status.restarts else ""
    # External text must stay on one line.
    words = " ".join(status.words.split())[:_WORDS_CHARS]
    return f"{status.channel}:{status.account} {status.state}{received}{again}" + (
        f" ({words})" if words else ""
    )
