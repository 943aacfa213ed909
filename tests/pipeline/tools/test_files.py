"""The group `files`: what can be read and written, and that nothing else can."""

from __future__ import annotations

import os
import shutil
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pipeline.runtime.scope import TurnScope
from pipeline.tools.confine import inside, person_folder, read_text, write_private
from pipeline.tools.files import files_group
from pipeline.tools.folders import Place
from pipeline.tools.protection import Protection
from pipeline.tools.tool import Refused, ToolFailed
from tests.support.contexts import Watched, scope
from tests.support.tool_gate import Person, call, gate, propose

NOTHING: dict[str, Any] = {}
WRITES: tuple[tuple[str, dict[str, Any]], ...] = (("write_file", {"text": "x"}), ("delete_file", NOTHING))
EVE = scope(author=type(scope().author)(id="eve"))


async def _do(root: Path, name: str, turn: TurnScope | None = None, **arguments: Any) -> str:
    tools = {tool.name: tool for tool in files_group(root).fixed}
    return (await tools[name].run(arguments, turn or scope())).text


async def test_a_file_is_written_read_found_listed_and_deleted(tmp_path: Path) -> None:
    assert await _do(tmp_path, "write_file", path="own/plans/june.md", text="one\nTwo\nthree") == (
        "own/plans/june.md is written: 13 characters."
    )
    assert await _do(tmp_path, "list_files") == "own/plans/june.md"
    assert await _do(tmp_path, "read_file", path="plans/june.md") == "one\nTwo\nthree"
    assert await _do(tmp_path, "read_file", path="own/plans/june.md", line=2) == "Two\nthree"
    assert await _do(tmp_path, "search_files", text="tWO") == "own/plans/june.md:2: Two"
    assert await _do(tmp_path, "delete_file", path="own/plans/june.md") == "own/plans/june.md is deleted."
    assert await _do(tmp_path, "list_files") == "There are no files."


async def test_what_is_written_is_the_accounts_alone_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    await _do(tmp_path, "write_file", path="a/b.txt", text="x")
    own = person_folder(tmp_path, scope().owner) / "files"
    assert (own / "a" / "b.txt").stat().st_mode & 0o777 == 0o600
    for folder in (own, own / "a", own.parent, own.parent.parent):
        assert folder.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in (own / "a").iterdir()] == ["b.txt"]


async def test_one_persons_files_are_no_one_elses(tmp_path: Path) -> None:
    await _do(tmp_path, "write_file", path="secret.txt", text="mine")
    assert await _do(tmp_path, "list_files", EVE) == "There are no files."
    assert await _do(tmp_path, "search_files", EVE, text="mine") == "No file has “mine” in it."
    with pytest.raises(ToolFailed, match="no such file"):
        await _do(tmp_path, "read_file", EVE, path="own/secret.txt")
    theirs = person_folder(tmp_path, scope().owner).name
    with pytest.raises(Refused):
        await _do(tmp_path, "read_file", EVE, path=f"own/../../{theirs}/files/secret.txt")


@pytest.mark.parametrize("path", [".hidden", "own/.hidden.txt", "own/.cache/x.txt", "own\\.hidden", "./.x"])
async def test_files_that_would_not_be_listed_and_counted_are_not_written(tmp_path: Path, path: str) -> None:
    with pytest.raises(Refused, match="begin with a dot"):
        await _do(tmp_path, "write_file", path=path, text="x")
    assert await _do(tmp_path, "write_file", path="own/./a.b", text="x")


async def test_shared_files_are_read_and_never_written(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "menu.txt").write_text("soup")
    assert await _do(tmp_path, "read_file", path="menu.txt") == "soup"
    assert await _do(tmp_path, "list_files") == "shared/menu.txt"
    for name, more in WRITES:
        with pytest.raises(Refused, match="operator"):
            await _do(tmp_path, name, path="shared/menu.txt", **more)


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "~/x",
        "C:\\x",
        "C:x",
        "../SOUL.md",
        "a/../../SOUL.md",
        "own/../USER.md",
        "..\\SOUL.md",
        "own",
        "own/",
        "own/.",
        "shared//etc/passwd",
        "a\0b",
        "a\nb",
        "x" * 301,
        ".",
    ],
)
async def test_a_path_that_leads_elsewhere_is_refused(tmp_path: Path, path: str) -> None:
    (tmp_path / "SOUL.md").write_text("be kind")
    with pytest.raises(Refused):
        await _do(tmp_path, "write_file", path=path, text="be rude")
    with pytest.raises(Refused):
        await _do(tmp_path, "read_file", path=path)
    assert (tmp_path / "SOUL.md").read_text() == "be kind"


async def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "SOUL.md").write_text("be kind")
    own = person_folder(tmp_path, scope().owner) / "files"
    own.mkdir(parents=True)
    (own / "link.md").symlink_to(tmp_path / "SOUL.md")
    (own / "away").symlink_to(tmp_path)
    for path in ("own/link.md", "own/away/SOUL.md"):
        for name, more in (("read_file", NOTHING), *WRITES):
            with pytest.raises(Refused, match=r"over a link|not an ordinary file"):
                await _do(tmp_path, name, path=path, **more)
    assert await _do(tmp_path, "list_files") == "There are no files."
    assert (tmp_path / "SOUL.md").read_text() == "be kind"


async def test_a_folder_that_another_process_swaps_for_a_link_leads_to_no_one_elses(tmp_path: Path) -> None:
    own, theirs = (
        person_folder(tmp_path, owner) / "files" for owner in (scope().owner, "console:local:user:eve")
    )
    for folder, words in ((own / "plans", "mine"), (theirs, "theirs")):
        folder.mkdir(parents=True)
        (folder / "june.txt").write_text(words)
    ended = threading.Event()

    def swap() -> None:
        while not ended.is_set():
            with suppress(OSError):
                (own / "plans").rename(own / "aside")
                (own / "plans").symlink_to(theirs)
                (own / "plans").unlink()
            with suppress(OSError):
                # A write may have made the folder again meanwhile.
                shutil.rmtree(own / "plans")
            with suppress(OSError):
                (own / "aside").rename(own / "plans")

    swapping = threading.Thread(target=swap)
    swapping.start()
    read: set[str] = set()
    try:
        for number in range(1_000):
            place = inside(Place(own), "plans/june.txt")
            with suppress(ToolFailed):
                read.add(read_text(place, most_bytes=100))
            if number % 20 == 0:
                with suppress(ToolFailed):
                    write_private(place, "mine")
    finally:
        ended.set()
        swapping.join()
    assert read <= {"mine"}
    assert [(file.name, file.read_text()) for file in theirs.iterdir()] == [("june.txt", "theirs")]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("own/" + "x" * 256, "takes 256 bytes"),
        ("own/" + "ä" * 128 + "/a.txt", "takes 256 bytes"),
        ("own/\ud800.txt", "half a character"),
    ],
    ids=["long", "long in bytes", "surrogate"],
)
async def test_a_name_that_no_file_can_have_is_refused_in_words(
    tmp_path: Path, path: str, words: str
) -> None:
    for name, more in (("read_file", NOTHING), *WRITES):
        with pytest.raises(Refused, match=words):
            await _do(tmp_path, name, path=path, **more)


async def test_what_is_no_text_too_large_or_no_file_is_said(tmp_path: Path) -> None:
    own = person_folder(tmp_path, scope().owner) / "files"
    (own / "folder").mkdir(parents=True)
    (own / "picture.png").write_bytes(b"\x89PNG\0\0")
    (own / "latin.txt").write_bytes("Käse".encode("latin-1"))
    with (own / "huge.txt").open("wb") as huge:
        huge.truncate(5_000_000)
    os.mkfifo(own / "pipe")
    for path, words in (
        ("picture.png", "not text"),
        ("latin.txt", "not text in UTF-8"),
        ("huge.txt", "too large: 5000000 bytes"),
        ("pipe", "not an ordinary file"),
        ("folder", "ordinary file|directory"),
        ("none.txt", "no such file"),
    ):
        with pytest.raises(ToolFailed, match=words):
            await _do(tmp_path, "read_file", path=path)
    for path in ("pipe", "folder"):
        with pytest.raises(Refused, match="ordinary"):
            await _do(tmp_path, "write_file", path=path, text="x")
    assert await _do(tmp_path, "search_files", text="x") == "No file has “x” in it."


def test_a_path_with_dots_and_slashes_inside_the_folder_is_fine(tmp_path: Path) -> None:
    assert inside(Place(tmp_path), "./a//b..txt") == Place(tmp_path, ("a", "b..txt"))


@pytest.mark.parametrize(
    "path", ["SOUL.md", "soul.MD", "./Identity.md", "skills/x/SKILL.md", "people/x/MEMORY.md"]
)
async def test_protected_names_are_refused_before_anything_begins(tmp_path: Path, path: str) -> None:
    watched, person = Watched(), Person()
    one = gate(files_group(tmp_path), person=person, protection=Protection(tmp_path))
    asked = call("write_file", {"path": path, "text": "x"})
    (result,) = await propose(one, asked, scope=scope(watched), groups=("files",))
    assert "protected" in result.content
    assert [event.type for event in watched.events] == ["action_completed"]
    assert person.asked == []


async def test_writing_and_deleting_ask_and_reading_does_not(tmp_path: Path) -> None:
    person = Person("refused")
    one = gate(files_group(tmp_path), person=person, protection=Protection(tmp_path))
    calls = [
        call(name, arguments, call_id=name)
        for name, arguments in (
            ("list_files", {}),
            ("search_files", {"text": "x"}),
            ("write_file", {"path": "a.txt", "text": "x"}),
            ("delete_file", {"path": "a.txt"}),
        )
    ]
    results = await propose(one, *calls, scope=scope(), groups=("files",))
    assert [result.success for result in results] == [True, True, False, False]
    assert [asked["tool"] for asked in person.asked] == ["write_file", "delete_file"]
    assert await _do(tmp_path, "list_files") == "There are no files."
