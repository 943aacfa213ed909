"""Changes of files on every store: recorded, settled, taken back, found, and pruned."""

from __future__ import annotations

from dataclasses import replace

from gateway.storage.file_changes import NO_FILE, FileState, NewChange
from gateway.storage.ports import Store
from tests.contracts.conftest import Reopen

ONE, TWO = FileState(content="1" * 64, mode=0o600), FileState(content="2" * 64, mode=0o640)
NEW = NewChange(
    action="act_1",
    tool="write_file",
    root="/work\ud800",
    path="people/ann/files/list.txt",
    thread="telegram:main:1",
    message_id="m_1",
    author="ann",
    owner="telegram:main:user:ann",
    before=NO_FILE,
    at=100.0,
)


async def test_a_change_is_recorded_settled_and_taken_back(store: Store, reopen: Reopen) -> None:
    book = store.file_changes
    first, second = await book.begin([NEW, replace(NEW, path="other.txt", before=ONE)])
    assert second > first
    assert await book.newest_of_thread(NEW.thread) == await book.find(second)
    await book.settle({first: ONE, second: None})
    book = (await reopen()).file_changes
    (found,) = await book.of_action("act_1")
    assert (found.id, found.root, found.before, found.after) == (first, "/work?", NO_FILE, ONE)
    assert (found.undone_by, found.undone_at) == ("", 0.0)
    assert await book.find(second) is None
    assert await book.undone_by("m_2") is None
    await book.mark_undoing([first], "m_2")
    begun = await book.undone_by("m_2")
    assert begun is not None
    assert (begun.id, begun.undone_at) == (first, 0.0)
    await book.mark_undone([first], 200.0)
    assert await book.newest_of_thread(NEW.thread) is None
    assert await book.of_path(NEW.root, NEW.path) == (replace(begun, undone_at=200.0),)
    (third,) = await book.begin([NEW])
    assert third > second, "an id is never used again"


async def test_changes_are_found_by_the_end_of_their_path(store: Store) -> None:
    book = store.file_changes
    paths = ("a/list.txt", "list.txt", "a/my-list.txt", "b/LIST.txt")
    ids = await book.begin([replace(NEW, path=path) for path in paths])
    assert [one.id for one in await book.named("list.txt", limit=9)] == [ids[1], ids[0]]
    assert [one.id for one in await book.named("a/list.txt", limit=9)] == [ids[0]]
    assert [one.path for one in await book.named("", limit=2)] == ["b/LIST.txt", "a/my-list.txt"]
    assert await book.named("%", limit=9) == ()


async def test_a_change_without_a_tool_is_not_the_newest_of_a_thread(store: Store) -> None:
    book = store.file_changes
    (first,) = await book.begin([replace(NEW, after=ONE)])
    await book.begin([replace(NEW, tool="", thread="", before=ONE, after=TWO)])
    newest = await book.newest_of_thread(NEW.thread)
    assert newest is not None
    assert newest.id == first
    assert await book.newest_of_thread("") is None


async def test_old_changes_and_those_beyond_the_most_of_a_file_are_removed(store: Store) -> None:
    book = store.file_changes
    await book.begin([replace(NEW, at=float(at), before=ONE, after=TWO) for at in range(100, 105)])
    await book.begin([replace(NEW, path="b", at=90.0, before=NO_FILE), replace(NEW, path="b", at=110.0)])
    assert await book.prune(before=95.0, most=3) == 3
    assert [one.at for one in await book.named("", limit=9)] == [110.0, 104.0, 103.0, 102.0]
    assert await book.contents() == {ONE.content, TWO.content}


async def test_all_changes_of_a_persons_files_are_forgotten_and_no_others(store: Store) -> None:
    book = store.file_changes
    noticed = replace(NEW, tool="", owner="")
    others = replace(NEW, path="people/ben/files/list.txt", owner="telegram:main:user:ben")
    ids = await book.begin([NEW, noticed, others])
    assert await book.forget(NEW.owner) == 2
    assert [await book.find(one) is None for one in ids] == [True, True, False]
    assert await book.forget(NEW.owner) == 0


async def test_a_made_folder_is_spare_once_all_below_it_is_taken_back(store: Store, reopen: Reopen) -> None:
    book, root = store.file_changes, NEW.root
    one, two = replace(NEW, path="a/b/c.txt"), replace(NEW, path="a/d.txt")
    first, second, beside = await book.begin(
        [one, two, replace(NEW, path="a-b/c.txt")], [(root, "a"), (root, "a/b"), (root, "a")]
    )
    assert await book.is_spare(root, "a/b", [first])
    assert not await book.is_spare(root, "a", [first, beside])
    assert await book.is_spare(root, "a", [first, second])
    assert not await book.is_spare(root, "a-b", [beside]), "no change has made it"
    assert not await book.is_spare("/other", "a", [first, second])
    await book.mark_undone([first], 200.0)
    book = (await reopen()).file_changes
    assert await book.is_spare(root, "a/b", [])
    assert await book.is_spare(root, "a", [second])
    await book.forget_folders(root, ["a/b"])
    assert [await book.is_spare(root, folder, [second]) for folder in ("a/b", "a")] == [False, True]


async def test_a_made_folder_without_a_recorded_change_is_forgotten(store: Store) -> None:
    book = store.file_changes
    for removed in ("prune", "forget"):
        (first,) = await book.begin([replace(NEW, path="a/c.txt", at=50.0)], [(NEW.root, "a")])
        assert await book.is_spare(NEW.root, "a", [first])
        if removed == "prune":
            await book.prune(before=99.0, most=9)
        else:
            await book.forget(NEW.owner)
        assert not await book.is_spare(NEW.root, "a", [first])


async def test_changes_are_detached_from_their_thread(store: Store, reopen: Reopen) -> None:
    book = store.file_changes
    ids = await book.begin(
        [
            replace(NEW, after=ONE),
            replace(NEW, before=ONE, after=TWO),
            replace(NEW, tool="", after=ONE),
            replace(NEW, thread="t", path="b/c.txt"),
        ],
        [(NEW.root, "b"), (NEW.root, "people")],
    )
    assert [one.id for one in await book.of_thread(NEW.thread)] == list(ids[:2])
    await book.detach([ids[0], ids[2], ids[3]], {ids[1]: NO_FILE})
    book = (await reopen()).file_changes
    (left,) = await book.named("", limit=9)
    assert (left.id, left.before, left.after) == (ids[1], NO_FILE, TWO)
    assert {left.action, left.tool, left.thread, left.message_id, left.author, left.owner} == {""}
    assert not await book.is_spare(NEW.root, "b", [])
    assert await book.is_spare(NEW.root, "people", [ids[1]])
