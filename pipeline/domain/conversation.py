"""A session's conversation for the model: a summary of its beginning, then whole turns."""

from __future__ import annotations

from dataclasses import field
from itertools import chain
from operator import attrgetter

from pipeline.domain.chat import ChatMessage
from pipeline.domain.files import StoredFile
from pipeline.domain.frozen import dataclass

FORWARDED_MARK = "[Forwarded, in somebody else's words:]"
"""The line above forwarded words in a user's message."""
FORWARDED = "a forwarded message"
"""The source of such words, as `ChatMessage.foreign`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The message that a turn answers."""

    message_id: str = ""
    root: str = ""
    """The first message of which the turn is a version: another one if it repeats or edits that one."""
    text: str = ""
    """Its words, without the author's name that precedes them in a room."""
    author: str = ""
    """The author's id, in a room."""
    answers: bool = False
    """It is an answer to a question of a paused run."""
    files: tuple[StoredFile, ...] = ()
    """The files that came with it."""
    attached: str = ""
    """What the model reads of them."""

    @property
    def replaces(self) -> bool:
        """Whether the turn, once answered, replaces an earlier one of the same root."""
        return self.root != self.message_id


NO_SOURCE = Source()


@dataclass(frozen=True, slots=True, kw_only=True)
class PastTurn:
    """A finished turn: the user's message, the tool calls and results, and the answer, or how the turn ended
    without one. Never cut."""

    id: int
    """Grows with time over the whole store."""
    messages: tuple[ChatMessage, ...]
    """The first is the user's, the last the assistant's; results directly follow their call."""
    at: float = 0.0
    """When its turn ended, as Unix time."""
    source: Source = field(default=NO_SOURCE, compare=False, repr=False)
    brief: PastTurn | None = field(default=None, compare=False, repr=False)
    """The turn with each tool result shortened to one line, if already computed."""
    tokens: int = field(init=False, compare=False, repr=False)
    foreign: str = field(init=False, compare=False, repr=False)
    """The source of foreign words in its messages, as `ChatMessage.foreign`: read by a tool, in a file, or
    else forwarded by the author; empty for none."""
    pictures: int = field(init=False, compare=False, repr=False)
    """How many pictures the model is shown with the user's message."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tokens", sum(message.tokens for message in self.messages))
        foreign = next((message.foreign for message in self.messages if message.foreign), "")
        if not foreign and is_forwarded(self.messages[0].content):
            foreign = FORWARDED
        object.__setattr__(self, "pictures", len(self.messages[0].pictures))
        object.__setattr__(self, "foreign", foreign)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Replaces the beginning of a conversation."""

    text: str
    upto: int
    """The id of the last turn that it covers."""
    foreign: str = ""
    """As `PastTurn.foreign`, for the turns that it covers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """The earlier turns of a session, oldest first."""

    summary: Summary | None = None
    turns: tuple[PastTurn, ...] = ()
    """The turns that the summary does not cover."""
    messages: tuple[ChatMessage, ...] = field(init=False, compare=False, repr=False)
    """Every message of the turns, without the summary."""
    tokens: int = field(init=False, compare=False, repr=False)
    """The tokens of the turns, without the summary."""
    pictures: int = field(init=False, compare=False, repr=False)
    """How many pictures the model is shown with the messages."""
    foreign: tuple[str, ...] = field(init=False, compare=False, repr=False)
    """The sources of foreign words in the turns, each once, in the order in which they came."""

    def without(self, root: str) -> Conversation:
        """The conversation without the turn of the message `root`."""
        return Conversation(
            summary=self.summary, turns=tuple(turn for turn in self.turns if turn.source.root != root)
        )

    @property
    def size(self) -> int:
        """The number of messages in the turns."""
        return len(self.messages)

    def extended(self, turn: PastTurn) -> Conversation:
        """The conversation with one more turn. It looks at that turn alone: one is made for every message."""
        longer = object.__new__(Conversation)
        object.__setattr__(longer, "summary", self.summary)
        object.__setattr__(longer, "turns", (*self.turns, turn))
        object.__setattr__(longer, "messages", (*self.messages, *turn.messages))
        object.__setattr__(longer, "tokens", self.tokens + turn.tokens)
        object.__setattr__(longer, "pictures", self.pictures + turn.pictures)
        seen = not turn.foreign or turn.foreign in self.foreign
        object.__setattr__(longer, "foreign", self.foreign if seen else (*self.foreign, turn.foreign))
        return longer

    def __post_init__(self) -> None:
        # No bytecode runs for each turn of a long one.
        object.__setattr__(self, "messages", tuple(chain.from_iterable(map(_MESSAGES, self.turns))))
        object.__setattr__(self, "tokens", sum(map(_TOKENS, self.turns)))
        object.__setattr__(self, "pictures", sum(map(_PICTURES, self.turns)))
        object.__setattr__(self, "foreign", tuple(dict.fromkeys(filter(None, map(_FOREIGN, self.turns)))))


_MESSAGES = attrgetter("messages")
_TOKENS = attrgetter("tokens")
_PICTURES = attrgetter("pictures")
_FOREIGN = attrgetter("foreign")


def is_forwarded(text: str) -> bool:
    """Whether a user's words contain a forwarded message."""
    return text.startswith(FORWARDED_MARK) or f"\n{FORWARDED_MARK}" in text
