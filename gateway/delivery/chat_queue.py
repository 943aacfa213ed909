"""Lanes: one chat's outbound calls one after the other, what must arrive before what may be left out.

A lane knows order and pace, not what is sent: `delivery` submits the replies, `live` offers previews. Their
calls go through `call_with_timeout`, so that none holds a chat up for ever.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from adapters.channel import ChannelAdapter
from gateway.delivery.platform_calls import call_with_timeout
from gateway.delivery.rate_limiter import Bucket, RateLimiter, account_bucket
from gateway.delivery.reachability import Reach
from gateway.runtime.tasks import Supervisor
from pipeline.domain.clock import Clock
from pipeline.domain.ids import ThreadKey
from pipeline.graph.execution.control import asked_to_stop

_log = logging.getLogger(__name__)

PATIENCE_S = 1.5
"""What must arrive waits this long for a preview's call that is under way, and not longer."""
_RESERVE = 1
"""Calls that previews leave for the reply that follows them."""
_MOST_NOTICES = 3
IDLE_LANES = 2_000
"""Lanes remembered for their pace alone."""

T = TypeVar("T")


class CutShort(TimeoutError):
    """A preview's call was given up for what must arrive: nobody knows what it did, or still does."""


Work = Callable[[], Awaitable[None]]
LaneKey = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class _Offer:
    show: Work
    not_before: float


class ChatQueue:
    """One chat of one account. Its task lives while there is something to do."""

    def __init__(
        self, name: str, allowance: RateLimiter, reach: Reach, clock: Clock, supervisor: Supervisor
    ) -> None:
        self._name = name
        self.allowance = allowance
        """What its work has to acquire before each call."""
        self.reach = reach
        """The account's: told of calls that worked, asked how long to wait after one that did not."""
        self._clock = clock
        self._supervisor = supervisor
        self._work: deque[Work] = deque()
        self._offers: dict[str, _Offer] = {}
        self._notices = 0
        self._changed = asyncio.Event()
        self._running = False
        self._preview: asyncio.Timeout | None = None
        """Of the preview's call that is under way."""
        self._keep_preview: Callable[[], None] | None = None
        """Calls off the end of that call."""

    def submit(self, work: Work) -> None:
        """Run `work` after everything submitted before it. It waits and retries by itself; what it raises
        is logged."""
        self._work.append(work)
        self._hurry()
        self._start()

    async def droppable(self, call: Awaitable[T]) -> T:
        """Like `call_with_timeout`, for a preview's call. Raises CutShort `PATIENCE_S` after something was
        submitted that waits for its end."""
        limit = self._clock.timeout(None)
        try:
            async with limit:
                self._preview = limit
                self._hurry()
                return await call_with_timeout(call, self._clock)
        except TimeoutError:
            if limit.expired():
                raise CutShort("the call was given up for what waits behind it") from None
            raise
        finally:
            self._preview = None
            if self._keep_preview is not None:
                self._keep_preview()
                self._keep_preview = None

    def _hurry(self) -> None:
        """End the preview's call soon, where something that must arrive waits for it."""
        limit = self._preview
        if limit is None or not self._work or self._keep_preview is not None:
            return

        def cut() -> None:
            if limit is self._preview:
                limit.reschedule(asyncio.get_running_loop().time())

        self._keep_preview = self._clock.call_after(PATIENCE_S, cut)

    def submit_notice(self, work: Work) -> None:
        """Like `submit`, for words that nothing depends on: left out while others of the kind wait, so that
        a crowd that is told something does not hold the replies up."""
        if self._notices >= _MOST_NOTICES:
            _log.info("a notice is left out", extra={"lane": self._name})
            return
        self._notices += 1

        async def counted() -> None:
            self._notices -= 1
            await work()

        self.submit(counted)

    def offer(self, key: str, show: Work, *, not_before: float) -> None:
        """Run `show` once nothing submitted waits, from `Clock.monotonic` time `not_before` on, and when
        more calls are allowed than a reply needs. A newer offer under `key` takes the older one's place."""
        self._offers[key] = _Offer(show, not_before)
        self._start()

    def withdraw(self, key: str) -> None:
        """Forget an offer."""
        self._offers.pop(key, None)
        self._changed.set()

    @property
    def idle(self) -> bool:
        """Whether nothing is lost when the lane is forgotten."""
        return not self._running and self.allowance.idle

    def _start(self) -> None:
        self._changed.set()
        if not self._running:
            self._running = True
            self._supervisor.spawn(self._run(), name=f"lane {self._name}")

    async def _run(self) -> None:
        try:
            while self._work or self._offers:
                if self._work:
                    await self._guarded(self._work[0])
                    self._work.popleft()
                else:
                    await self._show_next()
        finally:
            self._running = False

    async def _show_next(self) -> None:
        key, offer = min(self._offers.items(), key=lambda item: item[1].not_before)
        wait = max(offer.not_before - self._clock.monotonic(), self.allowance.wait_s(reserve=_RESERVE))
        if wait > 0:
            self._changed.clear()
            try:
                async with self._clock.timeout(wait):
                    await self._changed.wait()
            except TimeoutError:
                pass
            return
        del self._offers[key]
        self.allowance.take()
        await self._guarded(offer.show)

    async def _guarded(self, work: Work) -> None:
        try:
            await work()
        except asyncio.CancelledError:
            if asked_to_stop():
                raise
            # Something that the work waited for was cancelled, not this lane.
            _log.exception("a lane goes on without what was cancelled", extra={"lane": self._name})
        except Exception:  # noqa: BLE001 - whatever is wrong with this one, those behind it leave
            _log.exception("a lane goes on without what failed", extra={"lane": self._name})


class ChatQueues:
    """The lanes of all chats."""

    def __init__(self, clock: Clock, supervisor: Supervisor) -> None:
        self._clock = clock
        self._supervisor = supervisor
        self._lanes: OrderedDict[LaneKey, ChatQueue] = OrderedDict()
        self._buckets: dict[tuple[str, str], Bucket] = {}
        self._reaches: dict[tuple[str, str], Reach] = {}

    def lane(self, adapter: ChannelAdapter, thread: ThreadKey, *, private: bool) -> ChatQueue:
        """The chat's lane; all topics of a chat share one, as the platforms count by chat."""
        key = (thread.channel, thread.account, thread.chat)
        lane = self._lanes.get(key)
        if lane is None:
            self._forget_idle()
            lane = self._lanes[key] = self._new(key, adapter, private=private)
        self._lanes.move_to_end(key)
        return lane

    def __len__(self) -> int:
        return len(self._lanes)

    def _new(self, key: LaneKey, adapter: ChannelAdapter, *, private: bool) -> ChatQueue:
        limits = adapter.capabilities.rates
        account = self._buckets.get(key[:2])
        if account is None:
            account = self._buckets[key[:2]] = account_bucket(self._clock, limits)
        allowance = RateLimiter.of_chat(self._clock, limits, account, private=private)
        reach = self._reaches.setdefault(key[:2], Reach(self._clock, adapter.health))
        return ChatQueue(":".join(key), allowance, reach, self._clock, self._supervisor)

    def _forget_idle(self) -> None:
        if len(self._lanes) < IDLE_LANES:
            return
        for key in [key for key, lane in self._lanes.items() if lane.idle]:
            del self._lanes[key]
