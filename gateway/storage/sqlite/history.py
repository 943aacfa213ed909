"""Read a store's file while the gateway may be using it: read-only, without the gateway's lock."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gateway.storage.ports import Record
from gateway.storage.run_places import RunPlace
from gateway.storage.sqlite import log
from gateway.storage.sqlite.connection import as_storage_error, open_reader
from gateway.storage.sqlite.migrations import require_ours
from pipeline.domain.errors import StorageError

# A full scan of the log: a person asks for this rarely, and an index would cost every turn. A run begins in
# the row that names its graph; a run of a single step begins in the record that also holds its end.
_BEGINNINGS = """
    SELECT coalesce(json_extract(log.body, '$.run'), json_extract(log.body, '$.steps[0].run')) AS run,
        threads.key, log.message_id, log.at
    FROM log JOIN threads ON threads.id = log.thread
    WHERE json_valid(log.body) AND 'text' IN
        (json_type(log.body, '$.graph'), json_type(log.body, '$.steps[0].graph'))"""


def newest_runs(path: Path, limit: int) -> tuple[RunPlace, ...]:
    """The newest runs in the store's file, newest first. Raises StorageError if it cannot be read."""
    with _reader(path) as db:
        rows = db.execute(f"{_BEGINNINGS} ORDER BY log.id DESC LIMIT ?", (limit,)).fetchall()
    return tuple(_place(row) for row in rows)


def run_records(path: Path, run_id: str) -> tuple[RunPlace, tuple[Record, ...]] | None:
    """The place of the run and all records of its message, oldest first; None for an unknown run."""
    with _reader(path) as db:
        row = db.execute(f"{_BEGINNINGS} AND run = ? ORDER BY log.id LIMIT 1", (run_id,)).fetchone()
        if row is None:
            return None
        place = _place(row)
        records = log.read(
            db,
            place.thread,
            after=0,
            kinds=None,
            session_id=None,
            message_id=place.message_id,
            limit=None,
        )
    return place, records


def records_at(path: Path, places: Sequence[RunPlace]) -> Iterator[tuple[RunPlace, tuple[Record, ...]]]:
    """All records of the message of each place, oldest first. Raises StorageError."""
    with _reader(path) as db:
        for place in places:
            of_message: dict[str, Any] = {"session_id": None, "message_id": place.message_id}
            yield place, log.read(db, place.thread, after=0, kinds=None, limit=None, **of_message)


@contextmanager
def _reader(path: Path) -> Iterator[sqlite3.Connection]:
    if not path.is_file():
        raise StorageError(
            f"{path.absolute()}: there is no store yet; the gateway makes it when it starts. If it "
            "runs, use the same folder and the same --config"
        )
    db = open_reader(path)
    try:
        require_ours(db, path)
        yield db
    except sqlite3.Error as error:
        raise as_storage_error(error, path) from error
    finally:
        db.close()


def _place(row: tuple[str, str, str, float]) -> RunPlace:
    run_id, thread, message_id, at = row
    return RunPlace(run_id=str(run_id), thread=thread, message_id=message_id, at=at)
