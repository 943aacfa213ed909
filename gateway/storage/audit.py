"""The audit: a chain of records, each with the hash of the one before, and its check. A part of `Store`.

A record is one line of canonical JSON (sorted keys, no spaces). Its hash is the SHA-256 of the line, which
holds the hash of the record before. A separate row has the number and the hash of the last record, so that a
record that is missing at the end is noticed too. Nothing is changed: a damaged record stays. Old records are
removed from the beginning alone, and a new record then has the number and the hash of the last one removed.
The one exception is the erasure of a person (`gateway.storage.erasure`), which a new record names too.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from pipeline.domain.frozen import dataclass
from pipeline.domain.json_text import encoder

GENESIS: Final = "0" * 64
"""In place of a hash before the first record."""
DAMAGED: Final = "chain_damaged"
"""The type of the record that names a damaged one."""
PRUNED: Final = "audit_pruned"
"""The type of the record that says which records were removed: `through`, `hash`, `records` and `before`."""
_PIECES: Final = encoder(sort_keys=True)
_RAW_DECODE: Final = json.JSONDecoder().raw_decode
_FIELDS = {"n", "at", "type", "prev", "details"}


@dataclass(frozen=True, slots=True, kw_only=True)
class NewAuditRecord:
    """A record to append."""

    type: str
    details: Mapping[str, Any]
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRow:
    """A record as it lies in the store."""

    n: int
    line: bytes
    hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditHead:
    """The last record: its number and its hash. 0 and GENESIS before the first one."""

    n: int = 0
    hash: str = GENESIS


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """One thing that is wrong with the chain."""

    n: int
    """The number of the record."""
    problem: str
    """In words, without the record's content."""
    marked_in: int = 0
    """The number of the record that names this damage; 0 if none does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """The result of a check of the whole chain."""

    records: int
    head: AuditHead
    damage: tuple[Damage, ...] = ()
    pruned: int = 0
    """The number of the last record that was removed for its age; 0 if none was."""


class AuditBook(Protocol):
    """The audit. Every method raises StorageError when the store fails."""

    def append(self, records: Sequence[NewAuditRecord]) -> asyncio.Future[None]:
        """Queue records, in order with every other write of this store, to be appended in one transaction.
        Returns at once; the records are durable when the future is done.

        If the end of the chain is damaged, a record that names the damage is appended first, and a copy of
        what was found is kept: the chain continues from the hash that it should have had.
        """
        ...

    async def listed(self, *, after: int = 0, limit: int) -> tuple[AuditRow, ...]:
        """The first `limit` records with a number above `after`, in order."""
        ...

    async def newest(self, *, limit: int) -> tuple[AuditRow, ...]:
        """The newest `limit` records, in order."""
        ...

    async def head(self) -> AuditHead | None:
        """What the last record should be; None if that row is gone."""
        ...

    async def prune(self, through: int, record: NewAuditRecord) -> int:
        """Append `record`, and remove all records up to the number `through`, in one transaction; how many
        were removed. If there are none, nothing is changed."""
        ...

    async def quarantine(self, damage: Sequence[Damage], *, at: float) -> None:
        """Keep a copy of each damaged record, and append a record that names it."""
        ...


def canonical(n: int, record: NewAuditRecord, previous: str) -> bytes:
    """The line of a record."""
    return canonical_plain(
        {"n": n, "at": record.at, "type": record.type, "prev": previous, "details": record.details}
    )


def canonical_plain(plain: Mapping[str, Any]) -> bytes:
    """The line of a record from its fields."""
    return "".join(_PIECES(plain, 0)).encode("utf-8", "replace")


def hash_of(line: bytes) -> str:
    """The hash of a record's line."""
    return hashlib.sha256(line).hexdigest()


def chained(head: AuditHead, records: Iterable[NewAuditRecord]) -> tuple[AuditRow, ...]:
    """The rows that follow `head`."""
    rows, previous = [], head.hash
    for n, record in enumerate(records, start=head.n + 1):
        line = canonical(n, record, previous)
        previous = hash_of(line)
        rows.append(AuditRow(n=n, line=line, hash=previous))
    return tuple(rows)


def tail_problem(head: AuditHead, last: AuditRow | None) -> str:
    """What is wrong with the last row, as the head says what it should be; empty if nothing is."""
    if last is None:
        return "" if head == AuditHead() else "is missing"
    if (last.n, last.hash) != (head.n, head.hash):
        return "is missing" if last.n < head.n else "was changed"
    return "" if hash_of(last.line) == last.hash else "was changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Continuation:
    """How new records are appended."""

    rows: tuple[AuditRow, ...]
    damaged: tuple[int, str] | None = None
    """The number of the last record, and its problem, if a copy of it has to be kept first."""


def continued(
    head: AuditHead | None, last: AuditRow | None, records: Sequence[NewAuditRecord]
) -> Continuation:
    """How `records`, at least one, follow the row `last`; `head` is None if the row about the end is gone. If
    the end is damaged, a record that names it comes first."""
    problem = "the row about the end of the chain is missing" if head is None else tail_problem(head, last)
    if head is None:
        head = AuditHead() if last is None else AuditHead(n=last.n, hash=last.hash)
    if not problem:
        return Continuation(rows=chained(head, records))
    n = head.n if last is None else max(head.n, last.n)
    named = [naming(n, problem, records[0].at), *records]
    return Continuation(rows=chained(AuditHead(n=n, hash=head.hash), named), damaged=(n, problem))


def naming(n: int, problem: str, at: float) -> NewAuditRecord:
    """The record that names a damaged one."""
    return NewAuditRecord(type=DAMAGED, details={"record": n, "problem": problem}, at=at)


class ChainCheck:
    """Checks a chain row by row, in the order of the store."""

    def __init__(self) -> None:
        self.records = 0
        self.found: dict[int, str] = {}
        """The problems by the number of the record."""
        self._n = 0
        self._hash = GENESIS
        self._first: tuple[int, str] | None = None
        """The number of the first record, and the hash that it names; empty if it cannot be read."""
        self._pruned: dict[int, str] = {}
        """The hashes of the last removed records, by number, as records name them."""
        self._marked: dict[int, int] = {}

    @classmethod
    def after(cls, row: AuditRow | None) -> ChainCheck:
        """A check that begins with the row behind `row`; with the first one for None."""
        check = cls()
        if row is not None:
            check._n, check._hash = row.n, row.hash
            check._first = 1, GENESIS
        return check

    def feed(self, rows: Iterable[AuditRow]) -> None:
        """Check the next rows."""
        for row in rows:
            self._check(row)

    def report(self, head: AuditHead | None) -> AuditReport:
        """The result, once all rows are fed; `head` is what the store says about the end."""
        pruned = self._check_beginning()
        if head is None:
            self._note(self._n + 1, "the row about the end of the chain is missing")
        elif (head.n, head.hash) != (self._n, self._hash):
            if head.n > self._n:
                for n in range(self._n + 1, min(head.n, self._n + 1_000) + 1):
                    self._note(n, "is missing")
            else:
                self._note(max(self._n, 1), "is not the one that the end of the chain names")
        damage = tuple(
            Damage(n=n, problem=problem, marked_in=self._marked.get(n, 0))
            for n, problem in sorted(self.found.items())
        )
        return AuditReport(records=self.records, head=head or AuditHead(), damage=damage, pruned=pruned)

    def _check_beginning(self) -> int:
        """Compare the first record with what was removed before it; the number of the last one removed."""
        if self._first is None:
            return 0
        first, previous = self._first
        removed = max((n for n in self._pruned if n < first), default=0)
        for n in range(removed + 1, min(first, removed + 1_001)):
            self._note(n, "is missing")
        if removed == first - 1 and previous not in ("", self._pruned.get(removed, GENESIS)):
            self._note(first, "does not follow the record before it")
        return removed

    def _check(self, row: AuditRow) -> None:
        self.records += 1
        plain = _plain(row.line) if hash_of(row.line) == row.hash else None
        begins = self._first is None
        if begins:
            self._first = row.n, "" if plain is None else str(plain["prev"])
        elif row.n != self._n + 1:
            for n in range(self._n + 1, min(row.n, self._n + 1_001)):
                self._note(n, "is missing")
        if row.n <= self._n:
            self._note(row.n, "is there twice, or in another place")
        self._n = max(self._n, row.n)
        before, self._hash = self._hash, row.hash
        if plain is None or plain["n"] != row.n:
            self._note(row.n, "was changed")
        elif not begins and plain["prev"] != before and row.n - 1 not in self.found:
            self._note(row.n, "does not follow the record before it")
        elif plain["type"] == PRUNED and isinstance(through := plain["details"].get("through"), int):
            self._pruned[through] = str(plain["details"].get("hash"))
        elif plain["type"] == DAMAGED and isinstance(named := plain["details"].get("record"), int):
            self._marked.setdefault(named, row.n)

    def _note(self, n: int, problem: str) -> None:
        self.found.setdefault(n, problem)


def time_of(row: AuditRow) -> float | None:
    """When the record was written, as Unix time; None if it cannot be read."""
    plain = _plain(row.line)
    at = None if plain is None or hash_of(row.line) != row.hash else plain["at"]
    return float(at) if isinstance(at, int | float) else None


def previous_of(row: AuditRow) -> str:
    """The hash of the record before, as the record names it; empty if it cannot be read."""
    plain = _plain(row.line)
    return "" if plain is None else str(plain["prev"])


def _plain(line: bytes) -> dict[str, Any] | None:
    """The record of a line; None if it is not one."""
    try:
        plain = _parsed(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(plain, dict) or plain.keys() != _FIELDS or not isinstance(plain["details"], dict):
        return None
    return plain


def _parsed(line: bytes) -> Any:
    """What `json.loads` gives, without its look at the encoding and for spaces: our lines need neither."""
    try:
        text = line.decode()
        plain, end = _RAW_DECODE(text)
    except ValueError:
        return json.loads(line)
    return plain if end == len(text) else json.loads(line)
