"""The port for the messages that join a turn: merged before its run begins, or steered into the run."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Final, Protocol

from pipeline.domain.chat import ChatMessage
from pipeline.domain.conversation import FORWARDED, is_forwarded
from pipeline.domain.messages import InboundMessage, Speech
from pipeline.runtime.ports import UserWords

MEANWHILE: Final = "[Sent by the same person while you worked on this:]"
"""The line above the words of a message that a run gets between two calls of the model."""
STEERED: Final = "steered"
"""The key, in the state of the agent's loop, of the ids of the messages that the run got."""


class TurnExtended(Exception):
    """Another message has joined the turn before its run had shown or done anything: the run begins again
    with the words of both."""


class Arrivals(Protocol):
    """The messages that join one turn. They come from the author of its first message, oldest first."""

    @property
    def pending(self) -> bool:
        """Whether a message may have arrived since the last call of `merged` or `steered`."""
        ...

    @property
    def covered(self) -> Sequence[InboundMessage]:
        """The messages that have joined the turn so far."""
        ...

    async def merged(self) -> Sequence[InboundMessage]:
        """The messages that have joined the turn since the last call, and are answered by the run that
        begins next. It is durable that the turn answers them. Raises StorageError."""
        ...

    def running(self) -> AbstractContextManager[None]:
        """Run a part that raises TurnExtended when a message arrives that belongs to it, as long as nothing
        was shown or done."""
        ...

    def require_untouched(self) -> None:
        """Raise StorageError if the run that TurnExtended ended had shown or done something: the turn must
        resume it in another attempt."""
        ...

    async def steered(self, known: Collection[str]) -> Sequence[InboundMessage]:
        """The messages for a run in progress, without those with the ids `known`, which it has got. It is
        durable that the turn answers them. Raises StorageError."""
        ...


class NoArrivals:
    """Nothing joins the turn."""

    pending = False
    covered: Sequence[InboundMessage] = ()

    async def merged(self) -> Sequence[InboundMessage]:
        return ()

    def running(self) -> AbstractContextManager[None]:
        return nullcontext()

    def require_untouched(self) -> None:
        return None

    async def steered(self, _known: Collection[str]) -> Sequence[InboundMessage]:
        return ()


def together(words: Sequence[UserWords]) -> UserWords:
    """The words of several messages of one person as one: each begins a line. The files are those of all
    messages in order. The speech is that of the least certain transcript."""
    if len(words) == 1:
        return words[0]
    spoken = [one.speech for one in words if one.speech is not None]
    return UserWords(
        text=lines_of([one.text for one in words]),
        speech=min(spoken, key=_confidence) if spoken else None,
        by=words[0].by,
        files=tuple([file for one in words for file in one.files]),
        attached="\n\n".join(one.attached for one in words if one.attached),
        left_out="\n\n".join(one.left_out for one in words if one.left_out),
    )


def lines_of(texts: Sequence[str]) -> str:
    """Several messages as one text, each on separate lines, without those that have no words."""
    texts = [text for text in texts if text]
    # A quoted passage or a note about attachments is a separate block.
    gap = "\n\n" if any("\n\n" in text for text in texts) else "\n"
    return gap.join(texts)


def steering_message(text: str) -> ChatMessage:
    """The message with which a run in progress gets the words `text`."""
    foreign = FORWARDED if is_forwarded(text) else ""
    return ChatMessage(role="user", content=f"{MEANWHILE}\n{text}", foreign=foreign)


def _confidence(speech: Speech) -> float:
    return speech.confidence
