"""The audit in a list."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from gateway.storage.audit import (
    AuditHead,
    AuditRow,
    Damage,
    NewAuditRecord,
    continued,
    naming,
)
from pipeline.domain.errors import StorageError


class MemoryAudit:
    """A part of `MemoryStore`. `require_open` raises StorageError if the store is closed."""

    def __init__(self, require_open: Callable[[], None]) -> None:
        self._require_open = require_open
        self.rows: list[AuditRow] = []
        """In order of their numbers; tests damage them."""
        self.quarantined: list[tuple[int, bytes, str]] = []
        """Number, line and problem of damaged records."""
        self._head = AuditHead()

    def append(self, records: Sequence[NewAuditRecord]) -> asyncio.Future[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        try:
            self._require_open()
            self._append(records)
            future.set_result(None)
        except StorageError as error:
            future.set_exception(error)
        return future

    async def listed(self, *, after: int = 0, limit: int) -> tuple[AuditRow, ...]:
        self._require_open()
        return tuple([row for row in self.rows if row.n > after][:limit])

    async def newest(self, *, limit: int) -> tuple[AuditRow, ...]:
        self._require_open()
        return tuple(self.rows[-limit:])

    async def head(self) -> AuditHead | None:
        self._require_open()
        return self._head

    async def prune(self, through: int, record: NewAuditRecord) -> int:
        self._require_open()
        removed = sum(row.n <= through for row in self.rows)
        if removed:
            self._append([record])
            self.rows[:] = [row for row in self.rows if row.n > through]
        return removed

    async def quarantine(self, damage: Sequence[Damage], *, at: float) -> None:
        self._require_open()
        for one in damage:
            self._keep(one.n, one.problem)
        self._append([naming(one.n, one.problem, at) for one in damage])

    def rewrite(self, changed: Sequence[AuditRow], end: AuditHead, naming: Sequence[str]) -> None:
        """Replace records, and what the last one should be. The copies of damaged records that hold one of
        the texts `naming` are emptied."""
        new = {row.n: row for row in changed}
        self.rows[:] = [new.get(row.n, row) for row in self.rows]
        self._head = end
        self.quarantined[:] = [
            (n, b"" if any(text.encode() in line for text in naming) else line, problem)
            for n, line, problem in self.quarantined
        ]

    def _append(self, records: Sequence[NewAuditRecord]) -> None:
        if not records:
            return
        continuation = continued(self._head, self.rows[-1] if self.rows else None, records)
        if continuation.damaged is not None:
            self._keep(*continuation.damaged)
        self.rows.extend(continuation.rows)
        self._head = AuditHead(n=self.rows[-1].n, hash=self.rows[-1].hash)

    def _keep(self, n: int, problem: str) -> None:
        line = next((row.line for row in self.rows if row.n == n), b"")
        self.quarantined.append((n, line, problem))
