"""The interface between the gateway and one channel on one account.

Only the gateway calls it. What a channel cannot do is declared in `ChannelCapabilities`, and the
core does without.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from pipeline.domain.events import ApprovalRequired
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Inbound, MediaRef
from pipeline.domain.ports import EventSender
from pipeline.domain.timeline import EntryRole, TimelineEntry

FailureKind = Literal["transient", "rate_limit", "auth", "permission", "not_found", "invalid", "unknown"]
AcceptStatus = Literal["accepted", "duplicate", "refused"]


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
    """Sending the same reply twice shows it once, so an unknown outcome may simply be sent again."""
    guarantee: str = ""
    """The delivery guarantee in words, as `parlour doctor` prints it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """What became of an inbound item. `accepted` and `duplicate` are durable: the channel may ack."""

    status: AcceptStatus
    message_id: str
    reason: str = ""
    """For `refused`: words for the sender, or empty to stay silent."""


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
    created_at: float
    code: str = ""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelHealth:
    """How a channel is, measured where messages arrive."""

    state: Literal["starting", "up", "down"]
    detail: str = ""


class Timeline(Protocol):
    """Reads a thread's visible entries, for channels that show a history themselves."""

    async def entries(self, thread: ThreadKey, *, after: int, limit: int) -> tuple[TimelineEntry, ...]:
        """Durable entries with entry_id > `after`, oldest first, the newest `limit` of them;
        then the accepted messages that still wait, with entry_id 0."""
        ...

    async def questions(self, thread: ThreadKey) -> tuple[ApprovalRequired, ...]:
        """What the paused runs of `thread` wait for, oldest first, each as the event that asked it.

        Without those of a turn that is still at work, which nobody but its own events knows of."""
        ...


class ChannelAdapter(Protocol):
    """One channel on one account."""

    @property
    def name(self) -> str: ...

    @property
    def account(self) -> str: ...

    @property
    def capabilities(self) -> ChannelCapabilities: ...

    async def run(self, on_inbound: OnInbound) -> None:
        """Receive until cancelled. Acks the platform only after `on_inbound` returned."""
        ...

    def sender_for(self, thread: ThreadKey) -> EventSender:
        """Where the live events of `thread` go."""
        ...

    async def download(self, ref: MediaRef, *, max_bytes: int) -> bytes:
        """The bytes behind `ref`. Raises MediaUnavailable when gone or larger than `max_bytes`."""
        ...

    async def send(self, reply: OutboundReply) -> Receipt:
        """Deliver one reply. Any exception is given to `classify`."""
        ...

    def classify(self, error: Exception) -> Failure:
        """What `error`, raised by `send`, means."""
        ...

    def health(self) -> ChannelHealth: ...
