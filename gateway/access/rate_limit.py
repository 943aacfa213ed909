"""How many messages one person may send in a minute, whatever the chat: counted at the door, in memory.

Not here: what a message means. Commands and answers to questions are not counted, or nobody could stop
what they have set going. A restart forgets the counts, and nothing else.
"""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pipeline.domain.clock import Clock
from pipeline.domain.messages import InboundMessage

WINDOW_S = 60.0
_MOST_STAMPS = 300_000
"""Arrival times in memory, of everybody together: about 10 MB."""
_WORDS = "Please slow down: you may send {limit} messages a minute. Go on in {seconds}."

_Person = tuple[str, str, str]


@dataclass(slots=True, kw_only=True)
class Reservation:
    """What the quota says to one message."""

    wait_s: float = 0.0
    """Seconds until its author may send again; 0 where the message may come in."""
    used: bool = False
    """Set by whoever took the message in: it counts. A redelivery, and what found no room, does not."""


class RateLimit:
    """At most `limit` messages (1 or more) of one person in any 60 seconds. A person is a user of one account
    of one channel. Those who have not written for longest are forgotten first."""

    def __init__(self, limit: int, clock: Clock) -> None:
        self._limit = limit
        self._clock = clock
        self._most_people = max(100, _MOST_STAMPS // limit)
        self._sent: OrderedDict[_Person, deque[float]] = OrderedDict()

    @contextmanager
    def place(self, message: InboundMessage) -> Iterator[Reservation]:
        """Hold a place for `message` while it is taken in; it is given back unless it was used. Messages of
        one person that arrive at once cannot have more places than there are."""
        sent, now = self._of(message), self._clock.monotonic()
        while sent and now - sent[0] >= WINDOW_S:
            sent.popleft()
        if len(sent) >= self._limit:
            yield Reservation(wait_s=sent[0] + WINDOW_S - now)
            return
        place = Reservation()
        sent.append(now)
        try:
            yield place
        finally:
            if not place.used and now in sent:
                sent.remove(now)

    def words(self, place: Reservation) -> str:
        """Why a message was refused, and when to go on."""
        seconds = math.ceil(place.wait_s)
        return _WORDS.format(limit=self._limit, seconds=f"{seconds} second{'s' if seconds != 1 else ''}")

    def _of(self, message: InboundMessage) -> deque[float]:
        thread = message.thread
        person = (thread.channel, thread.account, message.author.id)
        sent = self._sent.setdefault(person, deque())
        self._sent.move_to_end(person)
        if len(self._sent) > self._most_people:
            self._sent.popitem(last=False)
        return sent
