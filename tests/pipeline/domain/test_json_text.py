"""An encoder that is made once writes what the one of the standard library writes."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import Any

import pytest

from pipeline.domain.json_text import encoder
from tests.support.tables import each

_VALUES: tuple[Any, ...] = (
    {"text": 'a "quoted" \u00e9\U0001f600\u2028\n', "n": [1, 2.5, True, None, {}], "": ()},
    [], "alone", 3, None, {"a": {"b": [{"c": "\ud800"}]}}, {1: "key", None: 0, 2.5: 1},
)  # fmt: skip


@each("value", _VALUES)
@each("ascii_only", [False, True])
@each("separators", [(",", ":"), (", ", ": ")])
def test_the_text_is_that_of_the_standard_library(
    value: Any, separators: tuple[str, str], *, ascii_only: bool
) -> None:
    wanted = json.dumps(value, ensure_ascii=ascii_only, separators=separators)
    assert "".join(encoder(ascii_only=ascii_only, separators=separators)(value, 0)) == wanted


@pytest.mark.parametrize("ascii_only", [False, True])
def test_without_the_module_in_c_the_text_is_the_same(
    monkeypatch: pytest.MonkeyPatch, *, ascii_only: bool
) -> None:
    fast = encoder(ascii_only=ascii_only)
    monkeypatch.setattr(json.encoder, "c_make_encoder", None)
    slow = encoder(ascii_only=ascii_only)
    assert ["".join(fast(value, 0)) for value in _VALUES] == ["".join(slow(value, 0)) for value in _VALUES]


def test_what_is_not_plain_goes_through_the_default() -> None:
    assert "".join(encoder(default=dict)({"a": MappingProxyType({"b": 1})}, 0)) == '{"a":{"b":1}}'
    with pytest.raises(TypeError):
        encoder()({"a": object()}, 0)


def test_nan_is_an_error_unless_it_is_allowed() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        encoder()(float("nan"), 0)
    assert "".join(encoder(nan=True)(float("nan"), 0)) == "NaN"


def test_data_that_holds_itself_is_an_error() -> None:
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(RecursionError):
        encoder()(circle, 0)
