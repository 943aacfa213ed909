"""The marks of files and notes with text from elsewhere, when a person's folder is copied."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeline.tools.confine import person_folder
from pipeline.tools.folders import Place
from pipeline.tools.origins import Origins


def _mark(root: Path, owner: str, text: str) -> None:
    folder = person_folder(root, owner)
    folder.mkdir(parents=True)
    (folder / "foreign.json").write_text(text, "utf-8")


def _marks(root: Path, owner: str) -> object:
    return json.loads((person_folder(root, owner) / "foreign.json").read_text("utf-8"))


@pytest.mark.parametrize(
    ("theirs", "both"),
    [
        ('{"notes": ["b"], "files": ["c"]}', {"notes": ["a", "b"], "files": ["c"]}),
        ("not readable", {"notes": ["*", "a"], "files": ["*"]}),
    ],
)
def test_the_marks_of_both_owners_are_kept(tmp_path: Path, theirs: str, both: object) -> None:
    _mark(tmp_path, "new", '{"notes": ["a"]}')
    _mark(tmp_path, "old", theirs)
    Origins(tmp_path).carry_over("old", "new")
    assert _marks(tmp_path, "new") == both


def test_more_marks_than_are_kept_mean_everything(tmp_path: Path) -> None:
    _mark(tmp_path, "new", json.dumps({"notes": [f"a{number}" for number in range(600)]}))
    _mark(tmp_path, "old", json.dumps({"notes": [f"b{number}" for number in range(600)]}))
    Origins(tmp_path).carry_over("old", "new")
    assert _marks(tmp_path, "new") == {"notes": ["*"]}


def test_without_marks_nothing_is_written(tmp_path: Path) -> None:
    Origins(tmp_path).carry_over("old", "new")
    assert not person_folder(tmp_path, "new").exists()


def test_the_mark_of_what_is_gone_goes_and_the_record_with_the_last_one(tmp_path: Path) -> None:
    _mark(tmp_path, "new", '{"notes": ["tea"], "files": ["plans/june.md"]}')
    origins, own = Origins(tmp_path), person_folder(tmp_path, "new")
    parts = ("people", own.name)
    origins.note_gone(Place(tmp_path, (*parts, "notes", "x.txt")), b"other\ngreen")
    origins.note_gone(Place(tmp_path, (*parts, "notes", "x.txt")), b"Tea\ngreen")
    assert _marks(tmp_path, "new") == {"files": ["plans/june.md"]}
    origins.note_gone(Place(tmp_path, (*parts, "files", "plans", "june.md")), b"")
    assert list(own.iterdir()) == []
    origins.note_gone(Place(tmp_path, (*parts, "files", "plans", "june.md")), b"")
    origins.note_gone(Place(tmp_path, ("files", "a.txt")), b"")
    _mark(tmp_path, "other", '{"notes": ["*"]}')
    origins.note_gone(
        Place(tmp_path, ("people", person_folder(tmp_path, "other").name, "notes", "x")), b"tea"
    )
    assert _marks(tmp_path, "other") == {"notes": ["*"]}
