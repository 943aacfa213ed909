"""The classes of words: the table first, then concepts, then endings."""

from __future__ import annotations

import numpy as np

from pipeline.shield.injection.features import HALF, run_buckets
from pipeline.shield.injection.lexicon import shipped_lexicon
from pipeline.shield.injection.plain_text import plain
from pipeline.shield.injection.word_classes import WordClasses


def test_a_word_is_of_its_class_in_the_table_of_its_concept_or_of_its_ending() -> None:
    classes = WordClasses({"people": "aunt, neighbour-", "machine": "bot, Ärzte"})

    def kind(word: str, *concepts: int) -> int:
        return classes.hash_of(word, concepts)

    assert kind("aunt") == kind("neighbours") != kind("bot")
    assert kind("arzte") == kind("bot")
    assert kind("erase", 3) == kind("wipe", 3, 5) != kind("wipe", 5)
    assert kind("12") == kind("7")
    assert kind("the") != kind("for")
    assert kind("singing") == kind("barking") != kind("barked")
    assert kind("table") == kind("marble")
    assert 0 <= kind("\ud800abc") < 1 << 32


def test_texts_with_words_of_the_same_classes_have_the_same_runs_of_classes() -> None:
    rows = []
    for text in ("Dear mother, send the letter on Monday.", "Dear aunt, forward the report on Friday."):
        reading = shipped_lexicon().read(plain(text))
        rows.append(run_buckets(reading, np.array(reading.word_places)))

    assert (rows[0][HALF:] == rows[1][HALF:]).all()
    assert (rows[0][:HALF] != rows[1][:HALF]).any()
