"""Detect spam: an empty message, shouting, one sign or one word many times. The result is a flag."""

from __future__ import annotations

import re
from collections import Counter

_SHOUTED_ABOVE = 20
"""Characters; a text up to this length may be all capitals."""
_SAME_SIGN = re.compile(r"(\S)\1{15}")
"""Sixteen in a row. Blanks do not count: they indent."""
_DRAWN = re.compile("[-=_*~+|:#.^\u2500-\u257f]{3,}")
"""Rules, underlined headings, and the borders of tables and boxes."""
_LEAST_WORDS = 8
_SHORTEST = 15
"""Shorter text has neither as many words nor sixteen signs, and is not shouted."""
_SHARE = 0.7


def looks_like_spam(text: str) -> bool:
    """Whether cleaned `text` is spam. A line drawn next to words is not spam."""
    said = text.strip()
    if 0 < len(said) < _SHORTEST:
        return False
    return not said or _is_shouted(said) or _repeats_a_sign(said) or _repeats_a_word(said)


def _is_shouted(text: str) -> bool:
    return len(text) > _SHOUTED_ABOVE and text == text.upper() and re.search("[A-Z]", text) is not None


def _repeats_a_sign(text: str) -> bool:
    words = _DRAWN.sub(" ", text)
    judged = words if any(map(str.isalnum, words)) else text
    return _SAME_SIGN.search(judged) is not None


def _repeats_a_word(text: str) -> bool:
    words = text.lower().split()
    if len(words) < _LEAST_WORDS:
        return False
    return max(Counter(words).values()) > _SHARE * len(words)
