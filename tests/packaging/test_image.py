"""The stages of deploy/Dockerfile, run in folders of the test instead of a container, and without a network.

In place of a download, the locked dependencies are compared with those that are installed here.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from fnmatch import fnmatch
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from packaging.markers import Marker

from gateway.config import environment

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
IGNORED = (ROOT / "deploy" / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()


def stages() -> dict[str, list[tuple[str, str]]]:
    """The instructions of each stage, by its name, or by its image where it has none."""
    text = "\n".join(line for line in DOCKERFILE.splitlines() if not line.startswith("#"))
    found: dict[str, list[tuple[str, str]]] = {}
    current: list[tuple[str, str]] = []
    for line in text.replace("\\\n", " ").splitlines():
        word, _, rest = line.strip().partition(" ")
        if word == "FROM":
            current = found.setdefault(rest.rpartition(" AS ")[2], [])
        elif word:
            current.append((word, rest.strip()))
    return found


def context(folder: Path) -> None:
    """What the build gets of the checkout: only what the file for it lets through."""
    for line in IGNORED:
        if line.startswith("!"):
            source, target = ROOT / line[1:], folder / line[1:]
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copyfile(source, target)


def copy(words: str, origin: Path, root: Path) -> None:
    """COPY SOURCE … TARGET: a folder's contents, or files into a folder."""
    *sources, target = words.split()
    place = root / target.lstrip("/")
    for source in sources:
        if (origin / source).is_dir():
            shutil.copytree(origin / source, place, dirs_exist_ok=True)
        elif target.endswith("/"):
            place.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(origin / source, place / Path(source).name)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(origin / source, place)


def commands(words: str, root: Path) -> Iterator[list[str]]:
    """The commands of a RUN, with the paths of the image inside of `root`."""
    for command in words.split("&&"):
        yield [
            re.sub(r"^/(opt|src)\b", lambda found: str(root / found[1]), word)
            for word in shlex.split(command.strip())
        ]


def run(command: list[str], root: Path, cwd: Path) -> Path:
    """Run one command as the stage does, without a network. Returns the folder that the next one runs in."""
    program, *rest = command
    if program == "cd":
        return Path(rest[0])
    if rest[:2] == ["-m", "venv"]:
        (folder,) = rest[2:]
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        (packages,) = Path(folder).glob("lib/python*/site-packages")
        (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    elif "--require-hashes" in rest:
        assert Path(rest[-1]).is_file()
    elif "install" in rest:
        (wheel,) = root.glob("opt/build/dist/parlour-*.whl")
        assert fnmatch(str(wheel), rest[-1])
        # Of the dependencies of the path file, pip is one, and an installed Parlour may be one.
        pip = [str(root / "opt/parlour/bin/python"), "-m", "pip", "install", "--ignore-installed"]
        subprocess.run([*pip, "--no-index", "--quiet", "--no-compile", "--no-deps", str(wheel)], check=True)
    else:
        subprocess.run([program, *rest], cwd=cwd, check=True, capture_output=True)
    return cwd


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root folder that the stage `build` leaves."""
    root, origin = tmp_path_factory.mktemp("image"), tmp_path_factory.mktemp("context")
    context(origin)
    cwd = root
    for word, words in stages()["build"]:
        if word == "COPY":
            copy(words, origin, root)
        elif word == "RUN":
            for command in commands(words, root):
                cwd = run(command, root, cwd)
    return root


def test_the_build_stage_makes_a_program_from_what_the_context_lets_through(image: Path) -> None:
    [settings] = [words for word, words in stages()["gateway"] if word == "ENV"]
    pairs = dict(re.findall(r"(PARLOUR__\w+)=('[^']*'|\S+)", settings))
    # Not from the checkout, which is on no path of the new environment.
    lines = subprocess.run(
        [image / "opt/parlour/bin/parlour", "check-config", "--config", ROOT / "deploy/parlour.example.toml"],
        env=dict(environment()) | {name: value.strip("'") for name, value in pairs.items()},
        cwd=image,
        capture_output=True,
        text=True,
        check=False,
    )
    assert lines.returncode == 0, lines.stdout + lines.stderr
    (installed,) = image.glob("opt/parlour/lib/python*/site-packages/gateway")
    assert (installed / "cluster").is_dir()


def test_the_image_takes_the_build_and_ends_with_the_gateways_stage() -> None:
    found = stages()
    assert list(found) == ["build", "gateway", "with-models"]
    froms = re.findall(r"^FROM (.*)$", DOCKERFILE, re.MULTILINE)
    assert froms[1:] == ["python:3.11-slim AS gateway", "gateway AS with-models", "gateway"]
    copied = [words for word, words in found["gateway"] if word == "COPY"]
    assert copied[0] == "--from=build /opt/parlour /opt/parlour"
    assert [words for word, words in found["with-models"] if word == "USER"] == ["root", "parlour"]
    assert [words for word, words in found["gateway"] if word == "USER"] == ["parlour"]
    assert "/var/lib/parlour/models" in " ".join(words for word, words in found["gateway"] if word == "RUN")


@pytest.mark.parametrize("name", ["runtime.lock", "build.lock"])
def test_the_locked_dependencies_are_those_that_are_tested_here(name: str) -> None:
    text = (ROOT / "deploy" / name).read_text(encoding="utf-8").replace("\\\n", " ")
    pins = re.findall(
        r"^([A-Za-z0-9._-]+)==(\S+?)(?: ; (.*?))?\s+--hash=sha256:[0-9a-f]{64}", text, re.MULTILINE
    )
    assert pins
    assert len(pins) == len(re.findall(r"^[A-Za-z0-9]", text, re.MULTILINE))
    wrong = []
    for package, pinned, marker in pins:
        if marker and not Marker(marker).evaluate():
            continue
        try:
            if version(package) != pinned:
                wrong.append(package)
        except PackageNotFoundError:
            wrong.append(package)
    assert wrong == []


def test_the_image_has_the_drivers_of_the_store_and_of_both_buses() -> None:
    text = (ROOT / "deploy" / "runtime.lock").read_text(encoding="utf-8")

    assert re.search(r"^asyncpg==", text, re.MULTILINE)
    assert re.search(r"^redis==", text, re.MULTILINE)
