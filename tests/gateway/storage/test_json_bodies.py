"""The text of bodies: both encoders and both decoders agree on plain data, whatever it is."""

from __future__ import annotations

import json
import math
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.storage.json_bodies import decode_body, encode_body, encode_checked, encode_record
from pipeline.domain.errors import StorageError

_ATOMS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(1 << 200), 1 << 200)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.text(st.characters(categories=["Cs", "Ll"]))
)
_PLAIN = st.recursive(
    _ATOMS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def _same(one: Any, other: Any) -> bool:
    """Equality that tells 1 from 1.0 and from True, and 0.0 from -0.0."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, float):
        return one == other and math.copysign(1, one) == math.copysign(1, other)
    return bool(one == other)


@given(st.dictionaries(st.text(), _PLAIN, max_size=4))
@example(
    {"at": 1795840919.4331133, "big": 10**40, "lone": "a\ud800", "e": 1e-7, "min": 5e-324, "max": 1.7e308}
)
@example({"18446744073709551616": [18446744073709551616, -9223372036854775809]})
def test_what_is_encoded_is_read_back(body: dict[str, Any]) -> None:
    for text in (encode_body(body), encode_checked(body)):
        text.encode("utf-8")
        assert _same(decode_body(text), body)
        assert _same(json.loads(text), body)


def test_frozen_data_is_encoded_as_what_it_was_made_from() -> None:
    frozen = MappingProxyType({"update": MappingProxyType({"log": (MappingProxyType({"at": 1.5}), "x")})})
    assert decode_body(encode_checked(frozen)) == {"update": {"log": [{"at": 1.5}, "x"]}}


@pytest.mark.parametrize("text", ['{"a":', "", '{"a":"\\ud800"} x', "[1,]"])
def test_a_damaged_text_is_an_error(text: str) -> None:
    with pytest.raises(json.JSONDecodeError):
        decode_body(text)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), b"x", {1, 2}, object()])
def test_what_is_no_plain_data_is_refused(value: object) -> None:
    with pytest.raises(StorageError, match="plain JSON data"):
        encode_record("user", {"x": value})
