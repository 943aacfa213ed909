"""A question's words, shortened: every line's beginning and end stay, and what is left out is counted."""

from __future__ import annotations

from adapters.formatting.question_text import WHOLE_CHARS, shortened


def test_words_that_can_be_read_are_not_shortened() -> None:
    words = "\n".join(["May I use send?", "x" * (WHOLE_CHARS - 16)])
    assert shortened(words) == words


def test_each_line_is_shortened_by_itself_and_the_hash_stays() -> None:
    words = f"May I use send?\nText: {'a' * 1_000}{'b' * 1_000}\nSHA-256: 12ab"
    first, text, last = shortened(words).split("\n")
    assert (first, last) == ("May I use send?", "SHA-256: 12ab")
    assert text == f"Text: {'a' * 244}[… 1656 more characters …]{'b' * 100}"


def test_of_many_lines_the_first_ones_and_the_last_two_stay() -> None:
    lines = [f"Key {number}: {'x' * 100}" for number in range(50)]
    kept = shortened("\n".join(lines)).split("\n")
    assert kept == [*lines[:14], "[… 34 more lines …]", *lines[-2:]]
