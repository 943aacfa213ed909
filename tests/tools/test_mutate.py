"""`make mutate` on a project of one module, in place of the real table and its tests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools import mutate
from tools.mutant_runs import Verdict, Workspace

# A package of this name is installed as well: the copy's is to be imported.
MODULE = "voice/adding.py"
SOURCE = "def more(a):\n    if a > 0:\n        return a + 1\n    return a\n"
TEST = "from voice.adding import more\n\n\ndef test_more() -> None:\n    assert more(2) == 3\n"
# Most of the seconds that these runs would take.
WITHOUT_PLUGINS = "-p no:hypothesispytest -p no:asyncio -p no:anyio -p no:timeout"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with one module, one test that does not look at its boundary, and a table."""
    root = tmp_path / "project"
    files = {
        "pyproject.toml": f'[tool.pytest.ini_options]\naddopts = "{WITHOUT_PLUGINS}"\n',
        "tools/mutate.toml": f'[modules]\n"{MODULE}" = ["tests/test_adding.py"]\n',
        "voice/__init__.py": "",
        MODULE: SOURCE,
        "tests/test_adding.py": TEST,
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


def test_caught_and_surviving_faults_are_counted_and_reported(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = mutate.main(["--per-module", "2", "--at-least", "0.9"], root=project)
    lines = capsys.readouterr().out.splitlines()

    assert code == 1, "a fault survived"
    assert lines[1].split()[:4] == [MODULE, "2", "1", "1"]
    assert lines[2:-1] == [f"{MODULE}:2  if a > 0: -> if a > 1:"]
    assert json.loads(lines[-1])["mutate"] == {"mutants": 2, "caught": 1, "score": 0.5, "seed": 1}
    assert (project / MODULE).read_text("utf-8") == SOURCE


def test_a_copy_has_the_sources_and_the_data_of_tests_and_not_what_runs_left(
    project: Path, tmp_path: Path
) -> None:
    for folder in ("data", "tests/data", "voice/__pycache__", ".venv"):
        (project / folder).mkdir()
    Workspace(project, tmp_path / "copy")
    folders = {path.name for path in (tmp_path / "copy").rglob("*") if path.is_dir()}
    top = {path.name for path in (tmp_path / "copy").iterdir()}

    assert top == {"pyproject.toml", "tests", "tools", "voice"}
    assert folders == {"data", "tests", "tools", "voice"}


def test_a_source_that_hangs_is_ended_at_its_limit(project: Path, tmp_path: Path) -> None:
    workspace = Workspace(project, tmp_path / "copy")
    hangs = "def more(a):\n    while True:\n        pass\n"

    verdict, _ = workspace.run_changed(MODULE, hangs, ["tests/test_adding.py"], limit_s=0.5)

    assert verdict is Verdict.TIMED_OUT
    assert (tmp_path / "copy" / MODULE).read_text("utf-8") == SOURCE


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("tests/test_adding.py", TEST.replace("3", "4"), f"the tests of {MODULE} do not pass as it is"),
        ("tests/test_adding.py", "A = 1\n", "there are no tests in tests/test_adding.py"),
        ("tests/test_adding.py", "def test_a() -> None:\n    assert 1\n", "they do not use it"),
    ],
)
def test_tests_that_can_tell_nothing_are_refused(
    project: Path, capsys: pytest.CaptureFixture[str], file: str, text: str, message: str
) -> None:
    (project / file).write_text(text, encoding="utf-8")

    assert mutate.main(["--jobs", "1"], root=project) == 2
    assert message in capsys.readouterr().err


def test_a_path_that_does_not_exist_is_named(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / MODULE).rename(project / "voice" / "sums.py")

    assert mutate.main([], root=project) == 2
    assert f"tools/mutate.toml names what does not exist: {MODULE}" in capsys.readouterr().err


def test_a_module_that_is_not_in_the_table_is_refused(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert mutate.main(["--module", "voice/sums.py"], root=project) == 2
    assert f"voice/sums.py is not in tools/mutate.toml; there are: {MODULE}" in capsys.readouterr().err


def test_every_path_of_the_real_table_exists() -> None:
    assert mutate.read_targets(mutate.ROOT, only=(), count=1, seed=1)
