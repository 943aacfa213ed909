"""The room at the end of the write-ahead log: commits do not make the file longer."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from gateway.storage.sqlite import SqliteStore
from gateway.storage.sqlite.wal import WAL_HEADER_BYTES, read_wal
from gateway.storage.sqlite.wal_room import LogRoom
from tests.contracts.store_values import THREAD, entry
from tests.gateway.storage.values import look

STEP = 256 * 1024


def _written(wal: Path) -> int:
    """The length of the log's used part."""
    state = read_wal(wal)
    return 0 if state is None else WAL_HEADER_BYTES + state.frames * state.frame_bytes


async def test_commits_mostly_find_room_in_the_file(tmp_path: Path) -> None:
    store, wal = SqliteStore(tmp_path / "store.db"), tmp_path / "store.db-wal"
    await store.open()
    sizes = []
    for number in range(200):
        await store.accept(entry(str(number), body={"text": "x" * 1000}))
        sizes.append(wal.stat().st_size)
        assert _written(wal) < sizes[-1]
    written = _written(wal)
    await store.close()
    assert written > 2 * STEP
    assert len(set(sizes)) <= written // STEP + 2


async def test_without_waits_for_the_disk_there_is_no_room(tmp_path: Path) -> None:
    store, wal = SqliteStore(tmp_path / "store.db", synchronous="NORMAL"), tmp_path / "store.db-wal"
    await store.open()
    await store.accept(entry("1"))
    assert wal.stat().st_size == _written(wal)
    await store.close()


async def test_a_log_that_is_only_room_is_an_empty_one(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    await store.open()
    await store.accept(entry("1"))
    await store.close()
    # As after a kill between the first zeros and the first commit.
    path.with_name("store.db-wal").write_bytes(bytes(STEP))
    assert read_wal(path.with_name("store.db-wal")) is None
    again = SqliteStore(path)
    await again.open()
    assert [one.seq for one in await again.open_entries(THREAD)] == [1]
    await again.close()
    assert look(path, "PRAGMA integrity_check") == [("ok",)]


def test_the_room_grows_with_what_is_written_up_to_its_limit(tmp_path: Path) -> None:
    wal = tmp_path / "store.db-wal"
    wal.touch()
    room = LogRoom(tmp_path / "store.db", most=2 * STEP)
    room.open()
    sizes = []
    for end in (0, STEP // 4, STEP, 2 * STEP, 3 * STEP):
        with wal.open("r+b") as file:
            file.write(b"x" * end)
        room.keep()
        sizes.append(wal.stat().st_size)
    room.close()
    assert sizes == [STEP, STEP, 2 * STEP, 2 * STEP, 3 * STEP]


def test_an_emptied_log_gets_room_again(tmp_path: Path) -> None:
    wal = tmp_path / "store.db-wal"
    wal.touch()
    room = LogRoom(tmp_path / "store.db", most=2 * STEP)
    room.open()
    room.keep()
    os.truncate(wal, 0)
    room.keep()
    room.close()
    assert wal.stat().st_size == STEP


def test_a_full_disk_ends_it_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_descriptor: int, _data: bytes, _offset: int) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    wal = tmp_path / "store.db-wal"
    wal.touch()
    room = LogRoom(tmp_path / "store.db", most=2 * STEP)
    room.open()
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", refuse)
        room.keep()
    room.keep()
    assert wal.stat().st_size == 0


def test_without_a_log_nothing_is_kept(tmp_path: Path) -> None:
    room = LogRoom(tmp_path / "store.db", most=STEP)
    room.open()
    room.keep()
    assert list(tmp_path.iterdir()) == []
