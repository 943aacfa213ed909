"""Blobs: whole, in time, bounded and sealed off the record, on every store.

Covers: gateway/storage/blobs.py, gateway/storage/memory/blobs.py, gateway/storage/sqlite/blobs.py,
gateway/storage/postgres/blobs.py, gateway/storage/postgres/blob_tables.py.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator

import pytest

from gateway.storage.blobs import CHUNK_BYTES, BlobGone, BlobTooLarge, NewBlob
from gateway.storage.ports import Store
from pipeline.domain.errors import StorageError
from tests.contracts.conftest import Reopen
from tests.contracts.store_values import OTHER, THREAD
from tests.contracts.test_store_sealing import Keys, LoseKeys, keys, lose_keys, off_the_record

__all__ = ["keys", "lose_keys"]
_HOUR = 3_600.0
_ROOM = 10_000_000


async def arriving(content: bytes, *, pieces: int = 1_000) -> AsyncIterator[bytes]:
    for start in range(0, len(content), pieces):
        yield content[start : start + pieces]


async def put(
    store: Store,
    name: str,
    content: bytes,
    *,
    thread: str = THREAD,
    ttl_s: float = _HOUR,
    max_bytes: int = _ROOM,
    most_bytes: int = _ROOM,
) -> int:
    blob = NewBlob(name=name, thread=thread, ttl_s=ttl_s)
    chunks = arriving(content, pieces=100_000)
    return await store.blobs.put(blob, chunks, max_bytes=max_bytes, most_bytes=most_bytes)


async def gone(store: Store, name: str) -> bool:
    try:
        await store.blobs.get(name, max_bytes=_ROOM)
    except BlobGone:
        return True
    return False


@pytest.mark.parametrize("size", [0, 1, CHUNK_BYTES, 2 * CHUNK_BYTES + 7])
async def test_what_is_stored_is_read_as_it_was(store: Store, size: int) -> None:
    content = os.urandom(size)
    assert await put(store, "a", content) == size
    assert await store.blobs.get("a", max_bytes=size) == content
    assert await store.blobs.total_bytes() == size


async def test_an_unknown_blob_is_gone(store: Store) -> None:
    assert await gone(store, "a")


async def test_a_second_blob_of_a_name_is_refused_and_the_first_stays(store: Store) -> None:
    await put(store, "a", b"first")
    with pytest.raises(StorageError, match="already"):
        await put(store, "a", b"second")
    assert await store.blobs.get("a", max_bytes=10) == b"first"


async def test_a_blob_that_is_too_large_leaves_nothing(store: Store) -> None:
    with pytest.raises(BlobTooLarge):
        await put(store, "a", bytes(CHUNK_BYTES + 2), max_bytes=CHUNK_BYTES + 1)
    assert await store.blobs.total_bytes() == 0
    await put(store, "a", bytes(10))
    with pytest.raises(BlobTooLarge):
        await store.blobs.get("a", max_bytes=9)


async def test_an_upload_that_breaks_off_leaves_nothing(store: Store) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield bytes(CHUNK_BYTES + 1)
        raise TimeoutError

    blob = NewBlob(name="a", thread=THREAD, ttl_s=_HOUR)
    with pytest.raises(TimeoutError):
        await store.blobs.put(blob, broken(), max_bytes=_ROOM, most_bytes=_ROOM)
    assert await gone(store, "a")
    assert await store.blobs.total_bytes() == 0


async def test_a_blob_is_gone_when_its_time_is_over(store: Store) -> None:
    await put(store, "over", b"1", ttl_s=0)
    await put(store, "stays", b"22")
    assert await gone(store, "over")
    assert await store.blobs.expire() == 1
    assert await store.blobs.expire() == 0
    assert await store.blobs.total_bytes() == 2


async def test_a_kept_blob_has_a_new_time(store: Store) -> None:
    await put(store, "a", b"1", ttl_s=0)
    await store.blobs.keep(["a", "unknown"], ttl_s=_HOUR)
    assert await store.blobs.expire() == 0
    assert not await gone(store, "a")
    await store.blobs.keep(["a"], ttl_s=0)
    assert await store.blobs.expire() == 1


async def test_the_oldest_that_no_message_keeps_make_room(store: Store) -> None:
    await put(store, "kept", bytes(40), ttl_s=10)
    await store.blobs.keep(["kept"], ttl_s=10)
    await put(store, "old", bytes(40), ttl_s=20)
    await put(store, "new", bytes(40), ttl_s=30)
    await put(store, "newest", bytes(40), most_bytes=120)
    assert [await gone(store, name) for name in ("kept", "old", "new", "newest")] == [
        False,
        True,
        False,
        False,
    ]
    with pytest.raises(StorageError, match="no room"):
        await put(store, "huge", bytes(90), most_bytes=120)
    assert not await gone(store, "kept")
    assert await gone(store, "huge")


async def test_deleted_blobs_are_gone_by_name_and_by_conversation(store: Store) -> None:
    for name, thread in (("a", THREAD), ("b", THREAD), ("c", OTHER)):
        await put(store, name, b"x", thread=thread)
    await store.blobs.keep(["b"], ttl_s=_HOUR)
    assert await store.blobs.delete(["a", "unknown"]) == 1
    assert await store.blobs.delete_of(THREAD[:-1]) == 1
    assert [await gone(store, name) for name in "abc"] == [True, True, False]


async def test_a_blob_survives_a_restart(store: Store, reopen: Reopen) -> None:
    content = os.urandom(CHUNK_BYTES + 1)
    await put(store, "a", content)
    assert await (await reopen()).blobs.get("a", max_bytes=_ROOM) == content


async def test_a_blob_off_the_record_is_sealed_and_its_key_goes_with_it(store: Store, keys: Keys) -> None:
    await off_the_record(store)
    content = os.urandom(CHUNK_BYTES + 1)
    await put(store, "a", content)
    await put(store, "b", content, thread=OTHER)
    assert list(await keys()) == ["a"]
    assert await store.blobs.get("a", max_bytes=_ROOM) == content
    await store.blobs.delete(["a", "b"])
    assert await keys() == {}


async def test_a_sealed_blob_without_its_key_is_gone(store: Store, lose_keys: LoseKeys) -> None:
    await off_the_record(store)
    await put(store, "a", b"secret")
    await lose_keys()
    assert await gone(store, "a")
