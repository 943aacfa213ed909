"""SQL that reads the log of a thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from gateway.storage.ports import Record, RecordKind
from gateway.storage.postgres.call_queue import Row
from gateway.storage.postgres.seals import Keys, readable

CURRENT_SESSION: Final = """
    SELECT session_id FROM log
    WHERE thread = (SELECT id FROM threads WHERE key = $1) AND kind = 'session'
    ORDER BY id DESC LIMIT 1"""
_COLUMNS = "SELECT id, kind, session_id, message_id, body, at FROM log WHERE "


def read_statement(
    thread: str,
    *,
    after: int,
    before: int | None,
    kinds: Sequence[RecordKind] | None,
    session_id: str | None,
    message_id: str | None,
    limit: int | None,
) -> tuple[str, list[Any]]:
    """The query of the records that pass all filters, and its values; newest first when there is a limit."""
    conditions = ["thread = (SELECT id FROM threads WHERE key = $1)", "id > $2"]
    values: list[Any] = [thread, after]

    def add(condition: str, value: object) -> None:
        values.append(value)
        conditions.append(condition.format(f"${len(values)}"))

    if before is not None:
        add("id < {}", before)
    if kinds is not None:
        add("kind = ANY ({}::text[])", list(kinds))
        if "step" not in kinds:
            # Redundant, but it lets Postgres use the index without steps.
            conditions.append("kind <> 'step'")
    if session_id is not None:
        add("session_id = {}", session_id)
    if message_id is not None:
        add("message_id = {}", message_id)
    sql = f"{_COLUMNS}{' AND '.join(conditions)} ORDER BY id"
    if limit is not None:
        values.append(max(0, limit))
        sql += f" DESC LIMIT ${len(values)}"
    return sql, values


def record_of(thread: str, row: Row, keys: Keys) -> Record:
    """The record of a row."""
    kind: RecordKind = row["kind"]
    return Record(
        id=row["id"],
        thread=thread,
        kind=kind,
        session_id=row["session_id"],
        message_id=row["message_id"],
        body=_readable(kind, row, keys),
        at=row["at"],
    )


def _readable(kind: RecordKind, row: Row, keys: Keys) -> dict[str, Any]:
    """The body. A damaged body of a step becomes an empty one: its run can continue or restart."""
    try:
        return readable(keys, row["message_id"], row["body"])
    except ValueError:
        if kind != "step":
            raise
        return {}
