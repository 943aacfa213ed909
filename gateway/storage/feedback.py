"""Port for feedback on answers, and for finding what a platform's message shows. A part of `Store`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol

from pipeline.domain.frozen import dataclass

Value = Literal["up", "down"]

LOOKED_THROUGH = 20_000
"""The newest replies among which `reply_shown_by` searches: nothing is written for it while a turn runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """One person's opinion of one answer."""

    message_id: str
    """The message that was answered."""
    thread: str
    channel: str
    account: str
    user: str
    name: str
    """The person's name; empty if unknown."""
    value: Value
    run_id: str
    agent: str
    """The agent that answered; empty for the default one."""
    at: float
    """When the person reacted, as Unix time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownReply:
    """The reply that a platform's message shows, or a part of it."""

    message_id: str
    """The message that it answers."""
    thread: str
    author: str
    """The user id of the person answered; empty if it was forgotten."""
    role: str
    off_record: bool = False


def shown_reply(message_id: str, thread: str, fields: Mapping[str, Any]) -> ShownReply:
    """The reply of an outbox row, whose body holds `fields`."""
    return ShownReply(
        message_id=message_id,
        thread=thread,
        author=str(fields.get("author", "")),
        role=str(fields.get("role", "")),
        off_record=bool(fields.get("off_record", False)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownPart:
    """A message that shows a part of a reply, or of a question, of a turn that has not ended."""

    thread: str
    part: int
    """As in `SentPart`."""


class FeedbackBook(Protocol):
    """The feedback. Every method raises StorageError when the store fails."""

    async def give(self, feedback: Feedback) -> bool:
        """Store it in place of the person's earlier feedback on the answer; whether something changed. One
        that is older than what is stored changes nothing."""
        ...

    async def take_back(self, feedback: Feedback) -> bool:
        """Remove the person's feedback on the answer if it has this value and is not newer; whether something
        changed."""
        ...

    async def of_thread(self, thread: str) -> Mapping[str, Value]:
        """The newest feedback on the answers of the thread, by the message answered."""
        ...

    async def listed(self, *, since: float = 0.0, limit: int) -> tuple[Feedback, ...]:
        """The newest `limit` given at `since` or later, newest first."""
        ...

    async def reply_shown_by(self, chat: str, native_id: str) -> ShownReply | None:
        """What the message `native_id` shows, among the newest replies sent to the thread `chat` and its
        topics."""
        ...

    async def reply_to(self, message_id: str) -> ShownReply | None:
        """The reply to a message."""
        ...

    async def part_shown_by(self, chat: str, native_id: str) -> ShownPart | None:
        """What the message `native_id` shows, in the thread `chat` and its topics."""
        ...
