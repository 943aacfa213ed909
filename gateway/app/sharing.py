"""Build what a process needs beside others on the same database: signals for them, and what each account
holds."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial

from adapters.channel import Channel, OutboundReply
from adapters.web.settings import CHANNEL
from gateway.app.components import Foundation
from gateway.attachments.handed_media import MediaHandover
from gateway.attachments.intake import Downloads
from gateway.channels.registry import key_of
from gateway.channels.shared_account import SharedAccount
from gateway.channels.supervisor import ReceivingLease
from gateway.channels.token_lease import TokenLease
from gateway.cluster.bus import EVERY_OWNER, holder_of
from gateway.cluster.signals import Recorded
from gateway.delivery.outbox import Delivery
from gateway.delivery.shared_outbox import SharedOutbox
from gateway.storage.ports import OutboxState
from gateway.storage.shared_leases import SharedAccounts, SharedCoordinator
from gateway.turns.turn_hooks import OnReply
from pipeline.domain.errors import StorageError
from pipeline.domain.ids import AccountKey, ThreadKey
from pipeline.domain.timeline import TimelineEntry

_log = logging.getLogger(__name__)


def shared_coordinator(base: Foundation) -> SharedCoordinator | None:
    """The coordinator of a process among several; None for one that is alone."""
    return base.accounts.coordinator if isinstance(base.accounts, SharedAccounts) else None


def downloads_of(base: Foundation, thread: ThreadKey) -> Downloads | None:
    """What fetches the files of a thread's messages: its channel, where this process has the account, or else
    the process that has it. None if its channel is not there."""
    here = base.requests is None or thread.channel == CHANNEL or thread.account_key in base.accounts.held
    if here or base.requests is None:
        return base.page.downloads_of(base.channels, thread)
    return base.requests.of(thread)


def owner_of(base: Foundation) -> Callable[[str], str]:
    """Names the process that runs a thread's turns: among several, whichever has it."""
    name = base.accounts.coordinator.owner if shared_coordinator(base) is None else EVERY_OWNER
    return lambda _thread: name


def publish_reply(base: Foundation) -> OnReply:
    """Reports a committed reply to the process that sends on its account."""

    def publish(row_id: int, reply: OutboundReply, *, state: OutboxState) -> None:  # noqa: ARG001 - always ready
        base.bus.outbox(reply.thread.account_key, row_id)

    return publish


def publish_recorded(base: Foundation) -> Callable[[ThreadKey, TimelineEntry], None]:
    """Reports a recorded entry to the process that shows the account."""
    return lambda thread, entry: base.bus.recorded(Recorded(thread=thread, entry_id=entry.entry_id))


def shared_outbox(base: Foundation, delivery: Delivery) -> SharedOutbox | None:
    """Finds the replies of this process's accounts; None if it holds none, or is alone."""
    accounts = base.accounts
    if not isinstance(accounts, SharedAccounts) or not base.settings.cluster.is_edge:
        return None
    outbox = SharedOutbox(base.store, accounts, delivery, base.clock)
    base.live.look = outbox.look
    return outbox


def shared_accounts(
    base: Foundation, outbox: SharedOutbox | None, tokens: Mapping[AccountKey, TokenLease]
) -> Mapping[AccountKey, ReceivingLease]:
    """What each channel holds while it runs; none in a process that holds no accounts."""
    accounts = base.accounts
    if outbox is None or not isinstance(accounts, SharedAccounts):
        return {}
    leases: dict[AccountKey, ReceivingLease] = {}
    for channel in base.channels:
        key = key_of(channel)
        token = tokens.get(key)
        leases[key] = SharedAccount(
            key,
            accounts,
            token=None if token is None else token.held,
            attach=partial(_attach, base, channel, outbox),
            take_up=outbox.look,
        )
    return leases


def _attach(base: Foundation, channel: Channel, outbox: SharedOutbox) -> Callable[[], None]:
    """Subscribe to the signals of the channel's account; returns what ends that, and its previews."""
    key = key_of(channel)
    handover = MediaHandover(
        channel,
        base.bus,
        base.store.blobs,
        base.clock,
        base.tasks.background.spawn,
        largest=max(base.settings.voice.max_bytes, base.settings.files.max_mb * 1_000_000),
    )
    ends = (
        base.bus.on_control(holder_of(key), handover.wanted),
        base.bus.on_events(key, base.broadcaster.reader_for(channel)),
        base.bus.on_outbox(key, outbox.ready),
        base.bus.on_recorded(key, partial(_show_recorded, base)),
    )

    def detach() -> None:
        for end in ends:
            end()
        base.live.drop(key)

    return detach


def _show_recorded(base: Foundation, recorded: Recorded) -> None:
    base.tasks.background.spawn(_read_recorded(base, recorded), name="recorded entry")


async def _read_recorded(base: Foundation, recorded: Recorded) -> None:
    try:
        found = await base.timeline.entries(recorded.thread, after=recorded.entry_id - 1, limit=1)
    except StorageError as error:
        _log.info("an entry is shown when the page is read again", extra={"reason": str(error)})
        return
    for entry in found:
        if entry.entry_id == recorded.entry_id:
            base.page.show_recorded(recorded.thread, entry)
