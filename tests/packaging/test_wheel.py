"""The built wheel, installed into an environment that has never seen the checkout."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from gateway import __version__
from gateway.config import environment

ROOT = Path(__file__).parents[2]
PACKAGES = ("adapters", "gateway", "pipeline", "voice")
DATA_FILES = ("adapters/web/static/index.html", "adapters/web/static/app.js", "voice/data/doctor.wav")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, built with the locked build backend and no network."""
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def parlour(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `parlour` command of a new environment: the wheel, beside the dependencies that are here.

    The dependencies come by a path file, so nothing is fetched; an editable install of this checkout
    among them is not taken over, as path files of that folder are not read.
    """
    folder = tmp_path_factory.mktemp("clean")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    install = [sys.executable, "-m", "pip", "--python", str(folder), "install", "--no-index", "--no-deps"]
    subprocess.run([*install, "--quiet", "--no-compile", str(wheel)], check=True, capture_output=True)
    return folder / "bin" / "parlour"


def run(parlour: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # Without what would lead the child back to the checkout or to somebody's settings.
    kept = {
        name: value for name, value in environment().items() if not name.startswith(("PARLOUR", "PYTHON"))
    }
    command = [str(parlour), *arguments]
    return subprocess.run(command, cwd=folder, env=kept, capture_output=True, text=True, check=False)


def test_the_wheel_has_every_package_typed_and_with_its_data(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())

    assert [f"{name}/py.typed" for name in PACKAGES if f"{name}/py.typed" not in names] == []
    assert [name for name in DATA_FILES if name not in names] == []
    static = {path.relative_to(ROOT).as_posix() for path in (ROOT / "adapters/web/static").rglob("*.*")}
    assert static - names == set()


def test_the_wheel_has_nothing_but_the_four_packages_and_its_papers(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()

    tops = {name.partition("/")[0] for name in names}
    assert tops == {*PACKAGES, f"parlour-{__version__}.dist-info"}
    assert [name for name in names if "tests/" in name or "/test_" in name] == []
    assert f"parlour-{__version__}.dist-info/licenses/LICENSE" in names


def test_the_installed_command_says_its_version(parlour: Path, tmp_path: Path) -> None:
    shown = run(parlour, tmp_path, "--version")

    assert (shown.returncode, shown.stdout) == (0, f"parlour {__version__}\n")


def test_the_installed_command_explains_itself(parlour: Path, tmp_path: Path) -> None:
    shown = run(parlour, tmp_path, "--help")

    assert shown.returncode == 0
    assert [
        name for name in ("serve", "chat", "doctor", "check-config", "models") if name not in shown.stdout
    ] == []


def test_the_installed_program_needs_no_file_of_the_checkout(parlour: Path, tmp_path: Path) -> None:
    shown = run(parlour, tmp_path, "check-config")

    assert shown.returncode == 0, shown.stderr
    assert "server.port" in shown.stdout
    where = "import gateway, voice.selftest as s; print(gateway.__file__); print(len(s.bundled_clip()) > 0)"
    python = parlour.with_name("python")
    found = run(python, tmp_path, "-c", where).stdout.split()
    assert found[0].startswith(str(parlour.parents[1]))
    assert found[1] == "True"


def test_the_installed_page_is_complete(parlour: Path, tmp_path: Path) -> None:
    code = "import adapters.web as web; print(web.__path__[0] + '/static')"
    folder = run(parlour.with_name("python"), tmp_path, "-c", code).stdout.strip()

    assert folder.startswith(str(parlour.parents[1]))
    assert "<html" in (Path(folder) / "index.html").read_text(encoding="utf-8")
