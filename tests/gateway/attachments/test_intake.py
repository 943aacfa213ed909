"""Taking the attachments of a message: each apart, few at once, and nothing on disk off the record."""

from __future__ import annotations

import asyncio
from pathlib import Path

from gateway.attachments.intake import MAX_FILES, AttachmentIntake
from gateway.files.folder_store import FolderFileStore
from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import MediaUnavailable, StorageError
from pipeline.domain.files import FileStore, StoredFile
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Author, InboundMessage, MediaKind, MediaRef
from pipeline.runtime.attachments import Unstored
from tests.support.file_reader import PICTURE, SCALED, FakeFileReader

THREAD = ThreadKey(channel="memory", account="main", chat="c1")


class Channel:
    """A channel whose files are the handles of their references. It counts the downloads at once."""

    def __init__(self, *, together: int = 0) -> None:
        """The first downloads wait until `together` of them run."""
        self.now = self.most = 0
        self.together = together
        self.gate = asyncio.Event()

    async def download(self, ref: MediaRef, *, max_bytes: int) -> bytes:
        self.now += 1
        self.most = max(self.most, self.now)
        if self.now >= self.together:
            self.gate.set()
        await self.gate.wait()
        self.now -= 1
        if ref.handle == "bug":
            raise KeyError(ref.handle)
        if ref.handle == "gone":
            raise MediaUnavailable("It is gone.")
        return ref.handle.encode("latin-1")


class FullDisk(FolderFileStore):
    """A store whose disk is full."""

    async def put(self, *_args: object, **_fields: object) -> StoredFile:
        raise StorageError("no space left")


def ref(handle: str, kind: MediaKind = "file", name: str = "") -> MediaRef:
    return MediaRef(channel="memory", handle=handle, kind=kind, name=name)


def message(*refs: MediaRef, number: int = 1) -> InboundMessage:
    return InboundMessage(
        message_id=f"m{number}",
        native_id=str(number),
        thread=THREAD,
        author=Author(id="ann"),
        received_at=0.0,
        attachments=refs,
    )


def store(tmp_path: Path, kind: type[FolderFileStore] = FolderFileStore) -> FolderFileStore:
    return kind(tmp_path, keep_days=1, thread_bytes=1_000_000, clock=ManualClock())


def intake(files: FileStore, channel: Channel | None = None) -> AttachmentIntake:
    adapter = channel or Channel()
    return AttachmentIntake(
        channel_of=lambda _thread: adapter, files=files, reader=FakeFileReader(), max_bytes=1_000_000
    )


async def test_one_file_that_fails_in_any_way_leaves_the_others_alone(tmp_path: Path) -> None:
    refs = (ref("one", name="a.txt"), ref("gone"), ref("bug"), ref("two", name="b.txt"), ref("x", "audio"))
    taken = await intake(store(tmp_path)).take(message(*refs), max_tokens=100, unstored=None)
    assert [file.name for file in taken.files] == ["a.txt", "b.txt"]
    assert [one.handle for one in taken.unused] == ["gone", "bug", "x"]
    assert taken.left_out == (
        "I left out a file. It is gone. "
        "I left out a file. Something went wrong with it. Please send it again. "
        "I left out a sound file. I do not listen to recordings here."
    )


async def test_a_file_that_cannot_be_stored_is_left_out(tmp_path: Path) -> None:
    taken = await intake(store(tmp_path, FullDisk)).take(message(ref("one")), max_tokens=9, unstored=None)
    assert (taken.files, taken.left_out) == (
        (),
        "I left out a file. It could not be stored. Please send it again later.",
    )


async def test_more_files_than_a_message_may_have_are_left_out_and_few_are_in_memory_at_once(
    tmp_path: Path,
) -> None:
    channel = Channel(together=6)
    takes = intake(store(tmp_path), channel)
    refs = [ref(f"file {number}", name=f"{number}.txt") for number in range(MAX_FILES + 2)]
    taken = await takes.take(message(*refs), max_tokens=1_000, unstored=None)
    assert [file.name for file in taken.files] == [f"{number}.txt" for number in range(MAX_FILES)]
    assert taken.left_out == "I left out `10.txt` and `11.txt`. I take 10 files of one message."
    assert channel.most == 6


async def test_a_text_that_begins_like_a_bitmap_is_a_text(tmp_path: Path) -> None:
    taken = await intake(store(tmp_path)).take(message(ref("BM is short")), max_tokens=99, unstored=None)
    assert [file.kind for file in taken.files] == ["file"]


async def test_a_picture_sent_as_a_file_is_a_picture_and_is_stored_as_the_model_gets_it(
    tmp_path: Path,
) -> None:
    files = store(tmp_path)
    takes = intake(files)
    content = (PICTURE + b"cat").decode("latin-1")
    taken = await takes.take(message(ref(content, name="cat.png")), max_tokens=9, unstored=None)
    (file,) = taken.files
    assert (file.kind, file.mime, file.about) == ("image", "image/jpeg", "1280 by 720")
    assert await takes.content(THREAD, file) == SCALED + b"cat"


async def test_each_message_has_its_own_copy(tmp_path: Path) -> None:
    takes = intake(store(tmp_path))
    taken = [
        await takes.take(message(ref("same"), number=number), max_tokens=9, unstored=None)
        for number in (1, 2, 2)
    ]
    assert taken[0].files[0].id != taken[1].files[0].id
    assert taken[1].files == taken[2].files


async def test_off_the_record_a_file_is_in_memory_only(tmp_path: Path) -> None:
    unstored: dict[str, Unstored] = {}
    taken = await intake(store(tmp_path)).take(message(ref("secret")), max_tokens=9, unstored=unstored)
    (file,) = taken.files
    assert unstored[file.id] == Unstored(file=file, content=b"secret")
    assert not _names(tmp_path)


def _names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]
