"""The files of conversations: each chat's apart, written once, removed by age and size."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gateway.files.folder_store import FolderFileStore
from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import StorageError
from pipeline.domain.files import FileGone, StoredFile, stored_file_from_plain, stored_file_to_plain
from pipeline.domain.ids import ThreadKey

ANNA = ThreadKey(channel="telegram", account="main", chat="1001")
BERT = ThreadKey(channel="telegram", account="main", chat="1002", topic="../../1001")
DAY_S = 86_400.0


class FilesHarness:
    """A store for three days and 1,000 bytes a chat."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "files"
        self.clock = ManualClock()
        self.store = FolderFileStore(self.folder, keep_days=3, thread_bytes=1_000, clock=self.clock)

    async def put(self, content: bytes, thread: ThreadKey = ANNA, scope: str = "") -> StoredFile:
        return await self.store.put(
            thread, content, kind="image", mime="image/png", name="a.png", scope=scope
        )

    async def has(self, file: StoredFile, thread: ThreadKey = ANNA) -> bool:
        try:
            await self.store.get(thread, file.id)
        except FileGone:
            return False
        return True


@pytest.fixture
def files(tmp_path: Path) -> FilesHarness:
    return FilesHarness(tmp_path)


async def test_a_stored_file_is_read_again_by_another_process(files: FilesHarness) -> None:
    kept = await files.put(b"picture")
    later = FolderFileStore(files.folder, keep_days=3, thread_bytes=1_000, clock=files.clock)
    assert await later.get(ANNA, kept.id) == b"picture"
    assert stored_file_from_plain(stored_file_to_plain(kept)) == kept
    assert (kept.kind, kept.mime, kept.size, kept.name) == ("image", "image/png", 7, "a.png")


async def test_a_reference_opens_nothing_in_another_chat(files: FilesHarness) -> None:
    kept = await files.put(b"picture")
    await files.put(b"other", BERT)
    assert not await files.has(kept, BERT)


@pytest.mark.parametrize("file_id", ["", "..", "../" * 3 + "etc/passwd", "a" * 63, "A" * 64, "a" * 64 + "\n"])
async def test_an_id_that_the_store_never_made_opens_and_removes_nothing(
    files: FilesHarness, file_id: str
) -> None:
    kept = await files.put(b"picture")
    with pytest.raises(FileGone, match="send it again"):
        await files.store.get(ANNA, file_id)
    await files.store.discard(ANNA, [file_id])
    assert await files.has(kept)


async def test_the_same_content_is_stored_once_for_a_chat(files: FilesHarness) -> None:
    first, second = await asyncio.gather(files.put(b"picture"), files.put(b"picture"))
    assert first == second
    assert len([path for path in files.folder.rglob("*") if path.is_file()]) == 1


async def test_a_discarded_file_off_the_record_leaves_an_equal_one_alone(files: FilesHarness) -> None:
    kept = await files.put(b"picture")
    secret = await files.put(b"picture", scope="m_1")
    await files.store.discard(ANNA, [secret.id])
    assert await files.has(kept)
    assert not await files.has(secret)


async def test_the_files_of_a_message_are_stored_as_long_as_others(files: FilesHarness) -> None:
    kept = await files.put(b"picture", scope="m_1")
    files.clock.step_wall(3 * DAY_S - 1)
    assert await files.store.sweep() == 0
    assert await files.has(kept)


async def test_the_oldest_files_of_a_chat_make_room_for_a_new_one(files: FilesHarness) -> None:
    other = await files.put(b"x" * 900, BERT)
    kept: list[StoredFile] = []
    for index in range(4):
        kept.append(await files.put(bytes([index]) * 300))
        files.clock.step_wall(1)
    await files.put(bytes([1]) * 300)  # used again, so it is no longer the oldest
    newest = await files.put(b"n" * 300)
    assert [await files.has(one) for one in (*kept, newest)] == [False, True, False, True, True]
    assert await files.has(other, BERT)


async def test_files_are_removed_once_they_are_older_than_the_days_to_keep(files: FilesHarness) -> None:
    old = await files.put(b"old")
    files.clock.step_wall(2 * DAY_S)
    young = await files.put(b"young")
    half = files.folder / "x" / ("0" * 64 + ".part")
    half.parent.mkdir()
    half.write_bytes(b"half")
    files.clock.step_wall(DAY_S + 1)
    assert await files.store.sweep() == 2
    assert (await files.has(old), await files.has(young)) == (False, True)
    assert not half.parent.exists()


async def test_a_deleted_chat_has_no_files_left(files: FilesHarness) -> None:
    kept, other = await files.put(b"mine"), await files.put(b"other", BERT)
    await files.store.discard_thread(ANNA)
    await files.store.discard_thread(ANNA)
    assert (await files.has(kept), await files.has(other, BERT)) == (False, True)


async def test_only_the_account_of_the_process_may_read_the_files(files: FilesHarness) -> None:
    await files.put(b"picture")
    modes = {path.stat().st_mode & 0o777 for path in (files.folder, *files.folder.rglob("*"))}
    assert modes == {0o700, 0o600}


async def test_a_folder_that_takes_no_files_is_an_error_in_words(tmp_path: Path) -> None:
    blocked = tmp_path / "files"
    blocked.write_bytes(b"")
    store = FolderFileStore(blocked, keep_days=1, thread_bytes=10, clock=ManualClock())
    with pytest.raises(StorageError, match="the folder of the files cannot be used: "):
        await store.put(ANNA, b"picture", kind="image", mime="image/png")


async def test_a_link_in_the_place_of_a_file_is_not_followed(files: FilesHarness, tmp_path: Path) -> None:
    kept = await files.put(b"picture")
    (path,) = [path for path in files.folder.rglob("*") if path.is_file()]
    outside = tmp_path / "outside"
    outside.write_bytes(b"secret")
    path.unlink()
    path.symlink_to(outside)
    with pytest.raises(StorageError):
        await files.store.get(ANNA, kept.id)
