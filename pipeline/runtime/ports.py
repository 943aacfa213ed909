"""What the pipeline asks of whoever hosts it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pipeline.domain.chat import ChatMessage
from pipeline.domain.messages import InboundMessage
from pipeline.graph.outcome import Gate
from pipeline.graph.ports import RunLog
from pipeline.graph.records import RawRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class UserWords:
    """What a user said, as it is on record."""

    text: str
    spoken: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnAnswer:
    """What a turn commits: an answer for the user, or the questions that its run waits for."""

    text: str
    thoughts: tuple[Mapping[str, str], ...] = field(default=())
    gates: tuple[Gate, ...] = ()
    """Open gates: whoever wrote the message may answer them."""


class TurnJournal(Protocol):
    """The durable side of one turn. Records are written in the order of the calls.

    A failed write fails the turn at the next awaited call; nothing visible happens before
    `commit` returned. A turn that answers a gate goes on with the run of an earlier message: its words
    and its records are that message's.
    """

    @property
    def session_id(self) -> str:
        """The session this turn belongs to."""
        ...

    async def history(self) -> tuple[ChatMessage, ...]:
        """The session's conversation before the message, oldest first."""
        ...

    async def recorded_user(self) -> UserWords | None:
        """The words that the run is about, if an earlier, interrupted attempt or turn recorded them."""
        ...

    async def record_user(self, text: str, *, spoken: bool) -> None:
        """Make the user's words durable. Doing it again for the same turn changes nothing."""
        ...

    def run_log(self) -> RunLog:
        """Where the run's records go. What its `finish` is given becomes part of the commit."""
        ...

    async def recorded_run(self) -> Sequence[RawRecord]:
        """The records of the message's newest run; empty for a fresh start."""
        ...

    async def commit(self, answer: TurnAnswer) -> int:
        """Answer, questions, outbox row, inbox done and fence check in one transaction; the entry's id."""
        ...

    async def commit_failure(self, code: str, message: str, *, recoverable: bool, partial: str) -> int:
        """End the turn with a visible error instead of an answer; the error entry's id.

        `partial` is what was streamed before; it is kept as the assistant's words, so that the
        conversation shows what the user saw.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """A transcript."""

    text: str
    language: str
    confidence: float


class Ears(Protocol):
    """Turns a message's voice note into text."""

    async def hear(self, message: InboundMessage) -> Heard:
        """The note's words. Raises TurnFailed with a reason for the user; never invents text."""
        ...
