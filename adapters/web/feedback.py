"""The page's frame about an answer, and the reaction that it becomes. Pure."""

from __future__ import annotations

from adapters.identity import derived_message_id
from adapters.web.settings import ACCOUNT, CHANNEL
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Author, Reaction


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackFrame:
    """A pressed thumb below an answer, or one that was released."""

    client_id: str
    message_id: str
    """The message that was answered."""
    up: bool
    on: bool


def to_reaction(thread: ThreadKey, author: Author, frame: FeedbackFrame, *, received_at: float) -> Reaction:
    """The person's reaction to the answer in `thread`."""
    native_id = f"{thread.chat}:{frame.client_id}"
    return Reaction(
        message_id=derived_message_id(CHANNEL, ACCOUNT, native_id),
        native_id=native_id,
        thread=thread,
        author=author,
        received_at=received_at,
        mark="up" if frame.up else "down",
        on=frame.on,
        target=frame.message_id,
        answered=True,
    )
