"""A table that is checked in one test: every case is, and every case that fails is named."""

from __future__ import annotations

import pytest

from tests.support.tables import each


def test_each_case_is_checked_and_each_that_fails_is_named() -> None:
    seen: list[tuple[int, str]] = []

    @each("number", [1, 2, 3])
    @each("word, odd", [("a", True), ("b", False)])
    def check(number: int, word: str, odd: bool) -> None:
        seen.append((number, word))
        assert (number % 2 == 1) == odd, f"{number} {word}"

    with pytest.raises(pytest.fail.Exception) as failed:
        check()
    assert seen == [(number, word) for number in (1, 2, 3) for word in ("a", "b")]
    words = str(failed.value)
    assert words.startswith("3 cases fail")
    assert all(f"({number},): " in words for number in (1, 2, 3))
    assert [one in words for one in ("1 b", "2 a", "3 b", "1 a", "2 b", "3 a")] == [True] * 3 + [False] * 3


async def test_so_are_the_cases_of_a_check_that_waits() -> None:
    @each("number", [1, 2])
    async def check(number: int) -> None:
        raise ValueError(f"no {number}")

    with pytest.raises(pytest.fail.Exception, match=r"(?s)2 cases fail.*ValueError: no 1.*ValueError: no 2"):
        await check()


def test_a_table_without_cases_is_a_mistake() -> None:
    with pytest.raises(AssertionError, match="checks nothing"):
        each("number", [])
