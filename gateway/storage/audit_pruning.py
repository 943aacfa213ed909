"""Remove the old records of an audit, and record what was removed."""

from __future__ import annotations

from gateway.storage.audit import (
    PRUNED,
    AuditBook,
    AuditReport,
    AuditRow,
    NewAuditRecord,
    previous_of,
    time_of,
)
from gateway.storage.audit_check import check_audit
from pipeline.domain.frozen import dataclass

_PAGE = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PrunedAudit:
    """What was removed: nothing where the audit has damage that no record names, see `report`."""

    report: AuditReport
    """The result of the check before."""
    records: int = 0
    through: int = 0
    """The number of the last record that was removed."""
    hash: str = ""
    """Its hash, which the last line of an export has too."""


async def prune_audit(book: AuditBook, *, before: float, day: str, at: float) -> PrunedAudit:
    """Remove the records up to the first one that was written at the Unix time `before` or later. Append a
    record, of the time `at`, with their number, the hash of the last one, and `day`. Nothing is removed while
    there is damage that no record names. Raises StorageError."""
    report = await check_audit(book)
    if any(not one.marked_in for one in report.damage):
        return PrunedAudit(report=report)
    count, last, following = await _old_records(book, before)
    if last is None:
        return PrunedAudit(report=report)
    # The hash that the chain continues with, even if the last record to remove is a damaged one.
    hash_ = previous_of(following) if following is not None else report.head.hash
    details = {"through": last.n, "hash": hash_, "records": count, "before": day}
    removed = await book.prune(last.n, NewAuditRecord(type=PRUNED, details=details, at=at))
    return PrunedAudit(report=report, records=removed, through=last.n, hash=hash_)


async def _old_records(book: AuditBook, before: float) -> tuple[int, AuditRow | None, AuditRow | None]:
    """How many records were written before a time, without a later one among them; the last of them, and the
    one behind it."""
    count, last, after = 0, None, 0
    while rows := await book.listed(after=after, limit=_PAGE):
        for row in rows:
            if (at := time_of(row)) is not None and at >= before:
                return count, last, row
            count, last = count + 1, row
        after = rows[-1].n
    return count, last, None
