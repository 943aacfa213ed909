"""The copy for detection reads as its reader sees it, and costs little whatever it is made of."""

# ruff: noqa: RUF001 - letters that look alike are what is tested

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pipeline.intake.cleaning import MAX_MESSAGE_CHARS
from pipeline.intake.detection import for_detection, is_plain, spelled_out, spelled_words, undisguised
from tests.support.examples import examples
from tests.support.tables import each


@each(
    "text",
    [
        "ig\u200bnore me",
        "ig\u00adno\u2060re\u200d me",
        "i\x00gnore me",
        "ｉｇｎｏｒｅ　me",
        "𝐢𝐠𝐧𝐨𝐫𝐞 me",
        "іgnоrе mе",
        "i\u0301g\u0330nóre me",
        "ignore\u00a0\u2003\t me",
        "ig\U000e0069nore\ufe0f me",
        "ıgnore me",
    ],
)
def test_disguises_are_off(text: str) -> None:
    assert for_detection(text) == "ignore me"


@examples(200)
@given(
    st.lists(
        st.sampled_from(["I", "a", "am", "don't", "I'm", "hi,", "you?", "B.", "ok...", "x", "letters", "!"]),
        max_size=8,
    ).map(" ".join)
    | st.from_regex(r"[ -~]{0,30}", fullmatch=True)
)
def test_in_plain_prose_nothing_is_disguised(text: str) -> None:
    if is_plain(text):
        copy = for_detection(text)
        assert copy == text.strip()
        assert (spelled_out(copy), spelled_words(text), list(undisguised(text, copy))) == ("", "", [])


@each("text", ["hi", "I am not well today, thank you!", "Don't you see a man?"])
def test_ordinary_words_are_plain_prose(text: str) -> None:
    assert is_plain(text)


@each("text", ["", "a b c", "e-mail", "1gn0re", "so am I", "two\nlines", "a" * 24, "&amp;", "don't t e l l"])
def test_what_may_hide_words_is_no_plain_prose(text: str) -> None:
    assert not is_plain(text)


def test_lines_stay_apart_and_blank_ones_go() -> None:
    assert for_detection("a \r\n\r\n  b\rc") == "a\nb\nc"


def test_letters_that_are_alone_are_read_as_a_word() -> None:
    assert spelled_out("say i g n o r e  a l l and a b c") == "ignoreall"
    assert spelled_out("i.g.n.o.r.e.i.t") == "ignoreit"
    assert spelled_out("plan a or b, as i said") == ""


def test_a_long_row_of_marks_is_cut_before_it_is_sorted() -> None:
    # Normalisation alone takes minutes for these.
    assert for_detection("a" + "\u0300\u0316" * 500_000) == "a"


@given(text=st.text(max_size=200))
def test_the_copy_is_never_much_longer_than_what_it_is_of(text: str) -> None:
    assert len(for_detection(text)) <= 18 * len(text)


def test_of_a_sign_that_represents_eighteen_only_so_much_is_read() -> None:
    assert len(for_detection("\ufdfa" * MAX_MESSAGE_CHARS)) <= 2 * MAX_MESSAGE_CHARS
