"""Limit the messages and people per day of an account that is open to everybody."""

from __future__ import annotations

from pipeline.domain.clock import Clock
from pipeline.domain.frozen import dataclass

_DAY_S = 86_400
_MAX_NOTIFIED = 1_000
"""People per day who get a refusal after the limit; further ones get no reply."""
_ENOUGH = (
    "You have reached the {messages} messages that one person may send in a day. Come back tomorrow (UTC)."
)
_CROWDED = "{people} people have written today, and I take no more. Come back tomorrow (UTC)."


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaExceeded:
    """A limit was reached."""

    reason: str
    words: str
    """The text for the person, once a day; empty after that."""


class DailyQuota:
    """Counts messages and people per UTC day. Keeps one day, and only people it admitted or notified.

    Not a `SlidingWindow`: the counts end at midnight UTC, by the wall clock.
    """

    def __init__(self, clock: Clock, *, messages: int, people: int) -> None:
        self._clock = clock
        self._messages = messages
        self._people = people
        self._day = 0
        self._sent: dict[str, int] = {}
        self._notified: set[str] = set()
        self._counted: set[str] = set()

    def admit(self, user: str, *, event: str = "") -> QuotaExceeded | None:
        """Count a message and return None, or return the limit that it exceeds. `event` is the platform's
        identity of the message, which counts once however often it is delivered; empty for a free item."""
        today = int(self._clock.now() // _DAY_S)
        if today != self._day:
            self._day = today
            self._sent.clear()
            self._notified.clear()
            self._counted.clear()
        if event in self._counted:
            return None
        sent = self._sent.get(user)
        if sent is None and len(self._sent) >= self._people:
            return self._refuse(user, f"{self._people} people today", _CROWDED.format(people=self._people))
        if event and (sent or 0) >= self._messages:
            words = _ENOUGH.format(messages=self._messages)
            return self._refuse(user, f"{self._messages} messages today", words)
        self._sent[user] = (sent or 0) + bool(event)
        if event:
            self._counted.add(event)
        return None

    def _refuse(self, user: str, reason: str, words: str) -> QuotaExceeded:
        notify = user not in self._notified and len(self._notified) < self._people + _MAX_NOTIFIED
        if notify:
            self._notified.add(user)
        return QuotaExceeded(reason=reason, words=words if notify else "")
