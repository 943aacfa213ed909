"""Where the values of a proposal come from, as far as it can be decided exactly.

The texts that labelled and foreign results have brought into a conversation are kept in memory, for a limited
number of conversations and characters. A value that occurs in one of them comes from there; one that holds a
long word of a private text carries it away. For all other values the labels of the whole conversation hold.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote_plus

from pipeline.domain.bounded_dict import BoundedDict
from pipeline.domain.frozen import dataclass
from pipeline.shield.targets import strings

_MOST_SESSIONS = 200
_MOST_TEXTS = 40
_SHORTEST_VALUE = 6
"""Shorter values occur in any text."""
_WORD = re.compile(r"[\w@.+/-]{10,}")
"""Words that are long enough to be recognised elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """A text that was read."""

    source: str
    text: str
    words: frozenset[str]
    """Its long words; empty for a text that is not private."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """What is known about the values of a proposal."""

    taken: tuple[str, ...] = ()
    """The foreign sources in which a value occurs."""
    carried: tuple[str, ...] = ()
    """The person's own sources of which a value holds a long word."""


class ReadTexts:
    """The texts that conversations have read. One instance serves every turn."""

    def __init__(self) -> None:
        self._sessions = BoundedDict[str, deque[_Read]](_MOST_SESSIONS)

    def note(self, session_id: str, source: str, text: str, *, private: bool) -> None:
        """Note that the conversation has read `text` from `source`."""
        plain = _plain(text)
        words = frozenset(_WORD.findall(plain)) if private else frozenset()
        texts = self._sessions.get(session_id) or deque(maxlen=_MOST_TEXTS)
        texts.append(_Read(source=source, text="" if private else plain, words=words))
        self._sessions[session_id] = texts

    def of(self, session_id: str, payload: Mapping[str, Any]) -> Provenance:
        """The provenance of the payload's values."""
        texts = self._sessions.get(session_id)
        if not texts:
            return Provenance()
        values = [_plain(value) for _key, value in strings(payload)]
        values = [value for value in values if len(value) >= _SHORTEST_VALUE]
        return Provenance(
            taken=_sources(one for one in texts if any(value in one.text for value in values)),
            carried=_sources(one for one in texts if any(_holds(value, one.words) for value in values)),
        )


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def _holds(value: str, words: frozenset[str]) -> bool:
    return any(word in value or word in unquote_plus(value) for word in words)


def _sources(found: Iterable[_Read]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.source for one in found))
