"""Format an action's payload for approval by a person: one line of JSON for each argument.

Every character that is invisible, or that reorders the characters around it, is written as a JSON escape, so
that a value cannot look like another one and cannot begin a new line.
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
"""Invisible characters of other categories."""
_WIDE_SPACE = "\u3000"
"""The space of Chinese and Japanese texts. It has a visible width and is not escaped."""
_PLAIN_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


def shown(payload: Mapping[str, Any]) -> str:
    """The whole of `payload`: `Path: "own/a.txt"`, one line for each key, in the payload's order.

    The text after the colon is JSON; parsing it returns the exact value.
    """
    return "\n".join(f"{_label(key)}: {quoted(value)}" for key, value in payload.items())


def quoted(value: Any) -> str:
    """`value` as JSON on one line, with an escape for every invisible character.

    Raises ValueError for numbers that are not finite, TypeError for values that are not plain data.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain)
    return text.replace("\x7f", "\\u007f") if text.isascii() else text.translate(_ESCAPES)


def _label(key: str) -> str:
    """A name of lower-case words is shown as words; other names are quoted, so that no two look equal."""
    if _PLAIN_NAME.fullmatch(key):
        return key.replace("_", " ").capitalize()
    return quoted(key)


class _Escapes(dict[int, str]):
    """A table for `str.translate`, by code point."""

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
