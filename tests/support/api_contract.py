"""Compare answers of the HTTP API with its OpenAPI document."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from jsonschema import Draft202012Validator


@cache
def openapi() -> Mapping[str, Any]:
    """The document that is packaged."""
    found: Mapping[str, Any] = json.loads(
        resources.files("adapters.api").joinpath("openapi.json").read_text("utf-8")
    )
    return found


def operation(method: str, path: str) -> Mapping[str, Any] | None:
    """What the document says about a request; None for a path or a method that it does not have."""
    plain = path.partition("?")[0]
    for form, methods in openapi()["paths"].items():
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", form), plain):
            found: Mapping[str, Any] | None = methods.get(method.lower())
            return found
    return None


def require_described(method: str, path: str, status: int, content_type: str, text: str) -> None:
    """Fail unless the document has this answer, with a body of this form."""
    known = operation(method, path)
    if known is None:
        assert status in (404, 405), (method, path, status)
        require_schema("Problem", json.loads(text))
        return
    response = known["responses"].get(str(status))
    assert response is not None, f"{method} {path}: {status} is not described: {text}"
    media = content_type.partition(";")[0]
    if "content" not in response:
        assert not text
        return
    assert media in response["content"], f"{method} {path} {status}: {media}"
    if media.endswith("json"):
        _require(response["content"][media]["schema"], json.loads(text))


def require_schema(name: str, value: Any) -> None:
    """Fail unless a value has the form of a schema of the document."""
    _require({"$ref": f"#/components/schemas/{name}"}, value)


def require_valid_schemas() -> None:
    """Fail unless every schema of the document is one."""
    for schema in openapi()["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


def _require(schema: Mapping[str, Any], value: Any) -> None:
    whole = {"components": openapi()["components"], **schema}
    wrong = [
        f"{error.json_path}: {error.message}" for error in Draft202012Validator(whole).iter_errors(value)
    ]
    assert not wrong, wrong
