"""A gateway's outbound side over a store that outlives it: queues, previews, deliveries, a manual clock."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from adapters.channel import OutboundReply
from gateway.channels.registry import ChannelRegistry
from gateway.channels.timeline import StoreTimeline
from gateway.delivery.chat_queue import ChatQueues
from gateway.delivery.origin import Origin
from gateway.delivery.outbox import Delivery
from gateway.delivery.poster import Posting
from gateway.delivery.preview import LiveReplies, LiveReply
from gateway.delivery.reply_files import ReplyFiles
from gateway.runtime.crash_labels import CrashLabels
from gateway.runtime.metrics import Telemetry
from gateway.runtime.tasks import Supervisor
from gateway.storage.leases import AccountLeases, ProcessingCoordinator
from gateway.storage.log_records import answer_body
from gateway.storage.memory import MemoryStore
from gateway.storage.ports import Lease, NewEntry, NewOutboxRow, NewRecord, OutboxRow, OutboxState, TurnCommit
from parlour.testing.fakes import MemoryFiles
from pipeline.domain.clock import ManualClock
from pipeline.domain.events import LlmToken, TurnStarted
from pipeline.domain.file_types import file_type
from pipeline.domain.files import StoredFile
from pipeline.runtime.ports import TurnAnswer
from tests.support.posting_channel import MemoryPosts


@dataclass(kw_only=True)
class DeliveryHarness:
    """A gateway's outbound side, over a store that outlives it."""

    channel: MemoryPosts
    store: MemoryStore
    files: MemoryFiles
    clock: ManualClock
    delivery: Delivery
    live: LiveReplies
    queues: ChatQueues
    supervisor: Supervisor
    leases: AccountLeases

    async def lease(self) -> Lease:
        """The lease under which the channel's replies are sent."""
        return await self.leases.of(self.channel.thread())

    async def begin(self, *pieces: str, message_id: str = "m1") -> LiveReply:
        """Start a turn that has written `pieces` and continues, and wait for a preview of them."""
        sender = self.live.sender_for(self.channel, self.channel.thread(), Origin(message_id=message_id))
        await sender.send_event(TurnStarted(session_id="s", message_id=message_id))
        for event in tokens(*pieces, message_id=message_id):
            await sender.send_event(event)
        await self.clock.advance(1)
        return sender

    async def put(self, content: bytes, name: str, caption: str = "") -> StoredFile:
        """Store a file of the chat."""
        found = file_type(content)
        file = await self.files.put(
            self.channel.thread(), content, kind=found.kind, mime=found.mime, name=name
        )
        return replace(file, caption=caption)

    async def reply(
        self,
        text: str,
        *,
        message_id: str = "m1",
        state: OutboxState = "ready",
        files: tuple[StoredFile, ...] = (),
        **body: Any,
    ) -> OutboundReply:
        """A reply that a turn has committed and that is not enqueued yet; whose row began in
        `state`."""
        thread = self.channel.thread().encode()
        accepted = await self.store.accept(
            NewEntry(
                dedupe_key=message_id,
                thread=thread,
                message_id=message_id,
                kind="message",
                body={},
                received_at=self.clock.now(),
            )
        )
        lease = await self.store.acquire_lease(thread, "me", ttl_s=30, now=self.clock.now())
        assert lease is not None
        now = self.clock.now()
        answer = answer_body(TurnAnswer(text=text, files=files), ())
        record = NewRecord(kind="assistant", session_id="s", message_id=message_id, body=answer, at=now)
        row = NewOutboxRow(
            key=message_id,
            message_id=message_id,
            body={"role": "assistant", **body},
            created_at=now,
            state=state,
        )
        commit = TurnCommit(seq=accepted.seq, outcome="answered", records=(record,), outbox=(row,), at=now)
        committed = await self.store.commit_turn(lease, commit)
        self.row_id = committed.outbox_ids[0]
        return OutboundReply(
            key=message_id,
            thread=self.channel.thread(),
            message_id=message_id,
            entry_id=committed.record_ids[0],
            role="assistant",
            text=text,
            created_at=now,
            files=files,
            **body,
        )

    async def row(self) -> OutboxRow:
        row = await self.store.outbox_row(self.row_id)
        assert row is not None
        return row

    async def send(self, text: str, *, message_id: str = "m1", **body: Any) -> OutboxRow:
        """Commit and deliver a reply; its outbox row after 4000 s."""
        reply = await self.reply(text, message_id=message_id, **body)
        self.delivery.enqueue(self.row_id, reply)
        await self.clock.advance(4_000)
        return await self.row()


def _build(
    channel: MemoryPosts, store: MemoryStore, clock: ManualClock, stored: MemoryFiles
) -> DeliveryHarness:
    supervisor = Supervisor()
    queues = ChatQueues(clock, supervisor)
    leases = AccountLeases(ProcessingCoordinator(store, clock, lease_s=30.0))
    live = LiveReplies(store=store, leases=leases, queues=queues, clock=clock, supervisor=supervisor)
    crash_labels = CrashLabels()
    files = ReplyFiles(
        store=stored,
        link_to=stored.link_to,
        clock=clock,
        spawn=partial(supervisor.spawn, name="files off the record"),
    )
    posting = Posting(
        store=store, files=files, live=live, clock=clock, crash_labels=crash_labels, leases=leases
    )
    delivery = Delivery(
        store=store,
        leases=leases,
        channels=ChannelRegistry([channel]),
        queues=queues,
        posting=posting,
        files=files,
        timeline=StoreTimeline(store, clock),
        clock=clock,
        telemetry=Telemetry(clock),
        crash_labels=crash_labels,
    )
    return DeliveryHarness(
        channel=channel,
        store=store,
        files=stored,
        clock=clock,
        delivery=delivery,
        live=live,
        queues=queues,
        supervisor=supervisor,
        leases=leases,
    )


@asynccontextmanager
async def open_delivery(
    channel: MemoryPosts | None = None, store: MemoryStore | None = None
) -> AsyncIterator[DeliveryHarness]:
    made = _build(channel or MemoryPosts(), store or MemoryStore(), ManualClock(), MemoryFiles())
    await made.store.open()
    try:
        yield made
    finally:
        await made.supervisor.close()


async def restarted(old: DeliveryHarness, *, after_s: float = 0.0) -> DeliveryHarness:
    """The next process after kill -9, which starts `after_s` seconds later with only the platform and the
    store."""
    await old.supervisor.close()
    await old.clock.advance(after_s)
    await old.store.break_leases()
    new = _build(old.channel, old.store, old.clock, old.files)
    new.row_id = old.row_id
    return new


def tokens(*pieces: str, message_id: str = "m1") -> list[LlmToken]:
    offset, events = 0, []
    for piece in pieces:
        events.append(LlmToken(session_id="s", message_id=message_id, text=piece, offset=offset))
        offset += len(piece)
    return events
