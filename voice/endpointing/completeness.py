"""Decide whether a text is a complete sentence or thought, from its last words, punctuation and first words.

Not a parser and no judge of meaning: text that looks unfinished gets more time and is never discarded. Every
rule errs towards "not yet", which costs 1.5 s; a wrong "done" cuts a message in two. The texts are
transcripts of speech.
"""

from __future__ import annotations

import re
from typing import Literal

from voice.endpointing.phrases import Phrases, phrases_of

SentenceEnd = Literal["none", "weak", "strong"]

_FULL_STOPS = frozenset(".。｡．।॥։።۔")  # noqa: RUF001 - the stops of many scripts, as they are written
_ASKED_OR_CALLED = frozenset("!?！？؟‼⁇⁈⁉‽፧\u037e")  # noqa: RUF001 - likewise
_CLOSING = "\"'”’»›«‹)]}」』】〉》）］ \t\n\r\u00a0\u2060\u3000"  # noqa: RUF001 - likewise
"""Quotes, brackets and space that may follow the sign that ends a sentence."""
_CONTINUES = tuple(",，、،:：;-–—")  # noqa: RUF001 - likewise
_ENDS_OR_NOT = frozenset(
    {"etc", "usw", "ecc", "a.m", "p.m", "u.s", "u.k", "ph.d", "inc", "ltd", "jr", "sr", "i", "я"}
)
"""A dot after one of these belongs to it, and may also end the sentence."""
_LETTERS = re.compile(r"(?:[^\W\d_]\.)*[a-z\u00e0-\u024f\u0430-\u044f]")
"""An initial, or letters with dots between them: `J.`, `z.B.`; without the last dot."""


def sentence_end(text: str, language: str = "") -> SentenceEnd:
    """How clearly `text` ends a sentence.

    `weak`: the sign may mean something else: `3.` can continue as `3.50`, and `etc.` has its own dot. A
    recogniser writes three dots where a voice trails off, so they end nothing; the sign `…` is more often
    deliberate: it is weak. `language` is a code such as `de`; without one it is guessed from the words.
    """
    core = text.rstrip(_CLOSING)
    if not core:
        return "none"
    if core[-1] in _ASKED_OR_CALLED:
        return "strong"
    if core[-1] == "…":
        return "weak"
    if core[-1] not in _FULL_STOPS or core.endswith(".."):
        return "none"
    return _after_dot(core[:-1], language) if core[-1] == "." else "strong"


def is_complete_thought(text: str, language: str = "") -> bool:
    """Whether a speaker who pauses after `text` has finished: a sentence, a request or a goodbye."""
    words = _words(text)
    core = text.rstrip(_CLOSING)
    if not words or not core or core.endswith(_CONTINUES):
        return False
    if core[-1] in _ASKED_OR_CALLED:
        return True
    phrases = phrases_of(language, words)
    if words[-1] in phrases.never_last:
        return False
    if sentence_end(text, language) != "none":
        return True
    if core.endswith(".") or words[-1] in phrases.rarely_last:
        return False
    said = " ".join(words)
    if said.endswith(phrases.final_endings):
        return True
    if said.endswith(phrases.open_endings):
        return False
    return _is_request(said, phrases) or _is_closing(said, phrases)


def _after_dot(before: str, language: str) -> SentenceEnd:
    """What the dot after `before` means."""
    if before[-1:].isdigit():
        return "weak"
    word = re.split(r"[\s(\[{\"“„«「]", before)[-1].casefold()
    if word in phrases_of(language, _words(before)).abbreviations:
        return "none"
    if word in _ENDS_OR_NOT:
        return "weak"
    return "none" if _LETTERS.fullmatch(word) else "strong"


def _is_request(said: str, phrases: Phrases) -> bool:
    """Whether it begins like a request or a question and has more words after that."""
    gap = " " if phrases.spaced else ""
    for filler in phrases.fillers:
        said = said.removeprefix(filler + gap)
    return any(said.startswith(opener + gap) and len(said) > len(opener + gap) for opener in phrases.openers)


def _is_closing(said: str, phrases: Phrases) -> bool:
    if not phrases.spaced:
        return said.endswith(phrases.closings)
    return any(said == closing or said.endswith(" " + closing) for closing in phrases.closings)


def _words(text: str) -> list[str]:
    """Its words in lower case, with straight apostrophes."""
    plain = re.sub("[’‘ʼ´`]", "'", text.casefold())  # noqa: RUF001 - as they are written
    return re.findall(r"[\w']+(?:-[\w']+)*", plain)
