"""What survives a kill -9 and a torn write-ahead log."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.storage.sqlite import SqliteStore
from tests.contracts.store_values import THREAD, entry
from tests.gateway.storage.values import look, writer_held_back

KILLS = 5


@pytest.mark.crash
async def test_every_acknowledged_accept_survives_kills(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    acknowledged: set[str] = set()
    for kill in range(KILLS):
        acknowledged |= _accept_until_killed(path, f"run{kill}", after_lines=150 + 90 * kill)
    kept = {key for (key,) in look(path, "SELECT dedupe_key FROM inbox")}
    assert len(acknowledged) >= 150 * KILLS
    assert acknowledged - kept == set()
    assert look(path, "PRAGMA integrity_check") == [("ok",)]
    assert look(path, "PRAGMA foreign_key_check") == []
    store = SqliteStore(path)
    await store.open()
    assert (await store.accept(entry(min(acknowledged)))).duplicate
    assert (await store.counts()).inbox_open == len(kept)
    await store.close()


def _accept_until_killed(path: Path, label: str, *, after_lines: int) -> set[str]:
    command = [sys.executable, "-m", "tests.gateway.storage.accepting_child", str(path), label]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        lines = [child.stdout.readline() for _ in range(after_lines)]
        child.kill()
        lines += child.stdout.readlines()
    # The last line may have been cut by the kill; a whole one ends in a newline.
    return {line.strip() for line in lines if line.endswith("\n")}


async def test_a_torn_log_loses_at_most_its_end(tmp_path: Path) -> None:
    live = tmp_path / "live" / "store.db"
    store = SqliteStore(live)
    await store.open()
    for number in range(60):
        await store.accept(entry(f"{number:03}"))
    # A writer that rests would move the log into the database between the two.
    with writer_held_back(store):
        database = live.read_bytes()
        wal = live.with_name("store.db-wal").read_bytes().rstrip(b"\0")  # without the room after it
    await store.close()
    chance = random.Random(7)
    kept: list[int] = []
    for copy in range(30):
        path = tmp_path / f"copy{copy}" / "store.db"
        path.parent.mkdir()
        path.write_bytes(database)
        path.with_name("store.db-wal").write_bytes(wal[: len(wal) - chance.randrange(1, len(wal) // 3)])
        kept.append(await _reopened(path))
    assert min(kept) < 60
    assert max(kept) > 40


async def _reopened(path: Path) -> int:
    """How many entries a copy still has; they are the first ones, and the copy continues to work."""
    store = SqliteStore(path)
    await store.open()
    seqs = [row.seq for row in await store.open_entries(THREAD)]
    assert seqs == list(range(1, len(seqs) + 1))
    assert (await store.accept(entry("after the tear"))).seq == len(seqs) + 1
    await store.close()
    assert look(path, "PRAGMA integrity_check") == [("ok",)]
    return len(seqs)
