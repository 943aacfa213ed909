"""Who is heard next: a bounded, fair queue of stretches of speech, and an honest guess of the wait.

Pure: no clock, no tasks. Speech that is only shown meanwhile (`partial`) never waits, so it is not met
here. What happens to an entry that was taken is `voice.transcription.pool`'s business.
"""

from __future__ import annotations

import copy
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Generic, TypeVar

PayloadT = TypeVar("PayloadT")

_REST_EVERY = 5
"""One turn in so many goes to the rest of long notes, so that a stream of short ones cannot stop them."""
_WINDOW_FLOOR_S = 10.0
"""The engine's smallest window: speech below it costs the same, so any two such stretches fit together."""
_UNEVEN = 2.0
"""A batch is as long as its longest stretch: beyond this ratio the shorter one pays for nothing."""


class Rank(IntEnum):
    """What is heard first, smallest first."""

    FINAL = 0
    """The end of a live utterance: somebody waits for an answer with the microphone open."""
    NOTE = 1
    """A voice note, or the beginning of a long one."""
    REST = 2
    """What follows in a long note."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Entry(Generic[PayloadT]):
    """A stretch of speech that waits."""

    recording: Hashable
    speaker: str
    rank: Rank
    seconds: float
    payload: PayloadT
    alone: bool = False
    """Never in a batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """What is heard before a recording's turn comes."""

    recordings: int
    seconds: float


class FairQueue(Generic[PayloadT]):
    """Entries by rank; within a rank the speakers take turns; one speaker's entries keep their order.

    Holds at most `max_seconds` of speech, except that a recording which waits alone is never too long.
    Live speech and notes are measured apart: neither can crowd out the other.
    """

    def __init__(self, *, max_seconds: float) -> None:
        self._max_seconds = max_seconds
        self._lanes = _Lanes[PayloadT]()

    def __len__(self) -> int:
        return len(self._lanes)

    def fits(self, recording: Hashable, rank: Rank, seconds: float) -> bool:
        """Whether an entry of so many seconds may be added for `recording`."""
        live = rank is Rank.FINAL
        rivals = [entry for entry in self._lanes if (entry.rank is Rank.FINAL) is live]
        if all(entry.recording == recording for entry in rivals):
            return True
        return sum(entry.seconds for entry in rivals) + seconds <= self._max_seconds

    def add(self, entry: Entry[PayloadT]) -> bool:
        """Put an entry at the end of its speaker's line; False, and no change, where it does not fit."""
        if not self.fits(entry.recording, entry.rank, entry.seconds):
            return False
        self._lanes.add(entry)
        return True

    def put_back(self, entry: Entry[PayloadT]) -> None:
        """Return an entry that was taken, to be the next of its rank and alone: it has lost its turn,
        and whatever went wrong shall not go wrong for another."""
        self._lanes.add(replace(entry, alone=True), first=True)

    def take_batch(self, *, recognisers: int = 1) -> tuple[Entry[PayloadT], ...]:
        """The next entry, or the next two where they go well together; empty when nothing waits.

        Two stretches in one batch cost less than one after the other, but more than side by side:
        so there is a pair only when more wait than all recognisers together could take next.
        """
        first = self._lanes.pop()
        if first is None:
            return ()
        if len(self._lanes) < max(1, recognisers):
            return (first,)
        second = self._lanes.pop(only=lambda entry: _go_together(first, entry))
        return (first,) if second is None else (first, second)

    def withdraw(self, recording: Hashable) -> tuple[Entry[PayloadT], ...]:
        """Take every entry of a recording out of the queue."""
        return self._lanes.remove(recording)

    def drain(self) -> tuple[Entry[PayloadT], ...]:
        """Take everything out of the queue."""
        taken = tuple(self.in_order())
        self._lanes = _Lanes()
        return taken

    def in_order(self) -> Iterator[Entry[PayloadT]]:
        """Everything that waits, in the order in which single takes would give it."""
        lanes = copy.deepcopy(self._lanes)
        while (entry := lanes.pop()) is not None:
            yield entry

    def ahead(self) -> dict[Hashable, Ahead]:
        """For each recording that waits: what else in the queue is taken before its first entry."""
        found: dict[Hashable, Ahead] = {}
        seen: set[Hashable] = set()
        seconds = 0.0
        for entry in self.in_order():
            if entry.recording not in seen:
                found[entry.recording] = Ahead(recordings=len(seen), seconds=seconds)
                seen.add(entry.recording)
            seconds += entry.seconds
        return found


class Speed:
    """How long hearing takes: wall seconds of one recogniser for a second of speech, as a moving average."""

    FIRST_GUESS = 0.12
    """Whisper base with int8 on one thread takes 0.05 to 0.08 on an idle core; half as much more for load."""
    _WEIGHT = 0.2

    def __init__(self) -> None:
        self.seconds_per_second = self.FIRST_GUESS

    def learn(self, *, wall_s: float, speech_s: float) -> None:
        """Take in a job that was done."""
        if speech_s > 0:
            self.seconds_per_second += self._WEIGHT * (wall_s / speech_s - self.seconds_per_second)

    def eta_s(self, speech_s: float, *, workers: int) -> float:
        """Seconds until `workers` recognisers have heard so much speech."""
        return speech_s * self.seconds_per_second / max(1, workers)


_Line = OrderedDict[str, deque[Entry[PayloadT]]]
"""The speakers of one rank in the order of their turns, each with what they said."""


class _Lanes(Generic[PayloadT]):
    """One line of speakers for each rank."""

    def __init__(self) -> None:
        self._lines: dict[Rank, _Line[PayloadT]] = {rank: OrderedDict() for rank in Rank}
        self._overtaken = 0

    def __len__(self) -> int:
        return sum(len(entries) for line in self._lines.values() for entries in line.values())

    def __iter__(self) -> Iterator[Entry[PayloadT]]:
        return (entry for line in self._lines.values() for entries in line.values() for entry in entries)

    def __deepcopy__(self, memo: dict[int, object]) -> _Lanes[PayloadT]:
        other = _Lanes[PayloadT]()
        other._overtaken = self._overtaken
        for rank, line in self._lines.items():
            other._lines[rank] = OrderedDict((speaker, deque(entries)) for speaker, entries in line.items())
        return other

    def add(self, entry: Entry[PayloadT], *, first: bool = False) -> None:
        line = self._lines[entry.rank]
        entries = line.setdefault(entry.speaker, deque())
        if first:
            entries.appendleft(entry)
            line.move_to_end(entry.speaker, last=False)
        else:
            entries.append(entry)

    def pop(self, *, only: Callable[[Entry[PayloadT]], bool] = lambda _: True) -> Entry[PayloadT] | None:
        """The next entry whose turn it is; None where there is none, or where `only` says no to it."""
        rank = self._next_rank()
        if rank is None:
            return None
        line = self._lines[rank]
        speaker, entries = next(iter(line.items()))
        if not only(entries[0]):
            return None
        entry = entries.popleft()
        line.move_to_end(speaker)
        if not entries:
            del line[speaker]
        if rank is not Rank.FINAL:
            self._overtaken = self._overtaken + 1 if rank is Rank.NOTE and self._lines[Rank.REST] else 0
        return entry

    def remove(self, recording: Hashable) -> tuple[Entry[PayloadT], ...]:
        removed = tuple(entry for entry in self if entry.recording == recording)
        for entry in removed:
            entries = self._lines[entry.rank][entry.speaker]
            entries.remove(entry)
            if not entries:
                del self._lines[entry.rank][entry.speaker]
        return removed

    def _next_rank(self) -> Rank | None:
        if self._overtaken >= _REST_EVERY - 1 and self._lines[Rank.REST] and not self._lines[Rank.FINAL]:
            return Rank.REST
        return next((rank for rank in Rank if self._lines[rank]), None)


def _go_together(first: Entry[PayloadT], second: Entry[PayloadT]) -> bool:
    """Whether two entries make a good batch. Live speech is heard alone: nothing may delay it."""
    if first.alone or second.alone or first.rank is Rank.FINAL or first.rank is not second.rank:
        return False
    shorter, longer = sorted((first.seconds, second.seconds))
    return longer <= max(_WINDOW_FLOOR_S, _UNEVEN * shorter)
