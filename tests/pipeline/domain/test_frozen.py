"""Values are frozen for the type checker, and compared and hashed by their fields."""

from __future__ import annotations

from pipeline.domain.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    x: int
    y: int = 0


def test_a_value_is_frozen_for_the_type_checker_alone() -> None:
    point = Point(x=1)
    point.x = 2  # type: ignore[misc]  # mypy reports it as unused if it allows the assignment
    assert point.x == 2


def test_values_are_equal_and_hashed_by_their_fields() -> None:
    assert {Point(x=1), Point(x=1, y=0), Point(x=2)} == {Point(x=1), Point(x=2)}
