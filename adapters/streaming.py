"""Live output to readers of different speeds: a lossy queue per reader, and the answers in progress.

Not a broadcaster: the adapter or the gateway decides who subscribes to what.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import field, replace
from typing import Generic, TypeVar

from pipeline.domain.bounded_dict import BoundedDict
from pipeline.domain.clock import Clock
from pipeline.domain.events import (
    ApprovalRequired,
    ApprovalResolved,
    LlmToken,
    PipelineEvent,
    TurnStarted,
)
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import ThreadKey

T = TypeVar("T")


class LossyEventQueue(Generic[T]):
    """One reader's queue. When it is full, the oldest droppable item is dropped; no other item ever is.

    `soft_limit` counts all items, `hard_limit` the items that may not be dropped: beyond it the
    reader is too slow, the queue empties itself and ends, and `too_slow` says so. One reader only.
    """

    def __init__(self, *, soft_limit: int = 256, hard_limit: int = 2000) -> None:
        if not 0 < soft_limit <= hard_limit:
            raise ValueError("LossyEventQueue: expected 0 < soft_limit <= hard_limit")
        self._soft_limit = soft_limit
        self._hard_limit = hard_limit
        self._items: deque[T] = deque()
        self._droppable: deque[bool] = deque()
        """For each item whether it may be dropped."""
        self._waiting: asyncio.Future[None] | None = None
        """What the reader waits for while there is no item, until it is woken."""
        self._closed = False
        self.dropped = 0
        """Droppable items that this reader missed."""
        self.too_slow = False
        """The reader exceeded the hard limit; the queue has ended."""

    def __len__(self) -> int:
        return len(self._items)

    @property
    def closed(self) -> bool:
        """Whether the queue accepts no more items; queued ones can still be read."""
        return self._closed

    def put(self, item: T, *, droppable: bool = False) -> bool:
        """Queue `item`; False when the queue has ended or ends now because the reader is too slow.

        A droppable item may be dropped at once; the result is then still True.
        """
        if self._closed:
            return False
        if len(self._items) >= self._soft_limit and not self._makes_room(droppable=droppable):
            return not self.too_slow
        self._items.append(item)
        self._droppable.append(droppable)
        if self._waiting is not None:
            self._wake()
        return True

    def _makes_room(self, *, droppable: bool) -> bool:
        """Whether a full queue takes one more item: after it has dropped one, or beyond the soft limit. A
        queue at its hard limit ends."""
        if True in self._droppable:
            oldest = self._droppable.index(True)
            del self._items[oldest], self._droppable[oldest]
            self.dropped += 1
        elif droppable:
            self.dropped += 1
            return False
        elif len(self._items) >= self._hard_limit:
            self.too_slow = True
            self.take_all()
            self.close()
            return False
        return True

    def take_all(self) -> tuple[T, ...]:
        """Remove and return everything queued, oldest first."""
        items = tuple(self._items)
        self._items.clear()
        self._droppable.clear()
        return items

    def close(self) -> None:
        """Accept no more items; the reader gets the queued ones and then the end. Safe to repeat."""
        self._closed = True
        self._wake()

    async def next_items(self, most: int) -> Sequence[T]:
        """Remove and return the next items, oldest first: at least one, once there is one, and at most
        `most`. Empty at the end."""
        while not self._items:
            if self._closed:
                return ()
            self._waiting = waiting = asyncio.get_running_loop().create_future()
            try:
                await waiting
            finally:
                self._waiting = None
        if len(self._items) <= most:
            return self.take_all()
        for _ in range(most):
            self._droppable.popleft()
        return [self._items.popleft() for _ in range(most)]

    async def __aiter__(self) -> AsyncIterator[T]:
        while items := await self.next_items(1):
            yield items[0]

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveAnswer:
    """An answer in progress."""

    message_id: str
    text: str
    """The text of all `llm_token` events so far; may be empty."""
    approvals: tuple[ApprovalRequired | ApprovalResolved, ...] = ()
    """The questions of this turn, oldest first, each with the remaining time; a resolved one is followed by
    its resolution."""


@dataclass(slots=True)
class _Partial:
    pieces: list[str] = field(default_factory=list)
    chars: int = 0
    approvals: dict[str, tuple[ApprovalRequired, float]] = field(default_factory=dict)
    """Each with the monotonic time at which it was asked."""
    resolved: dict[str, ApprovalResolved] = field(default_factory=dict)


class LiveAnswers:
    """The answers in progress per thread, for readers that join late.

    Bounded: at most `max_answers` over all threads (the oldest is forgotten first), at most
    `max_chars` of each. What is cut off reaches the reader with the terminal event.
    """

    def __init__(self, clock: Clock, *, max_answers: int = 1000, max_chars: int = 200_000) -> None:
        self._clock = clock
        self._max_chars = max_chars
        self._partials = BoundedDict[tuple[str, str], _Partial](max_answers)

    def observe(self, thread: ThreadKey, event: PipelineEvent) -> None:
        """Process one event of `thread`, in the order in which readers get them."""
        # By its text: the hash of a key object is computed each time.
        key = (thread.text, event.message_id)
        if isinstance(event, LlmToken):
            partial = self._partials.get(key) or self._partial(key)
            if event.offset == partial.chars and partial.chars + len(event.text) <= self._max_chars:
                partial.pieces.append(event.text)
                partial.chars += len(event.text)
            else:
                self._append(partial, event)
        elif event.is_terminal:
            self._partials.pop(key, None)
        elif isinstance(event, TurnStarted):
            self._partial(key)
        # One with `paused` outlives its turn, a menu even begins after it: no answer is in progress.
        elif isinstance(event, ApprovalRequired) and not event.paused:
            self._partial(key).approvals[event.interaction_id] = (event, self._clock.monotonic())
        elif isinstance(event, ApprovalResolved) and key in self._partials:
            self._partials[key].resolved[event.interaction_id] = event

    def answers(self, thread: ThreadKey) -> tuple[LiveAnswer, ...]:
        """The answers in progress of `thread`, the longest running first."""
        return tuple(
            LiveAnswer(
                message_id=message_id,
                text="".join(partial.pieces),
                approvals=self._questions(partial),
            )
            for (owner, message_id), partial in self._partials.items()
            if owner == thread.text
        )

    def _questions(self, partial: _Partial) -> tuple[ApprovalRequired | ApprovalResolved, ...]:
        now = self._clock.monotonic()
        questions: list[ApprovalRequired | ApprovalResolved] = []
        for question, asked_at in partial.approvals.values():
            resolved = partial.resolved.get(question.interaction_id)
            left = question.timeout_s - (now - asked_at)
            if resolved is not None:
                questions += (question, resolved)
            elif not question.timeout_s:
                questions.append(question)
            elif left > 0:  # 0 would mean no limit; an expired one is about to be resolved
                questions.append(replace(question, timeout_s=left))
        return tuple(questions)

    def _partial(self, key: tuple[str, str]) -> _Partial:
        partial = self._partials.get(key)
        if partial is None:
            partial = self._partials[key] = _Partial()
        return partial

    def _append(self, partial: _Partial, event: LlmToken) -> None:
        if event.offset < partial.chars:
            # The turn restarted its answer: after a crash, or because a round was revised.
            kept = "".join(partial.pieces)[: max(0, event.offset)]
            partial.pieces[:] = [kept]
            partial.chars = len(kept)
        space = self._max_chars - partial.chars
        if event.offset > partial.chars or space <= 0:
            return
        piece = event.text[:space]
        partial.pieces.append(piece)
        partial.chars += len(piece)
