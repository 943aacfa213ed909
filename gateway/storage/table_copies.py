"""What is copied from one store's tables into another's, and how the copies are compared.

The tables of the stores on SQLite and on Postgres have the same names and columns. Not copied are the indexes
of words, which are made again, and who holds a lease.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal

from pipeline.domain.frozen import dataclass

Kind = Literal["whole", "real", "flag", "text", "bytes"]
Row = tuple[Any, ...]

TABLES: Final = (
    "threads",
    "inbox",
    "log",
    "outbox",
    "interactions",
    "shown",
    "jobs",
    "states",
    "deaths",
    "pairing_requests",
    "pairings",
    "identities",
    "link_codes",
    "link_tries",
    "page_people",
    "page_invitations",
    "page_devices",
    "page_chats",
    "workflow_versions",
    "workflow_runs",
    "speech_buffers",
    "speakers",
    "transcripts",
    "feedback",
    "file_changes",
    "made_folders",
    "usage",
    "audit",
    "audit_head",
    "audit_quarantine",
    "taints",
    "permissions",
    "evaluator_calls",
    "asked",
    "crises",
    "crisis_days",
    "memory_owners",
    "memory_facts",
    "memory_texts",
    "memory_vectors",
    "memory_arcs",
    "memory_profiles",
    "memory_held",
    "memory_writes",
)
"""Those that others refer to come first."""
_NO_LEASE: Final = {("threads", "owner"): None, ("threads", "expires_at"): 0.0}
"""Columns that are not copied, each with what is in its place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableShape:
    """A table with its columns, in the order in which rows are read and written."""

    name: str
    columns: tuple[str, ...]
    kinds: tuple[Kind, ...]


class RowDigest:
    """The number of rows, and a hash that does not depend on their order."""

    def __init__(self) -> None:
        self.rows = 0
        self._sum = 0

    def add(self, rows: Iterable[Row]) -> None:
        """Count these rows too."""
        for row in rows:
            self.rows += 1
            line = json.dumps([_comparable(value) for value in row]).encode()
            # A sum, not an exclusive or: a row that is there twice must count.
            self._sum += int.from_bytes(hashlib.sha256(line).digest())
        self._sum %= 1 << 256

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowDigest) and (self.rows, self._sum) == (other.rows, other._sum)

    __hash__ = None  # type: ignore[assignment]  # it changes

    @property
    def hash(self) -> str:
        """In hexadecimal."""
        return f"{self._sum:064x}"


def copied(shape: TableShape, rows: Sequence[Row]) -> list[Row]:
    """Rows of another store as this table takes them. Postgres cannot hold some characters of SQLite's texts
    outside bodies: question marks take their places, and an escape in the keys of memories."""
    fixed = [_NO_LEASE.get((shape.name, column), ...) for column in shape.columns]
    nul = "\\x00" if shape.name.startswith("memory_") else "?"
    return [
        tuple(
            _converted(value, kind, nul) if left is ... else left
            for value, kind, left in zip(row, shape.kinds, fixed, strict=True)
        )
        for row in rows
    ]


def _converted(value: Any, kind: Kind, nul: str) -> Any:
    if value is None:
        return None
    match kind:
        case "flag":
            return bool(value)
        case "real":
            return float(value)
        case "text":
            return str(value).encode("utf-8", "replace").decode().replace("\0", nul)
        case "bytes":
            return bytes(value)
        case _:
            return int(value)


def _comparable(value: Any) -> Any:
    if isinstance(value, bytes | memoryview):
        return f"bytes {bytes(value).hex()}"
    return int(value) if isinstance(value, bool) else value
