"""`SqliteStore`: the port's methods, each run in the writing or the reading thread.

One process opens one file; the gateway makes sure that no second process does.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gateway.storage.append_errors import report_if_failed
from gateway.storage.jobs import NewJob
from gateway.storage.json_bodies import encode_body, encode_record
from gateway.storage.ports import (
    Accepted,
    AnswerStatus,
    Committed,
    InboxEntry,
    Interaction,
    Lease,
    NewEntry,
    NewRecord,
    OutboxRow,
    OutboxState,
    Record,
    RecordKind,
    SentPart,
    TurnCommit,
)
from gateway.storage.sealing import sealed_commit
from gateway.storage.sizes import StoreCounts
from gateway.storage.sqlite import (
    crises,
    inbox,
    interactions,
    jobs,
    log,
    maintenance,
    outbox,
    seals,
    states,
    threads,
)
from gateway.storage.sqlite.blobs import SqliteBlobs
from gateway.storage.sqlite.bursts import SqliteBursts
from gateway.storage.sqlite.connection import Synchronous
from gateway.storage.sqlite.crash_counts import SqliteDeaths
from gateway.storage.sqlite.crises import SqliteCrises
from gateway.storage.sqlite.damage import damage_in
from gateway.storage.sqlite.erasure import SqliteErasure
from gateway.storage.sqlite.expiries import SqliteExpiries
from gateway.storage.sqlite.feedback import SqliteFeedback
from gateway.storage.sqlite.file_changes import SqliteFileChanges
from gateway.storage.sqlite.finished import SqliteFinished
from gateway.storage.sqlite.group_commit import GroupCommit
from gateway.storage.sqlite.identities import SqliteIdentities
from gateway.storage.sqlite.jobs import SqliteJobs
from gateway.storage.sqlite.memories import SqliteMemories
from gateway.storage.sqlite.page_chats import SqlitePage
from gateway.storage.sqlite.pairings import SqlitePairings
from gateway.storage.sqlite.questions import QuestionThreads
from gateway.storage.sqlite.reader import ReadConnection
from gateway.storage.sqlite.search import SqliteSearch
from gateway.storage.sqlite.shield import SqliteShield
from gateway.storage.sqlite.speech import SqliteVoices
from gateway.storage.sqlite.states import SqliteStates
from gateway.storage.sqlite.usage import SqliteUsage
from gateway.storage.sqlite.worker_thread import DatabaseThread
from pipeline.domain.errors import StorageError
from pipeline.domain.ids import ThreadKey


class SqliteStore:
    """The whole port on one SQLite file in WAL mode.

    `synchronous` is "FULL" (an acknowledged write survives power loss) or "NORMAL" (it survives the end of
    the process, but power loss may lose the last writes). Writes run in the order of the calls; a read sees
    every write that was awaited before it.
    """

    def __init__(self, path: Path, *, synchronous: Synchronous = "FULL") -> None:
        self._path = path
        self._group_commit = GroupCommit(path, synchronous=synchronous)
        self._reading = ReadConnection(path)
        self._writer = DatabaseThread("store-writer", self._group_commit)
        self._reader = DatabaseThread("store-reader", self._reading)
        self._questions = QuestionThreads()
        self.pairings = SqlitePairings(lambda: self._writer, lambda: self._reader)
        self.voices = SqliteVoices(lambda: self._writer, lambda: self._reader)
        self.jobs = SqliteJobs(lambda: self._writer, lambda: self._reader)
        self.states = SqliteStates(lambda: self._writer, lambda: self._reader)
        self.file_changes = SqliteFileChanges(lambda: self._writer, lambda: self._reader)
        self.blobs = SqliteBlobs(lambda: self._writer, lambda: self._reader, self._group_commit)
        self.expiries = SqliteExpiries(lambda: self._writer, lambda: self._reader)
        self.feedback = SqliteFeedback(lambda: self._writer, lambda: self._reader)
        self.usage = SqliteUsage(lambda: self._writer, lambda: self._reader)
        self.identities = SqliteIdentities(lambda: self._writer, lambda: self._reader)
        self.search = SqliteSearch(lambda: self._writer, lambda: self._reader)
        self.crises = SqliteCrises(lambda: self._writer, lambda: self._reader)
        self.memories = SqliteMemories(lambda: self._writer, lambda: self._reader, self._group_commit)
        self.shield = SqliteShield(lambda: self._writer, lambda: self._reader)
        self.deaths = SqliteDeaths(lambda: self._writer)
        self.finished = SqliteFinished(lambda: self._reader)
        self.bursts = SqliteBursts(lambda: self._writer)
        self.page = SqlitePage(lambda: self._writer, lambda: self._reader, self._group_commit)
        self.erasure = SqliteErasure(lambda: self._writer, lambda: self._reader, self._group_commit)

    @property
    def erasures(self) -> int:
        return self._group_commit.erasures

    # -- life ---------------------------------------------------------------------------------
    async def open(self) -> None:
        self._writer = DatabaseThread("store-writer", self._group_commit)
        self._reader = DatabaseThread("store-reader", self._reading)
        await self._writer.start()
        try:
            await self._reader.start()
        except BaseException:
            await self._writer.stop()
            raise
        try:
            self._questions.reset(await self._reader.submit(QuestionThreads.read))
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        # The reader first: the log can be copied into the file completely only without readers.
        await self._reader.stop()
        await self._writer.stop()

    async def check_writable(self) -> None:
        await self._writer.submit(maintenance.write)
        await self._writer.submit(maintenance.take_back)

    async def find_damage(self) -> tuple[str, ...]:
        return await damage_in(self._path)

    async def counts(self) -> StoreCounts:
        return await self._reader.submit(maintenance.counts)

    @property
    def commits(self) -> int:
        """Number of transactions; smaller than `calls` if calls shared a commit."""
        return self._group_commit.commits

    @property
    def calls(self) -> int:
        """Number of write calls."""
        return self._group_commit.calls

    # -- inbox --------------------------------------------------------------------------------
    async def accept(self, entry: NewEntry, *, limit: int | None = None, begin: bool = False) -> Accepted:
        body = encode_body(entry.body)
        return await self._writer.submit(lambda db: inbox.accept(db, entry, body, limit, begin=begin))

    async def accept_with(self, entry: NewEntry, changed: Sequence[NewJob]) -> Accepted:
        body, bodies = encode_body(entry.body), [(job, encode_body(job.body)) for job in changed]

        def work(db: sqlite3.Connection) -> Accepted:
            for job, new in bodies:
                jobs.change(db, job, new)
            return inbox.accept(db, entry, body, None)

        return await self._writer.submit(work)

    async def open_threads(self) -> tuple[str, ...]:
        return await self._reader.submit(inbox.open_threads)

    async def next_entry(self, thread: str) -> InboxEntry | None:
        found = await self._reader.submit(lambda db: inbox.open_entries(db, thread, limit=1))
        return found[0] if found else None

    async def open_entries(self, thread: str) -> tuple[InboxEntry, ...]:
        return await self._reader.submit(lambda db: inbox.open_entries(db, thread))

    async def newest_entries(self, *, limit: int) -> tuple[tuple[str, Mapping[str, Any]], ...]:
        return await self._reader.submit(lambda db: inbox.newest(db, limit))

    async def start_attempt(self, lease: Lease, seq: int) -> int:
        return await self._writer.submit(lambda db: inbox.start_attempt(db, lease, seq))

    async def discount_attempt(self, lease: Lease, seq: int) -> None:
        await self._writer.submit(lambda db: inbox.discount_attempt(db, lease, seq))

    async def cancel_open(self, thread: str, *, up_to_seq: int | None = None, from_seq: int = 0) -> int:
        return await self._writer.submit(lambda db: inbox.cancel_open(db, thread, up_to_seq, from_seq))

    # -- leases -------------------------------------------------------------------------------
    async def acquire_lease(self, thread: str, owner: str, *, ttl_s: float, now: float) -> Lease | None:
        return await self._writer.submit(
            lambda db: threads.acquire(db, thread, owner, expires_at=now + ttl_s, now=now)
        )

    async def renew_lease(self, lease: Lease, *, ttl_s: float, now: float) -> Lease:
        return await self._writer.submit(lambda db: threads.renew(db, lease, expires_at=now + ttl_s))

    async def release_lease(self, lease: Lease) -> None:
        await self._writer.submit(lambda db: threads.release(db, lease))

    async def break_leases(self) -> int:
        return await self._writer.submit(threads.break_all)

    # -- log ----------------------------------------------------------------------------------
    def append(
        self, lease: Lease, records: Sequence[NewRecord], *, attempt: int | None = None
    ) -> asyncio.Future[tuple[int, ...]]:
        try:
            encoded = [(record, encode_record(record.kind, record.body)) for record in records]
            future = self._writer.submit(lambda db: log.append(db, lease, encoded, attempt))
        except StorageError as error:
            future = asyncio.get_running_loop().create_future()
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
        return await self._reader.submit(
            lambda db: log.read(
                db,
                thread,
                after=after,
                before=before,
                kinds=kinds,
                session_id=session_id,
                message_id=message_id,
                limit=limit,
            )
        )

    async def threads_of(self, channel: str, account: str, *, limit: int, chat: str = "") -> tuple[str, ...]:
        prefix = ThreadKey(channel=channel, account=account, chat=f"{chat}x").encode().removesuffix("x")
        return await self._reader.submit(lambda db: threads.spoken_in(db, prefix, limit))

    # -- turn ---------------------------------------------------------------------------------
    async def commit_turn(self, lease: Lease, commit: TurnCommit) -> Committed:
        commit, sealed_as, key = sealed_commit(commit) if commit.sealed else (commit, "", b"")
        records = [(record, encode_record(record.kind, record.body)) for record in commit.records]
        rows = [(row, encode_body(row.body)) for row in commit.outbox]
        questions = [(question, encode_body(question.body)) for question in commit.interactions]
        work = [(job, encode_body(job.body)) for job in commit.jobs]
        kept = [(state, encode_body(state.body)) for state in commit.states]
        ended = [(commit.seq, commit.body), *((one.seq, one.body) for one in commit.also)]
        left = [(seq, encode_body(body)) for seq, body in ended if body is not None]
        for question in commit.interactions:
            self._questions.note(question.thread, question.expires_at)

        def apply(db: sqlite3.Connection) -> Committed:
            for seq, body in left:
                inbox.replace_body(db, seq, body)
                self._group_commit.forgot = True
            committed = log.commit_turn(db, lease, commit, records, rows)
            if key:
                seals.put(db, sealed_as, lease.thread, key)
            if commit.forget_session:
                interactions.forget(db, commit.forget_session)
            for question, body in questions:
                interactions.add_new(db, question, body)
            for job, body in work:
                jobs.add(db, job, body)
            for state, body in kept:
                states.write(db, state, body)
            if commit.crisis is not None:
                crises.add(db, commit.crisis)
            return committed

        return await self._writer.submit(apply)

    # -- outbox -------------------------------------------------------------------------------
    async def outbox_open(self, thread: str | None = None) -> tuple[OutboxRow, ...]:
        return await self._reader.submit(lambda db: outbox.open_rows(db, thread))

    async def mark_sending(self, lease: Lease, row_id: int) -> None:
        await self._writer.submit(lambda db: outbox.mark_sending(db, lease, row_id))

    async def mark_sent(
        self, lease: Lease, row_id: int, receipt: str, at: float, *, forget: bool = False
    ) -> None:
        def work(db: sqlite3.Connection) -> None:
            self._forget(db, row_id, really=forget)
            outbox.mark_sent(db, lease, row_id, receipt, at)

        await self._writer.submit(work)

    async def mark_retry(
        self, lease: Lease, row_id: int, error: str, not_before: float, *, maybe_sent: bool = False
    ) -> None:
        state: OutboxState = "sending" if maybe_sent else "ready"
        await self._writer.submit(lambda db: outbox.mark_retry(db, lease, row_id, state, error, not_before))

    async def mark_failed(self, lease: Lease, row_id: int, error: str, *, forget: bool = False) -> None:
        def work(db: sqlite3.Connection) -> None:
            self._forget(db, row_id, really=forget)
            outbox.mark_failed(db, lease, row_id, error)

        await self._writer.submit(work)

    def _forget(self, db: sqlite3.Connection, row_id: int, *, really: bool) -> None:
        if really:
            outbox.forget(db, row_id)
            self._group_commit.erased()

    async def receipts(self, chat: str) -> tuple[str, ...]:
        return await self._reader.submit(lambda db: outbox.receipts(db, chat))

    async def outbox_row(self, row: int | str) -> OutboxRow | None:
        return await self._reader.submit(lambda db: outbox.one(db, row))

    async def record_sent_part(self, lease: Lease, key: str, part: SentPart) -> None:
        await self._writer.submit(lambda db: outbox.record_sent_part(db, lease, key, part))

    async def shown(self, key: str) -> tuple[SentPart, ...]:
        return await self._reader.submit(lambda db: outbox.shown(db, key))

    # -- sessions -----------------------------------------------------------------------------
    async def current_session(self, thread: str) -> str | None:
        return await self._reader.submit(lambda db: log.current_session(db, thread))

    # -- pending interactions -----------------------------------------------------------------
    async def open_interaction(self, interaction: Interaction) -> None:
        body = encode_body(interaction.body)
        self._questions.note(interaction.thread, interaction.expires_at)
        await self._writer.submit(lambda db: interactions.add(db, interaction, body))

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
        body = "" if entry is None else encode_body(entry.body)

        def answer(db: sqlite3.Connection) -> AnswerStatus:
            if entry is not None and inbox.is_known(db, entry.dedupe_key):
                return "already_answered"
            status = interactions.answer(db, interaction_id, thread=thread, user=user, choice=choice, now=now)
            if status == "accepted" and entry is not None:
                accepted = inbox.accept(db, entry, body, None)
                if finished:
                    inbox.finish(db, entry.thread, accepted.seq, "answered", now)
            return status

        return await self._writer.submit(answer)

    async def interaction(self, interaction_id: str) -> tuple[Interaction, str | None] | None:
        return await self._reader.submit(lambda db: interactions.one(db, interaction_id))

    async def pending_interactions(self, thread: str, *, now: float) -> tuple[Interaction, ...]:
        if not self._questions.may_have(thread, now):
            return ()
        return await self._reader.submit(lambda db: interactions.pending(db, thread, now))
