"""The runs of graphs in the store that the settings name, read beside a running gateway."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from gateway.cli.stored_books import StorePlace
from gateway.runtime.data_dir import STORE_FILE
from gateway.storage.ports import Record
from gateway.storage.run_places import RunPlace
from gateway.storage.sqlite import history

Found = tuple[RunPlace, tuple[Record, ...]]


def newest_runs(place: StorePlace, limit: int) -> tuple[RunPlace, ...]:
    """The newest runs, newest first. Raises StorageError."""
    if place.url:
        from gateway.storage.postgres import history as runs  # noqa: PLC0415 - its driver is an extra

        return asyncio.run(runs.newest_runs(place.url, limit))
    return history.newest_runs(place.folder / STORE_FILE, limit)


def run_records(place: StorePlace, run_id: str) -> Found | None:
    """The place of the run and all records of its message, oldest first; None for an unknown run. Raises
    StorageError."""
    if place.url:
        from gateway.storage.postgres import history as runs  # noqa: PLC0415 - its driver is an extra

        return asyncio.run(runs.run_records(place.url, run_id))
    return history.run_records(place.folder / STORE_FILE, run_id)


def records_at(place: StorePlace, places: Sequence[RunPlace]) -> Iterable[Found]:
    """All records of the message of each place, oldest first. Raises StorageError."""
    if place.url:
        from gateway.storage.postgres import history as runs  # noqa: PLC0415 - its driver is an extra

        return asyncio.run(runs.records_at(place.url, places))
    return history.records_at(place.folder / STORE_FILE, places)
