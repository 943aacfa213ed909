"""Where sentences end: not behind every full stop, and in more scripts than one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adapters.formatting.sentences import MAX_CHARS, sentences
from tests.support.tables import each


@each(
    "text",
    [
        "One.| Two!| Three?| Four…| Five.",
        "Dr. Smith met J. Doe.| They spoke.",
        "Bring fruit, e.g. apples, i.e. Cox or z. B. Elstar.| Then eat.",
        "It costs 3.5 m in the U.S. today.| Then 4.",
        "See fig. 3 and Nr. 5 usw. dort.| Ende.",
        "It was 1999.| Then I left with I.| He stayed.",
        "He said “Go!”| Then he went (at last.)| So be it.",
        "你好。|我是。|再见",
        "「はい。」|そう言った！|本当？",  # noqa: RUF001 - the full-width signs are meant
        "चाँद है।| सूरज भी॥| अंत",
        "کیا حال ہے؟| ٹھیک ہے۔| خدا حافظ",  # noqa: RUF001 - the Arabic full stop is meant
        "Wait...| what?!| No!!!| Yes",
        "no full stop at all",
        "first line\n|second line",
    ],
)
def test_sentences_end_where_a_reader_would_end_them(text: str) -> None:
    assert list(sentences(text.replace("|", ""))) == [one.strip() for one in text.split("|")]


def test_what_has_no_letter_and_no_figure_is_no_sentence() -> None:
    assert sentences("One. -- . !\n…\nTwo.") == ("One.", "Two.")


@given(st.text(st.sampled_from("aA1 .,!?…。\n\"')"), max_size=80), st.text("aA1 .!\n", max_size=20))
def test_what_follows_changes_only_the_last_sentence(text: str, more: str) -> None:
    settled = sentences(text)[:-1]
    assert sentences(text + more)[: len(settled)] == settled


@each("unit", ["a", "a ", "a, ", ".", ".)", "。", "\n", "a.", "Dr. "])
def test_long_text_is_cut_and_costs_no_more_than_its_length(unit: str) -> None:
    text = unit * 50_000
    found = sentences(text)
    assert all(len(one) <= MAX_CHARS for one in found)
    assert [char for one in found for char in one if char.isalpha()] == [
        char for char in text if char.isalpha()
    ]
