"""What the pipeline asks of whoever hosts it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pipeline.domain.chat import ChatMessage
from pipeline.domain.messages import InboundMessage, Speech
from pipeline.graph.outcome import Gate
from pipeline.graph.ports import RunLog
from pipeline.graph.records import RawRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class UserWords:
    """What a user said, as it is on record."""

    text: str
    speech: Speech | None = None
    """That it was spoken, and how well it was heard; None for typed words."""


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

    async def record_user(self, words: UserWords) -> None:
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

    async def take_as_answer(self, words: str) -> bool:
        """Whether `words`, spoken instead of a press, answer a question of this thread that a paused run asks
        their speaker. The turn is over then: another one goes on with that run."""
        ...

    async def decline(self) -> None:
        """End the turn without a word or a trace in the conversation: it was not for the bot."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """A transcript."""

    text: str
    language: str
    confidence: float
    cut_after_s: float | None = None
    """The note was longer than may be heard: so many seconds of it were."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HearingQueued:
    """The note waits behind others."""

    ahead: int
    eta_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HearingGrown:
    """The words of the note's beginning."""

    text: str


OnHearing = Callable[[HearingQueued | HearingGrown], Awaitable[None]]


class Ears(Protocol):
    """Turns a message's voice note into text."""

    async def hear(self, message: InboundMessage, on_progress: OnHearing) -> Heard:
        """The note's words; `on_progress` is told how it goes meanwhile, in order. Raises TurnFailed with a
        reason for the user; never invents text."""
        ...
