"""Find where to cut a text: after a sentence, at a space, or at least not inside one visible character.

The last is an approximation of Unicode's rules without their tables: it never cuts a combining sequence, a
ZWJ family, a flag, a skin tone or a Hangul syllable, and gives up after a bounded number of steps.
"""

from __future__ import annotations

import re
import unicodedata

_MAX_CLUSTER = 64
_SENTENCE = re.compile(r"[.!?…][\"'”’)\]]*(?=\s)|[。！？](?=.)")  # noqa: RUF001 - the full-width signs are meant
_SPACE = re.compile(r"\s+")


def cut_position(text: str, after: str) -> int:
    """The position at which to cut `text`, which has the maximum length and is followed by `after`: between 1
    and len(text), or 0 if there is no good position."""
    whole = text + after[:1]
    for pattern, least in ((_SENTENCE, len(text) // 2), (_SPACE, len(text) // 3)):
        position = _last_end(pattern, whole, least, len(text))
        if position:
            return position
    return cluster_boundary(text + after[:_MAX_CLUSTER], len(text))


def cluster_boundary(text: str, position: int) -> int:
    """The last position at or before `position` that is between two visible characters. Gives up
    after 64 characters and returns `position`. 0 if the first character is longer than `position`."""
    for candidate in range(position, max(position - _MAX_CLUSTER, 0), -1):
        if candidate >= len(text) or not _joined(text, candidate):
            return candidate
    return 0 if position < _MAX_CLUSTER else position


def _last_end(pattern: re.Pattern[str], text: str, least: int, most: int) -> int:
    found = 0
    for match in pattern.finditer(text, least):
        end = match.end() if match.end() <= most else match.start()
        if match.start() > most:
            break
        if least < end <= most:
            found = end
    return found


def _joined(text: str, position: int) -> bool:
    """Whether the characters before and after `position` belong together."""
    before, after = text[position - 1], text[position]
    if before < "\u0300" and after < "\u0300":
        return False
    if after in "\u200c\u200d" or before == "\u200d" or _extends(after):
        return True
    if unicodedata.combining(before) == 9 and unicodedata.category(after) == "Lo":
        return True
    if _is_flag_half(before) and _is_flag_half(after):
        return _run_of_halves(text, position) % 2 == 1
    return _is_jamo(before) and _is_jamo(after, later=True)


def _extends(char: str) -> bool:
    if unicodedata.category(char) in ("Mn", "Mc", "Me"):
        return True
    return (
        "\U0001f3fb" <= char <= "\U0001f3ff" or "\U000e0020" <= char <= "\U000e007f" or char in "\uff9e\uff9f"
    )


def _is_flag_half(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _run_of_halves(text: str, position: int) -> int:
    start = position
    while start and _is_flag_half(text[start - 1]):
        start -= 1
    return position - start


def _is_jamo(char: str, *, later: bool = False) -> bool:
    """Whether `char` is part of a Hangul syllable; with `later`, a part that can follow another one."""
    if later:
        return "\u1160" <= char <= "\u11ff"
    return "\u1100" <= char <= "\u11ff" or "\uac00" <= char <= "\ud7a3"
