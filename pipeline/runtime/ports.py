"""What the pipeline asks of whoever hosts it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from pipeline.domain.chat import ChatMessage
from pipeline.domain.messages import InboundMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumePoint:
    """Where a run that a crash interrupted goes on."""

    run_id: str
    node: str
    """The next node to run."""
    state: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnAnswer:
    """What a turn commits: an answer for the user."""

    text: str
    thoughts: tuple[Mapping[str, str], ...] = field(default=())


class TurnJournal(Protocol):
    """The durable side of one turn. Records are written in the order of the calls.

    A failed write fails the turn at the next awaited call; nothing visible happens before
    `commit` returned.
    """

    @property
    def session_id(self) -> str:
        """The session this turn belongs to."""
        ...

    async def history(self) -> tuple[ChatMessage, ...]:
        """The session's conversation before this message, oldest first."""
        ...

    async def recorded_user(self) -> str | None:
        """The user's words if an earlier, interrupted attempt recorded them."""
        ...

    async def record_user(self, text: str, *, spoken: bool) -> None:
        """Make the user's words durable. Doing it again for the same message changes nothing."""
        ...

    def record_step(self, run_id: str, node: str, update: Mapping[str, Any], following: str) -> None:
        """Queue the record that `node` completed with `update` and `following` comes next."""
        ...

    async def resume_point(self) -> ResumePoint | None:
        """Where an earlier, interrupted run of this message stopped; None for a fresh start."""
        ...

    async def commit(self, answer: TurnAnswer) -> int:
        """Answer, outbox row, inbox done and fence check in one transaction; the log entry's id."""
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
