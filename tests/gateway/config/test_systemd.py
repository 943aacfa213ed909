"""deploy/systemd: systemd takes the units, and an instance of a cluster is as closed as the one process."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.config import Settings, load
from tests.support.deployment import DEPLOY, settings_in

FOLDER = DEPLOY / "systemd"
UNITS = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("parlour*")}
ONE, INSTANCE = UNITS["parlour.service"], UNITS["parlour@.service"]
ROLES = {"edge": "edge", "work1": "work", "work2": "work"}
_LINE = re.compile(r"^([A-Z][A-Za-z]+)=(.*)$", re.MULTILINE)
_HARDENING = re.compile(r"^(Protect|Private|Restrict|No|Capability|Ambient|Lock|System|Remove|Dynamic|UMask)")


def values(text: str, key: str) -> list[str]:
    return [value for name, value in _LINE.findall(text) if name == key]


def settings_of(instance: str, credentials: Path) -> Settings:
    """The settings of an instance: those of the unit, and those of its file."""
    pairs = dict(line.split("=", 1) for line in values(INSTANCE, "Environment"))
    text = (FOLDER / "instances" / f"{instance}.env").read_text(encoding="utf-8")
    pairs |= dict(line.split("=", 1) for line in text.splitlines() if not line.startswith("#"))
    environ = {name: value.replace("%d", str(credentials)) for name, value in settings_in(pairs).items()}
    return load(Path("/dev/null"), environ, [])


@pytest.fixture
def credentials(tmp_path: Path) -> Path:
    for name, secret in (("database_url", "postgresql://parlour@db/parlour"), ("bus_url", "redis://bus")):
        (tmp_path / name).write_text(f"{secret}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o440)
    return tmp_path


def verified(folder: Path, unit: str, *, wrong: tuple[str, str] = ("", "")) -> str:
    """What systemd says about our units, with the programs that they start being there."""
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not installed; on Debian: apt-get install systemd")
    for name, text in UNITS.items():
        here = text.replace("/opt/parlour/bin/parlour", sys.executable).replace(*wrong)
        (folder / name).write_text(here, encoding="utf-8")
    command = [analyze, "verify", "--man=no", str(folder / unit)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    return "\n".join(line for line in (run.stdout + run.stderr).splitlines() if "parlour" in line)


@pytest.mark.parametrize("unit", ["parlour.service", "parlour@edge.service", "parlour.target"])
def test_systemd_takes_the_units(unit: str, tmp_path: Path) -> None:
    assert verified(tmp_path, unit) == ""


@pytest.mark.parametrize("unit", ["parlour.service", "parlour@edge.service"])
def test_systemd_notices_a_wrong_key(unit: str, tmp_path: Path) -> None:
    assert "Restarts" in verified(tmp_path, unit, wrong=("Restart=", "Restarts="))


def test_an_instance_is_as_closed_as_the_one_process() -> None:
    def hardening(text: str) -> set[tuple[str, str]]:
        return {(key, value) for key, value in _LINE.findall(text) if _HARDENING.match(key)}

    assert len(hardening(ONE)) > 20
    assert hardening(ONE) <= hardening(INSTANCE)
    for key in ("MemoryMax", "TasksMax", "Restart", "RestartPreventExitStatus", "ExecStart"):
        assert values(INSTANCE, key) == values(ONE, key)


def test_each_instance_takes_its_settings_and_has_its_role_and_port(credentials: Path) -> None:
    found = {name: settings_of(name, credentials) for name in ROLES}

    assert {path.stem for path in (FOLDER / "instances").iterdir()} == set(ROLES)
    assert {name: one.cluster.role for name, one in found.items()} == ROLES
    assert len({one.server.port for one in found.values()}) == len(ROLES)
    for one in found.values():
        assert (one.storage.kind, one.bus.kind) == ("postgres", "redis")
        assert one.storage.url is not None
        assert one.storage.url.resolve() == "postgresql://parlour@db/parlour"
        assert one.models_path.name == "models"


def test_instances_share_one_folder_as_one_user_and_get_the_time_to_drain() -> None:
    assert values(INSTANCE, "StateDirectory") == ["parlour-cluster parlour-cluster/models"]
    assert values(INSTANCE, "WorkingDirectory") == ["%S/parlour-cluster"]
    assert values(INSTANCE, "User") == ["parlour"]
    assert int(values(INSTANCE, "TimeoutStopSec")[0]) > 30


def test_no_secret_is_in_a_unit_or_an_environment_file() -> None:
    given = [line.partition("=") for line in values(INSTANCE, "Environment")]
    assert all(value.startswith("file:%d/") for name, _, value in given if re.search("URL|TOKEN|KEY", name))
    for path in (FOLDER / "instances").iterdir():
        names = {line.partition("=")[0] for line in path.read_text("utf-8").splitlines() if "=" in line}
        assert names == {"PARLOUR__CLUSTER__ROLE", "PARLOUR__SERVER__PORT"}
    # What only root can read is handed over, not read by the process.
    assert [line.partition(":")[0] for line in values(INSTANCE, "LoadCredential")] == [
        "database_url",
        "bus_url",
    ]


def test_the_target_takes_all_instances_with_it() -> None:
    assert values(INSTANCE, "PartOf") == ["parlour.target"]
    assert values(INSTANCE, "WantedBy") == ["parlour.target"]
    assert values(UNITS["parlour.target"], "WantedBy") == ["multi-user.target"]
