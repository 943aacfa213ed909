"""Deliver received items to the inbox: one queue per chat, one item at a time, without loss.

Discord's gateway takes no acknowledgement, so items that the inbox could not store are kept here and
retried. A queue that grows too long drops its items, remembers the first id, and fetches them again later;
every known chat does the same after a lost session. The inbox recognises known items.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import field

from adapters.channel import Acceptance, OnInbound
from pipeline.domain.clock import Clock
from pipeline.domain.errors import InvalidInput
from pipeline.domain.frozen import dataclass
from pipeline.domain.messages import Inbound

_log = logging.getLogger(__name__)

Missed = Callable[[str, int], AsyncIterator[Inbound]]
"""(chat, id) -> the messages of the chat with greater ids, oldest first."""

_MOST_IN_QUEUE = 200
_MOST_IN_ALL = 2_000
_FIRST_RETRY_S = 0.5
_LONGEST_RETRY_S = 30.0
_BUSY = "Too much is waiting right now. Please try again in a moment."
_FAILED = "That did not work. Please try again in a moment."


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReceivedItem:
    """One item for the inbox."""

    item: Inbound
    place: int = 0
    """The message's id, from which on the chat can be fetched again; 0 for items that cannot be fetched."""
    outcome: asyncio.Future[Acceptance] | None = None
    """Set where a person waits for it: such an item is tried only once."""


@dataclass(slots=True, eq=False)
class _ChatQueue:
    jobs: deque[ReceivedItem] = field(default_factory=deque)
    current: ReceivedItem | None = None
    after: int | None = None
    """If set, messages with greater ids are fetched before any other item is delivered."""
    fetching: int | None = None
    """If set, messages with greater ids are being fetched."""

    def first_open(self) -> int | None:
        """The id after which some message is not delivered; None when nothing can be fetched."""
        jobs = self.jobs if self.current is None else (self.current, *self.jobs)
        places = [job.place - 1 for job in jobs if job.place]
        places += [place for place in (self.after, self.fetching) if place is not None]
        return min(places, default=None)


class InboundQueues:
    """Runs in `tasks` and ends with them. Delivery is suspended between `hold` and `release`."""

    def __init__(self, tasks: asyncio.TaskGroup, on_inbound: OnInbound, missed: Missed, clock: Clock) -> None:
        self._tasks = tasks
        self._on_inbound = on_inbound
        self._missed = missed
        self._clock = clock
        self._queues: dict[str, _ChatQueue] = {}
        self._waiting = 0
        self._released = asyncio.Event()
        self._released.set()

    def put(self, chat: str, job: ReceivedItem) -> None:
        """Append `job` to the queue of `chat`."""
        queue = self._queue(chat)
        if len(queue.jobs) >= _MOST_IN_QUEUE or self._waiting >= _MOST_IN_ALL:
            self._overflow(chat, queue, job)
            return
        queue.jobs.append(job)
        self._waiting += 1

    def hold(self) -> None:
        """Deliver nothing until `release`: older messages may have been missed."""
        self._released.clear()

    def release(self, seen: Mapping[str, int]) -> None:
        """Resume; each chat of `seen` is first fetched from the given id on."""
        for chat, after in seen.items():
            queue = self._queue(chat)
            queue.after = after if queue.after is None else min(after, queue.after)
        self._released.set()

    def unfinished(self) -> dict[str, int]:
        """By chat, the id after which some received message was not delivered."""
        gaps = {chat: queue.first_open() for chat, queue in self._queues.items()}
        return {chat: after for chat, after in gaps.items() if after is not None}

    def _queue(self, chat: str) -> _ChatQueue:
        queue = self._queues.get(chat)
        if queue is None:
            queue = self._queues[chat] = _ChatQueue()
            self._tasks.create_task(self._work(chat, queue))
        return queue

    def _overflow(self, chat: str, queue: _ChatQueue, job: ReceivedItem) -> None:
        queue.jobs.append(job)
        queue.after = queue.first_open()
        dropped = list(queue.jobs)
        self._waiting -= len(dropped) - 1
        queue.jobs.clear()
        for one in dropped:
            if one.outcome is not None and not one.outcome.done():
                refused = Acceptance(status="refused", message_id=one.item.message_id, reason=_BUSY)
                one.outcome.set_result(refused)
        _log.warning("discord: %d items of chat %s wait too long; fetching them later", len(dropped), chat)

    async def _work(self, chat: str, queue: _ChatQueue) -> None:
        await self._released.wait()
        while queue.jobs or queue.after is not None:
            if queue.after is not None:
                queue.fetching, queue.after = queue.after, None
                async for item in self._missed(chat, queue.fetching):
                    await self._offer(ReceivedItem(item=item))
                queue.fetching = None
            else:
                queue.current = queue.jobs.popleft()
                self._waiting -= 1
                await self._offer(queue.current)
                queue.current = None
            await self._released.wait()
        del self._queues[chat]

    async def _offer(self, job: ReceivedItem) -> None:
        wait_s = _FIRST_RETRY_S
        while True:
            try:
                acceptance = await self._on_inbound(job.item)
            except InvalidInput:
                _log.exception(
                    "discord: an item was refused for good", extra={"native_id": job.item.native_id}
                )
                acceptance = Acceptance(status="refused", message_id=job.item.message_id, reason=_FAILED)
            except Exception as error:  # noqa: BLE001 - the item is kept after any failure
                _log.warning("discord: the inbox did not take an item (%s)", type(error).__name__)
                if job.outcome is None:
                    await self._clock.sleep(wait_s)
                    wait_s = min(_LONGEST_RETRY_S, 2 * wait_s)
                    continue
                acceptance = Acceptance(status="refused", message_id=job.item.message_id, reason=_FAILED)
            if job.outcome is not None and not job.outcome.done():
                job.outcome.set_result(acceptance)
            return
