"""Check the whole audit of a store, page by page."""

from __future__ import annotations

from gateway.storage.audit import AuditBook, AuditReport, ChainCheck

_PAGE = 2_000


async def check_audit(book: AuditBook) -> AuditReport:
    """The result of checking every record. Records that are appended meanwhile are checked too. Raises
    StorageError."""
    check, after = ChainCheck(), 0
    while True:
        # Before the rows: a record that is appended behind the last page is not missing.
        head = await book.head()
        while rows := await book.listed(after=after, limit=_PAGE):
            check.feed(rows)
            after = rows[-1].n
        if head is None or head == await book.head():
            return check.report(head)
