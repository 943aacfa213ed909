"""`pytest --workers`: each test has its report, whatever becomes of the process that ran it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest

from gateway.config import environment

_QUIET = ("properties", "system-out", "system-err")
"""Elements of a test that say nothing of how it ended."""
ROOT = Path(__file__).parents[2]
# Most of the seconds that these runs would take.
WITHOUT_PLUGINS = [f"-pno:{name}" for name in ("hypothesispytest", "asyncio", "anyio", "cacheprovider")]
MODULES = {
    "test_a.py": """
import os, signal, warnings
from pathlib import Path
import pytest

@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    yield os.getpid()
    Path("closed").write_text(str(os.getpid()))

def test_first(shared, tmp_path):
    assert shared == os.getpid()
    warnings.warn("a word of caution", stacklevel=1)

def test_second(shared):
    assert shared == os.getpid()
    print("what it printed")
    assert False, "as it should"

class Odd(UserWarning):
    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")

def test_third():
    warnings.warn(Odd("this", "that"), stacklevel=1)
""",
    "test_b.py": """
import os, signal

def test_before(): pass
def test_death(): os.kill(os.getpid(), signal.SIGKILL)
def test_after(): pass
""",
    "test_c.py": """
import os, threading
import pytest

@pytest.mark.skip(reason="not here")
def test_skipped(): pass

@pytest.fixture
def broken(): raise RuntimeError("no fixture")

def test_error(broken): pass

@pytest.mark.timeout(0.2)
def test_hangs():
    try:
        threading.Event().wait()
    except Exception:
        pass
def test_own_process(): assert os.getpid() != int(os.environ["COLLECTED_BY"])
def test_leaves():
    os._exit(7)
""",
}


@dataclass(frozen=True, kw_only=True)
class Run:
    """What a run of the inner tests wrote."""

    code: int
    output: str
    outcomes: dict[str, str]
    """By name of the test: "passed", or the kind of its XML element and its text."""


def _run(folder: Path, *arguments: str, command: Sequence[str] = ()) -> Run:
    (folder / "conftest.py").write_text(
        "import os\npytest_plugins = ['tests.support.worker_pool']\n"
        "def pytest_configure(): os.environ['COLLECTED_BY'] = str(os.getpid())\n",
        encoding="utf-8",
    )
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (folder / "no_folder.py").write_text(
        "from tests.support import worker_process\n"
        "def fail(config, number): raise OSError('no room for a folder')\n"
        "def pytest_sessionstart(): worker_process._become_worker = fail\n",
        encoding="utf-8",
    )
    (folder / "patient.py").write_text(
        "from tests.support import worker_pool\nworker_pool._LEAVING_S = 600.0\n", encoding="utf-8"
    )
    for name, text in MODULES.items():
        (folder / name).write_text(text, encoding="utf-8")
    done = subprocess.run(
        [*command, sys.executable, "-m", "pytest", *WITHOUT_PLUGINS, "--junitxml=out.xml", *arguments],
        cwd=folder,
        env={**environment(), "PYTHONPATH": f"{ROOT}:{folder}"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    outcomes = {}
    for case in ElementTree.parse(folder / "out.xml").iter("testcase"):
        found = [f"{child.tag} {child.get('message')}" for child in case if child.tag not in _QUIET]
        outcomes[str(case.get("name"))] = " ".join(found) or "passed"
    return Run(code=done.returncode, output=done.stdout + done.stderr, outcomes=outcomes)


def test_each_test_has_one_report_also_when_processes_die(tmp_path: Path) -> None:
    run = _run(tmp_path, "--workers", "2")

    assert run.code == 1
    died = {name: words for name, words in run.outcomes.items() if "the process that ran" in words}
    assert {name: words.split()[-1] for name, words in died.items()} == {
        "test_death": "-9",
        "test_leaves": "7",
    }
    others = {name: words.split()[0] for name, words in run.outcomes.items() if name not in died}
    assert others == {
        **dict.fromkeys(("test_first", "test_third", "test_before", "test_after"), "passed"),
        **dict.fromkeys(("test_own_process",), "passed"),
        "test_second": "failure",
        "test_hangs": "failure",
        "test_skipped": "skipped",
        "test_error": "error",
    }
    assert "4 failed, 5 passed, 1 skipped, 2 warnings, 1 error" in run.output
    assert "what it printed" in run.output
    assert "During handling" not in run.output, "a new process begins as the first did"
    assert "UserWarning: a word of caution" in run.output
    assert "UserWarning: this and that" in run.output
    # What a module shares is closed in the process that made it, at the end of the module.
    assert (tmp_path / "closed").read_text("utf-8").isdigit()


def test_a_run_whose_workers_cannot_begin_fails_in_words(tmp_path: Path) -> None:
    run = _run(tmp_path, "--workers", "2", "-p", "no_folder")

    assert run.code not in (0, 1)
    assert "no room for a folder" in run.output


def test_a_run_that_is_to_end_at_the_first_failure_ends(tmp_path: Path) -> None:
    # A shell without job control has what runs in the background ignore Ctrl-C.
    in_background = ("sh", "-c", 'trap "" INT; exec "$@"', "sh")
    run = _run(tmp_path, "--workers", "1", "-x", "-p", "patient", command=in_background)

    assert run.code == 1
    assert "stopping after 1 failures" in run.output
    assert list(run.outcomes) == ["test_first", "test_second"]
    assert (tmp_path / "closed").exists(), "what was open is closed"


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_module_that_cannot_be_imported_ends_the_run_before_it_begins(tmp_path: Path, workers: str) -> None:
    (tmp_path / "test_d.py").write_text("import no_such_module\n", encoding="utf-8")

    run = _run(tmp_path, "--workers", workers)

    assert run.code == 2
    assert "1 error during collection" in run.output
