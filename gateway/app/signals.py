"""Subscribe the parts of this process to the bus, and publish the replies that are ready."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final, NoReturn, assert_never

from adapters.channel import Channel, OutboundReply
from gateway.attachments.handed_media import MediaRequests
from gateway.channels.registry import key_of
from gateway.cluster.bus import Bus, OnControl
from gateway.cluster.signals import (
    Answered,
    Control,
    Interrupt,
    MediaReady,
    MediaWanted,
    Release,
    StopBefore,
    Withdrawn,
)
from gateway.delivery.event_router import EventBroadcaster
from gateway.interactions.approvals import ApprovalService
from gateway.storage.ports import OutboxState
from gateway.turns.taken_wakes import TakenWakes
from gateway.turns.turn_hooks import OnReply
from gateway.turns.worker import Worker
from pipeline.domain.clock import Clock
from pipeline.domain.ids import AccountKey

_log = logging.getLogger(__name__)

_LOOK_S: Final = 0.25


class ReadyReplies:
    """Publishes committed replies, and passes those of this process's accounts to `send`.

    The signal names the row only. A subscriber of this process is called while the signal is published and
    gets the reply itself, so it need not read the row.
    """

    def __init__(self, bus: Bus, send: OnReply) -> None:
        self._bus = bus
        self._send = send
        self._published: tuple[int, OutboundReply, OutboxState] | None = None
        """The row, its reply, and the state in which it began; None once it is passed on."""

    def publish(self, row_id: int, reply: OutboundReply, *, state: OutboxState) -> None:
        """Have a reply sent that has just become durable; its row began in `state`."""
        self._published = row_id, reply, state
        self._bus.outbox(reply.thread.account_key, row_id)
        if self._published is not None:
            self._published = None
            thread = reply.thread.encode()
            _log.warning("reply kept: its channel is not running", extra={"thread_key": thread})

    def ready(self, _account: AccountKey, row_id: int) -> None:
        """Send the reply of row `row_id`, which is being published. Ignores a repeated signal."""
        published = self._published
        if published is not None and published[0] == row_id:
            self._published = None
            self._send(row_id, published[1], state=published[2])


def subscribe_worker(
    bus: Bus, *, owner: str, worker: Worker, approvals: ApprovalService, media: MediaRequests | None
) -> None:
    """Subscribe what runs turns; controls are sent to `owner`. `media` asks other processes for files."""
    bus.on_wake(worker.wake)
    bus.take_wakes(TakenWakes(worker, bus.wake_holder))
    bus.on_control(owner, _controls(worker, approvals, media))


async def release_what_no_wake_reaches(bus: Bus, worker: Worker, clock: Clock) -> NoReturn:
    """While signals are not carried, and once after that, release the threads that wait for work, until
    cancelled. Their next message is found in the store by the look for work; a runner that waits for a wake
    would not answer it before the end of its wait."""
    carried = True
    while True:
        await clock.sleep(_LOOK_S)
        before, carried = carried, not bus.trouble
        if not (before and carried):
            for thread in tuple(worker.threads):
                worker.release(thread)


def subscribe_channels(
    bus: Bus, channels: Iterable[Channel], broadcaster: EventBroadcaster, replies: ReadyReplies
) -> None:
    """Subscribe what shows turns and sends replies, on every channel."""
    for channel in channels:
        bus.on_events(key_of(channel), broadcaster.reader_for(channel))
        bus.on_outbox(key_of(channel), replies.ready)


def _controls(worker: Worker, approvals: ApprovalService, media: MediaRequests | None) -> OnControl:
    """Passes each control to the part that it is for."""

    def handle(control: Control) -> None:
        match control:
            case StopBefore():
                worker.stop_before(control.thread, control.seq, control.cancelled, control.heartbeats)
            case Withdrawn():
                worker.withdraw(control.thread, control.seq, silent=control.silent)
            case Interrupt():
                worker.interrupt(control.thread, control.seq, control.at)
            case Answered():
                approvals.answered(control.interaction_id)
            case Release():
                worker.release(control.thread)
            case MediaWanted() | MediaReady() if media is not None:
                media.note(control)
            case MediaWanted() | MediaReady():
                return
            case _:
                assert_never(control)

    return handle
