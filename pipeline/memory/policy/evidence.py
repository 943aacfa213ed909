"""What counts as evidence: the person's own words in their own message.

Words between quotation marks, quoted lines and code are somebody else's or an example; they are no evidence.
"""

from __future__ import annotations

import re
from typing import Final

from pipeline.memory.plain_text import has_phrase, words
from pipeline.memory.values import MAX_QUOTE_CHARS

_CODE: Final = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_QUOTED_LINE: Final = re.compile(r"^[ \t]*>.*$", re.MULTILINE)
_QUOTED: Final = re.compile(
    "\u201e[^\u201c\u201d\n]{0,2000}[\u201c\u201d]|\u201c[^\u201d\n]{0,2000}\u201d|\u00ab[^\u00bb\n]{0,2000}\u00bb|\u00bb[^\u00ab\n]{0,2000}\u00ab"
    '|"[^"\n]{0,2000}"'
)
_SHORT_QUOTE_WORDS: Final = 2
"""A name or a title between quotation marks is the person's own."""
_GAP: Final = "\0"
_ADDRESS: Final = re.compile(r"https?://\S+", re.IGNORECASE)


def own_words(message: str) -> str:
    """`message` without what is quoted in it, code and addresses; each gap is a full stop."""
    return " . ".join(_pieces(message))


def is_said(quote: str, message: str) -> bool:
    """Whether the person says `quote` in `message`: the same words in the same order, outside of quotations.
    False for a quote without words or above 280 characters."""
    return len(quote) <= MAX_QUOTE_CHARS and any(has_phrase(piece, quote) for piece in _pieces(message))


def _pieces(message: str) -> list[str]:
    text = _QUOTED_LINE.sub(_GAP, _CODE.sub(_GAP, message))
    return _ADDRESS.sub(_GAP, _QUOTED.sub(_kept, text)).split(_GAP)


def _kept(found: re.Match[str]) -> str:
    inside = found[0][1:-1]
    return f" {inside} " if len(words(inside)) <= _SHORT_QUOTE_WORDS else _GAP
