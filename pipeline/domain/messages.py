"""What comes in from a channel: messages, session commands and answers to approvals.

Adapters build these; `gateway.ingress.inbox` makes them durable; nothing platform-specific is left in them.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

from pipeline.domain.errors import InvalidInput
from pipeline.domain.ids import ThreadKey

Mode = Literal["normal", "otr"]
MediaKind = Literal["voice", "audio", "image", "video", "file"]
CommandName = Literal["stop", "new", "help", "voice", "otr", "remind"]
COMMAND_NAMES: tuple[CommandName, ...] = ("stop", "new", "help", "voice", "otr")
"""Those that people type; a `remind` is due by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    """Who wrote: the platform's user id, unique within (channel, account)."""

    id: str
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaRef:
    """A serialisable pointer to bytes that the adapter of `channel` can fetch later."""

    channel: str
    handle: str
    """What the adapter needs to find the bytes again; never a path or URL a user chose."""
    mime: str = ""
    """As declared by the sender. A hint for display: decoding sniffs the content."""
    size: int | None = None
    """Bytes, if the platform says."""
    duration_s: float | None = None
    """Seconds, if the platform says."""
    kind: MediaKind = "file"
    """What the platform calls it."""
    name: str = ""
    """The file's name as its sender gave it: for display, never for a path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Speech:
    """That words were spoken, and how well they were heard."""

    language: str = ""
    """A code such as `de`; empty where it is not known."""
    confidence: float = 1.0
    """0 to 1, from the recogniser; a hint, not a probability of being right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InboundMessage:
    """One message from a person, by text, by voice note, or both."""

    message_id: str
    """Ours; the same for every redelivery, because it is derived from the platform's identity."""
    native_id: str
    """The platform's identity of the event, unique within (channel, account). The dedupe key."""
    thread: ThreadKey
    author: Author
    received_at: float
    """Unix seconds."""
    text: str = ""
    speech: Speech | None = None
    """The text was spoken live, and heard before it became a message."""
    voice: MediaRef | None = None
    attachments: tuple[MediaRef, ...] = ()
    unusable: tuple[str, ...] = ()
    """What else it carries that has neither words nor bytes for the bot, each with its article: "a story"."""
    reply_to: str | None = None
    addressed: bool = True
    """False for group chatter that does not speak to the bot."""
    if_named: bool = False
    """It counts only if its voice note, once heard, names the bot. Set at the door, never by an adapter."""
    mode: Mode = "normal"
    private: bool = True
    """The chat is one person's with the bot; False in a room."""
    quoted: str = ""
    """What the message replies to, in words, where the platform shows the sender that it does."""
    forwarded: bool = False
    """The words are somebody else's, passed on."""
    passed_on: str = ""
    """Somebody else's words that the author's own come with; empty where `forwarded` says it of all words."""
    edited: bool = False
    """Its words take the place of those that the message had before, and are asked anew."""
    place: str = ""
    """The platform's identity of the message in its chat, the same before and after an edit; empty where the
    platform tells of no edits."""
    reply_handle: str = ""
    """What the adapter needs to answer this very message; opaque to everyone else."""

    def __post_init__(self) -> None:
        if not self.message_id or not self.native_id:
            raise InvalidInput("message: message_id and native_id must not be empty")
        words = self.text.strip() or self.passed_on.strip()
        if not words and self.voice is None and not self.attachments and not self.unusable:
            raise InvalidInput("message: it has no text, no voice note and no attachment")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCommand:
    """/stop, /new, /help, /voice or /otr, typed or pressed; or a reminder that is due."""

    message_id: str
    native_id: str
    thread: ThreadKey
    author: Author
    received_at: float
    name: CommandName
    private: bool = True
    reply_handle: str = ""
    quiet: bool = False
    """It is not announced: a stop because its author began to speak."""
    text: str = ""
    """Of a reminder: what to remind of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalReply:
    """A person's answer to a pending interaction; or, with `expired`, that nobody gave one in time."""

    message_id: str
    native_id: str
    thread: ThreadKey
    author: Author
    received_at: float
    interaction_id: str
    """The question's id; from a button with `option`, its `button_handle`."""
    choice: str
    """One of the question's options; empty from a button."""
    option: int | None = None
    """From a button: the place of the option, from 0."""
    private: bool = True
    expired: bool = False
    """The time to answer is over. No channel sets it: the gateway does, with EXPIRED as the choice."""
    asked: str = ""
    """Of an expired one, what was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawal:
    """A message was deleted on the platform."""

    message_id: str
    """Of the deletion, as its native id."""
    native_id: str
    thread: ThreadKey
    author: Author
    """Who wrote the message; without an id where the platform does not say."""
    received_at: float
    place: str
    """That of the deleted message."""
    private: bool = True


Inbound = InboundMessage | SessionCommand | ApprovalReply | Withdrawal


def button_handle(interaction_id: str) -> str:
    """A short name for a question, the same in every process, that fits into any platform's button
    (16 hexadecimal digits). It opens nothing by itself: the inbox looks among the chat's own questions."""
    return hashlib.sha256(interaction_id.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def parse_command(text: str) -> CommandName | None:
    """The session command that `text` is, or None. `/stop@botname` counts; `/stop it` does not."""
    word = text.strip().lower()
    if not word.startswith("/"):
        return None
    name = word[1:].split("@", 1)[0]
    for known in COMMAND_NAMES:
        if name == known:
            return known
    return None
