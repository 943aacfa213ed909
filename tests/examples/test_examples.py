"""The examples run as they are, against a real gateway in a separate process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gateway.config import load

ROOT = Path(__file__).parents[2]
SCRIPTED_BOT = ROOT / "examples" / "scripted_bot.toml"
GATEWAY = (sys.executable, "-c", "import sys; from gateway.cli.main import main; sys.exit(main())")


@dataclass(frozen=True)
class Running:
    url: str
    token_file: Path


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """`parlour serve` with the example's file, on a free port and with a separate data folder."""
    data = tmp_path_factory.mktemp("data")
    overrides = ["server.port=0", f"data.dir={data}", "llm.model=scripted:echo"]
    arguments = [argument for override in overrides for argument in ("--set", override)]
    process = subprocess.Popen(
        [*GATEWAY, "serve", "--config", str(SCRIPTED_BOT), *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with process:
        assert process.stdout is not None
        url = next(line.split()[1] for line in process.stdout if line.split()[:1] == ["page"])
        yield Running(url=url, token_file=data / "web-token")
        process.terminate()
        process.stdout.read()


def ask(
    gateway: Running, question: str, *, token_file: Path | None = None
) -> subprocess.CompletedProcess[str]:
    token = str(token_file or gateway.token_file)
    command = [
        sys.executable,
        "-m",
        "examples.webchat_client",
        "--url",
        gateway.url,
        "--token-file",
        token,
        question,
    ]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)


def test_the_scripted_bot_needs_no_model_and_keeps_its_own_data() -> None:
    settings = load(SCRIPTED_BOT, {}, [])

    assert settings.llm.model.startswith("scripted:")
    assert settings.voice.transcriber.startswith("scripted:")
    assert settings.data.dir != load(None, {}, []).data.dir


def test_the_client_prints_the_answer_of_a_running_gateway(gateway: Running) -> None:
    run = ask(gateway, "Is anybody in?")

    assert run.stderr == ""
    assert run.stdout == "You said: Is anybody in?\n"
    assert run.returncode == 0


def test_the_client_says_why_it_was_refused(gateway: Running, tmp_path: Path) -> None:
    wrong = tmp_path / "token"
    wrong.write_text("not-the-token\n", encoding="ascii")

    run = ask(gateway, "Hello?", token_file=wrong)

    assert run.returncode == 1
    assert "token" in run.stderr
    assert "not-the-token" not in run.stderr
