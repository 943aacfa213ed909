"""Make every character visible, for text that a person is asked to approve."""

from __future__ import annotations

import unicodedata

_HIDDEN = frozenset({"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"})
_FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")


def visible(text: str) -> str:
    """`text` with every invisible or direction-changing character as its number: <U+202E>.

    Line ends and tabs are kept. So are joiners and variation selectors where they have an effect: inside
    an emoji or a word of a script that needs them.
    """
    shown: list[str] = []
    before = ""
    for char in text:
        shown.append(_number(char) if _is_hidden(char, before) else char)
        before = char
    return "".join(shown)


def _is_hidden(char: str, before: str) -> bool:
    if char < "\x7f":
        return char < " " and char not in "\n\t"
    if char in "\u200c\u200d":
        return not _can_join(before)
    if "\ufe00" <= char <= "\ufe0f":
        return before == "" or before.isspace() or _is_selector(before)
    return _is_selector(char) or char in _FILLERS or unicodedata.category(char) in _HIDDEN


def _can_join(before: str) -> bool:
    """Whether a joiner affects `before`: letters of scripts beyond Latin, their marks, and emoji."""
    if before < "\u0370":
        return False
    return unicodedata.category(before) in ("Lo", "Mn", "Mc", "So", "Sk")


def _is_selector(char: str) -> bool:
    return (
        "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef" or "\u180b" <= char <= "\u180f"
    )


def _number(char: str) -> str:
    return f"<U+{ord(char):04X}>"
