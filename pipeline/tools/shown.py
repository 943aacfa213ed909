"""An action's payload as a person is shown it before they allow it: a line for each argument, as JSON.

Every character that has no ink, or that reorders the characters around it, is written as a JSON escape, so
that a value cannot look like another one and cannot begin a line of its own.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

_NO_INK = frozenset({"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"})
"""Unicode categories: controls, formats (direction marks, tags and zero-width characters among them), private
use, surrogates, unassigned, and line and paragraph separators."""
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Characters of other categories that are drawn as nothing."""
_WIDE_SPACE = "\u3000"
"""The space of Chinese and Japanese texts: it has a width that is seen, and stays."""
_PLAIN_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


def shown(payload: Mapping[str, Any]) -> str:
    """The whole of `payload`: `Path: "own/a.txt"`, one line for each key, in the payload's order.

    The text behind the colon is JSON; parsing it gives the value back exactly.
    """
    return "\n".join(f"{_label(key)}: {quoted(value)}" for key, value in payload.items())


def quoted(value: Any) -> str:
    """`value` as JSON on one line, with an escape for every character that is not seen.

    Raises ValueError for numbers that are not finite, TypeError for what is no plain data.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain)
    return text.replace("\x7f", "\\u007f") if text.isascii() else text.translate(_ESCAPES)


def _label(key: str) -> str:
    """A name of lower-case words is shown as words; any other one is quoted, so that no two look alike."""
    if _PLAIN_NAME.fullmatch(key):
        return key.replace("_", " ").capitalize()
    return quoted(key)


class _Escapes(dict[int, str]):
    """For `str.translate`: by code point."""

    def __missing__(self, code: int) -> str:
        return _escaped(code)


@lru_cache(maxsize=8_192)
def _escaped(code: int) -> str:
    char = chr(code)
    if not _is_unseen(char):
        return char
    return json.dumps(char)[1:-1] if code > 0x7F else f"\\u{code:04x}"


def _is_unseen(char: str) -> bool:
    if char <= "~":
        return char < " "
    category = unicodedata.category(char)
    if category in _NO_INK or char in _BLANK:
        return True
    if category == "Zs":
        return char != _WIDE_SPACE
    # Variation selectors are marks (Mn); a run of them can carry a hidden text.
    return (
        "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef" or "\u180b" <= char <= "\u180f"
    )


_ESCAPES = _Escapes()


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not plain data")
