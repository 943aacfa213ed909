"""Texts that are shortened for the ear."""

from __future__ import annotations

from voice.text import shortened

SENTENCES = "This is one sentence, and it has a second half. " * 40


def test_a_long_text_is_cut_after_a_sentence() -> None:
    assert shortened("  Short. ", 300) == "Short."
    cut = shortened(SENTENCES, 300)
    assert len(cut) <= 300
    assert cut.endswith("half. …")


def test_a_text_without_sentences_is_cut_at_a_space_or_anywhere() -> None:
    assert shortened("word " * 100, 23) == "word word word word …"
    assert len(shortened("x" * 5_000, 300)) == 300
