"""Join texts as their script requires, with spaces or without; shorten a text after a sentence."""

from __future__ import annotations

import re
from itertools import pairwise

_NO_SPACE_BEFORE = frozenset(".,;:!?…)]}»”’%。、，．！？；：）］」』】〉》؟،؛।॥։፧።")  # noqa: RUF001 - the signs of many scripts, as they are written


_SENTENCE_END = re.compile(r"[.!?…](?=\s)")


def shortened(text: str, characters: int) -> str:
    """`text` with at most so many characters, cut after a sentence where possible."""
    text = text.strip()
    if len(text) <= characters:
        return text
    kept = text[: characters - 2]
    ends = [match.end() for match in _SENTENCE_END.finditer(kept)]
    cut = ends[-1] if ends else kept.rfind(" ")
    return f"{kept[:cut] if cut > 0 else kept} …"


def joined(texts: list[str]) -> str:
    """The texts as one: with a space between two, unless the script has none or only punctuation follows."""
    said = [text for text in texts if text]
    separators = ["", *(" " if _is_apart(one, other) else "" for one, other in pairwise(said))]
    return "".join(space + text for space, text in zip(separators, said, strict=False))


def _is_apart(one: str, other: str) -> bool:
    if all(sign in _NO_SPACE_BEFORE for sign in other):
        return False
    return not (_is_unspaced(one[-1]) and _is_unspaced(other[0]))


def _is_unspaced(sign: str) -> bool:
    """Whether `sign` belongs to a script that is written without spaces: Han, Kana and their punctuation."""
    code = ord(sign)
    return (
        0x3000 <= code <= 0x30FF
        or 0x31F0 <= code <= 0x31FF
        or 0x3400 <= code <= 0x4DBF
        or 0x4E00 <= code <= 0x9FFF
        or 0xF900 <= code <= 0xFAFF
        or 0xFF01 <= code <= 0xFF9F
        or 0x20000 <= code <= 0x323AF
    )
