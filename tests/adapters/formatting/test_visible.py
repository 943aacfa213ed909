"""What an approver sees, and what a file holds."""

# ruff: noqa: RUF001 - look-alike letters are what is tested

from __future__ import annotations

import pytest

from adapters.formatting.overflow import MAX_PARTS, as_file
from adapters.formatting.visible import visible
from tests.support.tables import each


@each(
    "text, shown",
    [
        ("rm -rf /tmp/x\n\tdone", "rm -rf /tmp/x\n\tdone"),
        ("a\u202eb", "a<U+202E>b"),
        ("a\u2066b\u2069", "a<U+2066>b<U+2069>"),
        ("a\U000e0041b", "a<U+E0041>b"),
        ("a\x00\x1b[31m\x7f\x9f\r", "a<U+0000><U+001B>[31m<U+007F><U+009F><U+000D>"),
        ("pay\u200bpal \u00ad\ufeff", "pay<U+200B>pal <U+00AD><U+FEFF>"),
        ("rm\u200c -rf\u200d", "rm<U+200C> -rf<U+200D>"),
        ("\u2028\u2029\u3164\u2800\ud800", "<U+2028><U+2029><U+3164><U+2800><U+D800>"),
        ("a\ufe01\ufe02\U000e0101", "a\ufe01<U+FE02><U+E0101>"),
    ],
)
def test_what_is_hidden_is_shown_as_its_number(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize(
    "text",
    ["می\u200cخواهم", "क्\u200dष", "👨\u200d👩\u200d👧", "🏳\ufe0f\u200d🌈", "1\ufe0f\u20e3", "שלום", "é"],
)
def test_what_has_something_to_join_stays(text: str) -> None:
    assert visible(text) == text


def test_a_file_holds_the_text_as_it_was_written() -> None:
    assert as_file("# Ä\r\n\x00") == b"# \xc3\x84\r\n\x00"
    assert as_file("a\ud800b") == b"a?b"
    assert MAX_PARTS == 5
