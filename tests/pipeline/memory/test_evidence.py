"""What counts as the person's own words."""

from __future__ import annotations

import pytest

from pipeline.memory.policy.evidence import is_said, own_words
from tests.support.tables import each


@pytest.mark.parametrize(
    ("quote", "message"),
    [
        ("I live in Rome", "well,  I LIVE in\nRome now"),
        ("I\u2019m vegan", "I'm vegan"),
        ("j'habite à Nîmes", "bonjour, j\u2019habite a Nimes"),
        ("I live in Rome", "I live in Rome"),
    ],
)
def test_the_same_words_in_the_same_order_are_said(quote: str, message: str) -> None:
    assert is_said(quote, message)


@each(
    "quote, message",
    [
        ("I live in Rome", "I live in Romeo's flat"),
        ("I live in Rome", "in Rome I live"),
        ("I live in Rome", 'she wrote "I live in Rome" to me'),
        ("I live in Rome", "he says „I live in Rome“"),
        ("I live in Rome", "« I live in Rome »"),
        ("I live in Rome", "> I live in Rome\nwhat do you say?"),
        ("I live in Rome", "```\nI live in Rome\n```"),
        ("I live in Rome", ""),
        ("...", "well ..."),
        ("", "I live in Rome"),
        ("so " * 100, "so " * 100),
    ],
)
def test_other_words_and_quotations_are_not(quote: str, message: str) -> None:
    assert not is_said(quote, message)


def test_a_name_between_quotation_marks_is_the_persons_own() -> None:
    assert is_said("my cat is called Mr Pickles", 'my cat is called "Mr Pickles"')


def test_words_on_both_sides_of_a_quotation_are_not_joined() -> None:
    assert not is_said("I live in Rome", 'I live "not really at all" in Rome')
    assert "secret" not in own_words("look: `secret` and https://example.org/secret")
