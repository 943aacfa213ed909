"""A bounded, fair queue of speech segments, and an estimate of the wait.

Pure: no clock, no tasks. A `partial` never waits, so it does not occur here. What happens to an entry after
it was taken is `voice.transcription.pool`'s task.
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
"""Every fifth turn goes to the rest of long notes, so that a stream of short ones cannot block them."""
_WINDOW_FLOOR_S = 10.0
"""The engine's smallest window: shorter speech costs the same, so any two such segments fit together."""
_UNEVEN = 2.0
"""A batch costs as much as its longest segment: beyond this ratio the shorter one gains nothing."""


class Rank(IntEnum):
    """The order of recognition, smallest first."""

    FINAL = 0
    """The end of a live utterance: the user waits for an answer with the microphone open."""
    NOTE = 1
    """A voice note, or the beginning of a long one."""
    REST = 2
    """The rest of a long note."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WaitingSegment(Generic[PayloadT]):
    """A speech segment that waits."""

    recording: Hashable
    speaker: str
    rank: Rank
    seconds: float
    payload: PayloadT
    alone: bool = False
    """Never batch it with another entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """What is recognised before a recording's turn."""

    recordings: int
    seconds: float


class FairQueue(Generic[PayloadT]):
    """Entries by rank; within a rank the speakers take turns; one speaker's entries keep their order.

    Holds at most `max_seconds` of speech, except that a recording which waits alone is never too long.
    Live speech and notes are measured apart: neither can crowd out the other.
    """

    def __init__(self, *, max_seconds: float) -> None:
        self._max_seconds = max_seconds
        self._queues = _RankQueues[PayloadT]()

    def __len__(self) -> int:
        return len(self._queues)

    def fits(self, recording: Hashable, rank: Rank, seconds: float) -> bool:
        """Whether an entry of so many seconds may be added for `recording`."""
        live = rank is Rank.FINAL
        rivals = [entry for entry in self._queues if (entry.rank is Rank.FINAL) is live]
        if all(entry.recording == recording for entry in rivals):
            return True
        return sum(entry.seconds for entry in rivals) + seconds <= self._max_seconds

    def add(self, entry: WaitingSegment[PayloadT]) -> bool:
        """Append an entry to its speaker's queue; False, and no change, where it does not fit."""
        if not self.fits(entry.recording, entry.rank, entry.seconds):
            return False
        self._queues.add(entry)
        return True

    def put_back(self, entry: WaitingSegment[PayloadT]) -> None:
        """Return a taken entry as the next of its rank, to be processed alone: after a failure it must not
        fail another entry."""
        self._queues.add(replace(entry, alone=True), first=True)

    def take_batch(self, *, recognisers: int = 1) -> tuple[WaitingSegment[PayloadT], ...]:
        """The next entry, or the next two where they fit together; empty when nothing waits.

        Two segments in one batch cost less than in sequence, but more than in parallel: a pair is taken only
        when more entries wait than all recognisers together could take next.
        """
        first = self._queues.pop()
        if first is None:
            return ()
        if len(self._queues) < max(1, recognisers):
            return (first,)
        second = self._queues.pop(only=lambda entry: _go_together(first, entry))
        return (first,) if second is None else (first, second)

    def withdraw(self, recording: Hashable) -> tuple[WaitingSegment[PayloadT], ...]:
        """Take every entry of a recording out of the queue."""
        return self._queues.remove(recording)

    def drain(self) -> tuple[WaitingSegment[PayloadT], ...]:
        """Take everything out of the queue."""
        taken = tuple(self.in_order())
        self._queues = _RankQueues()
        return taken

    def in_order(self) -> Iterator[WaitingSegment[PayloadT]]:
        """All waiting entries, in the order in which single takes would return them."""
        queues = copy.deepcopy(self._queues)
        while (entry := queues.pop()) is not None:
            yield entry

    def ahead(self) -> dict[Hashable, Ahead]:
        """For each waiting recording, what is taken from the queue before its first entry."""
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
    """Recognition speed: wall seconds of one recogniser per second of speech, as a moving average."""

    FIRST_GUESS = 0.12
    """Whisper base with int8 on one thread takes 0.05 to 0.08 on an idle core; half as much more for load."""
    _WEIGHT = 0.2

    def __init__(self) -> None:
        self.seconds_per_second = self.FIRST_GUESS

    def learn(self, *, wall_s: float, speech_s: float) -> None:
        """Add the measurement of a finished job."""
        if speech_s > 0:
            self.seconds_per_second += self._WEIGHT * (wall_s / speech_s - self.seconds_per_second)

    def eta_s(self, speech_s: float, *, workers: int) -> float:
        """Seconds that `workers` recognisers need for `speech_s` seconds of speech."""
        return speech_s * self.seconds_per_second / max(1, workers)


_SpeakerQueues = OrderedDict[str, deque[WaitingSegment[PayloadT]]]
"""The speakers of one rank in the order of their turns, each with their entries."""


class _RankQueues(Generic[PayloadT]):
    """One queue of speakers per rank."""

    def __init__(self) -> None:
        self._ranks: dict[Rank, _SpeakerQueues[PayloadT]] = {rank: OrderedDict() for rank in Rank}
        self._overtaken = 0

    def __len__(self) -> int:
        return sum(len(entries) for rank in self._ranks.values() for entries in rank.values())

    def __iter__(self) -> Iterator[WaitingSegment[PayloadT]]:
        return (entry for rank in self._ranks.values() for entries in rank.values() for entry in entries)

    def __deepcopy__(self, memo: dict[int, object]) -> _RankQueues[PayloadT]:
        other = _RankQueues[PayloadT]()
        other._overtaken = self._overtaken
        for rank, speakers in self._ranks.items():
            copied = ((speaker, deque(entries)) for speaker, entries in speakers.items())
            other._ranks[rank] = OrderedDict(copied)
        return other

    def add(self, entry: WaitingSegment[PayloadT], *, first: bool = False) -> None:
        speakers = self._ranks[entry.rank]
        entries = speakers.setdefault(entry.speaker, deque())
        if first:
            entries.appendleft(entry)
            speakers.move_to_end(entry.speaker, last=False)
        else:
            entries.append(entry)

    def pop(
        self, *, only: Callable[[WaitingSegment[PayloadT]], bool] = lambda _: True
    ) -> WaitingSegment[PayloadT] | None:
        """The next entry in turn; None where there is none, or where `only` rejects it."""
        rank = self._next_rank()
        if rank is None:
            return None
        speakers = self._ranks[rank]
        speaker, entries = next(iter(speakers.items()))
        if not only(entries[0]):
            return None
        entry = entries.popleft()
        speakers.move_to_end(speaker)
        if not entries:
            del speakers[speaker]
        if rank is not Rank.FINAL:
            self._overtaken = self._overtaken + 1 if rank is Rank.NOTE and self._ranks[Rank.REST] else 0
        return entry

    def remove(self, recording: Hashable) -> tuple[WaitingSegment[PayloadT], ...]:
        removed = tuple(entry for entry in self if entry.recording == recording)
        for entry in removed:
            entries = self._ranks[entry.rank][entry.speaker]
            entries.remove(entry)
            if not entries:
                del self._ranks[entry.rank][entry.speaker]
        return removed

    def _next_rank(self) -> Rank | None:
        if self._overtaken >= _REST_EVERY - 1 and self._ranks[Rank.REST] and not self._ranks[Rank.FINAL]:
            return Rank.REST
        return next((rank for rank in Rank if self._ranks[rank]), None)


def _go_together(first: WaitingSegment[PayloadT], second: WaitingSegment[PayloadT]) -> bool:
    """Whether two entries make a good batch. Live speech is never batched: nothing may delay it."""
    if first.alone or second.alone or first.rank is Rank.FINAL or first.rank is not second.rank:
        return False
    shorter, longer = sorted((first.seconds, second.seconds))
    return longer <= max(_WINDOW_FLOOR_S, _UNEVEN * shorter)
