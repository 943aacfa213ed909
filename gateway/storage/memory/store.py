"""A `Store` in dictionaries: each call takes effect at once; its data survives `close`, not the object."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gateway.storage.append_errors import foreign_row, report_if_failed
from gateway.storage.interaction_rules import judge_answer
from gateway.storage.jobs import NewJob
from gateway.storage.json_bodies import FORGOTTEN, decode_body, encode_body, storable_text
from gateway.storage.memory.books import MemoryBooks
from gateway.storage.memory.rows import (
    EntryRow,
    InteractionRow,
    ReplyRow,
    ThreadRow,
    encoded,
    encoded_or_none,
    newest_first,
)
from gateway.storage.memory.seals import kept_body
from gateway.storage.ports import (
    Accepted,
    AnswerStatus,
    Committed,
    InboxEntry,
    Interaction,
    Lease,
    NewEntry,
    NewOutboxRow,
    NewRecord,
    OutboxRow,
    Record,
    RecordKind,
    SentPart,
    TurnCommit,
)
from gateway.storage.sealing import sealed_commit
from gateway.storage.sizes import StoreCounts
from pipeline.domain.errors import AlreadyDone, StorageError


class MemoryStore(MemoryBooks):
    """The whole port, in memory. Bodies are kept as text, so that callers share no objects with the store."""

    # -- life ---------------------------------------------------------------------------------
    async def open(self) -> None:
        self._open = True

    async def close(self) -> None:
        self._open = False

    async def check_writable(self) -> None:
        self._require_open()

    async def find_damage(self) -> tuple[str, ...]:
        return ()

    async def counts(self) -> StoreCounts:
        self._require_open()
        unfinished = sum(len(thread.unfinished) for thread in self._threads.values())
        return StoreCounts(
            inbox_open=unfinished,
            inbox_done=len(self._entries) - unfinished,
            outbox_open=sum(row.is_open for row in self._outbox.values()),
            records=sum(len(thread.log) for thread in self._threads.values()),
        )

    # -- inbox --------------------------------------------------------------------------------
    async def accept(self, entry: NewEntry, *, limit: int | None = None, begin: bool = False) -> Accepted:
        self._require_open()
        if (known := self._accepted.get(entry.dedupe_key)) is not None:
            return replace(known, duplicate=True, begun=False)
        waiting = len((thread := self._peek(entry.thread)).unfinished)
        if limit is not None and waiting >= limit:
            return Accepted(seq=0, message_id=entry.message_id, duplicate=False, full=True)
        begun, seq = begin and not waiting, len(self._entries) + 1
        row = EntryRow.new(seq, entry, self._keys, begun=begun, sealed=thread.seals)
        self._entries[row.seq] = self._thread(entry.thread).unfinished[row.seq] = row
        self._accepted[entry.dedupe_key] = row.accepted
        return row.accepted

    async def accept_with(self, entry: NewEntry, changed: Sequence[NewJob]) -> Accepted:
        work = [replace(job, body=decode_body(encode_body(job.body))) for job in changed]
        accepted = await self.accept(entry)
        self.jobs.change_now(work)
        return accepted

    async def open_threads(self) -> tuple[str, ...]:
        self._require_open()
        waiting = sorted((min(row.unfinished), key) for key, row in self._threads.items() if row.unfinished)
        return tuple(key for _, key in waiting)

    async def next_entry(self, thread: str) -> InboxEntry | None:
        self._require_open()
        return next((row.view() for row in self._peek(thread).unfinished.values()), None)

    async def open_entries(self, thread: str) -> tuple[InboxEntry, ...]:
        self._require_open()
        return tuple(row.view() for row in self._peek(thread).unfinished.values())

    async def threads_of(self, channel: str, account: str, *, limit: int, chat: str = "") -> tuple[str, ...]:
        self._require_open()
        return newest_first(self._threads, channel, account, chat, self.page.is_deleted)[:limit]

    async def newest_entries(self, *, limit: int) -> tuple[tuple[str, Mapping[str, Any]], ...]:
        self._require_open()
        newest = (self._entries[seq] for seq in sorted(self._entries, reverse=True)[:limit])
        return tuple((row.thread, row.view().body) for row in newest)

    async def start_attempt(self, lease: Lease, seq: int) -> int:
        self._require_open()
        (row := self._unfinished(self._fenced(lease), seq)).attempts += 1
        return row.attempts

    async def discount_attempt(self, lease: Lease, seq: int) -> None:
        row = self._unfinished(self._fenced(lease), seq)
        row.excused = min(row.attempts, row.excused + 1)

    async def cancel_open(self, thread: str, *, up_to_seq: int | None = None, from_seq: int = 0) -> int:
        self._require_open()
        newly = [
            row
            for row in self._peek(thread).unfinished.values()
            if not row.cancelled and row.seq >= from_seq and (up_to_seq is None or row.seq <= up_to_seq)
        ]
        for row in newly:
            row.cancelled = True
        return len(newly)

    # -- leases -------------------------------------------------------------------------------
    async def acquire_lease(self, thread: str, owner: str, *, ttl_s: float, now: float) -> Lease | None:
        self._require_open()
        row = self._thread(thread)
        if row.owner != owner and not self.owners.is_free(row, now):
            return None
        self.owners.take(row, owner, until=now + ttl_s, now=now)
        return Lease(thread=thread, owner=owner, fence=row.fence, expires_at=row.expires_at)

    async def renew_lease(self, lease: Lease, *, ttl_s: float, now: float) -> Lease:
        self._fenced(lease).expires_at = now + ttl_s
        return replace(lease, expires_at=now + ttl_s)

    async def release_lease(self, lease: Lease) -> None:
        self._require_open()
        if ((row := self._peek(lease.thread)).fence, row.owner) == (lease.fence, lease.owner):
            row.owner = None

    async def break_leases(self) -> int:
        self._require_open()
        for row in (held := [row for row in self._threads.values() if row.owner is not None]):
            row.owner = None
        return len(held)

    # -- log ----------------------------------------------------------------------------------
    def append(
        self, lease: Lease, records: Sequence[NewRecord], *, attempt: int | None = None
    ) -> asyncio.Future[tuple[int, ...]]:
        future: asyncio.Future[tuple[int, ...]] = asyncio.get_running_loop().create_future()
        try:
            thread = self._fenced(lease)
            added = encoded(records)
            if attempt is not None:
                self._unfinished(thread, attempt).attempts += 1
            future.set_result(self._add_records(thread, added))
        except StorageError as error:
            future.set_exception(error)
            report_if_failed(future, lease)
        return future

    async def read_log(
        self,
        thread: str,
        *,
        after: int = 0,
        before: int | None = None,
        kinds: Sequence[RecordKind] | None = None,
        session_id: str | None = None,
        message_id: str | None = None,
        limit: int | None = None,
    ) -> tuple[Record, ...]:
        self._require_open()
        log = self._peek(thread).log
        found = [row for row in log if row.passes(after, before, kinds, session_id, message_id)]
        newest = found if limit is None else found[max(0, len(found) - limit) :]
        return tuple(row.view(thread) for row in newest)

    async def commit_turn(self, lease: Lease, commit: TurnCommit) -> Committed:
        thread = self._fenced(lease)
        ended = [(commit.seq, commit.body), *((one.seq, one.body) for one in commit.also)]
        done = [(self._unfinished(thread, seq), encoded_or_none(body)) for seq, body in ended]
        commit, sealed_as, key = sealed_commit(commit) if commit.sealed else (commit, "", b"")
        records = encoded(commit.records)
        replies = [(row, encode_body(row.body)) for row in commit.outbox]
        questions = [(question, encode_body(question.body)) for question in commit.interactions]
        work = [(job, encode_body(job.body)) for job in commit.jobs]
        kept = self.states.check(commit.states)
        # All checks are done; from here on nothing fails.
        for entry, body in done:
            thread.finish(entry, commit.outcome, body, commit.at)
        if key:
            self._keys[sealed_as] = key
        if commit.mode is not None:
            thread.off_record = commit.mode == "otr"
        record_ids = self._add_records(thread, records)
        outbox_ids = tuple(self._add_reply(lease.thread, record_ids, new, body) for new, body in replies)
        for name in [name for name, row in self._interactions.items() if row.is_of(commit.forget_session)]:
            del self._interactions[name]
            self._keys.pop(name, None)
        for question, body in questions:
            row = InteractionRow(interaction=question, body=body, keys=self._keys)
            self._interactions.setdefault(question.id, row)
        self.jobs.add_now(work)
        self.states.put(kept)
        self.crises.add_now(commit.crisis)
        return Committed(record_ids=record_ids, outbox_ids=outbox_ids)

    # -- outbox -------------------------------------------------------------------------------
    async def outbox_open(self, thread: str | None = None) -> tuple[OutboxRow, ...]:
        self._require_open()
        rows = [row for row in self._outbox.values() if row.is_open and thread in (None, row.thread)]
        return tuple(row.view() for row in rows)

    async def mark_sending(self, lease: Lease, row_id: int) -> None:
        row = self._open_reply(lease, row_id)
        row.state, row.attempts = "sending", row.attempts + 1

    async def mark_sent(
        self, lease: Lease, row_id: int, receipt: str, at: float, *, forget: bool = False
    ) -> None:
        row = self._open_reply(lease, row_id)
        row.state, row.receipt, row.sent_at = "sent", storable_text(receipt), at
        self._end_reply(row, forget=forget)

    async def mark_retry(
        self, lease: Lease, row_id: int, error: str, not_before: float, *, maybe_sent: bool = False
    ) -> None:
        row = self._open_reply(lease, row_id)
        row.state = "sending" if maybe_sent else "ready"
        row.error, row.not_before = storable_text(error), not_before

    async def mark_failed(self, lease: Lease, row_id: int, error: str, *, forget: bool = False) -> None:
        row = self._open_reply(lease, row_id)
        row.state, row.error = "failed", storable_text(error)
        self._end_reply(row, forget=forget)

    async def outbox_row(self, row: int | str) -> OutboxRow | None:
        self._require_open()
        found = self._outbox.get(self._outbox_ids.get(row, 0) if isinstance(row, str) else row)
        return None if found is None else found.view()

    async def receipts(self, chat: str) -> tuple[str, ...]:
        return ReplyRow.newest_receipts(self._outbox.values(), chat)

    async def record_sent_part(self, lease: Lease, key: str, part: SentPart) -> None:
        self._fenced(lease)
        self._shown.setdefault(key, {})[part.part] = replace(part, native_id=storable_text(part.native_id))

    async def shown(self, key: str) -> tuple[SentPart, ...]:
        self._require_open()
        return tuple(part for _, part in sorted(self._shown.get(key, {}).items()))

    async def current_session(self, thread: str) -> str | None:
        self._require_open()
        log = reversed(self._peek(thread).log)
        return next((row.record.session_id for row in log if row.record.kind == "session"), None)

    # -- pending interactions -----------------------------------------------------------------
    async def open_interaction(self, interaction: Interaction) -> None:
        self._require_open()
        if interaction.id in self._interactions:
            raise StorageError(f"interaction {interaction.id} exists already; ids are used once")
        name = interaction.id if self._peek(interaction.thread).off_record else ""
        body = kept_body(interaction.body, self._keys, name)
        row = InteractionRow(interaction=interaction, body=body, keys=self._keys)
        self._interactions[interaction.id] = row

    async def answer_interaction(
        self,
        interaction_id: str,
        *,
        thread: str,
        user: str,
        choice: str,
        now: float,
        entry: NewEntry | None = None,
        finished: bool = False,
    ) -> AnswerStatus:
        self._require_open()
        if entry is not None and entry.dedupe_key in self._accepted:
            return "already_answered"
        if (row := self._interactions.get(interaction_id)) is None:
            return "unknown"
        status = judge_answer(
            row.interaction, answered=row.choice, thread=thread, user=user, choice=choice, now=now
        )
        if status == "accepted":
            if entry is not None:
                accepted = await self.accept(entry)
                if finished:
                    self._thread(entry.thread).finish(self._entries[accepted.seq], "answered", None, now)
            row.choice = choice
        return status

    async def interaction(self, interaction_id: str) -> tuple[Interaction, str | None] | None:
        self._require_open()
        return None if (row := self._interactions.get(interaction_id)) is None else (row.view(), row.choice)

    async def pending_interactions(self, thread: str, *, now: float) -> tuple[Interaction, ...]:
        self._require_open()
        waiting = [row for row in self._interactions.values() if row.is_open(thread, now)]
        return tuple(row.view() for row in sorted(waiting, key=lambda row: row.interaction.created_at))

    # -- inside -------------------------------------------------------------------------------
    def _end_reply(self, row: ReplyRow, *, forget: bool) -> None:
        self._shown.pop(row.new.key, None)
        if forget:
            row.body = FORGOTTEN
            self._keys.pop(row.new.message_id, None)
            self._peek(row.thread).forget(row.new.message_id)

    def _unfinished(self, thread: ThreadRow, seq: int) -> EntryRow:
        if (row := thread.unfinished.get(seq)) is None:
            raise AlreadyDone(f"inbox entry {seq} is not an unfinished entry of this thread")
        return row

    def _add_records(self, thread: ThreadRow, records: list[tuple[NewRecord, str]]) -> tuple[int, ...]:
        found = []
        for record, body in records:
            found.append(thread.add(record, body, self._last_record_id + 1))
            self._last_record_id = max(self._last_record_id, found[-1])
        return tuple(found)

    def _add_reply(self, thread: str, records: tuple[int, ...], new: NewOutboxRow, body: str) -> int:
        if new.key in self._outbox_ids:
            return self._outbox_ids[new.key]
        row_id = self._outbox_ids[new.key] = len(self._outbox) + 1
        self._outbox[row_id] = ReplyRow.committed(row_id, thread, (records or (0,))[-1], new, body)
        return row_id

    def _open_reply(self, lease: Lease, row_id: int) -> ReplyRow:
        self._fenced(lease)
        if (row := self._outbox.get(row_id)) is None or not row.is_open:
            raise AlreadyDone(f"outbox row {row_id} is not waiting to be sent")
        if not f"{row.thread}:".startswith(f"{lease.thread}:"):
            raise foreign_row(lease, row_id)
        return row
