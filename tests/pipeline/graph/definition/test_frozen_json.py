"""Plain data: what may be in the state, and that no one can change it afterwards."""

from __future__ import annotations

import collections
import enum
import json
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.domain.errors import GraphError
from pipeline.graph.definition.frozen_json import MAX_DEPTH, freeze, freeze_update, thaw

_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=25,
)


class _Colour(enum.StrEnum):
    RED = "red"


class _Level(enum.IntEnum):
    HIGH = 1


class _Point(NamedTuple):
    x: int


class _Name(str):
    __slots__ = ()


@given(value=_json)
def test_freeze_then_thaw_is_a_json_round_trip(value: Any) -> None:
    assert _typed(thaw(freeze(value))) == _typed(json.loads(json.dumps(value)))


@given(value=_json)
def test_freezing_frozen_data_changes_nothing(value: Any) -> None:
    frozen = freeze(value)
    assert freeze(frozen) == frozen


@given(update=st.dictionaries(st.text(), _json, max_size=3))
def test_an_update_is_a_copy_that_is_frozen_below_its_top_level(update: dict[str, Any]) -> None:
    size = len(update)
    frozen = freeze_update(update)
    assert frozen == freeze(update)
    frozen["a key longer than any that is drawn" * 10] = 1
    assert len(update) == size


@given(value=_json)
def test_no_list_and_no_dict_is_left_in_frozen_data(value: Any) -> None:
    def check(frozen: Any) -> None:
        assert type(frozen) not in {list, dict}
        if type(frozen) is tuple:
            for item in frozen:
                check(item)
        if type(frozen) is MappingProxyType:
            for item in frozen.values():
                check(item)

    check(freeze(value))


def test_frozen_values_cannot_be_changed() -> None:
    frozen = freeze({"a": [{"b": 1}]})
    with pytest.raises(TypeError):
        frozen["c"] = 1
    with pytest.raises(TypeError):
        frozen["a"][0] = 1
    with pytest.raises(TypeError):
        frozen["a"][0]["b"] = 2


def test_changing_the_original_afterwards_has_no_effect() -> None:
    inner = {"b": [1]}
    original = {"a": [inner], "view": MappingProxyType(inner)}
    frozen, update = freeze(original), freeze_update(original)
    inner["b"].append(2)
    inner["c"] = [3]
    original["a"] = []
    assert thaw(frozen) == thaw(update) == {"a": [{"b": [1]}], "view": {"b": [1]}}


def test_changing_a_thawed_copy_has_no_effect() -> None:
    frozen = freeze({"a": [1]})
    copy = thaw(frozen)
    copy["a"].append(2)
    assert thaw(frozen) == {"a": [1]}


def test_an_update_may_be_any_mapping() -> None:
    assert freeze_update(collections.ChainMap({"a": [1]}, {"b": 2})) == {"a": (1,), "b": 2}


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")], ids=str)
def test_numbers_that_are_not_finite_are_refused(number: float) -> None:
    with pytest.raises(
        GraphError, match=f"the update, key a, must be plain data, and {number} is not a JSON"
    ):
        freeze_update({"a": number})


def test_a_number_of_more_digits_than_a_record_can_hold_is_refused() -> None:
    assert json.loads(json.dumps(freeze(-(10**3900)))) == -(10**3900)
    with pytest.raises(GraphError, match="the value must be plain data, and a number of so many digits"):
        freeze(10**4300)
    with pytest.raises(GraphError, match=r"the update, key a, .*so many digits"):
        freeze_update({"a": -(10**4300)})


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        pytest.param(b"bytes", "bytes", id="bytes"),
        pytest.param(bytearray(), "bytearray", id="a bytearray"),
        pytest.param(object(), "object", id="an object"),
        pytest.param({1, 2}, "set", id="a set"),
        pytest.param(iter([1]), "list_iterator", id="an iterator"),
        pytest.param(1 + 2j, "complex", id="a complex number"),
        pytest.param(_Colour.RED, "_Colour", id="an enum of strings"),
        pytest.param(_Level.HIGH, "_Level", id="an enum of numbers"),
        pytest.param(_Name("x"), "_Name", id="a subclass of str"),
        pytest.param(_Point(1), "_Point", id="a named tuple"),
        pytest.param(collections.OrderedDict(a=1), "OrderedDict", id="an ordered dict"),
        pytest.param(collections.defaultdict(list), "defaultdict", id="a defaultdict"),
        pytest.param(collections.ChainMap({}), "ChainMap", id="a mapping of another kind"),
    ],
)
def test_values_that_are_not_plain_are_refused_by_their_type(value: Any, kind: str) -> None:
    with pytest.raises(GraphError, match=f"^the value must be plain data, and {kind} is not$"):
        freeze(value)
    with pytest.raises(GraphError, match=f"^the update of a, key k, must be plain data, and {kind} is not$"):
        freeze_update({"k": value}, "the update of a")


def test_the_refusal_names_the_way_to_the_value() -> None:
    with pytest.raises(
        GraphError, match=r"^the update, key a, key b, must be plain data, and object is not$"
    ):
        freeze_update({"a": {"x": 1, "b": [1, object()]}})


@pytest.mark.parametrize("key", [1, None, (1,), _Name("x"), b"k"], ids=repr)
def test_keys_that_are_not_strings_are_refused(key: Any) -> None:
    with pytest.raises(GraphError, match="the update has a key of the type"):
        freeze_update({key: 1})
    with pytest.raises(GraphError, match="the update, key a, has a key of the type"):
        freeze_update({"a": {key: object()}})


@pytest.mark.parametrize(
    "wrap", [lambda inner: [inner], lambda inner: {"k": inner}], ids=["lists", "mappings"]
)
def test_nesting_is_bounded(wrap: Any) -> None:
    value: Any = 1
    for _ in range(MAX_DEPTH):
        value = wrap(value)
    assert thaw(freeze(value)) == value
    with pytest.raises(GraphError, match=f"nested deeper than {MAX_DEPTH} levels"):
        freeze(wrap(value))
    with pytest.raises(GraphError, match=r"the update, key k, .*nested deeper than"):
        freeze_update({"k": value})


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(GraphError, match="nested deeper than"):
        freeze(loop)


def _typed(value: Any) -> Any:
    """`value` with its types, so that 1, 1.0 and True differ."""
    if isinstance(value, dict):
        return {key: _typed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_typed(item) for item in value]
    return type(value), value
