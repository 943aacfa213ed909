"""What the tests of deploy/ share: the objects that kubectl renders, the schemas, the settings in both."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml  # type: ignore[import-untyped]  # PyYAML ships no type information

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
KUBERNETES_VERSIONS = ("1.29", "1.33")
"""Versions whose schemas the objects are compared with."""


def objects_of(text: str) -> list[dict[str, Any]]:
    """The objects of a file of several documents."""
    return [one for one in yaml.safe_load_all(text) if one]


def rendered(overlay: str | Path) -> list[dict[str, Any]]:
    """The objects of an overlay, by its name or its folder. Skips the test where kubectl is missing."""
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is not installed; on Debian: apt-get install kubernetes-client")
    run = subprocess.run(
        [kubectl, "kustomize", str(KUBERNETES / overlay)], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return objects_of(run.stdout)


def one_of(objects: list[dict[str, Any]], kind: str, name: str | None = None) -> dict[str, Any]:
    """The only object of that kind, or the one with that name."""
    (one,) = [
        each
        for each in objects
        if each["kind"] == kind and (name is None or each["metadata"]["name"] == name)
    ]
    return one


def check_against_schemas(objects: list[dict[str, Any]]) -> None:
    """Compare with the schemas of the oldest and the newest version, strictly."""
    for version in KUBERNETES_VERSIONS:
        for one in objects:
            kubernetes_validate.validate(one, version, strict=True)


def compose_schema() -> dict[str, Any]:
    """The schema of the compose specification, from a package for development."""
    path = files("check_jsonschema") / "builtin_schemas" / "vendor" / "compose-spec.json"
    schema: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return schema


def settings_in(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that the program reads."""
    return {name: str(value) for name, value in environment.items() if name.startswith("PARLOUR__")}
