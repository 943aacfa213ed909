"""Recognise texts in which nothing is disguised: most are, and `disguises` need not look at them.

Takes time in proportion to the text. Not here: undoing a disguise.
"""

from __future__ import annotations

from collections.abc import Iterable

from pipeline.shield.injection.disguises import (
    BASE64_CHARS,
    FEWEST_BASE64,
    FEWEST_BASE85,
    FEWEST_BITS,
    FEWEST_HEX,
    HEX_CHARS,
    IN_A85,
    IN_B85,
    LONGEST_RUN,
    REVERSED_WORDS,
    ROT13_WORDS,
    WORD_TABLE,
    has_codes,
    has_morse,
    has_reversed,
    has_rot13,
    table_of,
)

_LETTERS_AND_GAPS = bytes(code for code in range(128) if chr(code).isalpha() or code in b" \n,'\":;?()/")
_TELLING_MARKS = frozenset(b"%&=\\<")
"""Each hidden place, and each encoding in marks, has one of them."""
_TELLING_WORDS = frozenset((*ROT13_WORDS, *REVERSED_WORDS))
_CONTROLS = bytes(code for code in range(32) if code not in b"\n\r\t") + b"\x7f"
_BASE64, _HEX = table_of(f"[{BASE64_CHARS}]"), table_of(f"[{HEX_CHARS}]")
_PRINTABLE, _BITS = table_of("[!-~]"), table_of("[01]")
_BETWEEN_LETTERS = bytes(
    ord("1" if code in b"0134578@$!" else "a" if code < 128 and chr(code).isalpha() else " ")
    for code in range(256)
)


def may_hide(text: str, words: Iterable[str] | None = None) -> bool:
    """Whether anything may be disguised in a text: False only if it has no hidden place, and no decoder gives
    anything. `words` are those of its plain form, if they are known."""
    if not text.isascii():
        return True
    data = text.encode()
    rest = data.translate(None, _LETTERS_AND_GAPS)
    if rest and (
        not _TELLING_MARKS.isdisjoint(rest)
        or b"a1a" in data.translate(_BETWEEN_LETTERS)
        or (len(rest) >= FEWEST_BITS and _may_be_digits_or_morse(text, data))
    ):
        return True
    if b"x" * FEWEST_HEX in data.translate(_HEX) or b"x x x x" in data.translate(WORD_TABLE):
        return True
    printable = data.translate(_PRINTABLE)
    if b"x" * FEWEST_BASE64 in printable and _may_be_base(data, printable):
        return True
    # A word with a control in it is not the same in plain form.
    if words is None or len(data.translate(None, _CONTROLS)) != len(data):
        return has_rot13(text) or has_reversed(text)
    return not _TELLING_WORDS.isdisjoint(words)


def _may_be_digits_or_morse(text: str, data: bytes) -> bool:
    return b"x" * FEWEST_BITS in data.translate(_BITS) or has_codes(text) or has_morse(text)


def _may_be_base(data: bytes, printable: bytes) -> bool:
    """Whether a run of characters is in an alphabet of 32, 64 or 85 characters."""
    if b"x" * FEWEST_BASE64 in data.translate(_BASE64):
        return True
    wanted, end = b"x" * FEWEST_BASE85, 0
    while (start := printable.find(wanted, end)) >= 0:
        end = printable.find(b" ", start)
        end = end if end >= 0 else len(data)
        run = data[start:end].decode().removesuffix("~>")
        if len(run) > LONGEST_RUN or IN_B85.issuperset(run) or IN_A85.issuperset(run):
            return True
    return False
