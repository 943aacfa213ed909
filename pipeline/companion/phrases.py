"""The table of phrases that the companion's rules look for (`phrases.toml`), by kind and language.

All languages are tried on each message, as no person is asked which one they write in.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pipeline.domain.errors import ParlourError
from pipeline.domain.frozen import dataclass
from pipeline.safety.plain_words import plain_words

FILE: Final = Path(__file__).with_name("phrases.toml")
MOST_CHARS: Final = 2_000
"""The most of a message that rules read: its beginning says what it is about."""
_WORD: Final = re.compile(r"\{\{(\w+)\}\}")
_QUOTES: Final = str.maketrans("\u201c\u201d\u201e\u00ab\u00bb", '"""""')
_SPACES: Final = re.compile(r"[ \t]+")


class BadPhrases(ParlourError):
    """The table of phrases cannot be used; the message names the family."""

    code = "bad_phrases"


@dataclass(frozen=True, slots=True, kw_only=True)
class PhraseFamily:
    """One family of the table."""

    name: str
    language: str
    pattern: re.Pattern[str]

    @property
    def code(self) -> str:
        """The family as a decision names it."""
        return f"{self.language}.{self.name}"


def plain(text: str) -> str:
    """The form of a text that the phrases match: lower case, no accents, ' as the only apostrophe, no spaces
    at the ends."""
    read = plain_words(text[:MOST_CHARS]).translate(_QUOTES)
    return _SPACES.sub(" ", read).strip()


def first(kind: str, read: str) -> PhraseFamily | None:
    """The first family of `kind` that occurs in a text in its plain form; None if none does."""
    for phrase in _of(kind):
        if phrase.pattern.search(read) is not None:
            return phrase
    return None


def without(kind: str, read: str, by: str = " ") -> str:
    """A text in its plain form, with `by` in place of what the families of `kind` match."""
    for phrase in _of(kind):
        read = phrase.pattern.sub(by, read)
    return read


def kinds() -> tuple[str, ...]:
    """The kinds of phrases in the table."""
    return tuple(name for name in _table() if name != "words")


@functools.cache
def _of(kind: str) -> tuple[PhraseFamily, ...]:
    return tuple(_phrases(kind, _table()[kind]))


@functools.cache
def _table() -> Mapping[str, Any]:
    found: Mapping[str, Any] = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return found


@functools.cache
def _words() -> Mapping[str, str]:
    words: dict[str, str] = {}
    for name, text in _table()["words"].items():
        # A word may use those above it.
        words[name] = _expanded(text, words, name)
    return words


def _phrases(kind: str, by_language: Mapping[str, Mapping[str, str]]) -> Iterator[PhraseFamily]:
    for language, families in by_language.items():
        for name, text in families.items():
            where = f"{kind}.{language}.{name}"
            try:
                pattern = re.compile(_expanded(text, _words(), where))
            except re.error as error:
                raise BadPhrases(f"{FILE.name}: {where}: {error}") from error
            yield PhraseFamily(name=name, language=language, pattern=pattern)


def _expanded(text: str, words: Mapping[str, str], where: str) -> str:
    def word(found: re.Match[str]) -> str:
        if found[1] not in words:
            raise BadPhrases(f"{FILE.name}: {where}: there is no word {found[1]}")
        return words[found[1]]

    return _WORD.sub(word, text)
