"""Limit the messages that one person may send in a minute, over all chats: counted in memory at the inbox.

Commands and answers to questions are not counted, so that a person at the limit can still stop a turn. A
restart resets the counts, unless processes share them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from gateway.cluster.shared_counts import SharedCounts
from pipeline.domain.bounded_dict import BoundedDict
from pipeline.domain.clock import Clock
from pipeline.domain.messages import InboundMessage, SessionCommand
from pipeline.domain.rates import SlidingWindow

WINDOW_S = 60.0
_MOST_STAMPS = 300_000
"""The most arrival times in memory, over all people: about 10 MB."""
_WORDS = "Please slow down: you may send {limit} messages a minute. Continue in {seconds}."

_Person = tuple[str, str, str]


@dataclass(slots=True, kw_only=True)
class Reservation:
    """The rate limit's decision about one message."""

    wait_s: float = 0.0
    """Seconds until its author may send again; 0 if the message may be accepted."""
    used: bool = False
    """Set by the caller when the message was accepted, so that it counts. A redelivery, or a message refused
    by a full queue, does not count."""


class RateLimit:
    """At most `limit` messages (1 or more) of one person in any 60 seconds. A person is a user of one account
    of one channel. The least recently active people are forgotten first."""

    def __init__(
        self,
        limit: int,
        clock: Clock,
        shared: SharedCounts | None = None,
        start: Callable[[Coroutine[Any, Any, None]], object] | None = None,
    ) -> None:
        """Processes that share counts give them and `start`, which runs work in the background."""
        self._limit = limit
        self._clock = clock
        self.shared = shared
        self._start = start
        self._sent = BoundedDict[_Person, SlidingWindow](max(100, _MOST_STAMPS // limit))

    async def others(self, message: InboundMessage | SessionCommand) -> tuple[float, ...]:
        """How many seconds ago other processes have counted messages of the author."""
        if self.shared is None:
            return ()
        return await self.shared.others(_shared_key(message), window_s=WINDOW_S)

    @contextmanager
    def reserve(
        self, message: InboundMessage | SessionCommand, others: Sequence[float] = ()
    ) -> Iterator[Reservation]:
        """Reserve a message of the limit while `message` is accepted; released on exit unless `used` was
        set. So concurrent messages of one person cannot exceed the limit. `others` count too."""
        sent, now = self._of(message), self._clock.monotonic()
        wait_s = sent.wait_s(now)
        if others:
            wait_s = max(wait_s, self._wait_s([*sent.ages(now), *others]))
        reservation = Reservation(wait_s=wait_s)
        if reservation.wait_s > 0:
            yield reservation
            return
        sent.add(now)
        try:
            yield reservation
        finally:
            if not reservation.used:
                sent.remove(now)
            elif self.shared is not None and self._start is not None:
                self._start(self.shared.note(_shared_key(message), window_s=WINDOW_S))

    def words(self, reservation: Reservation) -> str:
        """The text for the person: why the message was refused, and when to send again."""
        seconds = math.ceil(reservation.wait_s)
        return _WORDS.format(limit=self._limit, seconds=f"{seconds} second{'s' if seconds != 1 else ''}")

    def _wait_s(self, ages: list[float]) -> float:
        """Seconds until there are fewer than the limit again."""
        if len(ages) < self._limit:
            return 0.0
        return max(0.0, WINDOW_S - sorted(ages)[self._limit - 1])

    def _of(self, message: InboundMessage | SessionCommand) -> SlidingWindow:
        person = (message.thread.channel, message.thread.account, message.author.id)
        return self._sent.get_or_add(person, lambda: SlidingWindow(self._limit, WINDOW_S))


def _shared_key(message: InboundMessage | SessionCommand) -> str:
    thread = message.thread
    return f"messages {thread.channel} {thread.account} {message.author.id}"
