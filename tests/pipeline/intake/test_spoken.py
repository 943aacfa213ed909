"""What was said as the user's words, and whether it names the bot."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Author, InboundMessage, MediaRef, Speech
from pipeline.intake.spoken import names_one_of, spoken_words
from pipeline.runtime.ports import Transcription

NAMES = ("Parlour", "Otto")


def note(text: str = "", *, quoted: str = "") -> InboundMessage:
    return InboundMessage(
        message_id="m_1",
        native_id="1",
        thread=ThreadKey(channel="telegram", account="main", chat="7"),
        author=Author(id="7"),
        received_at=0.0,
        text=text,
        voice=MediaRef(channel="telegram", handle="h", kind="voice"),
        quoted=quoted,
    )


@pytest.mark.parametrize(
    ("cut_after_s", "said"),
    [
        (None, ""),
        (45.0, "\n\n[Only the first 45 seconds of the recording were heard.]"),
        (300.0, "\n\n[Only the first 5 minutes of the recording were heard.]"),
        (100.0, "\n\n[Only the first 1.7 minutes of the recording were heard.]"),
    ],
)
def test_what_was_not_heard_is_said(cut_after_s: float | None, said: str) -> None:
    heard = Transcription(text="continue", language="en", confidence=0.8, cut_after_s=cut_after_s)
    words = spoken_words(note(), heard)
    assert words.text == "continue" + said
    assert words.speech == Speech(language="en", confidence=0.8)


def test_quote_and_caption_are_above_the_words() -> None:
    heard = Transcription(text="tell me", language="en", confidence=0.8)
    words = spoken_words(note("look", quoted="an old line"), heard)
    assert words.text == "> an old line\n\nlook\n\ntell me"


@pytest.mark.parametrize(
    "text",
    [
        "Parlour, what is the time?",
        "and what does parlor say",
        "hey PARLOUR!",
        "par lour tell us",
        "okay Otto.",
        "Párlour, ça va",
    ],
)
def test_a_name_is_heard_however_it_is_spelt(text: str) -> None:
    assert names_one_of(text, NAMES)


def test_a_name_is_heard_in_scripts_without_spaces() -> None:
    names = ("小明", "パーラー")
    assert names_one_of("小明今天天气怎么样", names)
    assert names_one_of("ねえパーラー、今何時ですか", names)
    assert not names_one_of("今天天气怎么样", names)


@pytest.mark.parametrize(
    "text",
    ["what is the time", "the party state of things", "lotto numbers", "ottos", "par", "", "…"],
)
def test_other_words_are_no_name(text: str) -> None:
    assert not names_one_of(text, ("Parlours", "Otto"))


def test_a_bot_without_names_is_never_named() -> None:
    assert not names_one_of("Parlour", ())
    assert not names_one_of("anything at all", ("…", " "))


@given(st.text(), st.lists(st.text(max_size=10), max_size=3))
def test_any_text_gives_an_answer(text: str, names: list[str]) -> None:
    assert names_one_of(text, names) in (True, False)
