"""The built wheel, installed into an environment that has never seen the checkout."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from fake_irc import FakeIrc
from gateway import __version__
from gateway.config import environment

ROOT = Path(__file__).parents[2]
PACKAGES = ("adapters", "gateway", "parlour", "pipeline", "voice")
CONFIG = """
[llm]
model = "scripted:echo"
[agent]
titles = false
[server]
port = 0
[voice]
enabled = false
[channels.irc]
server = "127.0.0.1"
port = {port}
tls = false
channels = ["#team"]
access = "list"
allow = ["dm:ann", "room:#team"]
"""
DATA_FILES = (
    *("adapters/web/static/index.html", "adapters/web/static/app.js"),
    *("adapters/slack/manifest.yaml", "voice/data/doctor.wav"),
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, built with the locked build backend and no network."""
    return build(ROOT, tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the example of a channel."""
    return build(ROOT / "examples/channel-irc", tmp_path_factory.mktemp("plug-in"))


def build(project: Path, folder: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=project, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def parlour(wheel: Path, plugin: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `parlour` command of a new environment: both wheels, beside the dependencies that are here.

    The dependencies come by a path file, so nothing is fetched; an editable install of this checkout
    among them is not taken over, as path files of that folder are not read, and is left as it is. pip is one
    of them: with `--python` it would start twice.
    """
    folder = tmp_path_factory.mktemp("clean")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    install = [str(folder / "bin" / "python"), "-m", "pip", "install", "--ignore-installed", "--no-index"]
    subprocess.run(
        [*install, "--no-deps", "--quiet", "--no-compile", str(wheel), str(plugin)],
        env=clean_environment(),
        check=True,
        capture_output=True,
    )
    return folder / "bin" / "parlour"


def clean_environment() -> dict[str, str]:
    """Without what would lead the child back to the checkout or to somebody's settings."""
    return {
        name: value for name, value in environment().items() if not name.startswith(("PARLOUR", "PYTHON"))
    }


def run(parlour: Path, folder: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """The command's result; `more` are variables of its environment."""
    return subprocess.run(
        [str(parlour), *arguments],
        cwd=folder,
        env={**clean_environment(), **more},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_wheel_has_every_package_typed_and_with_its_data(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())

    assert [f"{name}/py.typed" for name in PACKAGES if f"{name}/py.typed" not in names] == []
    assert [name for name in DATA_FILES if name not in names] == []
    static = {path.relative_to(ROOT).as_posix() for path in (ROOT / "adapters/web/static").rglob("*.*")}
    assert static - names == set()


def test_the_wheel_has_nothing_but_its_packages_and_its_papers(wheel: Path) -> None:
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


def test_an_installed_parlour_is_set_up_in_any_folder_and_keeps_its_models_in_the_users_own(
    parlour: Path, tmp_path: Path
) -> None:
    home, folder = tmp_path / "home", tmp_path / "anywhere"
    folder.mkdir()
    at_home = {"HOME": str(home), "XDG_DATA_HOME": str(home / "share")}
    made = run(parlour, folder, "init", "--channel", "web", "--model", "local", **at_home)
    assert made.returncode == 0, made.stderr
    assert "1. parlour models get " in made.stdout

    assert run(parlour, folder, "check-config", **at_home).returncode == 0
    listed = run(parlour, folder, "models", "list", **at_home).stdout
    assert listed.startswith(f"models in {home}/share/parlour/models:\n")
    assert "display_information:" in run(parlour, folder, "init", "--slack-manifest").stdout


def test_the_installed_page_is_complete(parlour: Path, tmp_path: Path) -> None:
    code = "import adapters.web as web; print(web.__path__[0] + '/static')"
    folder = run(parlour.with_name("python"), tmp_path, "-c", code).stdout.strip()

    assert folder.startswith(str(parlour.parents[1]))
    assert "<html" in (Path(folder) / "index.html").read_text(encoding="utf-8")


def test_what_plug_ins_are_tested_with_is_installed_and_needs_pytest_for_the_contract_alone(
    parlour: Path, tmp_path: Path
) -> None:
    code = (
        "import sys, parlour.testing as t",
        "print(t.__file__, 'pytest' in sys.modules, t.ManualClock.__name__)",
        "from parlour.testing.contract import ChannelContract as c; print(len(vars(c.__mro__[1])) > 4)",
    )
    shown = run(parlour.with_name("python"), tmp_path, "-c", "; ".join(code)).stdout.split()
    file, has_pytest, clock, contract = shown
    assert file.startswith(str(parlour.parents[1]))
    assert (has_pytest, clock, contract) == ("False", "ManualClock", "True")


def test_an_installed_channel_is_listed(parlour: Path, tmp_path: Path) -> None:
    shown = run(parlour, tmp_path, "plugins")

    assert (shown.returncode, shown.stdout) == (0, "parlour.channels  irc  (parlour-irc 1.0.0)  in use\n")


async def test_an_installed_channel_answers(parlour: Path, tmp_path: Path) -> None:
    async with FakeIrc() as server:
        config = tmp_path / "parlour.toml"
        config.write_text(CONFIG.format(port=server.port), encoding="utf-8")
        gateway = await asyncio.create_subprocess_exec(
            str(parlour), "serve", cwd=tmp_path, env=clean_environment(), stdout=asyncio.subprocess.PIPE
        )
        try:
            ann = server.person("Ann")
            chat, room = server.private_chat(ann), server.room("team", ann)
            await server.until(lambda: any(bot.rooms for bot in server.bots))
            await server.say(chat, ann, "hello")
            await server.until(lambda: server.bot_texts(chat) == ["You said: hello"])
            await server.say(room, ann, "and here?")
            await server.until(lambda: server.bot_texts(room) != [])
            assert server.bot_texts(room) == ["Ann: You said: Ann: and here?"]
        finally:
            gateway.send_signal(signal.SIGTERM)
            printed, _ = await gateway.communicate()
    assert gateway.returncode == 0
    assert b"irc  is connecting; for the 2 entries of its allow list" in printed
