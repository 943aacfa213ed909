"""Limit the messages and people per day of an account that is open to everybody, in one process or in all of
them."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

from gateway.storage.usage import Spent, UsageBook
from pipeline.domain.clock import Clock
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import AccountKey

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
        self._begin_day()
        if event in self._counted:
            return None
        sent = self._sent.get(user)
        if sent is None and len(self._sent) >= self._people:
            return self.crowded(user)
        if event and (sent or 0) >= self._messages:
            return self.enough(user)
        self._sent[user] = (sent or 0) + bool(event)
        if event:
            self._counted.add(event)
        return None

    def counts(self, event: str) -> bool:
        """Whether `admit` would count the event, which it has not seen today."""
        self._begin_day()
        return bool(event) and event not in self._counted

    def enough(self, user: str) -> QuotaExceeded:
        """The refusal of a person who has sent all their messages."""
        self._begin_day()
        words = _ENOUGH.format(messages=self._messages)
        return self._refuse(user, f"{self._messages} messages today", words)

    def crowded(self, user: str) -> QuotaExceeded:
        """The refusal of a person for whom there is no place today."""
        self._begin_day()
        return self._refuse(user, f"{self._people} people today", _CROWDED.format(people=self._people))

    def _begin_day(self) -> None:
        today = int(self._clock.now() // _DAY_S)
        if today != self._day:
            self._day = today
            self._sent.clear()
            self._notified.clear()
            self._counted.clear()

    def _refuse(self, user: str, reason: str, words: str) -> QuotaExceeded:
        notify = user not in self._notified and len(self._notified) < self._people + _MAX_NOTIFIED
        if notify:
            self._notified.add(user)
        return QuotaExceeded(reason=reason, words=words if notify else "")


class SharedDailyQuota:
    """The same limits over all processes that receive on an account, at once or one after the other: each
    message is counted in the store, which returns the sum. People are stored as hashes."""

    def __init__(
        self, clock: Clock, usage: UsageBook, account: AccountKey, *, messages: int, people: int
    ) -> None:
        self._clock = clock
        self._usage = usage
        self._account = account
        self._messages = messages
        self._people = people
        self._own = DailyQuota(clock, messages=messages, people=people + _MAX_NOTIFIED)
        """Knows what was counted. People whom the store refuses take places in it too."""
        self._limits = DailyQuota(clock, messages=messages, people=people)
        """Refuses."""

    async def admit(self, user: str, *, event: str = "") -> QuotaExceeded | None:
        """As `DailyQuota.admit`. Raises StorageError."""
        counts = self._own.counts(event)
        refused = self._own.admit(user, event=event)
        if refused is not None or not counts:
            return refused
        sent = await self._add(user, 1)
        if sent == 1 and await self._add("", 1) > self._people:
            # They have no place today, with their next message neither.
            await self._add("", -1)
            await self._add(user, -1)
            return self._limits.crowded(user)
        return self._limits.enough(user) if sent > self._messages else None

    async def _add(self, user: str, number: int) -> int:
        """Count messages of a person, or people where it is empty; today's sum."""
        day = datetime.fromtimestamp(self._clock.now(), UTC).date().isoformat()
        who = "\0".join((*self._account, user))
        scope = f"open:{hashlib.sha256(who.encode('utf-8', 'surrogatepass')).hexdigest()}"
        return (await self._usage.add(day, [scope], Spent(tokens=number)))[scope].tokens
