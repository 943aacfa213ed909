"""Texts from the fields of a JSON value.

Covers: adapters/api/templates.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from adapters.api.templates import ApiTemplate
from pipeline.domain.errors import InvalidInput

VALUE: dict[str, Any] = {
    "a": {"b": [{"c": "x"}, 2, True, None, [1, {"d": "é"}]]},
    "braces": "{{a.b}} \\1",
    "0": "zero",
    "empty": "",
}


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("plain", "plain"),
        ("{{a.b.0.c}} and {{ a.b.1 }}", "x and 2"),
        ("{{a.b.2}}|{{a.b.3}}|{{empty}}|{{0}}", "true|||zero"),
        ("{{a.b.4}}", '[1,{"d":"é"}]'),
        ("{{braces}}", "{{a.b}} \\1"),
        ("{ {a} } }}", "{ {a} } }}"),
    ],
)
def test_places_are_filled_literally(text: str, filled: str) -> None:
    assert ApiTemplate.parsed(text).filled(VALUE) == filled


def test_an_empty_template_is_the_whole_json() -> None:
    assert ApiTemplate.parsed("").filled({"a": "é"}) == '{\n "a": "é"\n}'


@pytest.mark.parametrize("path", ["b", "a.c", "a.b.9", "a.b.-1", "a.b.0.c.0", "a.b.c"])
def test_a_field_that_is_not_there_is_named(path: str) -> None:
    with pytest.raises(
        InvalidInput, match=f"^{path.replace('.', chr(92) + '.')}: the JSON has no such field"
    ):
        ApiTemplate.parsed(f"{{{{{path}}}}}").filled(VALUE)


@pytest.mark.parametrize(
    "text", ["{{}}", "{{a..b}}", "{{a b}}", "{{.a}}", "{{a.__class__()}}", "{{a\nb}}", "{{²}}"]
)
def test_a_place_that_is_no_path_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        ApiTemplate.parsed(text)
