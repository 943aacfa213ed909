"""A session's conversation as the model may be shown it: whole turns behind a summary of the rest."""

from __future__ import annotations

from dataclasses import dataclass, field

from pipeline.domain.chat import ChatMessage

FORWARDED_MARK = "[Forwarded, in somebody else's words:]"
"""The line above words that a user's message passes on."""
FORWARDED = "a forwarded message"
"""Whose words those are, as `ChatMessage.foreign`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastTurn:
    """A message whose turn is over: what the user said, the calls and results in between, and the answer, or
    how the turn ended without one. Never cut."""

    id: int
    """Grows with time over the whole store."""
    messages: tuple[ChatMessage, ...]
    """The first is the user's, the last the assistant's; a call and its results stand together."""
    at: float = 0.0
    """When its turn ended, as Unix time."""
    brief: PastTurn | None = field(default=None, compare=False, repr=False)
    """The turn with its tool results in one line each, if somebody has worked that out already."""
    tokens: int = field(init=False, compare=False, repr=False)
    foreign: str = field(init=False, compare=False, repr=False)
    """Whose words its messages hold, as `ChatMessage.foreign`: those that a tool has read, or else that the
    author has passed on; empty for none."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tokens", sum(message.tokens for message in self.messages))
        foreign = next((message.foreign for message in self.messages if message.foreign), "")
        if not foreign and is_forwarded(self.messages[0].content):
            foreign = FORWARDED
        object.__setattr__(self, "foreign", foreign)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What stands for a conversation's beginning."""

    text: str
    upto: int
    """The id of the last turn that it covers."""
    foreign: str = ""
    """As `PastTurn.foreign`, of the turns that it covers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """What was said before, oldest first."""

    summary: Summary | None = None
    turns: tuple[PastTurn, ...] = ()
    """Those that the summary does not cover."""
    size: int = field(init=False, compare=False, repr=False)
    """How many messages the turns have."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", sum(len(turn.messages) for turn in self.turns))

    @property
    def messages(self) -> tuple[ChatMessage, ...]:
        """Every message of the turns, without the summary."""
        return tuple(message for turn in self.turns for message in turn.messages)


def is_forwarded(text: str) -> bool:
    """Whether a user's words hold a message that their author passed on."""
    return text.startswith(FORWARDED_MARK) or f"\n{FORWARDED_MARK}" in text
