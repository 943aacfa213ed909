"""Cleaning harms nothing that a person meant, and leaves nothing that no one sees."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.intake.cleaning import MAX_MESSAGE_CHARS, TRUNCATION_MARK, clean_text
from tests.support.tables import each

SCOTLAND = "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f"
FAMILY = "👨\u200d👩\u200d👧"


@each(
    "text",
    [
        f"{FAMILY} family",
        "🏳\ufe0f\u200d🌈 🏴\u200d☠\ufe0f 👩🏽\u200d🚒 ❤\ufe0f\u200d🔥 1\ufe0f\u20e3",
        f"{SCOTLAND} wins",
        "می\u200cخواهم",  # noqa: RUF001 - Persian, with its joiner
        "ه\u200d 1402",  # noqa: RUF001 - an abbreviation that ends in a joiner
        "क्\u200dष र्\u200cय",
        "ශ්\u200dරී",
        "שלום\u200f (abc)",
        "\u200fabc עברית",
        "葛\U000e0100城",
        "prix\u202f: 3\u00a0€",
        "tab\there",
    ],
)
def test_what_people_write_stays_as_it_is(text: str) -> None:
    assert clean_text(text) == text


@each(
    "text",
    [
        "```python\ndef f():\n    if x:\n\t\treturn  1\n```",
        "def f():\n    if x:\n        return 1",
        "| a  | b |\n|----|---|\n| 1  | 2 |",
        "four lines\n\n\n\n    and empty ones",
    ],
)
def test_indentation_and_tables_stay_inside_fences_and_outside(text: str) -> None:
    assert clean_text(text) == text


@each(
    "text, cleaned",
    [
        ("a\r\nb\rc\r\n\r\n\r\nd", "a\nb\nc\n\n\nd"),
        ("one\u2028two\u2029three\x85four", "one\ntwo\nthree\nfour"),
        ("nul\x00 bell\x07 esc\x1b[31m", "nul bell esc[31m"),
        ("c1\x9bcsi del\x7f", "c1csi del"),
        ("  spaced  \n", "spaced"),
        ("half\ud83d", "half\ufffd"),
    ],
)
def test_what_no_keyboard_sends_goes_and_lines_end_in_one_way(text: str, cleaned: str) -> None:
    assert clean_text(text) == cleaned


@each(
    "text, cleaned",
    [
        ("abc\u202etxt.exe", "abctxt.exe"),
        ("a\u2066b\u2069c \u202ad\u202c", "abc d"),
        ("\ufeffhello", "hello"),
        ("ig\u200bno\u2060re \u00adme", "ignore me"),
        ("ig\u200dno\u200cre", "ignore"),
        ("ig\u200fno\u200ere", "ignore"),
        ("hi\U000e0069\U000e0067\U000e006e", "hi"),
        ("🏴\U000e0069\U000e0067\U000e006e\U000e007f", "🏴"),
        ("😀\ufe00\ufe01\U000e0110\U000e0111", "😀\ufe00"),
        ("\ufe0fa \ufe0fb", "a b"),
        ("👨\u200d and 👩\u200c", "👨 and 👩"),
    ],
)
def test_what_reorders_or_hides_text_goes(text: str, cleaned: str) -> None:
    assert clean_text(text) == cleaned


def test_exactly_the_limit_is_kept_and_one_more_is_cut_with_a_mark() -> None:
    assert clean_text("x" * MAX_MESSAGE_CHARS) == "x" * MAX_MESSAGE_CHARS
    cut = clean_text("x" * (MAX_MESSAGE_CHARS + 1))
    assert cut == "x" * MAX_MESSAGE_CHARS + TRUNCATION_MARK
    assert len(cut) == 100_012


@each("tail", ["x", FAMILY, SCOTLAND, "می\u200cخ", "😀\ufe0f", " \n"])
@each("shift", range(8))
def test_a_cut_text_is_not_cut_again_wherever_the_cut_falls(tail: str, shift: int) -> None:
    text = "x" * (MAX_MESSAGE_CHARS - shift) + tail * 20 + "x"
    once = clean_text(text)
    assert once.endswith(TRUNCATION_MARK)
    assert clean_text(once) == once


_TRICKS = st.lists(
    st.sampled_from(
        [
            *"aZ \n\t\r>",
            *"\u200b\u200c\u200d\u200e\u200f\u202e\u2066\u2069\ufeff\ufe0f\u00ad\x00\x85\u2028",
            *"👨🏴☠مक\U000e0067\U000e007f\U000e0100",
            SCOTLAND,
        ]
    ),
    max_size=30,
).map("".join)


@given(text=st.one_of(_TRICKS, st.text(max_size=300)))
@example(text="👨\u200c\u200d👩")
def test_cleaning_twice_changes_nothing_more(text: str) -> None:
    assert clean_text(clean_text(text)) == clean_text(text)


@given(text=_TRICKS)
def test_nothing_that_reorders_or_smuggles_is_ever_left(text: str) -> None:
    cleaned = clean_text(text)
    assert not set(cleaned) & set("\u200b\u202e\u2066\u2069\ufeff\u00ad\x00\x85\u2028\r")
    assert not any("\U000e0000" <= char <= "\U000e007f" for char in cleaned.replace(SCOTLAND, ""))
