"""Whether a message looks like spam: nothing, shouting, one sign or one word again and again. A flag."""

from __future__ import annotations

import re
from collections import Counter

_SHOUTED_ABOVE = 20
"""Characters; up to so many may be capitals."""
_SAME_SIGN = re.compile(r"(\S)\1{15}")
"""Sixteen in a row. Blanks do not count: they indent."""
_DRAWN_LINE = re.compile(r"^[^\S\n]*[-=_*~+|:#.─━═┄]+(?:[-=_*~+|:#. ─━═┄]*)$", re.MULTILINE)
"""A rule, the underline of a heading or the border of a table, which is a line of its own."""
_LEAST_WORDS = 8
_SHARE = 0.7


def looks_like_spam(text: str) -> bool:
    """Whether cleaned `text` is spam by seed 0's rules. Lines that only draw something count where nothing
    else is said."""
    said = _DRAWN_LINE.sub("", text).strip() or text.strip()
    return not said or _is_shouted(said) or _SAME_SIGN.search(said) is not None or _repeats_a_word(said)


def _is_shouted(text: str) -> bool:
    return len(text) > _SHOUTED_ABOVE and text == text.upper() and re.search("[A-Z]", text) is not None


def _repeats_a_word(text: str) -> bool:
    words = text.lower().split()
    if len(words) < _LEAST_WORDS:
        return False
    return max(Counter(words).values()) > _SHARE * len(words)
