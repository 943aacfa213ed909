"""Changes of files: random ones are taken back exactly, in any order, also over deaths of the process.

Covers: gateway/chronicle/file_history.py, gateway/chronicle/contents.py.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from gateway.chronicle.chronicle import KEEP_DAYS, MOST_BYTES, MOST_CHANGES, Chronicle
from gateway.chronicle.contents import Contents
from gateway.storage.file_changes import FileChangeBook
from gateway.storage.memory.file_changes import MemoryFileChanges
from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import StorageError
from pipeline.tools.failures import Refused, ToolFailed
from pipeline.tools.folders import Place
from tests.support.contexts import scope


class Died(BaseException):
    """The process has ended."""


class MortalBook(MemoryFileChanges):
    """A book of a process that ends before or after its n-th write."""

    def __init__(self) -> None:
        super().__init__(lambda: None)
        self.left = -1

    def __getattribute__(self, name: str) -> object:
        value = super().__getattribute__(name)
        if name not in ("begin", "settle", "mark_undoing", "mark_undone", "forget_folders"):
            return value

        async def write(*arguments: object) -> object:
            self.left -= 1
            if self.left == 0:
                raise Died
            result = await value(*arguments)
            if self.left == 1:
                self.left = -1
                raise Died
            return result

        return write


class World:
    """A folder with files that tools change, and its chronicle."""

    def __init__(self, folder: Path, book: FileChangeBook | None = None) -> None:
        self.root = folder / "workspace"
        self.root.mkdir()
        self.book = book or MemoryFileChanges(lambda: None)
        self.clock = ManualClock(1_000_000.0)
        self.marked: list[tuple[Place, bytes]] = []
        self._contents = Contents(folder / "chronicle")
        self.gone: list[tuple[Place, bytes]] = []
        self.restart()
        self._actions = 0
        self.foreign = False
        self.turn = scope()

    def restart(self) -> None:
        self.chronicle = Chronicle(
            self.book,
            self._contents,
            self.clock,
            on_foreign=lambda *restored: self.marked.append(restored),
            on_gone=lambda *removed: self.gone.append(removed),
        )

    def place(self, name: str) -> Place:
        return Place(self.root, tuple(name.split("/")))

    async def change(self, work: Callable[[], None], *names: str) -> int:
        """Do `work` as a tool; the id of the action's first change, or 0 if nothing changed."""
        self._actions += 1
        action = f"act_{self._actions}"
        places = [self.place(name) for name in names]
        async with self.chronicle.keeping(
            places, action=action, tool="write_file", scope=self.turn, foreign=self.foreign
        ):
            work()
        return next((one.id for one in await self.book.of_action(action)), 0)

    async def write(self, name: str, data: bytes, mode: int = 0o600) -> int:
        return await self.change(lambda: self.place(name).replace_with(data, mode), name)

    async def delete(self, name: str) -> int:
        def unlink() -> None:
            # What was being taken back when the process died may have removed it by now.
            with suppress(FileNotFoundError):
                self.place(name).unlink()

        return await self.change(unlink, name)

    async def move(self, name: str, other: str) -> int:
        def rename() -> None:
            (self.root / other).parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError):
                (self.root / name).rename(self.root / other)

        return await self.change(rename, name, other)

    def shown(self) -> dict[str, tuple[bytes | None, int]]:
        """Every file's content and permission bits, and of every folder its permission bits."""
        return {
            str(path.relative_to(self.root)): (
                path.read_bytes() if path.is_file() else None,
                path.stat().st_mode & 0o777,
            )
            for path in self.root.rglob("*")
        }


NAMES = (
    "a.txt",
    "b.txt",
    "plans/june.md",
    "plans/july.md",
    "c.bin",
    "x/y/z/deep.txt",
    "x/y/flat.txt",
    "old/o.txt",
)


async def _random_act(world: World, dice: random.Random, names: tuple[str, ...] = NAMES) -> int:
    name = dice.choice(names)
    path = world.root / name
    if path.exists() and dice.random() < 0.3:
        return await world.delete(name)
    missing = [one for one in names if not (world.root / one).exists()]
    if path.exists() and missing and dice.random() < 0.4:
        return await world.move(name, dice.choice(missing))
    return await world.write(name, dice.randbytes(dice.randrange(0, 40)), dice.choice((0o600, 0o640, 0o755)))


async def test_500_random_changes_are_undone_in_random_order_to_the_byte_and_mode(tmp_path: Path) -> None:
    world, dice = World(tmp_path), random.Random(7)
    (world.root / "a.txt").write_bytes(b"from before")
    (world.root / "c.bin").write_bytes(b"\0\1")
    (world.root / "c.bin").chmod(0o644)
    (world.root / "old").mkdir(mode=0o755)
    before = world.shown()
    ids = [await _random_act(world, dice) for _ in range(500)]
    ids = [one for one in ids if one]
    dice.shuffle(ids)
    outcomes = [(await world.chronicle.undo(one, by="test")).outcome for one in ids]
    assert world.shown() == before
    assert set(outcomes) == {"restored", "covered"}


async def test_changes_and_undos_with_deaths_of_the_process_leave_a_state_that_can_be_undone(
    tmp_path: Path,
) -> None:
    book = MortalBook()
    world, dice = World(tmp_path, book), random.Random(11)
    (world.root / "a.txt").write_bytes(b"from before")
    before = world.shown()
    deaths = 0
    for _ in range(200):
        book.left = dice.choice((-1, 1, 2, 3, 4))
        live = [one.id for one in await book.named("", limit=9_999) if not one.undone_at]
        try:
            if live and dice.random() < 0.3:
                await world.chronicle.undo(dice.choice(live), by="test")
            else:
                await _random_act(world, dice)
        except Died:
            deaths += 1
        book.left = -1
        world.restart()
    for one in await book.named("", limit=9_999):
        await world.chronicle.undo(one.id, by="test")
    assert world.shown() == before
    assert deaths > 30


async def test_the_folders_of_a_new_file_go_with_it_unless_something_else_is_in_them(tmp_path: Path) -> None:
    world = World(tmp_path)
    change = await world.write("a/b/c.txt", b"c")
    assert (await world.chronicle.undo(change, by="test")).outcome == "restored"
    assert list(world.root.iterdir()) == []

    first, second = await world.write("a/b/c.txt", b"c"), await world.write("a/b/d.txt", b"d")
    await world.chronicle.undo(first, by="test")
    assert list(world.shown()) == ["a", "a/b", "a/b/d.txt"]
    (world.root / "a" / "operators.txt").write_bytes(b"")
    await world.chronicle.undo(second, by="test")
    assert sorted(world.shown()) == ["a", "a/operators.txt"]

    (world.root / "a" / "operators.txt").unlink()
    third = await world.write("a/e.txt", b"e")
    (world.root / "empty").mkdir()
    fourth = await world.write("empty/f.txt", b"f")
    await world.chronicle.undo(fourth, by="test")
    assert (world.root / "empty").is_dir(), "it was there before the change"
    await world.chronicle.undo(third, by="test")
    assert list(world.shown()) == ["empty"]


async def test_the_folders_of_a_tool_that_failed_or_died_before_it_wrote_are_removed(tmp_path: Path) -> None:
    world, book = World(tmp_path), MemoryFileChanges(lambda: None)
    (tmp_path / "other").mkdir()
    died = World(tmp_path / "other", book)

    def fail() -> None:
        (world.root / "a/b").mkdir(parents=True)
        raise ToolFailed("the disk is full")

    def die() -> None:
        (died.root / "a/b").mkdir(parents=True)
        raise Died

    with pytest.raises(ToolFailed):
        await world.change(fail, "a/b/c.txt")
    assert world.shown() == {}
    with pytest.raises(Died):
        await died.change(die, "a/b/c.txt")
    died.restart()
    assert await died.chronicle.last_of(scope().thread.encode()) is None
    assert died.shown() == {}


async def test_a_covered_change_leaves_the_later_content_and_counts_once_that_is_undone(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    first = await world.write("a.txt", b"one")
    second = await world.write("a.txt", b"two")
    undone = await world.chronicle.undo(first, by="test")
    assert (undone.outcome, [one.id for one in undone.later]) == ("covered", [second])
    assert (world.root / "a.txt").read_bytes() == b"two"
    assert (await world.chronicle.undo(second, by="test")).outcome == "restored"
    assert not (world.root / "a.txt").exists()
    assert (await world.chronicle.undo(second, by="test")).outcome == "already"
    assert (await world.chronicle.undo(99, by="test")).outcome == "unknown"


async def test_what_the_operator_wrote_in_between_is_not_overwritten(tmp_path: Path) -> None:
    world = World(tmp_path)
    change = await world.write("a.txt", b"by a tool")
    (world.root / "a.txt").write_bytes(b"by the operator")
    undone = await world.chronicle.undo(change, by="test")
    assert (undone.outcome, [one.tool for one in undone.later]) == ("covered", [""])
    assert (world.root / "a.txt").read_bytes() == b"by the operator"
    assert (await world.chronicle.undo(undone.later[0].id, by="test")).outcome == "restored"
    assert not (world.root / "a.txt").exists()


async def test_a_call_that_changes_nothing_leaves_no_change(tmp_path: Path) -> None:
    world = World(tmp_path)
    await world.write("a.txt", b"same")
    assert await world.write("a.txt", b"same") == 0

    def fail() -> None:
        raise ToolFailed("no")

    with pytest.raises(ToolFailed):
        await world.change(fail, "a.txt")
    assert len(await world.book.of_path(str(world.root), "a.txt")) == 1


async def test_a_file_that_cannot_be_kept_is_not_changed(tmp_path: Path) -> None:
    world = World(tmp_path)
    with (world.root / "big").open("wb") as big:
        big.truncate(MOST_BYTES + 1)
    with pytest.raises(Refused, match="big: no copy of it can be kept"):
        await world.delete("big")
    (world.root / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Refused, match="link"):
        await world.delete("link")
    (world.root / "x").write_bytes(b"foo")
    (tmp_path / "chronicle" / hashlib.sha256(b"foo").hexdigest()[:2]).write_bytes(b"in the way")
    with pytest.raises((StorageError, Refused)):
        await world.delete("x")
    assert (world.root / "x").exists()
    assert await world.book.named("", limit=9) == ()


async def test_a_damaged_copy_is_named_and_not_restored(tmp_path: Path) -> None:
    world = World(tmp_path)
    (world.root / "a.txt").write_bytes(b"precious")
    change = await world.delete("a.txt")
    found = await world.book.find(change)
    assert found is not None
    digest = found.before.content
    kept = tmp_path / "chronicle" / digest[:2] / digest
    kept.write_bytes(b"Precious")
    with pytest.raises(StorageError, match=f"{digest[:12]} was changed on the disk"):
        await world.chronicle.undo(change, by="test")
    assert not (world.root / "a.txt").exists()
    kept.unlink()
    with pytest.raises(StorageError, match="cannot be read"):
        await world.chronicle.undo(change, by="test")


async def test_old_and_surplus_changes_and_their_contents_are_removed(tmp_path: Path) -> None:
    world = World(tmp_path)
    for number in range(MOST_CHANGES + 5):
        await world.write("a.txt", b"%d" % number)
    assert await world.chronicle.sweep() == 5
    await world.write("b.txt", b"b")
    kept = {path.name for path in (tmp_path / "chronicle").rglob("*") if path.is_file()} - {"lock"}
    assert len(kept) == MOST_CHANGES + 6, "the contents are younger than an hour by the file system's clock"
    world.clock.step_wall(4_000_000_000.0)
    assert await world.chronicle.sweep() == MOST_CHANGES + 1
    left = [path for path in (tmp_path / "chronicle").rglob("*") if path.is_file() and path.name != "lock"]
    assert left == []
    assert KEEP_DAYS == 30


async def test_a_file_that_gets_foreign_text_back_and_one_that_goes_are_reported(tmp_path: Path) -> None:
    world = World(tmp_path)
    await world.write("a.txt", b"mine")
    await world.chronicle.undo(await world.write("a.txt", b"mine too"), by="test")
    assert world.marked == []
    world.foreign = True
    await world.write("a.txt", b"of a page")
    world.foreign = False
    await world.chronicle.undo(await world.write("a.txt", b"mine"), by="test")
    assert world.marked == [(world.place("a.txt"), b"of a page")]
    assert world.gone == []
    await world.chronicle.undo(await world.write("new.txt", b"of a page"), by="test")
    assert world.gone == [(world.place("new.txt"), b"of a page")]


async def test_a_repeated_undo_takes_back_no_other_change(tmp_path: Path) -> None:
    book = MortalBook()
    world, thread = World(tmp_path, book), scope().thread.encode()
    for text in (b"one", b"two", b"three"):
        await world.write("a.txt", text)
    for writes in (1, 2, 3):
        book.left = writes
        with suppress(Died):
            await world.chronicle.undo_last(thread, by="m_1")
        book.left = -1
        world.restart()
    done = await world.chronicle.undo_last(thread, by="m_1")
    assert done.outcome == "restored"
    assert (world.root / "a.txt").read_bytes() == b"two"
    assert (await world.chronicle.undo_last(thread, by="m_2", author="ben")).outcome == "unknown"
    assert (await world.chronicle.undo_last(thread, by="m_2")).outcome == "restored"
    assert (world.root / "a.txt").read_bytes() == b"one"
