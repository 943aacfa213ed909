"""How much an account that is open to everybody takes in a day, in messages and in people."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.domain.clock import Clock

_DAY_S = 86_400
_MAX_TOLD = 1_000
"""People in a day who are told that they come too late; those after them are met with silence."""
_ENOUGH = (
    "You have reached the {messages} messages that one person may send in a day. Come back tomorrow (UTC)."
)
_CROWDED = "{people} people have written today, and I take no more. Come back tomorrow (UTC)."


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaExceeded:
    """A bound was reached."""

    reason: str
    words: str
    """For the person, once a day; empty after that."""


class DailyQuota:
    """Counts by the clock's UTC day. It keeps one day, and in it no more people than it lets in or tells."""

    def __init__(self, clock: Clock, *, messages: int, people: int) -> None:
        self._clock = clock
        self._messages = messages
        self._people = people
        self._day = 0
        self._sent: dict[str, int] = {}
        self._told: set[str] = set()
        self._counted: set[str] = set()

    def admit(self, user: str, *, event: str = "") -> QuotaExceeded | None:
        """None, and the message is counted; or which bound is in its way. `event` is the platform's identity
        of the message, which is counted once however often it is delivered; empty for what costs nothing."""
        today = int(self._clock.now() // _DAY_S)
        if today != self._day:
            self._day = today
            self._sent.clear()
            self._told.clear()
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
        tell = user not in self._told and len(self._told) < self._people + _MAX_TOLD
        if tell:
            self._told.add(user)
        return QuotaExceeded(reason=reason, words=words if tell else "")
