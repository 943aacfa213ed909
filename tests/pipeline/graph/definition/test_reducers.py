"""Channels: how updates of one key combine, and the batching law that branches and resumption rely on."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.domain.errors import GraphError
from pipeline.graph.definition.frozen_json import freeze
from pipeline.graph.definition.reducers import MISSING, Channel, append, custom, first, last, merge

_plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
).map(freeze)
_lists = st.lists(_plain, max_size=4).map(tuple)
_mappings = st.dictionaries(st.sampled_from("abcd"), _plain, max_size=4).map(freeze)
_numbers = st.integers(-100, 100)

_largest = custom("largest", max)
_latest_three = custom("latest three", lambda value, update: [*value, *update][-3:], initial=[])
_difference = custom("difference", lambda value, update: value - update)

CHANNELS: dict[str, tuple[Channel, st.SearchStrategy[Any]]] = {
    "append": (append, _lists),
    "merge": (merge, _mappings),
    "last": (last, _plain),
    "first": (first, _plain),
    "a custom one": (_largest, _numbers),
    "a custom one with an initial value that forgets": (_latest_three, _lists),
    "a custom one where order matters": (_difference, _numbers),
}


@pytest.mark.parametrize("name", CHANNELS)
@given(data=st.data())
def test_two_batches_one_after_the_other_give_what_one_batch_gives(name: str, data: st.DataObject) -> None:
    channel, updates = CHANNELS[name]
    current = data.draw(st.just(MISSING) | updates, label="current")
    earlier = data.draw(st.lists(updates, min_size=1, max_size=4), label="earlier")
    later = data.draw(st.lists(updates, min_size=1, max_size=4), label="later")
    at_once = channel.fold(current, earlier + later)
    assert channel.fold(channel.fold(current, earlier), later) == at_once
    assert freeze(at_once) == at_once


def test_append_begins_with_nothing_and_keeps_the_order() -> None:
    assert append.fold(MISSING, [(1, 2), (), (3,)]) == (1, 2, 3)
    assert append.fold((0,), [(1,)]) == (0, 1)


def test_append_does_not_change_the_value_it_extends() -> None:
    current = (1, 2)
    assert append.fold(current, [(3,), (4,)]) == (1, 2, 3, 4)
    assert current == (1, 2)


@pytest.mark.parametrize("update", ["text", 1, None, MappingProxyType({"a": 1})])
def test_append_refuses_an_update_that_is_not_a_list(update: Any) -> None:
    with pytest.raises(GraphError, match="takes a list of new items"):
        append.fold((1,), [(2,), update])


def test_append_refuses_to_extend_what_is_not_a_list() -> None:
    with pytest.raises(GraphError, match="holds a list, and the key has a value of the type str"):
        append.fold("text", [(1,)])


def test_merge_begins_with_nothing_and_later_keys_win() -> None:
    merged = merge.fold(MISSING, [freeze({"a": 1, "b": 1}), freeze({"b": 2})])
    assert merged == {"a": 1, "b": 2}
    assert merge.fold(merged, [freeze({"a": 3})]) == {"a": 3, "b": 2}


def test_what_merge_gives_cannot_be_changed_and_its_parts_stay_as_they_were() -> None:
    current = freeze({"a": 1})
    merged = merge.fold(current, [freeze({"b": 2})])
    with pytest.raises(TypeError):
        merged["c"] = 3
    assert current == {"a": 1}


@pytest.mark.parametrize("update", ["text", 1, None, (("a", 1),)])
def test_merge_refuses_an_update_that_is_not_a_mapping(update: Any) -> None:
    with pytest.raises(GraphError, match="takes a mapping"):
        merge.fold(MISSING, [update])


def test_merge_refuses_to_extend_what_is_not_a_mapping() -> None:
    with pytest.raises(GraphError, match="holds a mapping, and the key has a value of the type tuple"):
        merge.fold((1,), [freeze({"a": 1})])


def test_last_is_the_newest_update_and_first_the_oldest_value() -> None:
    assert last.fold("old", ["a", "b"]) == "b"
    assert first.fold(MISSING, ["a", "b"]) == "a"
    assert first.fold("old", ["a", "b"]) == "old"
    assert first.fold(None, ["a"]) is None


def test_a_custom_channel_starts_from_its_initial_value() -> None:
    counting = custom("counting", lambda value, update: value + update, initial=10)
    assert counting.fold(MISSING, [1, 2]) == 13
    assert counting.fold(0, [1, 2]) == 3


def test_a_custom_channel_without_initial_value_starts_from_the_first_update() -> None:
    assert _difference.fold(MISSING, [10, 3, 2]) == 5


def test_a_list_that_a_custom_channel_returns_becomes_immutable() -> None:
    assert _latest_three.fold(MISSING, [(1, 2), (3, 4)]) == (2, 3, 4)


def test_a_custom_channel_that_returns_no_plain_data_is_refused_by_name() -> None:
    unique = custom("unique", lambda value, update: {*value, *update}, initial=[])
    with pytest.raises(GraphError, match="the value of channel unique must be plain data, and set is not"):
        unique.fold(MISSING, [(1,)])


def test_an_initial_value_that_is_no_plain_data_is_refused_when_the_channel_is_made() -> None:
    with pytest.raises(GraphError, match="the value of channel odd"):
        custom("odd", max, initial=object())
