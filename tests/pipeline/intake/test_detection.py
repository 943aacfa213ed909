"""The copy for detection reads as its reader sees it, and costs little whatever it is made of."""

# ruff: noqa: RUF001 - letters that look alike are what is tested

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pipeline.intake.cleaning import MAX_MESSAGE_CHARS
from pipeline.intake.detection import for_detection, spelled_out
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
