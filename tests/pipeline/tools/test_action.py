"""The fingerprint of an action: the same for the same, another for anything else."""

from __future__ import annotations

import hashlib
import json
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.tools.action import action_for, action_hash
from pipeline.tools.tool import ToolOutput
from tests.support.tool_gate import tool

LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
PLAIN = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
)


async def _run(_arguments: Any, _scope: Any) -> ToolOutput:
    return ToolOutput(text="")


def test_it_is_the_sha256_of_canonical_json() -> None:
    written = '{"payload":{"a":[1,"ü<&>"],"b":9007199254740993},"type":"send"}'
    expected = hashlib.sha256(written.encode()).hexdigest()
    assert action_hash("send", {"b": 9007199254740993, "a": [1, "ü<&>"]}) == expected


@settings(max_examples=60)
@given(st.dictionaries(st.text(), PLAIN, max_size=4))
def test_the_order_of_keys_does_not_matter(payload: dict[str, Any]) -> None:
    turned = dict(reversed(payload.items()))
    assert action_hash("send", payload) == action_hash("send", MappingProxyType(turned))


@settings(max_examples=60)
@given(st.dictionaries(st.text(), PLAIN, min_size=1, max_size=4), PLAIN)
def test_another_value_has_another_fingerprint(payload: dict[str, Any], value: Any) -> None:
    key = next(iter(payload))
    changed = {**payload, key: value}
    same = json.dumps(changed, sort_keys=True) == json.dumps(payload, sort_keys=True)
    assert (action_hash("send", payload) == action_hash("send", changed)) is same


def test_large_whole_numbers_that_differ_by_one_differ() -> None:
    assert action_hash("send", {"a": 2**53}) != action_hash("send", {"a": 2**53 + 1})


def test_numbers_that_are_none_are_refused() -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        action_hash("send", {"a": float("nan")})


def test_an_id_is_the_same_for_the_same_call_and_no_other() -> None:
    send = tool("send", _run)
    ids = [
        action_for(call, place, send, {}).id
        for call, place in (("1", "m"), ("1", "m"), ("2", "m"), ("1", "n"))
    ]
    assert ids[0] == ids[1]
    assert len(set(ids)) == 3
