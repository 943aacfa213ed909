"""Find the words of a growing transcript that no longer change: those that two passes in a row agree on.

LocalAgreement-2: a recording is transcribed repeatedly while it grows, and its last words change each time.
Pure: texts in, texts out. Not here: when a pass is made, and what the final text is.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

# Scripts without spaces between words: each letter is compared separately.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"\s*(?:[{_UNSPACED}]|[^\s{_UNSPACED}]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreed:
    """A transcript whose beginning no longer changes."""

    text: str
    stable_chars: int
    """This many of its first characters are part of every later text of the same segment."""


class Agreement:
    """The agreement over the transcription passes of one speech segment."""

    def __init__(self) -> None:
        self._stable = ""
        self._count = 0
        self._previous: list[str] = []

    def add(self, text: str) -> Agreed:
        """Add the newest transcript of the segment, from the segment's beginning.

        Words are compared without case and punctuation; a word that becomes stable keeps its spelling.
        What follows the last word is never stable: the recogniser writes a full stop at every cut.
        """
        newest = _words(text)
        agreed = max(self._count, _common(self._previous, newest))
        fresh = self._punctuation(newest) + "".join(newest[self._count : agreed])
        if agreed == len(newest):
            fresh = _bare(fresh)
        if agreed > self._count:
            self._stable += fresh
            self._count = agreed
        self._previous = newest
        rest = self._punctuation(newest) + "".join(newest[self._count :])
        return Agreed(text=self._stable + rest, stable_chars=len(self._stable))

    def _punctuation(self, newest: list[str]) -> str:
        """The punctuation after the last stable word, where that word became stable without any."""
        if not 0 < self._count <= len(newest) or _bare(self._stable) != self._stable:
            return ""
        last = newest[self._count - 1]
        return last[len(_bare(last)) :]


def _words(text: str) -> list[str]:
    """The words, each with the space before it and its punctuation; joined, they are the text."""
    words: list[str] = []
    for found in _WORD.findall(" ".join(text.split())):
        if words and not _key(found):
            words[-1] += found
        else:
            words.append(found)
    return words


def _common(first: list[str], second: list[str]) -> int:
    same = 0
    for one, other in zip(first, second, strict=False):
        if _key(one) != _key(other):
            break
        same += 1
    return same


def _key(word: str) -> str:
    return unicodedata.normalize("NFKC", "".join(filter(_counts, word))).casefold()


def _bare(word: str) -> str:
    """The word without the punctuation after it."""
    end = len(word)
    while end and not _counts(word[end - 1]):
        end -= 1
    return word[:end] or word


def _counts(char: str) -> bool:
    """Whether `char` is part of a word: a letter, a digit, or a mark on one."""
    return char.isalnum() or unicodedata.category(char).startswith("M")
