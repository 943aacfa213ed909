"""What is shipped for deployment fits the program: commands, paths, settings. No container is built here."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]  # PyYAML ships no type information

from gateway.config import load

ROOT = Path(__file__).parents[3]
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
UNIT = (ROOT / "deploy" / "systemd" / "parlour.service").read_text(encoding="utf-8")
COMPOSE = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8"))


def unit_values(key: str) -> list[str]:
    return re.findall(rf"^{key}=(.*)$", UNIT, re.MULTILINE)


def instructions() -> list[str]:
    """The Dockerfile's instructions, comments and line continuations removed."""
    lines = "\n".join(line for line in DOCKERFILE.splitlines() if not line.startswith("#"))
    return [line for line in lines.replace("\\\n", " ").splitlines() if line.strip()]


def command_help(*words: str) -> str:
    call = "import sys; from gateway.cli.main import main; sys.exit(main())"
    run = subprocess.run(
        [sys.executable, "-c", call, *words, "--help"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return run.stdout


def test_everything_that_the_dockerfile_copies_exists() -> None:
    copies = [
        line.split()[1:-1] for line in instructions() if line.startswith("COPY") and "--from" not in line
    ]

    sources = [source for copy in copies for source in copy]
    assert {"gateway", "adapters", "pipeline", "voice", "deploy/runtime.lock"} <= set(sources)
    assert [source for source in sources if not (ROOT / source).exists()] == []
    ignore = (ROOT / "deploy" / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    assert {line.removeprefix("!") for line in ignore if line.startswith("!")} == set(sources)


def test_the_dockerfile_copies_every_package_of_the_distribution() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]

    assert [name for name in packages if f"COPY {name} /src/{name}" not in instructions()] == []
    assert f"COPY pyproject.toml {project['project']['readme']} LICENSE /src/" in instructions()


def test_the_image_installs_by_hash_and_runs_as_a_user_without_rights() -> None:
    installs = [part for line in instructions() for part in line.split("&&") if "pip install" in part]
    assert len(installs) == 3
    assert all("--require-hashes" in part or "--no-deps" in part for part in installs)
    assert "USER parlour" in instructions()
    bases = {line.split()[1] for line in instructions() if line.startswith("FROM")}
    assert bases == {"python:3.11-slim", "gateway"}


@pytest.mark.parametrize("name", ["runtime.lock", "build.lock"])
def test_the_images_locks_are_a_part_of_the_one_that_is_tested(name: str) -> None:
    def pins(path: Path) -> set[str]:
        return set(re.findall(r"^[A-Za-z0-9._-]+==\S+", path.read_text(encoding="utf-8"), re.MULTILINE))

    shipped = pins(ROOT / "deploy" / name)
    assert shipped
    assert shipped <= pins(ROOT / "requirements.lock")


def test_the_images_settings_load() -> None:
    [block] = [line for line in instructions() if "PARLOUR_CONFIG" in line]
    pairs = re.findall(r"(PARLOUR__\w+)=('[^']*'|\S+)", block)
    environ = {name: value.strip("'") for name, value in pairs}

    settings = load(ROOT / "deploy" / "parlour.example.toml", environ, [])

    assert len(environ) == 4
    assert (settings.server.host, settings.server.port) == ("0.0.0.0", 8765)
    assert settings.models_path.is_relative_to("/var/lib/parlour")
    assert settings.data.dir.is_relative_to("/var/lib/parlour")
    assert "http://127.0.0.1:8765" in settings.server.public_origins


def test_the_compose_file_runs_one_closed_process_on_loopback() -> None:
    [service] = COMPOSE["services"].values()

    assert service["ports"] == ["127.0.0.1:8765:8765"]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert [volume.partition(":")[0] for volume in service["volumes"]] == list(COMPOSE["volumes"])
    assert (ROOT / "deploy" / service["build"]["context"] / service["build"]["dockerfile"]).is_file()


def test_both_deployments_limit_memory_and_processes() -> None:
    [service] = COMPOSE["services"].values()

    assert (service["mem_limit"], service["pids_limit"]) == ("3g", 512)
    assert (unit_values("MemoryMax"), unit_values("TasksMax")) == (["3G"], ["512"])


def test_the_compose_files_example_of_a_secret_passes_the_check_of_its_mode(tmp_path: Path) -> None:
    text = (ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8")
    [(name, reference)] = re.findall(r"^ *# +(PARLOUR__\w+): (file:\S+)$", text, re.MULTILINE)
    [mode] = re.findall(r"install -m (\d+) -o 10001 ", text)
    assert "--uid 10001 " in DOCKERFILE
    assert "- ./secrets:/etc/parlour/secrets:ro" in text
    secret = tmp_path / "telegram-token"
    secret.write_text("123456789:AAEabcdefghijklmnopqrstuvwxyz0123456\n", encoding="utf-8")
    secret.chmod(int(mode, 8))

    settings = load(Path("/dev/null"), {name: reference.replace("/etc/parlour/secrets", str(tmp_path))}, [])

    assert settings.channels.telegram.active


def test_the_unit_is_closed_and_stops_in_time() -> None:
    assert unit_values("DynamicUser") == ["yes"]
    assert unit_values("ProtectSystem") == ["strict"]
    assert unit_values("StateDirectory") == ["parlour"]
    assert unit_values("NoNewPrivileges") == ["yes"]
    assert unit_values("Restart") == ["on-failure"]
    assert unit_values("TimeoutStopSec") == ["30"]
    assert unit_values("ExecStart") == ["/opt/parlour/bin/parlour serve --config /etc/parlour/parlour.toml"]


def test_the_units_example_of_a_secret_is_a_reference_that_the_program_takes(tmp_path: Path) -> None:
    [line] = re.findall(r"^# Environment=(PARLOUR__.*)$", UNIT, re.MULTILINE)
    name, _, value = line.partition("=")
    secret = tmp_path / "llm_api_key"
    secret.write_text("tiger\n", encoding="utf-8")
    secret.chmod(0o440)

    settings = load(
        Path("/dev/null"), {name: value.replace("%d", str(tmp_path))}, ["llm.model=openai/gpt-5-mini"]
    )

    assert settings.llm.api_key is not None
    assert settings.llm.api_key.resolve() == "tiger"


@pytest.mark.parametrize("text", [UNIT, DOCKERFILE])
def test_the_commands_that_are_started_exist(text: str) -> None:
    assert "parlour models get" in text
    assert "parlour serve --config /etc/parlour/parlour.toml" in text
    assert "--config" in command_help("serve")
    assert "usage" in command_help("models", "get").lower()
