"""Buffered speech as a value: its chunks in order, its text, and its stored form.

Not when it becomes a message: see voice.endpointing.flush_policy. Times are seconds of one monotonic clock;
stored times are Unix time, which another process can read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from voice.clock import Clock
from voice.text import joined

FlushReason = Literal["complete", "max_time", "complete_thought", "sentence", "silence", "forced"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbering:
    """Which sequence numbers of a thread's chunks have arrived. They count up by one, from 0."""

    next: int = 0
    """Every lower number has arrived, or is in `missing` and no longer waited for."""
    beyond: frozenset[int] = frozenset()
    """Arrived before some lower number."""
    missing: frozenset[int] = frozenset()
    """Given up; a late chunk with one of these is still accepted."""

    def take(self, number: int) -> Numbering | None:
        """The numbering after `number` arrived; None where it had arrived before."""
        if number in self.missing:
            return replace(self, missing=self.missing - {number})
        if number < self.next or number in self.beyond:
            return None
        beyond, following = set(self.beyond) | {number}, self.next
        while following in beyond:
            beyond.remove(following)
            following += 1
        return replace(self, next=following, beyond=frozenset(beyond))

    def give_up(self) -> Numbering:
        """The numbering without gaps: the numbers not yet arrived become `missing`."""
        if not self.beyond:
            return self
        end = max(self.beyond) + 1
        # Only the newest thousand: older ones no longer arrive, and a client may send any number.
        skipped = set(range(max(self.next, end - 1000), end)) - self.beyond
        newest = sorted(self.missing | skipped)[-1000:]
        return Numbering(next=end, missing=frozenset(newest))


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferedChunk:
    """The text of one chunk. `place` orders the chunks of a buffer."""

    text: str
    sequence: int | None
    place: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechBuffer:
    """What was said in one thread and is not a message yet."""

    generation: str
    """Unique: a receiver recognises by it a buffer that it already has."""
    created_at: float
    """When its first words ended."""
    last_activity: float
    """When the last words ended, or later voice without words."""
    order: int = 0
    """Its position among the thread's undelivered buffers. Not by time: words can arrive late."""
    chunks: tuple[BufferedChunk, ...] = ()
    complete: bool = False
    """The caller said that no more chunks follow."""
    gap: bool = False
    """A chunk before the last one has not arrived yet."""
    language: str = ""
    confidence: float = 1.0
    """0 to 1, of all words; 1 where it is unknown."""
    speaking: bool = False
    """Whether the user is speaking now."""
    content: str = field(init=False, default="")
    """The chunks' text, joined."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "content", joined([chunk.text for chunk in self.chunks]))

    def with_chunk(
        self, text: str, *, sequence: int | None, ended_at: float, confidence: float = 1.0
    ) -> SpeechBuffer:
        """A buffer with one more chunk: at its sequence's place, or at the end."""
        last = max((chunk.place for chunk in self.chunks), default=(-1, 0))
        place = (last[0], last[1] + 1) if sequence is None else (sequence, 0)
        chunk = BufferedChunk(text=text.strip(), sequence=sequence, place=place)
        chunks = tuple(sorted((*self.chunks, chunk), key=lambda one: one.place))
        # Weighted by characters: the duration of the words is not known here.
        before, more = sum(len(one.text) for one in self.chunks), len(chunk.text)
        return replace(
            self,
            chunks=chunks,
            confidence=self.confidence + (confidence - self.confidence) * more / max(1, before + more),
            created_at=min(self.created_at, ended_at),
            last_activity=max(self.last_activity, ended_at),
        )


# ---------------------------------------------------------------- the stored form


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptBuffer:
    """A buffer with everything that another process needs to continue it."""

    thread_id: str
    buffer: SpeechBuffer
    numbering: Numbering
    reason: FlushReason | None
    """Why it was flushed; None while it is open."""

    def to_body(self, clock: Clock) -> dict[str, Any]:
        """As plain JSON data."""
        buffer, numbering = self.buffer, self.numbering
        ahead = clock.now() - clock.monotonic()
        return {
            "thread": self.thread_id,
            "generation": buffer.generation,
            "created_at": buffer.created_at + ahead,
            "last_activity": buffer.last_activity + ahead,
            "order": buffer.order,
            "chunks": [[chunk.text, chunk.sequence, *chunk.place] for chunk in buffer.chunks],
            "complete": buffer.complete,
            "language": buffer.language,
            "confidence": buffer.confidence,
            "numbering": [numbering.next, sorted(numbering.beyond), sorted(numbering.missing)],
            "reason": self.reason,
        }

    @classmethod
    def from_body(cls, body: Mapping[str, Any], clock: Clock) -> KeptBuffer:
        """Read the result of `to_body`, in this process's time. Raises ValueError for anything else."""
        try:
            return cls._read(body, clock)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"not a speech buffer: {error!r}") from error

    @classmethod
    def _read(cls, body: Mapping[str, Any], clock: Clock) -> KeptBuffer:
        following, beyond, missing = body["numbering"]
        reason = body["reason"]
        if reason is not None and reason not in get_args(FlushReason):
            raise ValueError(f"reason {reason!r}")
        now = clock.monotonic()
        # The wall clock may have been set back since: that must not delay the speech.
        created_at = min(now, body["created_at"] - clock.now() + now)
        buffer = SpeechBuffer(
            generation=str(body["generation"]),
            created_at=created_at,
            last_activity=min(now, max(created_at, body["last_activity"] - clock.now() + now)),
            order=int(body["order"]),
            chunks=tuple(
                BufferedChunk(text=str(text), sequence=sequence, place=(place, nth))
                for text, sequence, place, nth in body["chunks"]
            ),
            complete=bool(body["complete"]),
            gap=bool(beyond),
            language=str(body["language"]),
            confidence=min(1.0, max(0.0, float(body.get("confidence", 1.0)))),
        )
        numbering = Numbering(next=following, beyond=frozenset(beyond), missing=frozenset(missing))
        return cls(thread_id=str(body["thread"]), buffer=buffer, numbering=numbering, reason=reason)


# ---------------------------------------------------------------- text
