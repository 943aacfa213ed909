"""Deliver outbox rows in order per chat, with receipts, retries and handling of unknown outcomes.

Rows go ready -> sending -> sent. A row found `sending` after a restart may or may not have arrived: on a
posting channel `poster` finds out; on a showing channel the reply is sent again with a label, because a
duplicate is better than a lost reply. If the channel shows a repeated send only once, the row goes from
ready to sent directly, which saves one write, or begins as sent: `recorded_replies`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from adapters.channel import (
    Channel,
    Failure,
    OutboundReply,
    PostingChannel,
    Receipt,
    ShowingChannel,
    Timeline,
    shows,
)
from gateway.channels.registry import ChannelRegistry
from gateway.delivery.chat_queue import ChatQueue, ChatQueues
from gateway.delivery.late_posts import RowPosts, take_back_late_posts
from gateway.delivery.notices import post_notice
from gateway.delivery.platform_calls import (
    call_with_timeout,
    classify_failure,
    retry_until_stored,
)
from gateway.delivery.poster import REPEAT_LABEL, Posting, ReplyDelivery
from gateway.delivery.recorded_replies import RecordedReplies
from gateway.delivery.reply_files import ReplyFiles
from gateway.delivery.voice_replies import VoiceReplies
from gateway.runtime.crash_labels import CrashLabels
from gateway.runtime.metrics import Telemetry
from gateway.storage.codec import reply_of
from gateway.storage.leases import AccountLeases
from gateway.storage.log_records import AssistantRecord, content_of, files_of, text_of
from gateway.storage.ports import InboxEntry, Lease, OutboxRow, OutboxState, Store
from gateway.storage.sealing import is_lost
from pipeline.domain.clock import Clock
from pipeline.domain.errors import FenceLost, StorageError
from pipeline.domain.ids import ThreadKey

_log = logging.getLogger(__name__)

MAX_ATTEMPTS = 40
"""Failed attempts within one process while the account's other calls worked. A reply is given up after these,
but not before `WORN_OUT_S`."""
WORN_OUT_S = 3 * 3600.0
MAX_AGE_S = 24 * 3600.0
LOST_WORDS = "This answer was off the record and was lost before it was sent. Please ask again."
_BACKOFF_S = (1.0, 2.0, 5.0, 10.0, 15.0)
_BACKOFF_REPEATING_S = (*_BACKOFF_S, 60.0, 300.0)
"""For a reply that each attempt may show once more, because the platform does not confirm what it does."""
_FINAL_KINDS = frozenset({"permission", "not_found", "invalid"})
_UNCOUNTED_KINDS = frozenset({"rate_limit", "auth"})
"""They do not depend on the reply: the platform or the operator ends them."""
_LONGEST_WAIT_S = 3_600.0


@dataclass(slots=True)
class _Job:
    delivery: ReplyDelivery
    attempts: int = 0
    failures: int = 0
    """They set the length of the next wait; rate limits are not counted."""
    alone: int = 0
    """Failures while other calls of the account worked: the success of another call ends no wait of these."""
    worn_since: float | None = None
    """Monotonic time of the first failure that counted towards `MAX_ATTEMPTS`."""
    not_before: float = 0.0

    @property
    def reply(self) -> OutboundReply:
        return self.delivery.reply


class Delivery:
    """Sends every outbox row, in order within a chat."""

    def __init__(
        self,
        *,
        store: Store,
        leases: AccountLeases,
        channels: ChannelRegistry,
        queues: ChatQueues,
        posting: Posting,
        files: ReplyFiles,
        timeline: Timeline,
        clock: Clock,
        telemetry: Telemetry,
        crash_labels: CrashLabels,
        voice: VoiceReplies | None = None,
        shared: bool = False,
    ) -> None:
        """`shared`: other processes commit replies too, and `take` queues them all."""
        self._shared = shared
        self._taken: dict[int, Lease] = {}
        """The lease under which `take` queued each row that has not ended."""
        self.ended: set[int] = set()
        """The rows that `take` queued and that were sent or given up since the last look into the store."""
        self._store = store
        self._leases = leases
        self._channels = channels
        self._queues = queues
        self._posting = posting
        self._files = files
        self._timeline = timeline
        self._clock = clock
        self._telemetry = telemetry
        self._crash_labels = crash_labels
        self._voice = voice
        self._recorded = RecordedReplies(channels, queues, telemetry, crash_labels)

    def first_state(self, thread: ThreadKey, entry: InboxEntry, *, plain: bool) -> OutboxState:
        """The state in which the row of a reply begins that is committed now: sending if it would be posted
        right after, which saves the write before the post; sent if its channel shows what is on record and
        nothing is to be done afterwards (`plain`), which saves the write of the receipt."""
        adapter = self._channels.of(thread)
        if self._shared or adapter is None:
            return "ready"
        if shows(adapter):
            return "sent" if plain and self._recorded.count_as_sent(adapter, thread) else "ready"
        if adapter.capabilities.resolution == "placeholder":
            return "ready"
        queue = self._queues.queue_for(adapter, thread, private=entry.item.private)
        at_once = queue.is_free and not self._posting.has_preview(thread, entry.message_id)
        return "sending" if at_once else "ready"

    def enqueue(self, row_id: int, reply: OutboundReply, *, state: OutboxState = "ready") -> None:
        """Send a reply that has just become durable; its row began in `state`."""
        if state == "sent":
            self._recorded.show_soon(reply)
            return
        born_at = self._clock.monotonic()
        delivery = ReplyDelivery(row_id=row_id, reply=reply, maybe_sent=False, born_at=born_at)
        delivery.marked = state == "sending"
        self._add(_Job(delivery))

    async def take(self, row: OutboxRow) -> None:
        """Queue a row that another process may have committed, unless it is queued under the current lease:
        one of an earlier lease is dropped. Raises StorageError."""
        current = await self._leases.of(ThreadKey.decode(row.thread))
        if self._taken.get(row.id) == current or row.id in self.ended:
            return
        job = await self._job(row)
        if job is not None:
            self._taken[row.id] = job.delivery.lease
            self._add(job)

    async def recover(self) -> int:
        """Queue the rows that an earlier process left; returns their number."""
        rows = await self._store.outbox_open()
        for row in rows:
            try:
                job = await self._job(row)
            except FenceLost:
                # Another process sends from this account, and has read the row too.
                continue
            if job is not None:
                self._add(job)
        return len(rows)

    def say(self, thread: ThreadKey, words: str, *, private: bool = True) -> None:
        """Post a notice in the chat of a posting channel: a few attempts, not stored. Returns at once."""
        adapter = self._channels.of(thread)
        if isinstance(adapter, PostingChannel):
            queue = self._queues.queue_for(adapter, thread, private=private)
            queue.submit_notice(partial(post_notice, adapter, queue, thread, words))

    def _add(self, job: _Job) -> None:
        thread = job.reply.thread
        adapter = self._channels.of(thread)
        if adapter is None:
            _log.warning("reply kept: its channel is not running", extra={"thread_key": thread.encode()})
            return
        queue = self._queues.queue_for(adapter, thread, private=job.reply.private)
        queue.submit(lambda: self._deliver(adapter, queue, job))

    async def _deliver(self, adapter: Channel, queue: ChatQueue, job: _Job) -> None:
        try:
            thread = job.reply.thread
            held = self._leases.held.get(thread.account_key) or await self._leases.of(thread)
            job.delivery.lease = self._same(held, job) if self._shared else held
            await self._send(adapter, queue, job)
            if self._shared:
                self.ended.add(job.delivery.row_id)
        except FenceLost:
            # The row stays as it is: the account's new process has read it, or reads it now.
            self._leases.lost(job.reply.thread)
            _log.warning("reply left to the process that sends now", extra={"row": job.delivery.row_id})
            late = RowPosts(thread=job.reply.thread, row_id=job.delivery.row_id, posted=job.delivery.posted)
            await take_back_late_posts(adapter, queue, self._store, self._clock, late)
        except asyncio.CancelledError:
            if job.delivery.marked:
                # Nothing was posted yet, so that the next process need not look for it.
                with contextlib.suppress(StorageError):
                    await self._store.mark_retry(job.delivery.lease, job.delivery.row_id, "", 0.0)
            raise
        finally:
            if self._taken.get(job.delivery.row_id) == job.delivery.lease:
                del self._taken[job.delivery.row_id]

    @staticmethod
    def _same(held: Lease, job: _Job) -> Lease:
        """`held`, if it is the lease under which the row was read. Raises FenceLost otherwise: another
        process may have sent the reply since."""
        if job.delivery.lease != held:
            raise FenceLost(f"{held.thread}: another process sent from this account meanwhile")
        return held

    async def _send(self, adapter: Channel, queue: ChatQueue, job: _Job) -> None:
        if job.not_before:
            await self._clock.sleep(min(job.not_before - self._clock.now(), _LONGEST_WAIT_S))
        before = queue.reach.worked
        while True:
            worked = queue.reach.worked
            failure = await self._attempt(adapter, queue, job)
            if failure is None:
                queue.reach.succeeded()
                return
            # Counted from the previous attempt, to include a success that ended the wait.
            alone, before = queue.reach.worked != before, worked
            wait = await self._failed(queue, job, failure, alone=alone)
            if wait is None:
                await self._files.settle(adapter, job.reply)
                return
            least_s = wait
            if failure.kind != "rate_limit" and failure.retry_after_s is None:
                least_s = _step(_backoff(job), job.alone)
            await queue.reach.wait(wait, least_s=least_s, since=worked)

    async def _attempt(self, adapter: Channel, queue: ChatQueue, job: _Job) -> Failure | None:
        try:
            if shows(adapter):
                receipt = await self._show(adapter, job)
            else:
                receipt = await self._post(adapter, queue, job)
        except FenceLost:
            raise
        except StorageError as error:
            # This read came before any send. The replies after it wait too, or they would overtake it.
            _log.exception("delivery waits for the store", extra={"row": job.delivery.row_id})
            return Failure(kind="transient", message=str(error))
        except Exception as error:  # noqa: BLE001 - the adapter knows what its own errors mean
            return classify_failure(adapter, error)
        self._crash_labels.reach("receipt-before")
        delivery = job.delivery
        sent = partial(
            self._store.mark_sent, delivery.lease, delivery.row_id, receipt.native_id, self._clock.now()
        )
        if job.reply.off_record:
            sent = partial(sent, forget=True)
        await retry_until_stored(sent, self._clock)
        if job.reply.files:
            await self._files.settle(adapter, job.reply)
        self._crash_labels.reach("receipt-after")
        self._telemetry.delivered("sent")
        if self._voice is not None and not shows(adapter):
            self._voice.follow(adapter, queue, job.reply)
        return None

    async def _show(self, adapter: ShowingChannel, job: _Job) -> Receipt:
        reply = job.reply
        if not adapter.capabilities.idempotent_send:
            if job.delivery.maybe_sent:
                reply = replace(reply, text=REPEAT_LABEL + reply.text)
            mark = partial(self._store.mark_sending, job.delivery.lease, job.delivery.row_id)
            await retry_until_stored(mark, self._clock)
        self._crash_labels.reach("send-before")
        self._leases.check(reply.thread.account_key)
        receipt = await call_with_timeout(adapter.send(reply), self._clock)
        self._crash_labels.reach("send-after")
        return receipt

    async def _post(self, adapter: PostingChannel, queue: ChatQueue, job: _Job) -> Receipt:
        reply, delivery = job.reply, job.delivery
        if reply.asks and not delivery.questions:
            asked = await self._timeline.questions(reply.thread)
            delivery.questions = tuple(one for one in asked if one.message_id == reply.message_id)
        if reply.role == "error" and delivery.shown is None:
            delivery.said = await self._said(reply)
        return await self._posting.attempt(adapter, queue, delivery)

    async def _said(self, reply: OutboundReply) -> str:
        """The partial answer at the time it was stopped or failed, which the preview has shown and the
        conversation continues from; empty for none. Showing channels show it themselves."""
        records = await self._store.read_log(
            reply.thread.encode(), kinds=("assistant",), message_id=reply.message_id
        )
        said = map(content_of, records)
        return next((one.text for one in said if isinstance(one, AssistantRecord) and one.partial), "")

    async def _failed(self, queue: ChatQueue, job: _Job, failure: Failure, *, alone: bool) -> float | None:
        """Store the failure. Returns seconds until the next attempt, None for no further attempt. `alone`:
        other calls of the account worked meanwhile."""
        job.delivery.marked = False
        job.delivery.maybe_sent = job.delivery.maybe_sent or failure.maybe_delivered
        now = self._clock.monotonic()
        limited = failure.kind == "rate_limit"
        if self._wears_out(job, failure, alone=alone):
            job.attempts += 1
            job.worn_since = now if job.worn_since is None else job.worn_since
        job.failures += not limited
        job.alone += alone and not limited
        worn = now - job.worn_since if job.worn_since is not None else 0.0
        worn_out = job.attempts >= MAX_ATTEMPTS and worn >= WORN_OUT_S
        too_old = now - job.delivery.born_at > MAX_AGE_S
        if failure.kind in _FINAL_KINDS or worn_out or too_old:
            _log.error("reply given up", extra={"row": job.delivery.row_id, "reason": failure.message})
            given_up = partial(
                self._store.mark_failed,
                job.delivery.lease,
                job.delivery.row_id,
                failure.message,
                forget=job.reply.off_record,
            )
            await retry_until_stored(given_up, self._clock)
            self._telemetry.delivered("failed")
            return None
        wait = _step(_backoff(job), job.failures)
        if limited:
            wait = queue.limiter.back_off(failure, default_s=wait)
        elif failure.retry_after_s is not None:
            wait = failure.retry_after_s
        wait = min(wait, _LONGEST_WAIT_S)
        again = partial(
            self._store.mark_retry,
            job.delivery.lease,
            job.delivery.row_id,
            failure.message,
            self._clock.now() + wait,
            maybe_sent=job.delivery.maybe_sent,
        )
        await retry_until_stored(again, self._clock)
        self._telemetry.delivered("retried")
        return wait

    def _wears_out(self, job: _Job, failure: Failure, *, alone: bool) -> bool:
        """Whether the failure counts towards `MAX_ATTEMPTS`. An outage does not count, unless an attempt may
        show the reply again; `MAX_AGE_S` bounds it."""
        if failure.kind in _UNCOUNTED_KINDS:
            return False
        unreached = failure.kind == "transient" and not failure.maybe_delivered
        return not unreached and (alone or failure.kind != "transient" or bool(job.delivery.untraceable))

    async def _job(self, row: OutboxRow) -> _Job | None:
        thread = ThreadKey.decode(row.thread)
        lease = await self._leases.of(thread)
        records = await self._store.read_log(row.thread, after=row.entry_id - 1, message_id=row.message_id)
        record = next((found for found in records if found.id == row.entry_id), None)
        if record is None:
            await self._store.mark_failed(lease, row.id, "its log record is missing")
            return None
        age = max(0.0, self._clock.now() - row.created_at)
        channel = self._channels.of(thread)
        files = files_of(record)
        words = LOST_WORDS if is_lost(record.body) else text_of(record)
        reply = reply_of(row, row.thread, entry_id=row.entry_id, text=words, files=files)
        forget = reply.off_record
        if age > MAX_AGE_S and (isinstance(channel, PostingChannel) or (channel is None and forget)):
            # So late a reply would only confuse. Its text stays in the log; an off-the-record reply is not
            # kept for a channel that may never start again.
            _log.error("reply given up", extra={"row": row.id, "reason": "it is older than a day"})
            await self._store.mark_failed(
                lease, row.id, "older than a day when the gateway came back", forget=forget
            )
            self._telemetry.delivered("failed")
            return None
        delivery = ReplyDelivery(
            row_id=row.id,
            reply=reply,
            maybe_sent=row.state == "sending",
            born_at=self._clock.monotonic() - age,
            lease=lease,
        )
        return _Job(delivery, not_before=row.not_before)


def _backoff(job: _Job) -> tuple[float, ...]:
    """The waits between attempts at this reply, in seconds."""
    return _BACKOFF_REPEATING_S if job.delivery.untraceable else _BACKOFF_S


def _step(waits: Sequence[float], failures: int) -> float:
    return waits[min(max(0, failures - 1), len(waits) - 1)]
