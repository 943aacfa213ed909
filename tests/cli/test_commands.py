"""The `parlour` command as its user meets it: in a process, by exit code and printed words."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.runtime.data_dir import DataDir
from tests.support.gateway_forks import run_forked
from tests.support.gateway_process import GatewayProcess
from tests.support.models import require_models
from tests.voice.clips import CLIPS, NOTES
from voice.wer import word_error_rate

ROOT = Path(__file__).parents[2]
SCRIPTED = ("--set", 'llm.model="scripted:echo"', "--set", 'voice.transcriber="scripted:spoken words"')


def parlour(
    folder: Path, *arguments: str, typed: str = "", limit_s: float = 270
) -> subprocess.CompletedProcess[str]:
    """Run one command in `folder`."""
    # Without the models of the person who runs the tests.
    env = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "XDG_DATA_HOME": str(folder)}
    return run_forked(arguments, folder=folder, env=env, typed=typed, limit_s=limit_s)


def test_help_lists_every_command(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gateway.cli", "--help"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    for command in ("serve", "chat", "link", "doctor", "check-config", "models"):
        assert command in done.stdout


def test_without_a_command_the_help_is_shown(tmp_path: Path) -> None:
    done = parlour(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == parlour(tmp_path, "--help").stdout


def test_link_prints_what_signs_a_browser_in(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("tiger/tiger-burning-bright")
    (tmp_path / "token").chmod(0o600)
    token = ("--set", "channels.web.token=file:token")
    local = parlour(tmp_path, "link", *token)
    assert local.returncode == 0
    assert "http://127.0.0.1:8765/#token=tiger%2Ftiger-burning-bright\n" in local.stdout
    public = ("--set", 'server.public_origins=["https://bot.example.org"]')
    everywhere = parlour(tmp_path, "link", *token, *public)
    assert "https://bot.example.org/#token=tiger%2Ftiger-burning-bright\n" in everywhere.stdout
    assert everywhere.stdout.count("▄") > 50
    nothing = parlour(tmp_path, "link")
    assert nothing.returncode == 2
    assert "start the gateway once" in nothing.stderr


PLATFORMS = ("telegram", "slack_bolt", "slack_sdk", "discord", "nacl")
HEAVY = ("aiohttp", "pydantic", "litellm", "markdown_it", *PLATFORMS)


@pytest.mark.parametrize("arguments", [[], ["--help"], ["serve", "--help"]])
def test_help_is_quick_because_it_loads_nothing_heavy(tmp_path: Path, arguments: list[str]) -> None:
    call = f"gateway.cli.main({arguments})" if arguments else "None"
    code = f"""
import sys, gateway.cli
try:
    {call}
except SystemExit as ended:
    assert not ended.code
print([name for name in {HEAVY} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert ("usage: parlour" in done.stdout) == bool(arguments)


def test_a_platforms_sdk_is_loaded_only_with_its_channel(tmp_path: Path) -> None:
    code = f"""
import sys
from pathlib import Path
import gateway.cli.doctor, gateway.cli.serve, gateway.cli.chat
from gateway.app.bootstrap import build
from gateway.config import Secrets, load
build(load(Path("/dev/null"), {{}}, ["llm.model=scripted:echo", "voice.enabled=false"]), Secrets(()))
print([name for name in {PLATFORMS} if name in sys.modules])
"""
    environ = {"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environ, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("arguments", [("dance",), ("models",), ("serve", "--unknown")])
def test_a_wrong_command_line_says_how_it_goes(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = parlour(tmp_path, *arguments)
    assert done.returncode == 2
    assert "usage: parlour" in done.stderr


@pytest.mark.parametrize("command", ["serve", "chat", "doctor", "check-config"])
def test_every_command_reports_all_problems_of_a_configuration_in_lines(tmp_path: Path, command: str) -> None:
    (tmp_path / "parlour.toml").write_text('[server]\nport = "high"\n[llm]\nmodle = "x"\n')
    done = parlour(tmp_path, command)
    assert done.returncode == 2
    printed = done.stdout + done.stderr
    assert "server.port: " in printed
    assert "llm.modle: " in printed
    assert "llm.model" in printed
    assert "Traceback" not in printed


@pytest.mark.parametrize(
    "secret", ["", 'webhook_secret = ""', 'webhook_secret = "file:blank"', "webhook_secret = 7"]
)
def test_a_webhook_never_starts_without_its_secret(tmp_path: Path, secret: str) -> None:
    for name, value in (("token", "1001:" + "Aa0_-" * 7), ("blank", " \n")):
        (tmp_path / name).write_text(value)
        (tmp_path / name).chmod(0o600)
    (tmp_path / "parlour.toml").write_text(
        '[channels.telegram]\ntoken = "file:token"\nmode = "webhook"\n'
        f'webhook_url = "http://127.0.0.1:8765/telegram"\napi_base = "http://127.0.0.1:1"\n{secret}\n'
    )
    done = parlour(tmp_path, "serve", *SCRIPTED)
    assert done.returncode == 2
    [line] = [line for line in done.stderr.splitlines() if "channels." in line]
    assert "channels.telegram.webhook_secret: " in line
    assert "1001:" not in done.stdout + done.stderr


@pytest.mark.parametrize("command", [("pair",), ("models", "list"), ("graph", "trace")])
def test_a_command_that_needs_no_secret_asks_for_none(tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "parlour.toml").write_text('[channels.telegram]\ntoken = "env:NOT_SET_HERE"\n')
    done = parlour(tmp_path, *command)
    assert "NOT_SET_HERE" not in done.stdout + done.stderr
    assert "channels.telegram.token" in parlour(tmp_path, "serve").stderr


def test_the_doctor_says_what_a_stranger_meets_on_each_channel(tmp_path: Path) -> None:
    for name, value in (
        ("tg", "1001:" + "Aa0_-" * 7),
        ("dc", "MTIzNDU2Nzg5." + "GAbCdE." + "a1b2c3d4e5" * 3),
    ):
        (tmp_path / name).write_text(value)
        (tmp_path / name).chmod(0o600)
    (tmp_path / "parlour.toml").write_text(
        '[channels.telegram]\ntoken = "file:tg"\n[channels.discord]\ntoken = "file:dc"\naccess = "open"\n'
    )
    done = parlour(tmp_path, "doctor", *SCRIPTED)
    lines = {line[4:].partition(":")[0].strip(): line for line in done.stdout.splitlines()}
    assert "a stranger is refused, and shown a code for `parlour pair`" in lines["telegram"]
    assert "open to everybody, 100 messages a day and person" in lines["discord"]
    assert "it is posted again, says that it may be a repeat" in lines["delivery on telegram"]
    assert "GAbCdE" not in done.stdout + done.stderr


def test_check_config_explains_each_setting_and_masks_secrets(tmp_path: Path) -> None:
    secret = tmp_path / "key"
    secret.write_text("very-secret-value\n")
    secret.chmod(0o600)
    (tmp_path / "parlour.toml").write_text('[llm]\nmodel = "openai/x"\napi_key = "file:key"\n')
    done = parlour(tmp_path, "check-config", "--set", "server.port=9000")
    assert done.returncode == 0
    assert "very-secret-value" not in done.stdout
    assert "file:key" in done.stdout
    assert "9000" in done.stdout


def test_chat_answers_piped_lines_in_order_and_ends_with_its_input(tmp_path: Path) -> None:
    done = parlour(tmp_path, "chat", *SCRIPTED, typed="one\ntwo\n/help\n")
    assert done.returncode == 0, done.stderr
    assert (
        done.stdout.index("You said: one") < done.stdout.index("You said: two") < done.stdout.index("/stop:")
    )
    assert done.stdout.count("You said: one") == 1
    assert done.stdout.count("/stop:") == 1
    assert "`" not in done.stdout, "the terminal shows words, not Markdown"


def test_chat_sends_a_voice_file_and_shows_what_was_heard(tmp_path: Path) -> None:
    note = tmp_path / "note.ogg"
    note.write_bytes(NOTES["oga"])
    done = parlour(tmp_path, "chat", *SCRIPTED, "--voice", str(note))
    assert done.returncode == 0, done.stderr
    assert 'heard: "spoken words"' in done.stdout
    assert "You said: spoken words" in done.stdout


def test_chat_sends_the_named_files_with_the_first_line(tmp_path: Path) -> None:
    plan = tmp_path / "plan.txt"
    plan.write_bytes(b"buy milk")
    done = parlour(tmp_path, "chat", *SCRIPTED, "--file", str(plan), typed="What is due?\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert "You said: What is due?" in done.stdout
    assert "buy milk" in done.stdout


def test_chat_with_a_missing_voice_file_says_so_and_fails(tmp_path: Path) -> None:
    done = parlour(tmp_path, "chat", *SCRIPTED, "--voice", str(tmp_path / "nothing.ogg"))
    assert done.returncode == 1
    assert "cannot be read" in done.stdout


@pytest.mark.parametrize(
    ("page", "words"),
    [
        (None, "try again in a moment"),
        ("", "channels.web.enabled=true"),
        ("http://[::1]:1", "http://[::1]:1"),
    ],
)
def test_chat_beside_a_gateway_that_it_cannot_join_says_what_to_do(
    tmp_path: Path, page: str | None, words: str
) -> None:
    data = DataDir.claim(tmp_path / "data")
    (tmp_path / "data" / "web-token").write_text("tiger")
    try:
        if page is not None:
            data.note_page(page)
        done = parlour(tmp_path, "chat", *SCRIPTED)
    finally:
        data.release()
    assert done.returncode == (1 if page else 2)
    assert words in done.stderr
    assert ("data.dir" in done.stderr) == (not page)


async def test_chat_beside_a_running_gateway_talks_to_that_one(tmp_path: Path) -> None:
    async with GatewayProcess(tmp_path) as gateway:
        await gateway.start()
        done = await asyncio.to_thread(parlour, tmp_path, "chat", typed="hello\n/quit\nnever\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "You said: hello\n", "")


def test_a_missing_model_is_reported_as_an_answer_and_by_the_doctor(tmp_path: Path) -> None:
    done = parlour(tmp_path, "chat", "--set", "voice.enabled=false", typed="hello\n")
    assert done.returncode == 1
    assert "parlour models get" in done.stdout
    doctor = parlour(tmp_path, "doctor", "--set", "server.port=0")
    assert doctor.returncode == 1
    assert "BAD  model files" in doctor.stdout
    assert "BAD  voice" in doctor.stdout
    assert "ok   store" in doctor.stdout


def test_models_list_and_verify_name_what_is_missing(tmp_path: Path) -> None:
    listed = parlour(tmp_path, "models", "list")
    assert listed.returncode == 0
    assert "whisper-base" in listed.stdout
    assert "missing" in listed.stdout
    assert parlour(tmp_path, "models", "verify").returncode == 1
    unknown = parlour(tmp_path, "models", "get", "gpt-17")
    assert unknown.returncode == 2
    assert "whisper-base" in unknown.stdout + unknown.stderr


def _real(folder: Path) -> tuple[str, ...]:
    models = json.dumps(str(require_models()))
    small = ("--set", "llm.local.model=0.5b")  # also where the larger one is fetched
    return ("--set", f"models.dir={models}", *small, "--set", "llm.max_tokens=16")


@pytest.mark.models
def test_the_doctor_is_green_on_a_whole_installation(tmp_path: Path) -> None:
    done = parlour(tmp_path, "doctor", *_real(tmp_path), "--set", "server.port=0")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "BAD" not in done.stdout
    assert "ok   voice: the bundled clip was heard as" in done.stdout
    assert re.search(r"^ok   reading aloud: .*\(en\)", done.stdout, re.MULTILINE)
    assert "delivery on web" in done.stdout
    assert done.stdout.endswith("All is well.\n")


@pytest.mark.models
def test_the_embedded_models_hear_a_real_note_and_answer_in_the_terminal(tmp_path: Path) -> None:
    clip = CLIPS["lv_0890"]
    note = tmp_path / "said.wav"
    note.write_bytes(clip.data)
    done = parlour(tmp_path, "chat", *_real(tmp_path), "--voice", str(note))
    assert done.returncode == 0, done.stdout + done.stderr
    heard, _, answer = done.stdout.split('heard: "', 1)[1].partition('"')
    assert word_error_rate(clip.transcript, heard) < 0.2
    assert re.search(r"\w", answer)


async def test_serve_says_what_is_missing_instead_of_that_it_is_ready(tmp_path: Path) -> None:
    nothing = tmp_path / "nothing"
    overrides = (f"models.dir={json.dumps(str(nothing))}", "channels.telegram.previews=true")
    async with GatewayProcess(tmp_path, overrides=overrides) as gateway:
        await gateway.start()
        log = gateway.log()

    assert "Parlour is running, but not complete." in log
    assert "Parlour is ready." not in log
    assert "No message can be answered: the model file " in log
    assert "No voice note can be answered: the speech model in " in log
    assert log.count("Fetch it with `parlour models get`.") == 2
    assert "telegram  is off: the token is not set" in log


async def test_serve_says_that_the_provider_needs_a_key(tmp_path: Path) -> None:
    overrides = ('llm.model="openai/gpt-5-mini"', SCRIPTED[3])
    async with GatewayProcess(tmp_path, overrides=overrides) as gateway:
        await gateway.start()

        assert "openai/gpt-5-mini needs a key. Set llm.api_key, for example" in gateway.log()


async def test_serve_prints_a_link_that_signs_in(tmp_path: Path) -> None:
    async with GatewayProcess(tmp_path) as gateway:
        await gateway.start()
        assert f"  link   {gateway.url}/#token={gateway.token}   " in gateway.log()
