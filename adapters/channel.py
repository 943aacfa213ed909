"""The interface between the gateway and one channel on one account.

Only the gateway calls it. There are two kinds of channel. A *showing* channel (the page, the terminal) gets
every live event and every reply, and draws its own screen. A *posting* channel (Telegram, Slack, Discord)
has messages on the platform's server: the gateway owns the visible reply, and the channel only
renders, posts and edits. `ChannelCapabilities` declares what a channel can do; the core adapts to it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, Protocol, runtime_checkable

from typing_extensions import TypeIs

from pipeline.domain.events import ApprovalRequired
from pipeline.domain.files import StoredFile
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import ThreadKey
from pipeline.domain.live import LiveEvent
from pipeline.domain.messages import Author, Inbound, MediaKind, MediaRef
from pipeline.domain.ports import EventSender
from pipeline.domain.timeline import ChatSummary, Earlier, EntryRole, TimelineEntry

FailureKind = Literal["transient", "rate_limit", "auth", "permission", "not_found", "invalid", "unknown"]
AcceptStatus = Literal["accepted", "duplicate", "refused"]
Resolution = Literal["nonce", "lookup", "placeholder", "none"]
"""How a posting channel avoids duplicate replies when the outcome of a post is unknown.

`nonce`: posting again under the same key shows it once, for a few minutes; later `find` looks for it.
`lookup`: `find` determines whether the post arrived.
`placeholder`: a placeholder is posted and recorded first; the reply is an edit of it, which is repeatable.
`none`: it may appear twice, and is then labelled.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimits:
    """The platform's rate limits, in calls (posts or edits) per second or seconds; 0 means no limit here. The
    platform's own `retry_after` always applies in addition."""

    chat_per_s: float = 0.0
    chat_burst: int = 3
    room_per_minute: float = 0.0
    """For group chats, in place of `chat_per_s` where it is stricter."""
    account_per_s: float = 0.0
    edit_interval_s: float = 1.1
    """The minimum time between two previews of one answer."""


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
    """For a showing channel: it shows a reply that is sent twice only once."""
    resolution: Resolution = "none"
    """For a posting channel."""
    adopts: bool = False  # finds an unconfirmed post afterwards: `adapters.duplicate_posts`
    file_bytes: int = 0  # the largest file that a posting channel posts: `adapters.files`
    typing_s: float = 0.0
    """How long one `typing` call lasts; 0 without typing indicators."""
    silence_limit_s: float = 0.0
    """A receive path that is silent for longer is restarted; 0 where silence is normal."""
    rates: RateLimits = RateLimits()
    guarantee: str = ""
    """The delivery guarantee as text, printed by `parlour doctor`."""
    copies: str = ""
    """Where the chat's text is stored outside the gateway, shown to users in off-record chats; or empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """The outcome of an inbound item. `accepted` and `duplicate` are durable: the channel may ack."""

    status: AcceptStatus
    message_id: str
    reason: str = ""
    """For `refused`: text for the sender, or empty for no reply."""
    over: bool = False
    """For a refused answer to a question: no answer is possible any more, so its buttons may be removed."""


OnInbound = Callable[[Inbound], Awaitable[Acceptance]]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboundReply:
    """One durable reply to deliver."""

    key: str
    """Idempotency key: the same for every attempt to send this reply."""
    thread: ThreadKey
    message_id: str
    """The inbound message it answers."""
    entry_id: int
    """Its position in the thread's log."""
    role: EntryRole
    text: str
    """Markdown, as the model writes it."""
    created_at: float
    code: str = ""
    heard: str = ""
    """The transcript that it answers, for channels that quote it above the answer."""
    reply_handle: str = ""
    """The handle of the answered message, as its adapter made it."""
    private: bool = True
    """Whether it is a direct chat with one person."""
    asks: bool = False
    """Whether it asks the questions of a paused run, which are part of `text`."""
    author: str = ""
    """The user id of the person answered; empty in replies that an earlier version wrote."""
    off_record: bool = False
    """Whether it is deleted after sending."""
    files: tuple[StoredFile, ...] = ()
    """Sent after the text, in this order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """Content to render for a posting channel."""

    text: str
    """Markdown."""
    heard: str = ""
    """A transcript to quote above the text."""
    questions: tuple[ApprovalRequired, ...] = ()
    """Rendered as buttons below the last part."""
    unfinished: bool = False
    """A preview: more text follows, and the user may press Stop where the channel has such a button."""
    attached: bytes = b""
    """A UTF-8 file that belongs to the text: a separate part, before the others. Empty for none."""
    attached_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One message of the platform, rendered. Within the platform's limits by construction."""

    body: Mapping[str, Any]
    """The platform's fields: text with entities, blocks, components …"""
    plain: str
    """The same text without formatting, for a second try after the platform rejected the formatting."""
    file: bytes | None = None
    """An attachment: the whole text in place of too many parts, or a file of the reply."""
    file_name: str = ""
    file_kind: MediaKind | None = None  # for a file of the reply: what to show or play it as


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
    """A classified failure of a call to the platform."""

    kind: FailureKind
    message: str
    retry_after_s: float | None = None
    maybe_delivered: bool = False
    whole_account: bool = False
    """Whether a rate limit applies to all chats of the account and not only to this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelHealth:
    """The state of a channel's receive path."""

    state: Literal["starting", "up", "down"]
    detail: str = ""
    received_at: float | None = None
    """`Clock.monotonic` of the last sign of life from the platform: a poll that returned, an envelope, a
    heartbeat's answer."""


class Timeline(Protocol):
    """Reads a thread's visible entries, for channels that display the history."""

    async def entries(self, thread: ThreadKey, *, after: int, limit: int) -> tuple[TimelineEntry, ...]:
        """The newest `limit` durable entries with entry_id > `after`, oldest first; then the accepted
        messages that still wait, with entry_id 0."""

    async def earlier(self, thread: ThreadKey, *, before: int, limit: int) -> Earlier:
        """The newest `limit` records of the durable entries with entry_id < `before`."""

    async def chats(
        self, channel: str, account: str, *, limit: int, begins: str = "", search: str = ""
    ) -> tuple[ChatSummary, ...]:
        """The account's chats, the latest active first; of ids that begin so, in which `search` is found."""

    async def questions(self, thread: ThreadKey) -> tuple[ApprovalRequired, ...]:
        """The open questions of the paused runs of `thread`, oldest first, each as the event that asked it.

        Without those of a running turn, which only its own events contain."""

    async def last_seen(self, channel: str, account: str, *, limit: int) -> Mapping[ThreadKey, str]:
        """The newest accepted native id of each thread of the account, for the `limit` most recently active
        threads: a channel without replay uses it to find missed messages."""


OnLive = Callable[[LiveEvent], None]
"""Receives live speech events in order. Must return at once."""


class LiveStream(Protocol):
    """One person's open microphone."""

    def feed(self, pcm: bytes) -> None:
        """Add audio: 16 kHz, mono, 16 bit little endian. Returns at once; excess audio is dropped."""
        ...

    async def finish(self) -> None:
        """Make a message of what was said so far, because the person released the button.
        Returns after its `SpeechFinal` or `SpeechDropped` was sent."""
        ...

    async def close(self) -> None:
        """Close the microphone. What was said so far becomes a message."""
        ...


class LiveSpeech(Protocol):
    """Transcribes live speech. The gateway's side of every channel that can stream audio."""

    async def open(
        self, thread: ThreadKey, author: Author, *, on_event: OnLive, hands_free: bool = True
    ) -> LiveStream:
        """Open a stream. With `hands_free`, pauses end an utterance; without, only `finish` does.

        Raises MediaUnavailable, with text for the person, where live speech is not available.
        """
        ...


class ReadAloud(Protocol):
    """Reads answers aloud, for channels that play them themselves."""

    async def read(self, text: str, *, thread: ThreadKey, message_id: str) -> VoiceClip:
        """`text` (Markdown), a part of the answer to the message `message_id`, as audio. Raises
        MediaUnavailable with text."""
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

        Raises ConfigurationError when only the operator can help (a rejected token); after any other
        exception the gateway tries again. It may be called again after it ended.
        """
        ...

    async def download(self, ref: MediaRef, *, max_bytes: int) -> bytes:
        """The bytes of `ref`. Raises MediaUnavailable when they are gone or larger than `max_bytes`."""
        ...

    def classify(self, error: Exception) -> Failure:
        """Classify `error`, raised by a call that sends."""
        ...

    def health(self) -> ChannelHealth: ...


@runtime_checkable
class ShowingChannel(ChannelAdapter, Protocol):
    """A channel that draws its own screen."""

    def sender_for(self, thread: ThreadKey) -> EventSender:
        """The receiver of the live events of `thread`."""
        ...

    async def send(self, reply: OutboundReply) -> Receipt:
        """Deliver one reply. `classify` takes any exception."""
        ...


class LiveView(Protocol):
    """The preview of one answer in one chat. One call at a time; `classify` takes any exception."""

    @property
    def native_id(self) -> str:
        """The message that shows it and that the final answer may replace by an edit; empty before there
        is one, and for previews that expire."""
        ...

    async def show(self, outgoing: Outgoing) -> None:
        """Show the newest text. Each call passes the whole text so far; a view that can only append
        determines what is new."""
        ...

    async def close(self) -> None:
        """End the preview. The final answer may edit `native_id` afterwards."""
        ...


@runtime_checkable
class PostingChannel(ChannelAdapter, Protocol):
    """A channel whose replies are messages on the platform's server. One attempt per call: waiting,
    order and retries are the gateway's task."""

    def render(self, outgoing: Outgoing) -> tuple[Part, ...]:
        """At least one part for anything, blank text included; each within the platform's limits. Pure."""
        ...

    async def post(self, thread: ThreadKey, part: Part, *, key: str, reply_handle: str = "") -> Receipt:
        """Post a message. `key` is the same for every attempt at this part (at most 60 ASCII characters).
        Where the resolution is `nonce`, the message posted under the key shows this part afterwards, even if
        it was a preview."""
        ...

    async def edit(self, thread: ThreadKey, native_id: str, part: Part) -> Receipt:
        """Edit one of the bot's messages to show `part`. Repeating it changes nothing and is no error."""
        ...

    async def find(self, thread: ThreadKey, part: Part, *, key: str, since: float) -> Receipt | None:
        """The message that an earlier `post` of this part under this key made, if it arrived; searches
        messages from Unix time `since` on. A preview does not count. None also where the channel cannot
        determine it."""
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
        """A preview for the answer under `key`, continuing the message `native_id` if that is not empty.
        `doubtful_since`: an earlier process may have posted it after that Unix time; a channel that can
        search finds it before it shows or closes anything. None where there are no previews."""
        ...

    async def typing(self, thread: ThreadKey) -> None:
        """Show a typing indicator for `capabilities.typing_s` seconds."""
        ...


@runtime_checkable
class VoicePostingChannel(Protocol):
    """A posting channel with native voice messages. The same rules: one attempt per call."""

    async def post_voice(
        self, thread: ThreadKey, clip: VoiceClip, *, key: str, reply_handle: str = ""
    ) -> Receipt:
        """Post a voice message. `key` as for `post`."""
        ...


@runtime_checkable
class CheckableChannel(Protocol):
    """A channel whose credentials can be checked without receiving anything."""

    async def check_credentials(self) -> str:
        """The bot's name on the platform, after one login call for each credential. Raises ConfigurationError
        when the platform rejects one; any other exception means that it gave no answer."""
        ...


Channel = ShowingChannel | PostingChannel


def shows(channel: Channel) -> TypeIs[ShowingChannel]:
    """Whether it draws its own screen. `isinstance` gives the same answer, but checks every member of the
    protocol: too slow for every message."""
    return hasattr(channel, "sender_for")
