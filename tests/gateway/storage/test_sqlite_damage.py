"""Damage to the store's file: found by a look through it, or named when the file is opened."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from gateway.cli.doctor import findings
from gateway.config import load
from gateway.storage.sqlite import SqliteStore
from pipeline.domain.clock import SystemClock
from pipeline.domain.errors import StorageError
from tests.contracts.store_values import entry

PAGE = 1024
LEAF, INDEX_LEAF, INNER = 13, 10, 5
Damage = Callable[[bytearray], None]


def pages(data: bytearray, first: int) -> Iterator[int]:
    """Where the pages begin whose first byte is `first`, without the file's first page."""
    free = set(free_pages(data))
    return (
        at for at in range(PAGE, len(data), PAGE) if data[at] == first and at not in free and data[at + 4] > 1
    )


def free_pages(data: bytearray) -> list[int]:
    """Where the pages of the free list begin."""
    trunk, found = int.from_bytes(data[32:36]), []
    while trunk:
        at = (trunk - 1) * PAGE
        count = int.from_bytes(data[at + 4 : at + 8])
        leaves = (int.from_bytes(data[at + 8 + 4 * n : at + 12 + 4 * n]) for n in range(count))
        found += [at, *((leaf - 1) * PAGE for leaf in leaves)]
        trunk = int.from_bytes(data[at : at + 4])
    return found


def flip(data: bytearray, at: int, count: int) -> None:
    for n in range(at, at + count):
        data[n] ^= 0xFF


def table_leaf(data: bytearray) -> None:
    flip(data, next(pages(data, LEAF)) + 8, 4)


def index_leaf(data: bytearray) -> None:
    flip(data, next(pages(data, INDEX_LEAF)) + 8, 4)


def inner_page(data: bytearray) -> None:
    flip(data, next(pages(data, INNER)) + 8, 4)


def overflow_page(data: bytearray) -> None:
    at = next(
        at for at in range(PAGE, len(data), PAGE) if data[at] == 0 and b"long" * 50 in data[at : at + PAGE]
    )
    flip(data, at, 4)


def free_list(data: bytearray) -> None:
    flip(data, free_pages(data)[0] + 4, 8)


def half_of_it(data: bytearray) -> None:
    del data[len(data) // 2 // PAGE * PAGE :]


def row_missing_from_an_index(data: bytearray) -> None:
    at = next(pages(data, INDEX_LEAF))
    data[at + 4] -= 1


def row_missing_from_a_table(data: bytearray) -> None:
    at = next(pages(data, LEAF))
    data[at + 4] -= 1


def magic(data: bytearray) -> None:
    flip(data, 0, 16)


def page_size(data: bytearray) -> None:
    flip(data, 16, 2)


def zeroed_page(data: bytearray) -> None:
    at = next(pages(data, LEAF))
    data[at : at + PAGE] = bytes(PAGE)


def page_in_the_place_of_another(data: bytearray) -> None:
    first, second, *_ = pages(data, LEAF)
    data[second : second + PAGE] = data[first : first + PAGE]


def noise(data: bytearray) -> None:
    at = next(pages(data, LEAF))
    data[at : at + PAGE] = bytes(n * 37 % 251 for n in range(PAGE))


def schema(data: bytearray) -> None:
    at = data.index(b"CREATE TABLE")
    flip(data, at, 6)


DAMAGES: tuple[Damage, ...] = (
    table_leaf,
    index_leaf,
    inner_page,
    overflow_page,
    free_list,
    half_of_it,
    row_missing_from_an_index,
    row_missing_from_a_table,
    magic,
    page_size,
    zeroed_page,
    page_in_the_place_of_another,
    noise,
    schema,
)


async def fill(path: Path) -> None:
    store = SqliteStore(path, synchronous="NORMAL")
    await store.open()
    for n in range(40):
        await store.accept(entry(str(n), body={"text": "long" * (1_000 if n % 10 == 0 else 20)}))
    assert await store.find_damage() == ()
    await store.close()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with rows, texts of several pages, and free pages."""
    path = tmp_path_factory.mktemp("whole") / "parlour.sqlite3"
    asyncio.run(fill(path))
    with closing(sqlite3.connect(path)) as db:
        db.execute("DELETE FROM inbox WHERE seq IN (SELECT seq FROM inbox ORDER BY seq LIMIT 11)")
        db.commit()
    return path


def damaged(whole: Path, folder: Path, damage: Damage) -> Path:
    """A copy of the store with the damage done to it."""
    path = folder / "parlour.sqlite3"
    data = bytearray(whole.read_bytes())
    damage(data)
    path.write_bytes(data)
    path.chmod(0o600)
    folder.chmod(0o700)
    return path


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
async def test_damage_is_said_by_the_doctor_with_what_to_do(
    damage: Damage, whole: Path, tmp_path: Path
) -> None:
    damaged(whole, tmp_path, damage)
    settings = load(Path("/dev/null"), {}, [f"data.dir={json.dumps(str(tmp_path))}", "server.port=0"])
    async for finding in findings(settings, SystemClock()):
        if finding.name == "store":
            break
    assert not finding.good
    assert "restore a backup" in finding.words or "not a SQLite database" in finding.words


async def test_a_whole_store_is_found_whole_while_it_is_written(whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "parlour.sqlite3"
    shutil.copy(whole, path)
    store = SqliteStore(path)
    await store.open()
    try:
        await store.accept(entry("new"))
        assert await store.find_damage() == ()
    finally:
        await store.close()


async def test_damage_that_opening_does_not_meet_is_found_beside_the_work(
    whole: Path, tmp_path: Path
) -> None:
    store = SqliteStore(damaged(whole, tmp_path, free_list))
    await store.open()
    try:
        found = await store.find_damage()
        assert found
        assert "long" not in " ".join(found)
    finally:
        await store.close()


async def test_a_file_that_is_not_there_is_no_damage_and_is_not_made(tmp_path: Path) -> None:
    path = tmp_path / "nowhere.sqlite3"
    with pytest.raises(StorageError, match="cannot be opened"):
        await SqliteStore(path).find_damage()
    assert not path.exists()
