"""What deploy/kubernetes makes is valid, fits the program and gives it no more rights than it needs."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml  # type: ignore[import-untyped]  # PyYAML ships no type information

from gateway.config import load
from gateway.runtime.http_server import Addresses

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "deploy" / "kubernetes"
_VERSIONS = ("1.29", "1.33")
"""Kubernetes versions whose schemas the objects are compared with."""


def _objects(text: str) -> list[dict[str, Any]]:
    return [one for one in yaml.safe_load_all(text) if one]


def _shipped() -> Iterator[dict[str, Any]]:
    """Every object in the folder that is whole by itself: no kustomization, patch or what has a selector."""
    for path in sorted(FOLDER.rglob("*.yaml")):
        for one in _objects(path.read_text(encoding="utf-8")):
            if one["kind"] in ("NetworkPolicy", "ServiceAccount", "PersistentVolumeClaim"):
                yield one


def _rendered(overlay: str) -> list[dict[str, Any]]:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is not installed; on Debian: apt-get install kubernetes-client")
    run = subprocess.run(
        [kubectl, "kustomize", str(FOLDER / overlay)], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return _objects(run.stdout)


def _of(objects: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    (one,) = [each for each in objects if each["kind"] == kind]
    return one


def test_the_single_gateway_is_valid_in_old_and_new_versions() -> None:
    for version in _VERSIONS:
        for one in _rendered("single"):
            kubernetes_validate.validate(one, version, strict=True)


def test_the_parts_without_a_selector_are_valid_by_themselves() -> None:
    whole = list(_shipped())
    assert len(whole) == 3
    for version in _VERSIONS:
        for one in whole:
            kubernetes_validate.validate(one, version, strict=True)


def test_one_process_owns_the_volume_and_every_object_is_found() -> None:
    objects = _rendered("single")
    deployment = _of(objects, "Deployment")["spec"]
    assert (deployment["replicas"], deployment["strategy"]) == (1, {"type": "Recreate"})
    pod = deployment["template"]["spec"]
    volumes = {one["name"]: one for one in pod["volumes"]}
    assert (
        volumes["state"]["persistentVolumeClaim"]["claimName"]
        == _of(objects, "PersistentVolumeClaim")["metadata"]["name"]
    )
    assert volumes["config"]["configMap"]["name"] == _of(objects, "ConfigMap")["metadata"]["name"]
    assert pod["serviceAccountName"] == _of(objects, "ServiceAccount")["metadata"]["name"]
    labels = deployment["template"]["metadata"]["labels"]
    for selector in (
        deployment["selector"]["matchLabels"],
        _of(objects, "Service")["spec"]["selector"],
        _of(objects, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"],
    ):
        assert selector == labels


def test_every_container_runs_without_rights() -> None:
    pod = _of(_objects((FOLDER / "base" / "deployment.yaml").read_text(encoding="utf-8")), "Deployment")
    spec = pod["spec"]["template"]["spec"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"] is True
    for one in (*spec["initContainers"], *spec["containers"]):
        assert one["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert "memory" in one["resources"]["limits"]


def test_the_probes_ask_by_a_name_to_which_the_server_answers() -> None:
    pod = _of(_objects((FOLDER / "base" / "deployment.yaml").read_text(encoding="utf-8")), "Deployment")
    (container,) = pod["spec"]["template"]["spec"]["containers"]
    (port,) = container["ports"]
    hosts = Addresses("0.0.0.0", port["containerPort"], ()).hosts()
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        asked = container[probe]["httpGet"]
        assert asked["path"] in ("/healthz", "/readyz")
        assert asked["port"] == port["name"]
        (header,) = asked["httpHeaders"]
        assert (header["name"], header["value"] in hosts) == ("Host", True)
    # A restart repairs no disk and no platform, so the process is judged by /healthz alone.
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"


def test_the_configuration_is_one_that_the_program_takes() -> None:
    patch = _objects((FOLDER / "single" / "one-process.yaml").read_text(encoding="utf-8"))[0]
    (container,) = patch["spec"]["template"]["spec"]["containers"]
    environ = {one["name"]: one["value"] for one in container["env"]}
    settings = load(FOLDER / "single" / "parlour.toml", environ | {"PARLOUR__SERVER__HOST": "0.0.0.0"}, [])
    assert f"http://parlour:{settings.server.port}" in settings.server.public_origins
    assert json.loads(environ["PARLOUR__SERVER__PUBLIC_ORIGINS"]) == list(settings.server.public_origins)
