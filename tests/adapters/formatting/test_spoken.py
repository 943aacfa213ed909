"""Markdown as it is read out: no symbol is spelled, nothing that has words is left out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adapters.formatting.spoken import CODE_BLOCK, spoken_parts, spoken_text
from tests.support.tables import each


@each(
    "markdown, said",
    [
        ("Hello **there**, _you_ ~~old~~ friend!", "Hello there, you old friend!"),
        ("# A title\n\nThe first paragraph\n\nthe second.", "A title.\nThe first paragraph.\nthe second."),
        ("one\ntwo", "one two."),
        ("Run `make test` now", "Run make test now."),
        ("Look:\n\n```python\nprint('#')\n```\n\nThat is it.", f"Look:\n{CODE_BLOCK}\nThat is it."),
        ("See [the guide](https://example.org/a?b=c) and https://example.org/x", "See the guide and link."),
        ("![a red boat](https://example.org/boat.png)", "a red boat."),
        ("- milk\n- bread\n  - rye", "milk.\nbread.\nrye."),
        ("3. mix\n4. bake", "3: mix.\n4: bake."),
        ("> quoted\n\n---\n\nafter", "quoted.\nafter."),
        (
            "| Day | Open |\n|---|---|\n| Monday | 9 to 5 |\n| Sunday | |",
            "Day: Monday; Open: 9 to 5.\nDay: Sunday.",
        ),
        ("Well done 🎉👍🏽 👨‍👩‍👧!", "Well done!"),
        ("It costs $5.50 & 10 % more", "It costs $5.50 & 10 % more."),
        ("Grüße, Ünal. 你好。", "Grüße, Ünal. 你好。"),
        ("a -> b <br> c", "a - b br c."),
        ("🎉", ""),
        ("---", ""),
        ("", ""),
    ],
)
def test_what_is_said(markdown: str, said: str) -> None:
    assert spoken_text(markdown) == said


@given(st.text(st.sampled_from("ab1 .,!#*_`~|[]()<>\\-\n😀é"), max_size=200))
def test_whatever_is_written_no_sign_of_markup_is_said(markdown: str) -> None:
    said = spoken_text(markdown)
    assert not set(said) & set("#*_`~|[]<>\\😀")
    assert all(any(char.isalnum() for char in line) for line in said.splitlines())


def test_parts_are_whole_sentences_of_which_the_first_comes_alone() -> None:
    sentence = "The moon draws it, and the sun helps."
    first, second, *rest = spoken_parts("Yes. " + "The tide rises twice. " + f"{sentence} " * 20)
    assert first == "Yes. The tide rises twice."
    assert second == " ".join([sentence] * 7)
    assert all(len(part) <= 300 for part in rest)
    assert " ".join([first, second, *rest]).count(sentence) == 20


def test_an_answer_of_one_sentence_is_one_part_and_of_nothing_none() -> None:
    assert spoken_parts("Water.") == ("Water.",)
    assert spoken_parts("---") == ()
    assert spoken_parts("# Tides\n\n- one\n- two") == ("Tides. one. two.",)
