"""Several files are written together or not at all, and what is replaced is kept."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from gateway.cli.init import files
from gateway.cli.init.files import NewFile, copy_name, write_all


def tree(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def wanted(folder: Path) -> list[NewFile]:
    return [
        NewFile(path=folder / "secrets/telegram-token", text="new token\n", mode=0o600),
        NewFile(path=folder / "parlour.toml", text="new = true\n", mode=0o644),
    ]


def test_files_are_written_with_their_modes_in_a_folder_for_this_user_alone(tmp_path: Path) -> None:
    assert write_all(wanted(tmp_path)) == ()

    assert tree(tmp_path) == {"secrets/telegram-token": "new token\n", "parlour.toml": "new = true\n"}
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("secrets", "secrets/telegram-token")]
    assert modes == [0o700, 0o600]


def test_what_was_there_is_kept_under_a_new_name_each_time(tmp_path: Path) -> None:
    (tmp_path / "parlour.toml").write_text("first\n")
    write_all([NewFile(path=tmp_path / "parlour.toml", text="second\n", mode=0o644)])
    copies = write_all([NewFile(path=tmp_path / "parlour.toml", text="third\n", mode=0o644)])

    assert copies == (tmp_path / "parlour.toml.bak2",)
    assert tree(tmp_path) == {
        "parlour.toml": "third\n",
        "parlour.toml.bak": "first\n",
        "parlour.toml.bak2": "second\n",
    }
    assert copy_name(tmp_path / "parlour.toml") == tmp_path / "parlour.toml.bak3"


@pytest.mark.parametrize("at", range(1, 7))
def test_an_interruption_at_any_step_takes_everything_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    (tmp_path / "parlour.toml").write_text("old\n")
    before = tree(tmp_path)
    steps = iter(range(1, 10))

    def interrupting(name: str) -> None:
        original = getattr(files, name)

        def step(*arguments: object) -> object:
            if next(steps) == at:
                original(*arguments)
                raise KeyboardInterrupt
            return original(*arguments)

        monkeypatch.setattr(files, name, step)

    for name in ("_stage", "_copy", "_put"):
        interrupting(name)
    again = NewFile(path=tmp_path / "other", text="another\n", mode=0o644)
    with pytest.raises(KeyboardInterrupt):
        write_all([*wanted(tmp_path), again])

    assert tree(tmp_path) == before
    assert not (tmp_path / "secrets").exists()


def test_a_copy_that_is_cut_short_never_replaces_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "parlour.toml").write_text("old\n")

    def cut(path: Path, copy: Path) -> None:
        copy.write_text(path.read_text()[:1])
        raise OSError("no space")

    monkeypatch.setattr(files, "_copy", cut)
    with pytest.raises(OSError, match="no space"):
        write_all(wanted(tmp_path))

    assert tree(tmp_path) == {"parlour.toml": "old\n"}


def test_a_folder_that_cannot_be_written_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "secrets").write_text("a file in place of the folder")
    before = tree(tmp_path)

    with pytest.raises(OSError, match="Not a directory"):
        write_all(list(reversed(wanted(tmp_path))))

    assert tree(tmp_path) == before
