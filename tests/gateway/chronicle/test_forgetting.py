"""Deleted conversations take their changes of files and the copies with them; others keep theirs.

Covers: gateway/chronicle/forgetting.py, gateway/chronicle/file_history.py.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path

from gateway.chronicle.contents import Contents
from gateway.chronicle.forgetting import ChangeForgetting
from gateway.storage.file_changes import FileState, NewChange
from gateway.storage.memory.file_changes import MemoryFileChanges
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Author
from pipeline.runtime.scope import TurnScope
from tests.gateway.chronicle.test_chronicle import World
from tests.support.contexts import scope


def _thread(chat: str) -> ThreadKey:
    return ThreadKey(channel="web", account="local", chat=chat)


def _turn(chat: str) -> TurnScope:
    return scope(thread=_thread(chat))


def _copies(folder: Path) -> set[bytes]:
    return {path.read_bytes() for path in (folder / "chronicle").glob("??/*")}


def _forgetting(world: World, folder: Path) -> ChangeForgetting:
    return ChangeForgetting(world.book, Contents(folder / "chronicle"), world.chronicle)


async def test_a_deleted_conversations_copies_go_at_once_and_the_files_stay(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.turn = _turn("gone")
    (world.root / "old.txt").write_bytes(b"from before")
    for text in (b"secret one", b"secret two"):
        await world.write("old.txt", text)
        await world.write("a/new.txt", text)
    before = world.shown()
    await _forgetting(world, tmp_path).of_thread(_thread("gone").encode())
    assert _copies(tmp_path) == set()
    assert await world.book.named("", limit=9) == ()
    assert world.shown() == before
    world.turn = _turn("other")
    change = await world.write("old.txt", b"next")
    await world.chronicle.undo(change, by="test")
    assert world.shown() == before


async def test_another_conversations_changes_around_it_are_taken_back_to_what_was_there(
    tmp_path: Path,
) -> None:
    world, ids = World(tmp_path), {}
    for number, chat in enumerate(("stays", "gone", "gone", "stays", "gone")):
        world.turn = _turn(chat)
        ids[number] = await world.write("a.txt", b"%d" % number)
    await _forgetting(world, tmp_path).of_thread(_thread("gone").encode())
    # 1 was between two changes of the deleted conversation, and 4 is what the file holds.
    assert _copies(tmp_path) == {b"0", b"2", b"3"}
    assert [one.tool for one in await world.book.of_path(str(world.root), "a.txt")] == [
        "write_file",
        "",
        "write_file",
    ]
    assert (await world.chronicle.undo(ids[3], by="test")).outcome == "covered"
    noticed = (await world.book.of_path(str(world.root), "a.txt"))[-1]
    await world.chronicle.undo(noticed.id, by="test")
    assert (world.root / "a.txt").read_bytes() == b"2"


async def test_random_changes_of_two_conversations_stay_a_chain_when_one_is_deleted(tmp_path: Path) -> None:
    for seed in range(20):
        folder, dice = tmp_path / str(seed), random.Random(seed)
        folder.mkdir()
        world = World(folder)
        states: dict[int, bytes | None] = {}
        for number in range(12):
            world.turn = _turn(dice.choice(("gone", "stays")))
            before = (world.root / "a.txt").read_bytes() if number else None
            states[await world.write("a.txt", b"%d" % number)] = before
        await _forgetting(world, folder).of_thread(_thread("gone").encode())
        # Newest first, each gives back what was there right before it.
        while live := [
            one for one in await world.book.of_path(str(world.root), "a.txt") if not one.undone_at
        ]:
            done = await world.chronicle.undo(live[-1].id, by="test")
            if done.outcome == "covered":
                # The last conversation's content, which is a change by no tool now.
                await world.chronicle.undo(done.later[-1].id, by="test")
            path = world.root / "a.txt"
            if live[-1].tool:
                assert (path.read_bytes() if path.exists() else None) == states[live[-1].id], seed


async def test_a_removed_persons_copies_go_at_once_and_no_others(tmp_path: Path) -> None:
    world = World(tmp_path)
    for name in ("ada", "ben"):
        world.turn = scope(author=Author(id=name), person=name, private=True)
        await world.write(f"{name}.txt", name.encode())
    await _forgetting(world, tmp_path).of_owner("ada")
    assert _copies(tmp_path) == {b"ben"}


async def test_a_copy_that_another_change_records_meanwhile_is_kept(tmp_path: Path) -> None:
    class Book(MemoryFileChanges):
        """Another conversation writes the same content once it is known which copies no record needs."""

        looks = 0

        async def contents(self) -> frozenset[str]:
            known = await super().contents()
            self.looks += 1
            if self.looks == 2:
                world.turn = _turn("stays")
                await world.write("b.txt", b"same")
            return known

    world = World(tmp_path, Book(lambda: None))
    world.turn = _turn("gone")
    await world.write("a.txt", b"same")
    await _forgetting(world, tmp_path).of_thread(_thread("gone").encode())
    assert _copies(tmp_path) == {b"same"}


async def test_a_copy_that_is_removed_before_its_change_is_recorded_is_stored_again(tmp_path: Path) -> None:
    class Book(MemoryFileChanges):
        """Copies are removed as unused right before a change with them is recorded."""

        async def begin(
            self, changes: Sequence[NewChange], folders: Sequence[tuple[str, str]] = ()
        ) -> tuple[int, ...]:
            self._remove([one.before for one in changes])
            return await super().begin(changes, folders)

        async def settle(self, after: Mapping[int, FileState | None]) -> None:
            self._remove([state for state in after.values() if state is not None])
            await super().settle(after)

        def _remove(self, states: list[FileState]) -> None:
            for state in states:
                contents.set_aside(state.content)
                contents.resolve_aside(state.content, needed=False)

    contents = Contents(tmp_path / "chronicle")
    world = World(tmp_path, Book(lambda: None))
    (world.root / "a.txt").write_bytes(b"before")
    change = await world.write("a.txt", b"after")
    assert _copies(tmp_path) == {b"before", b"after"}
    await world.chronicle.undo(change, by="test")
    assert (world.root / "a.txt").read_bytes() == b"before"


async def test_a_copy_that_was_set_aside_by_a_process_that_died_is_found(tmp_path: Path) -> None:
    world, contents = World(tmp_path), Contents(tmp_path / "chronicle")
    (world.root / "a.txt").write_bytes(b"before")
    change = await world.write("a.txt", b"after")
    found = await world.book.find(change)
    assert found is not None
    contents.set_aside(found.before.content)
    world.clock.step_wall(9_999.0)
    await world.chronicle.sweep()
    await world.chronicle.undo(change, by="test")
    assert (world.root / "a.txt").read_bytes() == b"before"
