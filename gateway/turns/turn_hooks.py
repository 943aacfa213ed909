"""The callbacks that receive a turn's visible results; the composition root provides them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from adapters.channel import OutboundReply
from gateway.cluster.bus import EventStream
from gateway.cluster.signals import LiveTurn
from gateway.cluster.thread_cache import ThreadCache
from gateway.safety.crisis_records import CrisisRecords
from gateway.storage.ports import InboxEntry, OutboxState
from gateway.turns.after_turn import AfterTurn
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import InboundMessage
from pipeline.domain.timeline import TimelineEntry

OnRecorded = Callable[[TimelineEntry], None]
"""Called, in order, with every durable visible entry that no terminal event reports."""


class OnReply(Protocol):
    """Called with the outbox row's id, the reply and the state in which the row began, once they are
    durable."""

    def __call__(self, row_id: int, reply: OutboundReply, *, state: OutboxState) -> None: ...


class FirstState(Protocol):
    """The state in which the row of a reply to an entry begins, if it is committed now. A `plain` reply
    leaves nothing to be done once it is sent: no file, no words to forget."""

    def __call__(self, thread: ThreadKey, entry: InboxEntry, *, plain: bool) -> OutboxState: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnHooks:
    """Callbacks that receive a turn's visible results."""

    events: Callable[[LiveTurn], EventStream]
    """Where the events of a turn are sent."""
    on_recorded: Callable[[ThreadKey, TimelineEntry], None]
    on_reply: OnReply
    first_state: FirstState
    discard_media: Callable[[InboundMessage], Awaitable[None]]
    """Called when a message with media is finished; its bytes are no longer needed."""
    on_asked: Callable[[str], None]
    """Called with the thread in which a paused run's question is recorded."""
    after: AfterTurn
    """Adds the jobs that a turn makes due."""
    crises: CrisisRecords
    """Makes the records of crisis responses."""
    person_of: Callable[[ThreadKey, str], str]
    """The key of the person that a user of an account is."""
    cache: ThreadCache | None = None
    """Where conversations are between two leases; None: in the store alone."""
