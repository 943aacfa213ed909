"""A bounded dictionary removes the entry that was set or touched longest ago."""

from __future__ import annotations

import pytest

from pipeline.domain.bounded_dict import BoundedDict


def filled(max_entries: int = 3) -> BoundedDict[str, int]:
    entries: BoundedDict[str, int] = BoundedDict(max_entries)
    for value, key in enumerate("abc"):
        entries[key] = value
    return entries


def test_an_entry_over_the_bound_removes_the_oldest() -> None:
    entries = filled()
    entries["d"] = 3
    assert list(entries.items()) == [("b", 1), ("c", 2), ("d", 3)]


def test_setting_an_entry_again_moves_it_to_the_end() -> None:
    entries = filled()
    entries["a"] = 9
    entries["d"] = 3
    assert dict(entries) == {"c": 2, "a": 9, "d": 3}


def test_touching_an_entry_moves_it_to_the_end() -> None:
    entries = filled()
    entries.touch("a")
    assert list(entries) == ["b", "c", "a"]
    with pytest.raises(KeyError):
        entries.touch("z")


def test_reading_an_entry_does_not_move_it() -> None:
    entries = filled()
    assert entries["a"] == entries.get("a") == entries.setdefault("a", 9) == 0
    assert "a" in entries
    assert list(entries) == ["a", "b", "c"]


def test_an_entry_is_added_once_and_then_touched() -> None:
    entries = filled()
    assert entries.get_or_add("a", lambda: 9) == 0
    assert entries.get_or_add("d", lambda: 3) == 3
    assert list(entries) == ["c", "a", "d"]


def test_only_an_entry_that_the_bound_removes_is_reported() -> None:
    evicted: list[tuple[str, int]] = []
    entries: BoundedDict[str, int] = BoundedDict(2, lambda key, value: evicted.append((key, value)))
    entries["a"] = 1
    entries["a"] = 2
    entries["b"] = 3
    assert entries.pop("b") == 3
    assert entries.pop("z", None) is None
    entries["c"] = 4
    entries["d"] = 5
    assert evicted == [("a", 2)]
    assert len(entries) == 2


def test_the_bound_is_at_least_one() -> None:
    with pytest.raises(ValueError, match="max_entries"):
        BoundedDict(0)
