"""The items of the inbox: messages, session commands, answers to approvals, withdrawals, barge-ins, due
reminders, announcements and heartbeats.

Adapters and the gateway build these; the inbox makes them durable. They contain nothing platform-specific.
"""

from __future__ import annotations

import hashlib
from typing import Literal

from pipeline.domain.command_types import CommandName
from pipeline.domain.commands import COMMAND_NAMES, WITH_ARGUMENT, argument_chars
from pipeline.domain.errors import InvalidInput
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import ThreadKey

Mode = Literal["normal", "otr"]
Mark = Literal["up", "down", "yes", "no"]
"""What a reaction means: a thumb up or down for an answer, a tick or a cross for a question."""
MediaKind = Literal["voice", "audio", "image", "video", "file"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    """The author of an item: the platform's user id, unique within (channel, account)."""

    id: str
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaRef:
    """A serialisable pointer to bytes that the adapter of `channel` can fetch later."""

    channel: str
    handle: str
    """What the adapter needs to find the bytes again; never a path or URL that a user chose."""
    mime: str = ""
    """As declared by the sender. A hint for display: decoding detects the type from the content."""
    size: int | None = None
    """Bytes, if the platform says."""
    duration_s: float | None = None
    """Seconds, if the platform says."""
    kind: MediaKind = "file"
    """The kind of file according to the platform."""
    name: str = ""
    """The file's name from its sender: for display, never for a path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Speech:
    """Marks words as spoken, with the quality of their transcription."""

    language: str = ""
    """A code such as `de`; empty if unknown."""
    confidence: float = 1.0
    """0 to 1, from the recogniser; a hint, not a probability of being right."""
    seconds: float = 0.0
    """Of a voice note: its length; 0 for live speech, and where it is not known."""
    forwarded: bool = False
    """Whether they are the words of a voice note that another person sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InboundMessage:
    """One message from a person, by text, by voice note, or both."""

    message_id: str
    """This project's id; the same for every redelivery, as it is derived from the platform's identity."""
    native_id: str
    """The platform's identity of the event, unique within (channel, account). The dedupe key."""
    thread: ThreadKey
    author: Author
    received_at: float
    """Unix seconds."""
    text: str = ""
    speech: Speech | None = None
    """Set if the text was spoken live and transcribed before it became a message."""
    voice: MediaRef | None = None
    attachments: tuple[MediaRef, ...] = ()
    unusable: tuple[str, ...] = ()
    """Other content without text or bytes that the bot could use, each with its article: "a story"."""
    reply_to: str | None = None
    addressed: bool = True
    """False for group chatter that is not addressed to the bot."""
    if_named: bool = False
    """It is answered only if its transcribed voice note names the bot. Set by the inbox, never an adapter."""
    may_decline: bool = False
    """It was not addressed to the bot, which decides whether to answer it. Set by the inbox, never an
    adapter."""
    answers: bool = False
    """Its words matched an open question when it arrived, and a gate decides first whether they count. Set by
    the inbox, as is `refusal`."""
    refusal: str = ""
    """The words with which a limit refuses it, unless a gate takes it over; empty for none."""
    mode: Mode = "normal"
    private: bool = True
    """The chat is between one person and the bot; False in a room."""
    quoted: str = ""
    """The text that the message replies to, if the platform shows the sender that it is a reply."""
    quoted_by: str = ""
    """The name of the author of that text, `You` for the bot; empty if it is unknown."""
    forwarded: bool = False
    """All words are forwarded from another person."""
    passed_on: str = ""
    """Forwarded words next to the author's own; empty if `forwarded` covers all words."""
    edited: bool = False
    """Its words replace those that the message had before, and are answered again."""
    place: str = ""
    """The platform's identity of the message in its chat, the same before and after an edit; empty if the
    platform does not report edits."""
    reply_handle: str = ""
    """What the adapter needs to reply to this message; opaque to all other code."""
    workflow: str = ""
    """The saved workflow, with its version, that answers in place of the chat's agent; empty for none. Set by
    the page's editor alone, for people who may edit."""

    def __post_init__(self) -> None:
        if not self.message_id or not self.native_id:
            raise InvalidInput("message: message_id and native_id must not be empty")
        words = self.text.strip() or self.passed_on.strip()
        if not words and self.voice is None and not self.has_other_content:
            raise InvalidInput("message: it has no text, no voice note and no attachment")

    @property
    def has_other_content(self) -> bool:
        """Whether it has content besides words and a voice note."""
        return bool(self.attachments or self.unusable)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCommand:
    """One of the commands of `pipeline.domain.commands`, typed or from a button."""

    message_id: str
    native_id: str
    thread: ThreadKey
    author: Author
    received_at: float
    name: CommandName
    argument: str = ""
    """The words behind the command, for one that takes any."""
    private: bool = True
    reply_handle: str = ""

    def as_message(self, text: str, mode: Mode, attachments: tuple[MediaRef, ...] = ()) -> InboundMessage:
        """A message with `text` and `attachments` in place of the command."""
        return InboundMessage(
            message_id=self.message_id,
            native_id=self.native_id,
            thread=self.thread,
            author=self.author,
            received_at=self.received_at,
            text=text,
            attachments=attachments,
            mode=mode,
            private=self.private,
            reply_handle=self.reply_handle,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BargeIn:
    """A person began to speak over an answer: it stops without a line, and earlier messages stay queued."""

    message_id: str
    native_id: str
    thread: ThreadKey
    author: Author
    received_at: float
    private: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ReminderDue:
    """The time of a person's reminder has come. Only the gateway makes it."""

    message_id: str
    native_id: str
    thread: ThreadKey
    author: Author
    """Who asked for the reminder."""
    received_at: float
    text: str
    private: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    """A line that a person must read in this chat, about what happened in another one. Only the gateway makes
    it."""

    message_id: str
    native_id: str
    thread: ThreadKey
    author: Author
    """The person who must read it."""
    received_at: float
    text: str
    private: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatDue:
    """The bot works by itself: a time has come, or something that is watched has changed. Only the gateway
    makes it, in a separate thread (`ids.heartbeat_thread`)."""

    message_id: str
    native_id: str
    thread: ThreadKey
    author: Author
    """As whom it works, with whose rights."""
    received_at: float
    text: str
    """What has happened, each event between marks."""
    sources: tuple[str, ...] = ()
    """Where foreign text among the events comes from."""
    to: str = ""
    """The chat that gets the result, as an encoded thread key."""
    agent: str = ""
    """The agent that works; empty for the default one."""
    zone: str = "UTC"
    instructions: str = ""
    projects: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    private: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatNews:
    """What a heartbeat tells its person. Only the gateway makes it."""

    message_id: str
    native_id: str
    thread: ThreadKey
    author: Author
    received_at: float
    text: str
    foreign: str = ""
    """A source of foreign text that it rests on; empty for none."""
    labelled_as: str = ""
    """The session of the heartbeat, whose labels the chat's conversation takes on."""
    private: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalReply:
    """A person's answer to a pending interaction; or, with `expired`, the notice that none came in time."""

    message_id: str
    native_id: str
    thread: ThreadKey
    author: Author
    received_at: float
    interaction_id: str
    """The question's id; with `option`, from a button, its `button_handle`."""
    choice: str
    """One of the question's options; empty from a button."""
    option: int | None = None
    """From a button: the index of the option, from 0."""
    note: str = ""
    """What the person adds in their own words, where the question takes it."""
    by: str = ""
    """Who answered, if that is not the author, as whom the run continues. Only the gateway sets it."""
    private: bool = True
    expired: bool = False
    """The time to answer is over. Only the gateway sets it, with EXPIRED as the choice."""
    asked: str = ""
    """For an expired one: the text of the question."""
    asked_in: str = ""
    """The message whose run asked, if that run is paused. Only the gateway sets it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawal:
    """A message was deleted on the platform."""

    message_id: str
    """The id of the deletion, as is `native_id`."""
    native_id: str
    thread: ThreadKey
    author: Author
    """Who wrote the message; without an id if the platform does not say."""
    received_at: float
    place: str
    """The `place` of the deleted message."""
    private: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaction:
    """A person put a reaction on one of the bot's messages, or removed it."""

    message_id: str
    """The id of the event, as is `native_id`."""
    native_id: str
    thread: ThreadKey
    """The chat; a platform may not say in which of its topics."""
    author: Author
    """Who reacted."""
    received_at: float
    """When they did, as Unix seconds."""
    mark: Mark
    on: bool
    """False if it was removed."""
    target: str
    """The platform's id of the message that has it; with `answered`, the id of the answered message."""
    answered: bool = False
    private: bool = True


Inbound = InboundMessage | SessionCommand | BargeIn | ApprovalReply | Withdrawal | Reaction
"""What a channel may hand to the inbox."""


def button_handle(interaction_id: str) -> str:
    """A short name for a question, the same in every process, that fits into any platform's button
    (16 hexadecimal digits). It grants no access: the inbox searches only the questions of the chat."""
    return hashlib.sha256(interaction_id.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedCommand:
    """A session command as it was typed."""

    name: CommandName
    argument: str = ""


def parse_command(text: str) -> ParsedCommand | None:
    """The session command that `text` is, or None. `/stop@botname` counts; `/stop it` does not, because
    /stop takes no argument."""
    word, *rest = text.split(maxsplit=1)[:2] or [""]
    if not word.startswith("/"):
        return None
    name = word[1:].lower().split("@", 1)[0]
    argument = rest[0].strip() if rest else ""
    for known in COMMAND_NAMES:
        if name == known and (not argument or known in WITH_ARGUMENT):
            return ParsedCommand(name=known, argument=argument[: argument_chars(known)])
    return None
