"""Spam: the rules at their edges, and what only looks like it."""

from __future__ import annotations

import pytest

from pipeline.intake.spam import looks_like_spam
from tests.support.tables import each


@each(
    "text, spam",
    [
        ("", True),
        (" \n\t", True),
        ("k", False),
        # Capitals: 20 and 21 characters.
        ("A" + "BC" * 9 + "D", False),
        ("A" + "BC" * 10, True),
        ("ERROR CODE E-1234 AT LINE 77", True),
        ("1234567890 1234567890 12", False),
        ("ПРИВЕТ КАК ДЕЛА ДРУЗЬЯ МОИ", False),  # noqa: RUF001 - there is no A to Z in it
        # One sign: 15 and 16 in a row.
        ("x" + "a" * 15, False),
        ("x" + "a" * 16, True),
        ("wo" + "w" * 14 + " nice", False),
        ("ha" * 40, False),
        ("-" * 15, False),
        ("-" * 16, True),
        ("x" + " " * 40 + "y", False),
        # One word: six of eight, five of seven, seven of ten, eight of ten.
        ("buy " * 6 + "it now", True),
        ("buy " * 5 + "it now", False),
        ("buy " * 7 + "it or not", False),
        ("buy " * 8 + "it now", True),
        ("BUY Buy buy buy buy buy it now", True),
    ],
)
def test_the_seeds_rules_at_their_edges(text: str, *, spam: bool) -> None:
    assert looks_like_spam(text) is spam


@pytest.mark.parametrize(
    "text",
    [
        "Heading\n================\ntext",
        "one\n\n----------------\n\ntwo",
        "| name             | age |\n|------------------|-----|\n| Ada              | 36  |",
        "╭─ Error ──────────────────────────╮\n│ no │\n╰──────────────────────────────────╯",
        "Installation\n^^^^^^^^^^^^^^^^^^^^",
        "    return 1\n" + " " * 20 + "# far right",
    ],
)
def test_what_is_drawn_beside_words_is_no_spam(text: str) -> None:
    assert not looks_like_spam(text)


@pytest.mark.parametrize(
    "text", ["wow " + "!" * 16, "=" * 80 + "\n" + "-" * 80, "a" * 100_000, "-" * 100_000, "|- " * 33_000]
)
def test_lines_alone_and_other_signs_are_judged_and_length_costs_nothing(text: str) -> None:
    assert looks_like_spam(text)
