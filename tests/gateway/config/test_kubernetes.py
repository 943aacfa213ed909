"""What deploy/kubernetes makes is valid, fits the program and gives it no more rights than it needs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from gateway.config import load
from gateway.runtime.http_server import Addresses
from tests.support.deployment import KUBERNETES as FOLDER
from tests.support.deployment import check_against_schemas, objects_of, one_of, rendered


def _shipped() -> Iterator[dict[str, Any]]:
    """Every object in the folder that is whole by itself: no kustomization, patch or what has a selector."""
    for path in sorted(FOLDER.rglob("*.yaml")):
        for one in objects_of(path.read_text(encoding="utf-8")):
            if one["kind"] in ("NetworkPolicy", "ServiceAccount", "PersistentVolumeClaim"):
                yield one


def test_the_single_gateway_is_valid_in_old_and_new_versions() -> None:
    check_against_schemas(rendered("single"))


def test_the_parts_without_a_selector_are_valid_by_themselves() -> None:
    whole = list(_shipped())
    assert len(whole) == 8
    check_against_schemas(whole)


def test_one_process_owns_the_volume_and_every_object_is_found() -> None:
    objects = rendered("single")
    deployment = one_of(objects, "Deployment")["spec"]
    assert (deployment["replicas"], deployment["strategy"]) == (1, {"type": "Recreate"})
    pod = deployment["template"]["spec"]
    volumes = {one["name"]: one for one in pod["volumes"]}
    assert (
        volumes["state"]["persistentVolumeClaim"]["claimName"]
        == one_of(objects, "PersistentVolumeClaim")["metadata"]["name"]
    )
    assert volumes["config"]["configMap"]["name"] == one_of(objects, "ConfigMap")["metadata"]["name"]
    assert pod["serviceAccountName"] == one_of(objects, "ServiceAccount")["metadata"]["name"]
    labels = deployment["template"]["metadata"]["labels"]
    for selector in (
        deployment["selector"]["matchLabels"],
        one_of(objects, "Service")["spec"]["selector"],
        one_of(objects, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"],
    ):
        assert selector == labels


def test_every_container_runs_without_rights() -> None:
    pod = one_of(objects_of((FOLDER / "base" / "deployment.yaml").read_text(encoding="utf-8")), "Deployment")
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
    pod = one_of(objects_of((FOLDER / "base" / "deployment.yaml").read_text(encoding="utf-8")), "Deployment")
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
    patch = objects_of((FOLDER / "single" / "one-process.yaml").read_text(encoding="utf-8"))[0]
    (container,) = patch["spec"]["template"]["spec"]["containers"]
    environ = {one["name"]: one["value"] for one in container["env"]}
    settings = load(FOLDER / "single" / "parlour.toml", environ | {"PARLOUR__SERVER__HOST": "0.0.0.0"}, [])
    assert f"http://parlour:{settings.server.port}" in settings.server.public_origins
    assert json.loads(environ["PARLOUR__SERVER__PUBLIC_ORIGINS"]) == list(settings.server.public_origins)
