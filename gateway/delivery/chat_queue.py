"""Run one chat's outbound calls one after the other, replies before previews.

A queue controls order and rate, not content: `outbox` submits replies, `preview` schedules previews. Their
calls go through `call_with_timeout`, so that no call blocks a chat for ever.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from adapters.channel import ChannelAdapter
from adapters.withheld import set_check
from gateway.delivery.platform_calls import PlatformCalls, call_with_timeout
from gateway.delivery.rate_limiter import Bucket, RateLimiter, account_bucket
from gateway.delivery.reachability import Reach
from gateway.runtime.tasks import Supervisor
from pipeline.domain.clock import Clock
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import AccountKey, ThreadKey
from pipeline.graph.execution.control import asked_to_stop

_log = logging.getLogger(__name__)

PATIENCE_S = 1.5
"""Seconds that submitted work waits for a running preview call before that call is interrupted."""
_RESERVE = 1
"""Calls that previews leave for the reply that follows them."""
_MOST_NOTICES = 3
IDLE_QUEUES = 2_000
"""When this many queues exist, the idle ones, which hold nothing but rate limits, are forgotten."""

T = TypeVar("T")


class PreviewInterrupted(TimeoutError):
    """A preview's call was interrupted for submitted work. The platform may or may not carry it out."""


Work = Callable[[], Awaitable[None]]
QueueKey = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class _ScheduledPreview:
    show: Work
    not_before: float


class ChatQueue:
    """The outbound calls of one chat of one account. Its task runs while there is work."""

    def __init__(
        self,
        name: str,
        limiter: RateLimiter,
        calls: PlatformCalls,
        reach: Reach,
        clock: Clock,
        supervisor: Supervisor,
        check: Callable[[], None],
    ) -> None:
        """`check` raises StorageError while no request of the account may leave."""
        self._name = name
        self._check = check
        self.limiter = limiter
        """Submitted work acquires it before each call that does not go through `calls`."""
        self.calls = calls
        """The calls of this chat, under `limiter`."""
        self.reach = reach
        """The account's reachability: it records successful calls and ends retry waits early."""
        self._clock = clock
        self._supervisor = supervisor
        self._work: deque[Work] = deque()
        self._previews: dict[str, _ScheduledPreview] = {}
        self._notices = 0
        self._changed = asyncio.Event()
        self._running = False
        self._preview: asyncio.Timeout | None = None
        """The timeout of the running preview call."""
        self._cancel_limit: Callable[[], None] | None = None
        """Cancels the interruption of that call."""

    def submit(self, work: Work) -> None:
        """Run `work` after everything submitted before it. `work` waits and retries by itself; an exception
        from it is logged."""
        self._work.append(work)
        self._limit_running_preview()
        self._start()

    async def droppable(self, call: Awaitable[T]) -> T:
        """Like `call_with_timeout`, for a preview's call. Raises PreviewInterrupted if the call is still
        running `PATIENCE_S` after work was submitted."""
        limit = self._clock.timeout(None)
        try:
            async with limit:
                self._preview = limit
                self._limit_running_preview()
                return await call_with_timeout(call, self._clock)
        except TimeoutError:
            if limit.expired():
                raise PreviewInterrupted("the call was given up for what waits behind it") from None
            raise
        finally:
            self._preview = None
            if self._cancel_limit is not None:
                self._cancel_limit()
                self._cancel_limit = None

    def _limit_running_preview(self) -> None:
        """Interrupt the running preview call after `PATIENCE_S` if submitted work waits for it."""
        limit = self._preview
        if limit is None or not self._work or self._cancel_limit is not None:
            return

        def cut() -> None:
            if limit is self._preview:
                limit.reschedule(asyncio.get_running_loop().time())

        self._cancel_limit = self._clock.call_after(PATIENCE_S, cut)

    def submit_notice(self, work: Work) -> None:
        """Like `submit`, for text that nothing depends on. It is dropped while `_MOST_NOTICES` notices wait,
        so that many notices do not delay the replies."""
        if self._notices >= _MOST_NOTICES:
            _log.info("a notice is left out", extra={"chat": self._name})
            return
        self._notices += 1

        async def counted() -> None:
            self._notices -= 1
            await work()

        self.submit(counted)

    def schedule_preview(self, key: str, show: Work, *, not_before: float) -> None:
        """Run `show` at `Clock.monotonic` time `not_before` or later, once no submitted work waits and the
        limiter allows more calls than a reply needs. A later call with the same `key` replaces this one."""
        self._previews[key] = _ScheduledPreview(show, not_before)
        if self._running:
            self._changed.set()
        else:
            self._start()

    def cancel_preview(self, key: str) -> None:
        """Drop the preview scheduled under `key`, if there is one."""
        self._previews.pop(key, None)
        self._changed.set()

    @property
    def has_work(self) -> bool:
        """Whether submitted work waits."""
        return bool(self._work)

    @property
    def is_free(self) -> bool:
        """Whether work that is submitted now runs at once and may make a call."""
        return not self._work and self._preview is None and self.limiter.wait_s() == 0.0

    @property
    def idle(self) -> bool:
        """Whether the queue can be forgotten: no work, and a limiter in its initial state."""
        return not self._running and self.limiter.idle

    def _start(self) -> None:
        self._changed.set()
        if not self._running:
            self._running = True
            self._supervisor.spawn(self._run(), name=f"chat queue {self._name}")

    async def _run(self) -> None:
        set_check(self._check)
        try:
            while self._work or self._previews:
                if self._work:
                    await self._guarded(self._work[0])
                    self._work.popleft()
                else:
                    await self._show_next()
        finally:
            self._running = False

    async def _show_next(self) -> None:
        key, offer = min(self._previews.items(), key=lambda item: item[1].not_before)
        wait = max(offer.not_before - self._clock.monotonic(), self.limiter.wait_s(reserve=_RESERVE))
        if wait > 0:
            self._changed.clear()
            try:
                async with self._clock.timeout(wait):
                    await self._changed.wait()
            except TimeoutError:
                pass
            return
        del self._previews[key]
        self.limiter.take()
        await self._guarded(offer.show)

    async def _guarded(self, work: Work) -> None:
        try:
            await work()
        except asyncio.CancelledError:
            if asked_to_stop():
                raise
            # Something that the work awaited was cancelled, not this queue.
            _log.exception("a chat queue continues without what was cancelled", extra={"chat": self._name})
        except Exception:  # noqa: BLE001 - a failed item must not block the items after it
            _log.exception("a chat queue continues without what failed", extra={"chat": self._name})


class ChatQueues:
    """The outbound queues of all chats."""

    def __init__(
        self,
        clock: Clock,
        supervisor: Supervisor,
        check: Callable[[AccountKey], None] = lambda _account: None,
    ) -> None:
        """`check` raises StorageError while this process may not send from an account."""
        self._clock = clock
        self._supervisor = supervisor
        self._check = check
        self._queues: OrderedDict[QueueKey, ChatQueue] = OrderedDict()
        self._buckets: dict[AccountKey, Bucket] = {}
        self._reaches: dict[AccountKey, Reach] = {}

    def queue_for(self, adapter: ChannelAdapter, thread: ThreadKey, *, private: bool) -> ChatQueue:
        """The chat's queue. All topics of a chat share one, because the platforms limit calls per chat."""
        key = (thread.channel, thread.account, thread.chat)
        queue = self._queues.get(key)
        if queue is None:
            self._forget_idle()
            queue = self._queues[key] = self._new(key, adapter, private=private)
        self._queues.move_to_end(key)
        return queue

    def is_empty(self, thread: ThreadKey) -> bool:
        """Whether no submitted work waits or runs in the thread's chat."""
        queue = self._queues.get((thread.channel, thread.account, thread.chat))
        return queue is None or not queue.has_work

    def __len__(self) -> int:
        return len(self._queues)

    def _new(self, key: QueueKey, adapter: ChannelAdapter, *, private: bool) -> ChatQueue:
        limits = adapter.capabilities.rates
        account = self._buckets.get(key[:2])
        if account is None:
            account = self._buckets[key[:2]] = account_bucket(self._clock, limits)
        limiter = RateLimiter.of_chat(self._clock, limits, account, private=private)
        reach = self._reaches.setdefault(key[:2], Reach(self._clock, adapter.health))
        calls = PlatformCalls(adapter, limiter, self._clock)
        check = partial(self._check, key[:2])
        return ChatQueue(":".join(key), limiter, calls, reach, self._clock, self._supervisor, check)

    def _forget_idle(self) -> None:
        if len(self._queues) < IDLE_QUEUES:
            return
        for key in [key for key, queue in self._queues.items() if queue.idle]:
            del self._queues[key]
