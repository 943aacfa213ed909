"""A gateway's way out to one posting channel, on a clock that the test turns.

The real queues, previews and deliveries over a store in memory. The adapter's own requests take real time;
the clock does not advance during a request, so that only the gateway's pace is measured.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from adapters.channel import (
    ChannelCapabilities,
    ChannelHealth,
    Failure,
    LiveView,
    OnInbound,
    OutboundReply,
    Outgoing,
    Part,
    PostingChannel,
    Receipt,
)
from adapters.files import FilePostingChannel, OutgoingFile
from gateway.channels.registry import ChannelRegistry
from gateway.channels.timeline import StoreTimeline
from gateway.delivery.chat_queue import ChatQueues
from gateway.delivery.origin import Origin
from gateway.delivery.outbox import Delivery
from gateway.delivery.poster import Posting
from gateway.delivery.preview import LiveReplies
from gateway.delivery.reply_files import ReplyFiles
from gateway.runtime.crash_labels import CrashLabels
from gateway.runtime.metrics import Telemetry
from gateway.runtime.tasks import Supervisor
from gateway.storage.leases import AccountLeases, ProcessingCoordinator
from gateway.storage.memory import MemoryStore
from gateway.storage.ports import NewEntry, NewOutboxRow, NewRecord, OutboxRow, TurnCommit
from parlour.testing.fakes import MemoryFiles
from pipeline.domain.clock import ManualClock, SystemClock
from pipeline.domain.files import StoredFile
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import InboundMessage, MediaRef
from pipeline.domain.ports import EventSender
from pipeline.domain.timeline import EntryRole

_STEP_S = 0.1
_PATIENCE_S = 30.0
_LONGEST_DELIVERY_S = 600.0
ResultT = TypeVar("ResultT")


@dataclass(slots=True, kw_only=True)
class Made:
    """A call that shows something: `post`, `edit` or `preview`."""

    kind: str
    at: float
    """The gateway's monotonic seconds."""
    failed: bool = False


class DeliveryHarness:
    """Delivers replies and shows previews on `adapter`."""

    def __init__(self, adapter: PostingChannel) -> None:
        self.clock = ManualClock(SystemClock().now())
        self.counted = _Counted(adapter, self.clock)
        self._store = MemoryStore()
        self._supervisor = Supervisor()
        queues = ChatQueues(self.clock, self._supervisor)
        crash_labels = CrashLabels()
        leases = AccountLeases(ProcessingCoordinator(self._store, self.clock, lease_s=30.0))
        self._live = LiveReplies(
            store=self._store,
            leases=leases,
            queues=queues,
            clock=self.clock,
            supervisor=self._supervisor,
        )
        self._stored = MemoryFiles()
        files = ReplyFiles(
            store=self._stored, link_to=self._stored.link_to, clock=self.clock, spawn=self._spawn
        )
        posting = Posting(
            store=self._store,
            files=files,
            live=self._live,
            clock=self.clock,
            crash_labels=crash_labels,
            leases=leases,
        )
        self._delivery = Delivery(
            store=self._store,
            leases=leases,
            channels=ChannelRegistry([self.counted]),
            queues=queues,
            posting=posting,
            files=files,
            timeline=StoreTimeline(self._store, self.clock),
            clock=self.clock,
            telemetry=Telemetry(self.clock),
            crash_labels=crash_labels,
        )

    @property
    def made(self) -> list[Made]:
        """The calls so far, oldest first."""
        return self.counted.made

    async def open(self) -> None:
        await self._store.open()

    async def close(self) -> None:
        await self._supervisor.close()

    def sender(self, item: InboundMessage) -> EventSender:
        """Where the events of the turn that answers `item` go."""
        origin = Origin(message_id=item.message_id, reply_handle=item.reply_handle, private=item.private)
        return self._live.sender_for(self.counted, item.thread, origin)

    async def deliver(
        self,
        item: InboundMessage,
        text: str,
        role: EntryRole = "assistant",
        files: Sequence[OutgoingFile] = (),
    ) -> OutboxRow:
        """Commit a reply with `files` and see it through; its row afterwards."""
        row_id, reply = await self._commit(item, text, role)
        if files:
            reply = replace(reply, files=tuple([await self._put(item.thread, file) for file in files]))
        self._delivery.enqueue(row_id, reply)
        deadline = self.clock.monotonic() + _LONGEST_DELIVERY_S
        while True:
            await self.pass_time(_STEP_S)
            row = await self._store.outbox_row(row_id)
            assert row is not None
            if row.state in ("sent", "failed"):
                return row
            assert self.clock.monotonic() < deadline, f"the reply is still {row.state!r}: {row.error}"

    async def pass_time(self, seconds: float) -> None:
        """Let the gateway's time pass, with every request answered in its moment."""
        for _ in range(round(seconds / _STEP_S)):
            await self.clock.advance(_STEP_S)
            await self.counted.quiet()

    async def _put(self, thread: ThreadKey, file: OutgoingFile) -> StoredFile:
        stored = await self._stored.put(thread, file.content, kind=file.kind, mime=file.mime, name=file.name)
        return replace(stored, caption=file.caption)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> object:
        return self._supervisor.spawn(work, name="files off the record")

    async def _commit(self, item: InboundMessage, text: str, role: EntryRole) -> tuple[int, OutboundReply]:
        thread, now = item.thread.encode(), self.clock.now()
        accepted = await self._store.accept(
            NewEntry(
                dedupe_key=f"{item.thread.channel}:{item.native_id}",
                thread=thread,
                message_id=item.message_id,
                kind="message",
                body={},
                received_at=now,
            )
        )
        lease = await self._store.acquire_lease(thread, "me", ttl_s=30, now=now)
        assert lease is not None
        records = (
            NewRecord(
                kind="assistant", session_id="s", message_id=item.message_id, body={"text": text}, at=now
            ),
        )
        body: dict[str, Any] = {"role": role, "reply_handle": item.reply_handle, "private": item.private}
        rows = (NewOutboxRow(key=item.message_id, message_id=item.message_id, body=body, created_at=now),)
        committed = await self._store.commit_turn(
            lease, TurnCommit(seq=accepted.seq, outcome="answered", records=records, outbox=rows, at=now)
        )
        reply = OutboundReply(
            key=item.message_id,
            thread=item.thread,
            message_id=item.message_id,
            entry_id=committed.record_ids[0],
            role=role,
            text=text,
            created_at=now,
            reply_handle=item.reply_handle,
            private=item.private,
        )
        return committed.outbox_ids[0], reply


class _Counted:
    """The adapter as it is, with every call that shows something on record."""

    def __init__(self, adapter: PostingChannel, clock: ManualClock) -> None:
        self._adapter = adapter
        self._clock = clock
        self._under_way = 0
        self._answered = asyncio.Event()
        self.made: list[Made] = []

    @property
    def name(self) -> str:
        return self._adapter.name

    @property
    def account(self) -> str:
        return self._adapter.account

    @property
    def capabilities(self) -> ChannelCapabilities:
        return self._adapter.capabilities

    async def quiet(self) -> None:
        """Return when nothing is under way and nothing follows by itself."""
        async with asyncio.timeout(_PATIENCE_S):
            while True:
                for _ in range(10):
                    await asyncio.sleep(0)
                if not self._under_way:
                    return
                self._answered.clear()
                await self._answered.wait()

    async def call(self, kind: str, work: Awaitable[ResultT]) -> ResultT:
        made = Made(kind=kind, at=self._clock.monotonic(), failed=True)
        if kind in ("post", "edit", "preview"):
            self.made.append(made)
        self._under_way += 1
        try:
            result = await work
        finally:
            self._under_way -= 1
            self._answered.set()
        made.failed = False
        return result

    async def run(self, on_inbound: OnInbound) -> None:
        await self._adapter.run(on_inbound)

    async def download(self, ref: MediaRef, *, max_bytes: int) -> bytes:
        return await self._adapter.download(ref, max_bytes=max_bytes)

    def classify(self, error: Exception) -> Failure:
        return self._adapter.classify(error)

    def health(self) -> ChannelHealth:
        return self._adapter.health()

    def render(self, outgoing: Outgoing) -> tuple[Part, ...]:
        return self._adapter.render(outgoing)

    def render_file(self, file: OutgoingFile) -> Part:
        assert isinstance(self._adapter, FilePostingChannel)
        return self._adapter.render_file(file)

    async def post(self, thread: ThreadKey, part: Part, *, key: str, reply_handle: str = "") -> Receipt:
        return await self.call("post", self._adapter.post(thread, part, key=key, reply_handle=reply_handle))

    async def edit(self, thread: ThreadKey, native_id: str, part: Part) -> Receipt:
        return await self.call("edit", self._adapter.edit(thread, native_id, part))

    async def find(self, thread: ThreadKey, part: Part, *, key: str, since: float) -> Receipt | None:
        return await self.call("find", self._adapter.find(thread, part, key=key, since=since))

    def open_view(
        self,
        thread: ThreadKey,
        *,
        key: str,
        reply_handle: str,
        native_id: str,
        doubtful_since: float | None = None,
    ) -> LiveView | None:
        view = self._adapter.open_view(
            thread, key=key, reply_handle=reply_handle, native_id=native_id, doubtful_since=doubtful_since
        )
        return None if view is None else _CountedView(view, self)

    async def typing(self, thread: ThreadKey) -> None:
        await self.call("typing", self._adapter.typing(thread))


class _CountedView:
    def __init__(self, view: LiveView, counted: _Counted) -> None:
        self._view = view
        self._counted = counted

    @property
    def native_id(self) -> str:
        return self._view.native_id

    async def show(self, outgoing: Outgoing) -> None:
        await self._counted.call("preview", self._view.show(outgoing))

    async def close(self) -> None:
        await self._counted.call("close", self._view.close())
