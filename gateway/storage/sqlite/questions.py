"""Track which threads may have pending interactions; a text message in any other thread needs no read."""

from __future__ import annotations

import sqlite3

_OPEN = """
    SELECT t.key, max(i.expires_at) FROM interactions AS i JOIN threads AS t ON t.id = i.thread
    WHERE answered_at IS NULL GROUP BY t.key"""


class QuestionThreads:
    """The expiry of each thread's last pending interaction. It may contain a thread without any, but misses
    none: a new interaction is recorded before it is written."""

    def __init__(self) -> None:
        self._ends: dict[str, float] = {}

    @staticmethod
    def read(db: sqlite3.Connection) -> dict[str, float]:
        """The expiries in the store's file, by thread key, in Unix seconds."""
        return dict(db.execute(_OPEN))

    def reset(self, ends: dict[str, float]) -> None:
        """Start with the result of `read`."""
        self._ends = ends

    def note(self, thread: str, expires_at: float) -> None:
        """Record an interaction of `thread` that is about to be written."""
        self._ends[thread] = max(expires_at, self._ends.get(thread, expires_at))

    def may_have(self, thread: str, now: float) -> bool:
        """Whether the thread can have an interaction that has not expired at `now`."""
        ends = self._ends.get(thread)
        if ends is None:
            return False
        if ends <= now:
            del self._ends[thread]
            return False
        return True
