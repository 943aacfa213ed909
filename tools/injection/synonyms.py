"""Texts with some words replaced by words that fit there too, so that more words are learned than
were written.

`train_synonyms.txt` has a group of such words a line. An entry of several words replaces and is not replaced.
"""

from __future__ import annotations

import functools
import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

FILE = Path(__file__).with_name("train_synonyms.txt")
_WORD = re.compile(r"[A-Za-z']+")
_VARIED = 0.4
"""The share of texts in which words are replaced."""
_REPLACED = 0.3
"""The share of words with synonyms that are replaced in such a text."""


@functools.cache
def synonyms() -> Mapping[str, Sequence[str]]:
    """For each word the words of all groups that it is in."""
    found: dict[str, list[str]] = {}
    for line in FILE.read_text(encoding="utf-8").splitlines():
        group = [entry.strip() for entry in line.split(",")]
        for word in group:
            if " " not in word:
                found.setdefault(word, []).extend(group)
    return found


def varied(text: str, rng: random.Random) -> str:
    """The English `text`, in some cases with some words replaced."""
    if rng.random() >= _VARIED:
        return text
    table = synonyms()

    def word(match: re.Match[str]) -> str:
        old = match.group()
        group = table.get(old.lower())
        if group is None or rng.random() >= _REPLACED:
            return old
        new = rng.choice(group)
        return new.capitalize() if old[0].isupper() else new

    return _WORD.sub(word, text)
