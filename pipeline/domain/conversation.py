"""A session's conversation as the model may be shown it: whole turns behind a summary of the rest."""

from __future__ import annotations

from dataclasses import dataclass, field

from pipeline.domain.chat import ChatMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class PastTurn:
    """An answered message: what the user said, the calls and results in between, the answer. Never cut."""

    id: int
    """Grows with time over the whole store."""
    messages: tuple[ChatMessage, ...]
    """The first is the user's, the last the assistant's; a call and its results stand together."""
    at: float = 0.0
    """When it was answered, as Unix time."""
    brief: PastTurn | None = field(default=None, compare=False, repr=False)
    """The turn with its tool results in one line each, if somebody has worked that out already."""
    tokens: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tokens", sum(message.tokens for message in self.messages))


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What stands for a conversation's beginning."""

    text: str
    upto: int
    """The id of the last turn that it covers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """What was said before, oldest first."""

    summary: Summary | None = None
    turns: tuple[PastTurn, ...] = ()
    """Those that the summary does not cover."""

    @property
    def messages(self) -> tuple[ChatMessage, ...]:
        """Every message of the turns, without the summary."""
        return tuple(message for turn in self.turns for message in turn.messages)

    @property
    def size(self) -> int:
        """How many messages the turns have."""
        return sum(len(turn.messages) for turn in self.turns)
