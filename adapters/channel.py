"""The interface between the gateway and one channel on one account.

Only the gateway calls it. There are two kinds of channel. A *showing* channel (the page, the terminal) is
given every live event and every reply, and keeps its own screen. A *posting* channel (Telegram, Slack,
Discord) has messages on somebody else's server: the gateway owns the visible reply, and the channel only
renders, posts and edits. What a channel cannot do is declared in `ChannelCapabilities`, and the core does
without.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

from typing_extensions import TypeIs

from pipeline.domain.events import ApprovalRequired
from pipeline.domain.ids import ThreadKey
from pipeline.domain.live import LiveEvent
from pipeline.domain.messages import Author, Inbound, MediaRef
from pipeline.domain.ports import EventSender
from pipeline.domain.timeline import ChatSummary, Earlier, EntryRole, TimelineEntry

FailureKind = Literal["transient", "rate_limit", "auth", "permission", "not_found", "invalid", "unknown"]
AcceptStatus = Literal["accepted", "duplicate", "refused"]
Resolution = Literal["nonce", "lookup", "placeholder", "none"]
"""How a posting channel keeps a reply from showing twice when the outcome of a post is unknown.

`nonce`: posting again under the same key shows it once, for a few minutes; later `find` looks.
`lookup`: `find` tells whether the post arrived.
`placeholder`: a placeholder is posted and recorded first; the reply is an edit of it, which may be repeated.
`none`: it may show twice, and is labelled then.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimits:
    """What the platform bears before it answers 429. Seconds and calls a second; 0 means no limit of ours.

    A call is anything that shows something: a post or an edit. The platform's own `retry_after` is obeyed
    whatever stands here."""

    chat_per_s: float = 0.0
    chat_burst: int = 3
    room_per_minute: float = 0.0
    """For a chat that is a room, in place of `chat_per_s` where that is stricter."""
    account_per_s: float = 0.0
    edit_interval_s: float = 1.1
    """The least time between two previews of one answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelCapabilities:
    """What a channel can do, as data."""

    text_limit: int
    """Longest message, in `text_unit`s."""
    text_unit: Literal["chars", "utf16"] = "chars"
    streaming: bool = False
    edit: bool = False
    voice_in: bool = False
    idempotent_send: bool = False
    """For a showing channel: sending the same reply twice shows it once."""
    resolution: Resolution = "none"
    """For a posting channel."""
    adopts: bool = False  # an unconfirmed post is looked for afterwards: `adapters.duplicate_posts`
    typing_s: float = 0.0
    """How long one `typing` call lasts; 0 where there is none."""
    silence_limit_s: float = 0.0
    """A receive path that has been silent for longer is dead, whatever it says; 0 where silence is normal."""
    rates: RateLimits = RateLimits()
    guarantee: str = ""
    """The delivery guarantee in words, as `parlour doctor` prints it."""
    copies: str = ""
    """Where the words of a chat stay besides the gateway, said to who wants them kept nowhere; or empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """What became of an inbound item. `accepted` and `duplicate` are durable: the channel may ack."""

    status: AcceptStatus
    message_id: str
    reason: str = ""
    """For `refused`: words for the sender, or empty to stay silent."""
    over: bool = False
    """For a refused answer to a question: nobody can give one any more, so its buttons may go."""


OnInbound = Callable[[Inbound], Awaitable[Acceptance]]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboundReply:
    """One durable reply on its way out."""

    key: str
    """Idempotency key: the same for every attempt to send this reply."""
    thread: ThreadKey
    message_id: str
    """The inbound message it answers."""
    entry_id: int
    """Its place in the thread's log."""
    role: EntryRole
    text: str
    """Markdown, as the model writes it."""
    created_at: float
    code: str = ""
    heard: str = ""
    """The transcript that it answers, for channels that show what was heard above the answer."""
    reply_handle: str = ""
    """The answered message's, as its adapter made it."""
    private: bool = True
    """The chat is one person's with the bot."""
    asks: bool = False
    """It asks what a paused run waits for; the words of the questions are part of `text`."""
    author: str = ""
    """The user id of whom it answers; empty in replies that an earlier version wrote."""
    off_record: bool = False
    """Nothing of it is kept once it is sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """Something to render for a posting channel."""

    text: str
    """Markdown."""
    heard: str = ""
    """A transcript to quote above the text."""
    questions: tuple[ApprovalRequired, ...] = ()
    """Become buttons below the last part."""
    unfinished: bool = False
    """A preview: more is to come, and the reader may press Stop where the channel has such a button."""
    attached: bytes = b""
    """A file in UTF-8 that belongs to the text: a part of its own, before the others. Empty for none."""
    attached_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One message of the platform, rendered. Within the platform's limits by construction."""

    body: Mapping[str, Any]
    """The platform's own fields: text with entities, blocks, components …"""
    plain: str
    """The same words without formatting, for the one more try after the platform refused the formatting."""
    file: bytes | None = None
    """An attachment in place of what would be too many parts."""
    file_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class VoiceClip:
    """An answer read aloud."""

    data: bytes
    """OGG with Opus, mono, 48 kHz."""
    mime: str
    seconds: float
    waveform: bytes
    """Loudness over time, 0 to 255, at most 256 values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """Proof of a send: the platform's id of the message."""

    native_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A failed call to the platform, understood."""

    kind: FailureKind
    message: str
    retry_after_s: float | None = None
    maybe_delivered: bool = False
    whole_account: bool = False
    """A rate limit that counts for all chats of the account, not only for this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelHealth:
    """How a channel is, measured where messages arrive."""

    state: Literal["starting", "up", "down"]
    detail: str = ""
    received_at: float | None = None
    """`Clock.monotonic` of the last sign of life from the platform: a poll that returned, an envelope, a
    heartbeat's answer."""


class Timeline(Protocol):
    """Reads a thread's visible entries, for channels that show a history themselves."""

    async def entries(self, thread: ThreadKey, *, after: int, limit: int) -> tuple[TimelineEntry, ...]:
        """Durable entries with entry_id > `after`, oldest first, the newest `limit` of them;
        then the accepted messages that still wait, with entry_id 0."""
        ...

    async def earlier(self, thread: ThreadKey, *, before: int, limit: int) -> Earlier:
        """Durable entries with entry_id < `before`, the newest `limit` records of them."""

    async def chats(self, channel: str, account: str, *, limit: int) -> tuple[ChatSummary, ...]:
        """The threads of the account in which anything was said, the one spoken in last first."""

    async def questions(self, thread: ThreadKey) -> tuple[ApprovalRequired, ...]:
        """What the paused runs of `thread` wait for, oldest first, each as the event that asked it.

        Without those of a turn that is still at work, which nobody but its own events knows of."""

    async def last_seen(self, channel: str, account: str, *, limit: int) -> Mapping[ThreadKey, str]:
        """The newest accepted native id of each thread of the account, for the `limit` threads that were
        heard last: where a channel without replay looks for what it missed."""
        ...


OnLive = Callable[[LiveEvent], None]
"""Given what is heard, in order. Must return at once."""


class LiveStream(Protocol):
    """One person's open microphone."""

    def feed(self, pcm: bytes) -> None:
        """More sound: 16 kHz, mono, 16 bit little endian. Returns at once; what is too much is dropped."""
        ...

    async def finish(self) -> None:
        """The person says that they are through (the button was released): what was said is a message now.
        Returns when its `SpeechFinal` or `SpeechDropped` was given."""
        ...

    async def close(self) -> None:
        """The microphone is closed. What was said so far becomes a message."""
        ...


class LiveSpeech(Protocol):
    """Hears people while they speak. The gateway's side of every channel that can stream sound."""

    async def open(
        self, thread: ThreadKey, author: Author, *, on_event: OnLive, hands_free: bool = True
    ) -> LiveStream:
        """Begin to listen. With `hands_free`, pauses end an utterance; without, only `finish` does.

        Raises MediaUnavailable, with words for the person, where nobody can listen.
        """
        ...


class ReadAloud(Protocol):
    """Reads answers aloud, for channels that play them themselves."""

    async def read(self, text: str, *, language: str = "") -> VoiceClip:
        """`text` (Markdown), said. An empty language is found out. Raises MediaUnavailable with words."""
        ...


class ChannelAdapter(Protocol):
    """What every channel on one account can do."""

    @property
    def name(self) -> str: ...

    @property
    def account(self) -> str: ...

    @property
    def capabilities(self) -> ChannelCapabilities: ...

    async def run(self, on_inbound: OnInbound) -> None:
        """Receive until cancelled. Acks the platform only after `on_inbound` returned.

        Raises ConfigurationError when only the operator can help (a refused token); any other exception
        means: try again. It may be called again after it ended.
        """
        ...

    async def download(self, ref: MediaRef, *, max_bytes: int) -> bytes:
        """The bytes behind `ref`. Raises MediaUnavailable when gone or larger than `max_bytes`."""
        ...

    def classify(self, error: Exception) -> Failure:
        """What `error`, raised by a call that sends, means."""
        ...

    def health(self) -> ChannelHealth: ...


@runtime_checkable
class ShowingChannel(ChannelAdapter, Protocol):
    """A channel that keeps its own screen."""

    def sender_for(self, thread: ThreadKey) -> EventSender:
        """Where the live events of `thread` go."""
        ...

    async def send(self, reply: OutboundReply) -> Receipt:
        """Deliver one reply. Any exception is given to `classify`."""
        ...


class LiveView(Protocol):
    """The preview of one answer in one chat. One call at a time; any exception is given to `classify`."""

    @property
    def native_id(self) -> str:
        """The message that shows it and that the final answer may replace by an edit; empty before there
        is one, and for previews that vanish by themselves."""
        ...

    async def show(self, outgoing: Outgoing) -> None:
        """Make the preview show the newest text. The whole text so far comes each time; a view that only
        appends finds out itself what is new."""
        ...

    async def close(self) -> None:
        """No preview follows. The final answer may edit `native_id` afterwards."""
        ...


@runtime_checkable
class PostingChannel(ChannelAdapter, Protocol):
    """A channel whose replies are messages on somebody else's server. One attempt per call: waiting,
    order and retries are the gateway's."""

    def render(self, outgoing: Outgoing) -> tuple[Part, ...]:
        """At least one part for anything, blank text included; each within the platform's limits. Pure."""
        ...

    async def post(self, thread: ThreadKey, part: Part, *, key: str, reply_handle: str = "") -> Receipt:
        """A new message. `key` is the same for every attempt at this part (at most 60 ASCII characters).
        Where the resolution is `nonce`, the message that the key has made shows this part afterwards, also if
        it was a preview."""
        ...

    async def edit(self, thread: ThreadKey, native_id: str, part: Part) -> Receipt:
        """Make a message of ours show `part`. Doing it again changes nothing and is no error."""
        ...

    async def find(self, thread: ThreadKey, part: Part, *, key: str, since: float) -> Receipt | None:
        """The message that an earlier `post` of this part under this key made, if it arrived; looks at
        messages from Unix time `since` on. A preview is not taken for it. None where the channel cannot
        know."""
        ...

    def open_view(
        self,
        thread: ThreadKey,
        *,
        key: str,
        reply_handle: str,
        native_id: str,
        doubtful_since: float | None = None,
    ) -> LiveView | None:
        """A preview for the answer under `key`, going on with the message `native_id` if that is not empty.
        `doubtful_since`: an earlier process may have posted it after that Unix time; a channel that can look
        finds it before it shows or closes anything. None where there are no previews."""
        ...

    async def typing(self, thread: ThreadKey) -> None:
        """Show that the bot is at work, for `capabilities.typing_s` seconds."""
        ...


@runtime_checkable
class VoicePostingChannel(Protocol):
    """A posting channel that has voice messages of its own kind. The same rules: one attempt per call."""

    async def post_voice(
        self, thread: ThreadKey, clip: VoiceClip, *, key: str, reply_handle: str = ""
    ) -> Receipt:
        """A new voice message. `key` as for `post`."""
        ...


@runtime_checkable
class CheckableChannel(Protocol):
    """A channel whose platform can be asked whether the credentials work, without receiving anything."""

    async def check_credentials(self) -> str:
        """The bot's name on the platform, after one login call for each credential.

        Raises ConfigurationError when the platform refuses a credential. Any other exception means that the
        platform gave no answer; it is given to `classify`.
        """
        ...


Channel = ShowingChannel | PostingChannel


def shows(channel: Channel) -> TypeIs[ShowingChannel]:
    """Whether it keeps its own screen. `isinstance` says the same, but looks for all that the protocol has:
    too much for every message."""
    return hasattr(channel, "sender_for")
