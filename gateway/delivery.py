"""Replies on their way out: one lane per chat, receipts, retries, and honesty about the unknown.

Rows go ready -> sending -> sent. A row found `sending` after a restart may or may not have arrived, and
is sent again with a label, because a reply twice is better than none. Where the channel shows a repeated
send once, the question does not arise: the row goes from ready to sent, and one write is saved.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from adapters.channel import ChannelAdapter, Failure, OutboundReply
from gateway.failpoints import Failpoints
from gateway.storage.ports import OutboxRow, Record, Store
from gateway.tasks import Supervisor
from gateway.telemetry import Telemetry
from pipeline.domain.clock import Clock
from pipeline.domain.errors import AlreadyDone, StorageError
from pipeline.domain.ids import ThreadKey

_log = logging.getLogger(__name__)

MAX_ATTEMPTS = 8
MAX_AGE_S = 24 * 3600.0
_BACKOFF_S = (1.0, 2.0, 5.0, 15.0, 60.0, 300.0)
_FINAL_KINDS = frozenset({"auth", "permission", "not_found", "invalid"})
_STORE_BACKOFF_S = 2.0
REPEAT_LABEL = "(This may be a repeat.)\n"

Lane = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class _Job:
    row_id: int
    reply: OutboundReply
    attempts: int
    ambiguous: bool
    not_before: float = 0.0


class Delivery:
    """Sends every outbox row, in order within a chat."""

    def __init__(
        self,
        *,
        store: Store,
        channels: Mapping[tuple[str, str], ChannelAdapter],
        clock: Clock,
        telemetry: Telemetry,
        failpoints: Failpoints,
        supervisor: Supervisor,
    ) -> None:
        self._store = store
        self._channels = channels
        self._clock = clock
        self._telemetry = telemetry
        self._failpoints = failpoints
        self._supervisor = supervisor
        self._lanes: dict[Lane, deque[_Job]] = {}

    def enqueue(self, row_id: int, reply: OutboundReply) -> None:
        """Send a reply that has just become durable."""
        self._add(_Job(row_id, reply, attempts=0, ambiguous=False))

    async def recover(self) -> int:
        """Take up the rows that an earlier process left; how many."""
        rows = await self._store.outbox_open()
        for row in rows:
            job = await self._job(row)
            if job is not None:
                self._add(job)
        return len(rows)

    def _add(self, job: _Job) -> None:
        thread = job.reply.thread
        if (thread.channel, thread.account) not in self._channels:
            _log.warning("reply kept: its channel is not running", extra={"thread_key": thread.encode()})
            return
        lane = (thread.channel, thread.account, thread.chat)
        waiting = self._lanes.get(lane)
        if waiting is not None:
            waiting.append(job)
            return
        self._lanes[lane] = deque([job])
        self._supervisor.spawn(self._run(lane), name=f"delivery {':'.join(lane)}")

    async def _run(self, lane: Lane) -> None:
        adapter = self._channels[lane[:2]]
        waiting = self._lanes[lane]
        try:
            while waiting:
                try:
                    await self._deliver(adapter, waiting[0])
                except Exception:  # noqa: BLE001 - whatever is wrong with this reply, those behind it leave
                    _log.exception("reply left for the next start", extra={"row": waiting[0].row_id})
                waiting.popleft()
        finally:
            del self._lanes[lane]

    async def _deliver(self, adapter: ChannelAdapter, job: _Job) -> None:
        await self._clock.sleep(min(job.not_before - self._clock.now(), _BACKOFF_S[-1]))
        while True:
            failure = await self._attempt(adapter, job)
            if failure is None:
                return
            attempts, ambiguous = job.attempts + 1, job.ambiguous or failure.maybe_delivered
            job = replace(job, attempts=attempts, ambiguous=ambiguous)
            age = self._clock.now() - job.reply.created_at
            if failure.kind in _FINAL_KINDS or attempts >= MAX_ATTEMPTS or age > MAX_AGE_S:
                _log.error("reply given up", extra={"row": job.row_id, "reason": failure.message})
                await self._record(partial(self._store.mark_failed, job.row_id, failure.message))
                self._telemetry.delivered("failed")
                return
            wait = failure.retry_after_s or _BACKOFF_S[min(attempts - 1, len(_BACKOFF_S) - 1)]
            again = self._clock.now() + wait
            await self._record(partial(self._store.mark_retry, job.row_id, failure.message, again))
            self._telemetry.delivered("retried")
            await self._clock.sleep(wait)

    async def _attempt(self, adapter: ChannelAdapter, job: _Job) -> Failure | None:
        reply = job.reply
        if not adapter.capabilities.idempotent_send:
            if job.ambiguous:
                reply = replace(reply, text=REPEAT_LABEL + reply.text)
            await self._record(partial(self._store.mark_sending, job.row_id))
        self._failpoints.reach("send-before")
        try:
            receipt = await adapter.send(reply)
        except Exception as error:  # noqa: BLE001 - the adapter knows what its own errors mean
            return _understood(adapter, error)
        self._failpoints.reach("send-after")
        self._failpoints.reach("receipt-before")
        now = self._clock.now()
        await self._record(partial(self._store.mark_sent, job.row_id, receipt.native_id, now))
        self._failpoints.reach("receipt-after")
        self._telemetry.delivered("sent")
        return None

    async def _record(self, write: Callable[[], Awaitable[None]]) -> None:
        """Write until the store takes it: sending again because of a store that is full for a minute
        would show the reply twice."""
        while True:
            try:
                await write()
            except AlreadyDone:
                return
            except StorageError:
                _log.exception("delivery waits for the store")
                await self._clock.sleep(_STORE_BACKOFF_S)
            else:
                return

    async def _job(self, row: OutboxRow) -> _Job | None:
        records = await self._store.read_log(row.thread, after=row.entry_id - 1, message_id=row.message_id)
        record = next((found for found in records if found.id == row.entry_id), None)
        if record is None:
            await self._store.mark_failed(row.id, "its log record is missing")
            return None
        return _Job(row.id, _reply(row, record), attempts=row.attempts, ambiguous=row.state == "sending")


def _understood(adapter: ChannelAdapter, error: Exception) -> Failure:
    try:
        return adapter.classify(error)
    except Exception:  # noqa: BLE001 - a bug in an adapter must not stop its lane
        _log.exception("a failure could not be classified")
        return Failure(kind="unknown", message=type(error).__name__, maybe_delivered=True)


def _reply(row: OutboxRow, record: Record) -> OutboundReply:
    return OutboundReply(
        key=row.key,
        thread=ThreadKey.decode(row.thread),
        message_id=row.message_id,
        entry_id=row.entry_id,
        role=row.body["role"],
        text=str(record.body.get("text", "")),
        created_at=row.created_at,
        code=str(row.body.get("code", "")),
    )
