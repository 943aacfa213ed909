"""Where the values of a proposal come from, as far as it can be decided exactly.

The texts that labelled and foreign results have brought into a conversation are kept in memory, for a limited
number of conversations and characters. A value that occurs in one of them comes from there; one that holds a
long word of a private text carries it away, and one that holds a number, a code or several words in a row
copies it. For all other values the labels of the whole conversation hold.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote_plus

from pipeline.domain.bounded_dict import BoundedDict
from pipeline.domain.frozen import dataclass
from pipeline.shield.targets import strings

_MOST_SESSIONS = 200
_MOST_TEXTS = 40
_SHORTEST_VALUE = 6
"""Shorter values occur in any text."""
_WORD = re.compile(r"\w[\w@.+/-]{8,}\w")
"""Words that are long enough to be recognised elsewhere, without the full stop of a sentence."""
_CODE = re.compile(r"\w[\w@.+/-]{6,}\w")
_DIGIT = re.compile(r"[\d@]")
"""A word with one of them is data and no language: the number of an account, a code, an address."""
_PLAIN_WORD = re.compile(r"\w+")
_RUN_WORDS = 4
_RUN_CHARS = 16
"""Fewer words, or shorter ones, occur in any text: `how to do it`."""
_COPIED_CHARS = 10_000
"""Of one value. Longer ones go only to tools of others, which are asked about every time."""

_LOOKED_CHARS = 50_000
"""Of one value, for long words: the time grows with it, and with the words that were read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """A text that was read."""

    source: str
    text: str
    words: frozenset[str]
    """Its long words; empty for a text that is not private."""
    codes: frozenset[str]
    """The words of a private text that are data."""
    runs: frozenset[str]
    """Every run of words of a private text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """What is known about the values of a proposal."""

    taken: tuple[str, ...] = ()
    """The foreign sources in which a value occurs."""
    carried: tuple[str, ...] = ()
    """The person's own sources of which a value holds a long word."""
    copied: tuple[str, ...] = ()
    """The person's own sources of which a value holds data, such as a number or code, or several words in a
    row."""


NOTHING_KNOWN = Provenance()


class ReadTexts:
    """The texts that conversations have read. One instance serves every turn."""

    def __init__(self) -> None:
        self._sessions = BoundedDict[str, deque[_Read]](_MOST_SESSIONS)

    def note(self, session_id: str, source: str, text: str, *, private: bool) -> None:
        """Note that the conversation has read `text` from `source`."""
        plain = _plain(text)
        own = plain if private else ""
        one = _Read(
            source=source,
            text="" if private else plain,
            words=frozenset(_WORD.findall(own)),
            codes=frozenset(_codes(own)),
            runs=frozenset(_runs(own)),
        )
        texts = self._sessions.get(session_id) or deque(maxlen=_MOST_TEXTS)
        texts.append(one)
        self._sessions[session_id] = texts

    def of(self, session_id: str, payload: Mapping[str, Any]) -> Provenance:
        """The provenance of the payload's values."""
        texts = self._sessions.get(session_id)
        if not texts:
            return NOTHING_KNOWN
        values = [_plain(value) for _key, value in strings(payload)]
        values = [value for value in values if len(value) >= _SHORTEST_VALUE]
        sent = (
            [_decoded(value[:_COPIED_CHARS]) for value in values]
            if any(one.codes or one.runs for one in texts)
            else []
        )
        # One text for each value, as it is and decoded: a long word occurs in either.
        looked = [f"{value}\n{_decoded(value)}" for value in (value[:_LOOKED_CHARS] for value in values)]
        runs = frozenset(run for value in sent for run in _runs(value))
        return Provenance(
            taken=_sources(one for one in texts if any(value in one.text for value in values)),
            carried=_sources(one for one in texts if any(_holds(value, one.words) for value in looked)),
            copied=_sources(
                one
                for one in texts
                if not one.runs.isdisjoint(runs) or any(code in value for value in sent for code in one.codes)
            ),
        )


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def _holds(value: str, words: frozenset[str]) -> bool:
    return any(word in value for word in words)


def _decoded(value: str) -> str:
    """A value without the encoding of addresses, compared without case as before."""
    return unquote_plus(value).casefold()


def _codes(plain: str) -> Iterator[str]:
    """The words of a text that are data."""
    return (word for word in _CODE.findall(plain) if _DIGIT.search(word))


def _runs(plain: str) -> Iterator[str]:
    """Every run of words in a text, without what is between them."""
    words = _PLAIN_WORD.findall(plain)
    for at in range(len(words) - _RUN_WORDS + 1):
        run = " ".join(words[at : at + _RUN_WORDS])
        if len(run) >= _RUN_CHARS:
            yield run


def _sources(found: Iterable[_Read]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.source for one in found))
