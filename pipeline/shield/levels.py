"""Levels of confidentiality, and the labels of data: how confidential it is, and where it came from."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from pipeline.domain.frozen import dataclass

_MOST_SOURCES = 8


class Level(IntEnum):
    """How confidential data is. `PUBLIC` is what no source rule names."""

    PUBLIC = 0
    INTERNAL = 1
    CONFIDENTIAL = 2
    RESTRICTED = 3
    CRITICAL = 4

    @property
    def word(self) -> str:
        """As in the policy's file."""
        return self.name.lower()


LEVELS = {level.word: level for level in Level}


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """The labels of a text, or of all that a conversation has read so far."""

    level: Level = Level.PUBLIC
    private: bool = False
    """It holds something of one person, read in a chat with that person alone."""
    sources: tuple[str, ...] = ()
    """Where the labelled data came from, as text for people: `your notes`, `the file own/salary.txt`."""
    suspects: tuple[str, ...] = ()
    """Where text came from that looks like instructions to the assistant: `a web page`."""

    def joined(self, other: Labels) -> Labels:
        """The labels of both together: the higher level, and all sources."""
        return Labels(
            level=max(self.level, other.level),
            private=self.private or other.private,
            sources=_together(self.sources, other.sources),
            suspects=_together(self.suspects, other.suspects),
        )

    def covers(self, other: Labels) -> bool:
        """Whether `other` adds nothing to these labels."""
        return self.joined(other) == self


def _together(some: tuple[str, ...], more: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*some, *more)))[:_MOST_SOURCES]


UNLABELLED = Labels()


def joined(labels: Iterable[Labels]) -> Labels:
    """All of them together."""
    total = UNLABELLED
    for one in labels:
        total = total.joined(one)
    return total
