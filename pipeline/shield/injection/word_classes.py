"""The class of a word: its part in a sentence, whichever word it is.

`word_classes.toml` is the table. Words without a place in it are of the class of their first concept, or of
their ending; short ones, which are mostly particles, are alone in their class.
"""

from __future__ import annotations

import tomllib
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from pipeline.shield.injection.plain_text import plain

FILE = Path(__file__).with_name("word_classes.toml")
_SHORT = 3
"""Characters of a word that is alone in its class."""
_ENDINGS = ("ing", "ed", "ly", "tion", "s", "er", "en", "te")
"""Of longer words. The first one that fits is the class."""


class WordClasses:
    """A table of classes. One instance serves every thread."""

    def __init__(self, table: Mapping[str, str]) -> None:
        """`table` maps the name of a class to its comma-separated words; `-` ends the beginning of one."""
        self._exact: dict[str, str] = {}
        self._stems: dict[str, str] = {}
        for name, line in table.items():
            for entry in map(plain, line.split(",")):
                if entry.endswith("-"):
                    self._stems.setdefault(entry.rstrip("-"), name)
                else:
                    self._exact.setdefault(entry, name)
        self._longest = max(map(len, self._stems), default=0)

    def hash_of(self, word: str, concepts: Sequence[int]) -> int:
        """The 32-bit hash of the class of `word`, which is in plain form and has these `concepts`."""
        return zlib.crc32(self._name(word, concepts).encode("utf-8", "surrogatepass"))

    def _name(self, word: str, concepts: Sequence[int]) -> str:
        if word in self._exact:
            return self._exact[word]
        for end in range(min(len(word), self._longest), 1, -1):
            if word[:end] in self._stems:
                return self._stems[word[:end]]
        if concepts:
            return f"concept {concepts[0]}"
        if word.isdigit():
            return "number"
        if len(word) <= _SHORT:
            return f"word {word}"
        return next((f"ending {one}" for one in _ENDINGS if word.endswith(one)), "other")


def shipped_classes() -> WordClasses:
    """The classes in the package."""
    return WordClasses(tomllib.loads(FILE.read_text(encoding="utf-8")))
