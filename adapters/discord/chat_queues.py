"""What came in, on its way to the inbox: one lane per chat, one item at a time, none lost on the way.

The gateway of Discord takes no acknowledgement, so what the inbox could not take is kept here and offered
again. A lane with too much in it forgets it all, remembers where that began, and fetches it anew later;
the same happens to every known chat after a lost session. The inbox tells what it has already.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field

from adapters.channel import Acceptance, OnInbound
from pipeline.domain.clock import Clock
from pipeline.domain.errors import InvalidInput
from pipeline.domain.messages import Inbound

_log = logging.getLogger(__name__)

Missed = Callable[[str, int], AsyncIterator[Inbound]]
"""(chat, id) -> the messages of the chat after the id, oldest first."""

_MOST_IN_LANE = 200
_MOST_IN_ALL = 2_000
_FIRST_RETRY_S = 0.5
_LONGEST_RETRY_S = 30.0
_BUSY = "Too much is waiting right now. Please try again in a moment."
_FAILED = "That did not work. Please try again in a moment."


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Job:
    """One item for the inbox."""

    item: Inbound
    place: int = 0
    """The message's own id, from which on the chat can be fetched again; 0 for what cannot be."""
    outcome: asyncio.Future[Acceptance] | None = None
    """Set for a person who waits for it: such an item is offered once."""


@dataclass(slots=True, eq=False)
class _ChatQueue:
    jobs: deque[Job] = field(default_factory=deque)
    current: Job | None = None
    after: int | None = None
    """The chat is to be fetched from here on, before anything else of it is offered."""
    fetching: int | None = None
    """It is being fetched from here on."""

    def first_open(self) -> int | None:
        """The id after which something of the chat is not handed over; None when nothing can be fetched."""
        jobs = self.jobs if self.current is None else (self.current, *self.jobs)
        places = [job.place - 1 for job in jobs if job.place]
        places += [place for place in (self.after, self.fetching) if place is not None]
        return min(places, default=None)


class ChatQueues:
    """Runs in `tasks`; ends with them. `hold` and `release` bracket the question what was missed."""

    def __init__(self, tasks: asyncio.TaskGroup, on_inbound: OnInbound, missed: Missed, clock: Clock) -> None:
        self._tasks = tasks
        self._on_inbound = on_inbound
        self._missed = missed
        self._clock = clock
        self._lanes: dict[str, _ChatQueue] = {}
        self._waiting = 0
        self._released = asyncio.Event()
        self._released.set()

    def put(self, chat: str, job: Job) -> None:
        """Queue `job` behind what came before it in `chat`."""
        lane = self._lane(chat)
        if len(lane.jobs) >= _MOST_IN_LANE or self._waiting >= _MOST_IN_ALL:
            self._overflow(chat, lane, job)
            return
        lane.jobs.append(job)
        self._waiting += 1

    def hold(self) -> None:
        """Offer nothing until `release`: older messages may have been missed."""
        self._released.clear()

    def release(self, seen: Mapping[str, int]) -> None:
        """Go on; each chat of `seen` is fetched from the given id on before anything else of it."""
        for chat, after in seen.items():
            lane = self._lane(chat)
            lane.after = after if lane.after is None else min(after, lane.after)
        self._released.set()

    def unfinished(self) -> dict[str, int]:
        """By chat, the id from which on something heard was not handed over."""
        gaps = {chat: lane.first_open() for chat, lane in self._lanes.items()}
        return {chat: after for chat, after in gaps.items() if after is not None}

    def _lane(self, chat: str) -> _ChatQueue:
        lane = self._lanes.get(chat)
        if lane is None:
            lane = self._lanes[chat] = _ChatQueue()
            self._tasks.create_task(self._work(chat, lane))
        return lane

    def _overflow(self, chat: str, lane: _ChatQueue, job: Job) -> None:
        lane.jobs.append(job)
        lane.after = lane.first_open()
        dropped = list(lane.jobs)
        self._waiting -= len(dropped) - 1
        lane.jobs.clear()
        for one in dropped:
            if one.outcome is not None and not one.outcome.done():
                refused = Acceptance(status="refused", message_id=one.item.message_id, reason=_BUSY)
                one.outcome.set_result(refused)
        _log.warning("discord: %d items of chat %s wait too long; fetching them later", len(dropped), chat)

    async def _work(self, chat: str, lane: _ChatQueue) -> None:
        await self._released.wait()
        while lane.jobs or lane.after is not None:
            if lane.after is not None:
                lane.fetching, lane.after = lane.after, None
                async for item in self._missed(chat, lane.fetching):
                    await self._offer(Job(item=item))
                lane.fetching = None
            else:
                lane.current = lane.jobs.popleft()
                self._waiting -= 1
                await self._offer(lane.current)
                lane.current = None
            await self._released.wait()
        del self._lanes[chat]

    async def _offer(self, job: Job) -> None:
        wait_s = _FIRST_RETRY_S
        while True:
            try:
                acceptance = await self._on_inbound(job.item)
            except InvalidInput:
                _log.exception(
                    "discord: an item was refused for good", extra={"native_id": job.item.native_id}
                )
                acceptance = Acceptance(status="refused", message_id=job.item.message_id, reason=_FAILED)
            except Exception as error:  # noqa: BLE001 - whatever it is, the item is kept
                _log.warning("discord: the inbox did not take an item (%s)", type(error).__name__)
                if job.outcome is None:
                    await self._clock.sleep(wait_s)
                    wait_s = min(_LONGEST_RETRY_S, 2 * wait_s)
                    continue
                acceptance = Acceptance(status="refused", message_id=job.item.message_id, reason=_FAILED)
            if job.outcome is not None and not job.outcome.done():
                job.outcome.set_result(acceptance)
            return
