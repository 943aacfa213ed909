"""Fields of untrusted JSON are read with types and bounds; a value that does not fit counts as absent."""

from __future__ import annotations

import json
import math

import pytest

from adapters.json_fields import amount, integer, items, mapping, mappings, text

OTHER: tuple[object, ...] = (None, True, "5", [1], {"a": 1})


def test_objects_and_arrays_are_read_up_to_a_bound() -> None:
    assert mapping({"a": 1}) == {"a": 1}
    assert items([1, 2, 3], most=2) == [1, 2]
    assert mappings([{"a": 1}, 2, {"b": 3}], most=2) == [{"a": 1}]


@pytest.mark.parametrize("value", [None, True, 5, "text", 1.5])
def test_anything_else_is_an_empty_object_and_an_empty_array(value: object) -> None:
    assert mapping(value) == {}
    assert items(value, most=9) == mappings(value, most=9) == []


def test_an_integer_is_no_boolean_and_has_a_bound() -> None:
    assert [integer(value) for value in (0, -5, 2**61)] == [0, -5, 2**61]
    assert all(integer(value) is None for value in (*OTHER, 1.0, 2**62, -(2**62)))


def test_an_amount_is_finite_and_not_negative() -> None:
    assert [amount(value) for value in (0, 1.5, 2**52)] == [0.0, 1.5, 2.0**52]
    assert all(amount(value) is None for value in (*OTHER, -1, 2**53, 10**400, math.inf, math.nan))


@pytest.mark.parametrize(
    ("value", "shown"),
    [("hello", "hel"), ("a\ud800b", "a\ufffdb"), ("\ud83d\ude00", "\U0001f600"), (5, ""), (None, "")],
)
def test_a_text_is_cut_and_holds_no_half_of_a_pair(value: object, shown: str) -> None:
    assert text(value, most=3) == shown


def test_a_text_of_parsed_json_is_always_encodable() -> None:
    assert text(json.loads(r'"\udc00 \ud800"'), most=9).encode() == "\ufffd \ufffd".encode()
