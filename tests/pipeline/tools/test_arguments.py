"""Do arguments fit a schema? Each rule says which field is wrong and what it should be."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.tools.arguments import BadArguments, check_arguments, parsed_arguments
from pipeline.tools.tool import tool_schema
from tests.support.tables import each

SCHEMA = tool_schema(
    {"name": {"type": "string", "minLength": 2, "maxLength": 5}},
    {
        "count": {"type": "integer", "minimum": 1, "maximum": 3},
        "share": {"type": ["number", "null"]},
        "way": {"type": "string", "enum": ["up", "down"]},
        "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2},
        "place": tool_schema({"city": {"type": "string"}}),
        "sure": {"type": "boolean"},
    },
)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"count": 3, "share": 0.5, "way": "up", "tags": ["a", "b"], "place": {"city": "Ulm"}, "sure": False},
        {"count": 2.0, "share": None},
        {"share": 3},
    ],
)
def test_what_fits_passes(more: dict[str, Any]) -> None:
    check_arguments(SCHEMA, {"name": "Ada", **more})


@each(
    "arguments, words",
    [
        ({}, "name: is missing"),
        ({"name": 1}, "name: must be text"),
        ({"name": "A"}, "name: the number of characters must be at least 2"),
        ({"name": "Adalbert"}, "name: the number of characters must be at most 5"),
        ({"name": "Ada", "count": True}, "count: must be a whole number"),
        ({"name": "Ada", "count": 1.5}, "count: must be a whole number"),
        ({"name": "Ada", "count": 0}, "count: the number must be at least 1"),
        ({"name": "Ada", "count": 4}, "count: the number must be at most 3"),
        ({"name": "Ada", "share": "half"}, "share: must be a number or null"),
        ({"name": "Ada", "way": "left"}, "way: must be one of up, down"),
        ({"name": "Ada", "tags": []}, "tags: the number of items must be at least 1"),
        ({"name": "Ada", "tags": ["a", 1]}, "tags[1]: must be text"),
        ({"name": "Ada", "place": {}}, "place.city: is missing"),
        ({"name": "Ada", "sure": 1}, "sure: must be true or false"),
        ({"name": "Ada", "agee": 1}, "agee: there is no such argument; there are: name, count, share, way"),
    ],
)
def test_what_does_not_fit_is_named(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(BadArguments) as refusal:
        check_arguments(SCHEMA, arguments)
    assert str(refusal.value).startswith(words)


def test_what_a_foreign_schema_says_beyond_these_rules_is_left_to_its_server() -> None:
    foreign = {"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}]}, "b": {"$ref": "#/x"}}}
    check_arguments(foreign, {"a": 1, "b": 2, "c": 3})


def test_no_text_is_no_arguments() -> None:
    assert parsed_arguments("  ") == {}


@pytest.mark.parametrize("text", ["{", '{"a": Infinity}', '{"a": 1, "a": 2}', '"a"', "[" * 100_000, "null"])
def test_what_is_no_object_is_refused_in_words(text: str) -> None:
    with pytest.raises(BadArguments):
        parsed_arguments(text)


@pytest.mark.parametrize("text", ['{"a": "\\ud800"}', '{"a": ["b\\udfff"]}', '{"\\ud800": 1}'])
def test_half_a_character_is_refused_and_a_whole_one_is_not(text: str) -> None:
    with pytest.raises(BadArguments, match="half a character"):
        parsed_arguments(text)
    assert parsed_arguments('{"a": "\\ud83d\\ude00"}') == {"a": "\U0001f600"}
