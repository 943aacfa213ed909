"""The operator's folder: skills that follow the rules, texts that are read when they change."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import StorageError
from pipeline.runtime.ports import SkillSummary, WorkspaceTexts
from pipeline.tools.confine import person_folder
from pipeline.tools.skills import SkillFolder
from pipeline.tools.workspace import WorkspaceFolder
from tests.support.contexts import scope

EVE = scope(author=type(scope().author)(id="eve"))


def _skill(root: Path, folder: str, text: str) -> None:
    (root / folder).mkdir(parents=True)
    (root / folder / "SKILL.md").write_text(text)


def test_a_skill_is_a_folder_with_a_name_a_description_and_instructions(tmp_path: Path) -> None:
    _skill(tmp_path, "bread", '---\nname: bread\ndescription: "Bake: slowly"\n---\n\nKnead.\nWait.\n')
    book = SkillFolder(tmp_path, ManualClock())
    assert book.summaries() == (SkillSummary(name="bread", description="Bake: slowly"),)
    assert (book.body("bread"), book.body("cake")) == ("Knead.\nWait.", None)
    assert book.problems() == ()


@pytest.mark.parametrize(
    ("folder", "text", "reason"),
    [
        ("bread", "Knead.", "must begin with name and description"),
        ("bread", "---\nname: bread\ndescription: x\nKnead.", "must begin with name and description"),
        (
            "bread",
            "---\nname: cake\ndescription: x\n---\nKnead.",
            "it is cake, and the folder's name is bread",
        ),
        ("Bread", "---\nname: Bread\ndescription: x\n---\nKnead.", "small letters"),
        ("-a", "---\nname: -a\ndescription: x\n---\nKnead.", "small letters"),
        ("a" * 65, f"---\nname: {'a' * 65}\ndescription: x\n---\nKnead.", "at most 64"),
        ("bread", "---\nname: bread\n---\nKnead.", "1 to 1024 characters"),
        ("bread", f"---\nname: bread\ndescription: {'x' * 1025}\n---\nKnead.", "1 to 1024 characters"),
        ("bread", "---\nname: bread\ndescription: x\n---\n \n", "the instructions must have"),
        ("bread", "---\nname: bread\nwhatever\n---\nKnead.", "is no line such as name: value"),
        ("bread", "---\nname: bread\nname: bread\ndescription: x\n---\nKnead.", "is no line such as"),
    ],
)
def test_a_skill_that_breaks_a_rule_is_left_out_and_named(
    tmp_path: Path, folder: str, text: str, reason: str
) -> None:
    _skill(tmp_path, folder, text)
    _skill(tmp_path, "good", f"---\nname: good\ndescription: {'x' * 1024}\n---\nDo.")
    book = SkillFolder(tmp_path, ManualClock())
    assert [skill.name for skill in book.summaries()] == ["good"]
    (problem,) = book.problems()
    assert problem.startswith(str(tmp_path / folder / "SKILL.md"))
    assert reason in problem


async def test_a_new_skill_is_seen_within_a_second_and_a_missing_folder_is_no_skills(tmp_path: Path) -> None:
    clock = ManualClock()
    book = SkillFolder(tmp_path / "skills", clock)
    assert book.summaries() == ()
    _skill(tmp_path / "skills", "bread", "---\nname: bread\ndescription: x\n---\nKnead.")
    assert book.summaries() == ()
    await clock.advance(1)
    assert len(book.summaries()) == 1


async def test_the_texts_are_the_bots_and_the_persons_own_and_follow_changes(tmp_path: Path) -> None:
    clock = ManualClock()
    folder = WorkspaceFolder(tmp_path, clock)
    assert folder.texts(scope()) == WorkspaceTexts()
    for name in ("IDENTITY", "SOUL", "AGENTS", "USER", "MEMORY"):
        (tmp_path / f"{name}.md").write_text(f"{name}\n")
    own = person_folder(tmp_path, scope().owner)
    own.mkdir(parents=True)
    (own / "MEMORY.md").write_text("likes tea")
    await clock.advance(1)
    assert folder.texts(scope()) == WorkspaceTexts(
        identity="IDENTITY", soul="SOUL", agents="AGENTS", user="USER", memory="MEMORY\n\nlikes tea"
    )
    assert folder.texts(EVE).memory == "MEMORY"
    (tmp_path / "SOUL.md").write_text("be kinder")
    assert folder.texts(scope()).soul == "SOUL"
    await clock.advance(1)
    assert folder.texts(scope()).soul == "be kinder"
    (tmp_path / "SOUL.md").unlink()
    await clock.advance(1)
    assert folder.texts(scope()).soul == ""


async def test_a_change_is_seen_within_a_second_no_matter_who_else_is_shown_the_texts(tmp_path: Path) -> None:
    clock = ManualClock()
    folder = WorkspaceFolder(tmp_path, clock)
    assert folder.texts(scope()).soul == ""
    await clock.advance(0.6)
    assert folder.texts(EVE).soul == ""
    (tmp_path / "SOUL.md").write_text("be kind")
    await clock.advance(0.4)
    assert folder.texts(scope()).soul == "be kind"
    # Looked at a second ago, for somebody else.
    assert folder.texts(EVE).soul == "be kind"


def test_a_text_that_is_too_long_is_cut_and_one_that_is_no_text_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "SOUL.md").write_text("x" * 20_000)
    (tmp_path / "USER.md").write_bytes(b"\0\1")
    texts = WorkspaceFolder(tmp_path, ManualClock()).texts(scope())
    assert texts.soul == "x" * 16_000 + "\n[The rest of this text is left out: it is too long.]"
    assert texts.user == ""


async def test_facts_are_added_to_the_persons_own_memory_and_shown_at_once(tmp_path: Path) -> None:
    folder = WorkspaceFolder(tmp_path, ManualClock())
    (tmp_path / "MEMORY.md").write_text("for all")
    assert folder.texts(scope()).memory == "for all"
    await folder.remember(scope(), ["Ada lives in Ulm."])
    await folder.remember(scope(), ["Ada lives in Ulm.", "Ada has a dog."])
    memory = folder.texts(scope()).memory
    assert (memory.count("Ulm"), memory.count("dog")) == (1, 1)
    assert folder.texts(EVE).memory == "for all"
    path = person_folder(tmp_path, scope().owner) / "MEMORY.md"
    assert path.stat().st_mode & 0o777 == 0o600


async def test_facts_that_cannot_be_written_are_an_error_of_the_store(tmp_path: Path) -> None:
    own = person_folder(tmp_path, scope().owner)
    (own / "MEMORY.md").mkdir(parents=True)
    with pytest.raises(StorageError, match="MEMORY"):
        await WorkspaceFolder(tmp_path, ManualClock()).remember(scope(), ["a"])


async def test_the_folder_of_an_owner_is_copied_for_another_and_replaces_nothing(tmp_path: Path) -> None:
    folder = WorkspaceFolder(tmp_path, ManualClock())
    ann, both, ben = (person_folder(tmp_path, owner) for owner in ("ann", "both", "ben"))
    for path, text in (
        (ann / "notes" / "cat.md", "Mortimer"),
        (ann / "foreign.json", "{}"),
        (both / "notes" / "dog.md", "theirs"),
        (ann / "notes" / "dog.md", "Rex"),
        (ben / "TIME_ZONE", "Asia/Tokyo"),
        (ben / "notes" / "ben.md", "Ben's own"),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (ann / "secret").symlink_to(tmp_path / "outside")
    (tmp_path / "outside").write_text("of the operator")
    assert await folder.carry_over("ann", "both", "ben")
    copied = {str(path.relative_to(both)): path.read_text() for path in both.rglob("*") if path.is_file()}
    assert copied == {
        "notes/cat.md": "Mortimer",
        "notes/dog.md": "theirs",
        "foreign.json": "{}",
        "TIME_ZONE": "Asia/Tokyo",
    }
    assert folder.texts(replace(scope(), person="both")).time_zone == "Asia/Tokyo"
    assert [path.stat().st_mode & 0o077 for path in (both / "notes" / "cat.md", both / "TIME_ZONE")] == [0, 0]


async def test_a_folder_that_cannot_be_copied_as_a_whole_is_reported(tmp_path: Path) -> None:
    folder = WorkspaceFolder(tmp_path, ManualClock())
    ann, both = person_folder(tmp_path, "ann"), person_folder(tmp_path, "both")
    for name in ("notes", "files"):
        (ann / name).mkdir(parents=True)
        (ann / name / "a.md").write_text(name)
    both.mkdir(parents=True)
    (both / "files").write_text("in the way of a folder")
    assert not await folder.carry_over("ann", "both", "ben")
    assert (both / "notes" / "a.md").read_text() == "notes"
    assert await folder.carry_over("", "both", "ben"), "nothing to copy"
