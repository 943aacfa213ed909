"""Limit the messages that one person may send in a minute, over all chats: counted in memory at the inbox.

Commands and answers to questions are not counted, so that a person at the limit can still stop a turn. A
restart resets the counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

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

    def __init__(self, limit: int, clock: Clock) -> None:
        self._limit = limit
        self._clock = clock
        self._sent = BoundedDict[_Person, SlidingWindow](max(100, _MOST_STAMPS // limit))

    @contextmanager
    def reserve(self, message: InboundMessage | SessionCommand) -> Iterator[Reservation]:
        """Reserve a message of the limit while `message` is accepted; released on exit unless `used` was
        set. So concurrent messages of one person cannot exceed the limit."""
        sent, now = self._of(message), self._clock.monotonic()
        reservation = Reservation(wait_s=sent.wait_s(now))
        if reservation.wait_s > 0:
            yield reservation
            return
        sent.add(now)
        try:
            yield reservation
        finally:
            if not reservation.used:
                sent.remove(now)

    def words(self, reservation: Reservation) -> str:
        """The text for the person: why the message was refused, and when to send again."""
        seconds = math.ceil(reservation.wait_s)
        return _WORDS.format(limit=self._limit, seconds=f"{seconds} second{'s' if seconds != 1 else ''}")

    def _of(self, message: InboundMessage | SessionCommand) -> SlidingWindow:
        person = (message.thread.channel, message.thread.account, message.author.id)
        return self._sent.get_or_add(person, lambda: SlidingWindow(self._limit, WINDOW_S))
