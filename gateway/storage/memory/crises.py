"""The records of crisis responses, in dictionaries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gateway.storage.crises import CrisisDay, CrisisRecord, day_of, oldest_kept
from gateway.storage.json_bodies import storable_text


class MemoryCrises:
    """A part of `MemoryStore`. `require_open` raises StorageError if the store is closed."""

    def __init__(self, require_open: Callable[[], None]) -> None:
        self._require_open = require_open
        self._records: dict[str, CrisisRecord] = {}
        self._days: dict[tuple[str, int, str], CrisisDay] = {}

    def add_now(self, record: CrisisRecord | None) -> None:
        """Add a record, if there is one, and count it, unless it is there."""
        if record is None or record.id in self._records:
            return
        user = None if record.user is None else storable_text(record.user)
        self._records[record.id] = replace(record, user=user)
        key = (day_of(record.at), record.level, record.path)
        known = self._days.get(key) or CrisisDay(
            day=key[0], level=key[1], path=key[2], events=0, llm_failures=0, completed=0
        )
        self._days[key] = replace(
            known,
            events=known.events + 1,
            llm_failures=known.llm_failures + record.llm_failed,
            completed=known.completed + record.completed,
        )

    async def count_failure(self, *, at: float, level: int) -> None:
        self._require_open()
        key = (day_of(at), level, "deterministic")
        known = self._days.get(key) or CrisisDay(
            day=key[0], level=key[1], path=key[2], events=0, llm_failures=0, completed=0
        )
        self._days[key] = replace(known, llm_failures=known.llm_failures + 1)

    async def listed(self, *, limit: int) -> tuple[CrisisRecord, ...]:
        self._require_open()
        found = sorted(self._records.values(), key=lambda one: (one.at, one.id), reverse=True)
        return tuple(found[:limit])

    async def days(self) -> tuple[CrisisDay, ...]:
        self._require_open()
        return tuple(self._days[key] for key in sorted(self._days))

    async def keep(self, record_id: str, *, until: float, because: str) -> bool:
        self._require_open()
        known = self._records.get(record_id)
        if known is None:
            return False
        self._records[record_id] = replace(known, kept_until=until, kept_because=storable_text(because))
        return True

    async def forget(self, user: str) -> None:
        self._require_open()
        for key, one in self._records.items():
            if one.user == storable_text(user):
                self._records[key] = replace(one, user=None)

    async def prune(self, *, now: float) -> int:
        self._require_open()
        over = [
            one.id
            for one in self._records.values()
            if one.at < oldest_kept(now) and (one.kept_until is None or one.kept_until < now)
        ]
        for record_id in over:
            del self._records[record_id]
        return len(over)
