"""The clauses in which a person speaks of themselves: where the patterns look for facts and rules.

In doubt a clause is left out: a text to be translated, a story, reported speech, a condition or a question is
no statement of the person.
"""

from __future__ import annotations

import functools
import re
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pipeline.domain.frozen import dataclass
from pipeline.memory.plain_text import plain
from pipeline.memory.policy.evidence import own_words
from pipeline.memory.policy.markers import has

FILE: Final = Path(__file__).with_name("clauses.toml")
MAX_CHARS: Final = 2_000
"""What is looked at of a message: a longer one is a text, not a statement."""
_MAX_SENTENCES: Final = 40
_MAX_PARTS: Final = 8
"""Of a sentence. Both bound the time; what is beyond is left to a model."""
_SENTENCE: Final = re.compile(r"[^.!?\u2026;\n]+[.!?\u2026;]*")
_APOSTROPHES: Final = dict.fromkeys(map(ord, "\u2018\u2019\u02bc\u00b4`"), "'")


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause of a person's own words, with its letters as they were written."""

    text: str
    """From its first word, without greetings and other openings."""
    sentence: str
    """The whole sentence, with its end."""
    is_noted: bool = False
    """The person asks for it to be remembered."""
    after_greeting: bool = False


def clauses_of(message: str) -> tuple[Clause, ...]:
    """The clauses of `message` that may state something about the person, in their order."""
    text = unicodedata.normalize("NFC", own_words(message[:MAX_CHARS]).translate(_APOSTROPHES))
    if len(message) > MAX_CHARS or _patterns()["material"].search(plain(text)) is not None:
        return ()
    return tuple(_found(text))


def _found(text: str) -> Iterator[Clause]:
    left = _MAX_SENTENCES
    for line in text.splitlines()[:_MAX_SENTENCES]:
        greeted = False
        sentences = _SENTENCE.findall(" ".join(line.split()))[:left]
        left -= len(sentences)
        for sentence in sentences:
            for clause in _of_sentence(_introduced(sentence), greeted=greeted):
                yield clause
                greeted = greeted or clause.after_greeting
            greeted = greeted or _patterns()["greeting"].match(sentence) is not None
        if line.rstrip().endswith(":") and not _patterns()["introduces"].search(plain(line)):
            return  # what follows is somebody else's text, or a list of what is asked for


def _of_sentence(sentence: str, *, greeted: bool) -> Iterator[Clause]:
    if has("speculative", sentence):
        return
    before, after_greeting, is_noted = "", greeted, False
    for part in _patterns()["joint"].split(sentence, maxsplit=_MAX_PARTS):
        opening = _patterns()["opening"].match(part)
        start = opening.end() if opening is not None else 0
        after_greeting = after_greeting or _patterns()["greeting"].match(part) is not None
        is_noted = is_noted or has("fact_shaped", part)
        text = part[start:].strip(" ,.!\u2026;")
        if text and _patterns()["reported"].search(plain(before)) is None:
            yield Clause(text, sentence.strip(), is_noted, after_greeting)
        before += f" {part}"


def _introduced(sentence: str) -> str:
    """The words after the colon, where those before it introduce the person's own."""
    before, colon, after = sentence.partition(":")
    introduced = after and colon and _patterns()["introduces"].search(plain(before)) is not None
    return after if introduced and not has("fact_shaped", sentence) else sentence


@functools.cache
def _patterns() -> Mapping[str, re.Pattern[str]]:
    table: Mapping[str, Any] = tomllib.loads(FILE.read_text(encoding="utf-8"))
    parts = {name: "|".join(patterns) for name, patterns in table.items()}
    return {
        "material": re.compile(rf"(?<!\w)(?:{parts['material']})(?!\w)"),
        "introduces": re.compile(rf"(?<!\w)(?:{parts['introduces']})(?!\w)"),
        "reported": re.compile(rf"(?<!\w)(?:{parts['reported']})(?!\w)"),
        "joint": re.compile(
            rf"(?:,\s*(?:{parts['connective']})?\s*|\s+(?:{parts['connective']})\s+)(?=(?:{parts['starter']})(?!\w))"
            rf"|\s+(?:with|con|mit|avec)\s+(?=(?:{parts['possessive']})\s)",
            re.IGNORECASE,
        ),
        "opening": re.compile(
            rf"\s*(?:(?:{parts['greeting']}|{parts['opening']})(?!\w)(?:\s+(?:that|dass|que))?[\s,!:\u2013-]*)+",
            re.IGNORECASE,
        ),
        "greeting": re.compile(rf"\s*(?:{parts['greeting']})(?!\w)", re.IGNORECASE),
    }
