"""`PostgresStore`: the port's methods on a Postgres database, which is the record of several processes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from gateway.storage.append_errors import report_if_failed
from gateway.storage.jobs import NewJob
from gateway.storage.json_bodies import SEALED_TEXT
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
    Record,
    RecordKind,
    SentPart,
    TurnCommit,
)
from gateway.storage.postgres import answers, crises, entries, log, operations, seals
from gateway.storage.postgres.books import PostgresBooks
from gateway.storage.postgres.call_queue import Row
from gateway.storage.postgres.database import Connection, Database, Use
from gateway.storage.postgres.jobs import PostgresJobs
from gateway.storage.postgres.migration_steps import STEPS, MigrationStep
from gateway.storage.postgres.operations import Operation, plain
from gateway.storage.postgres.owners import PostgresOwners
from gateway.storage.postgres.small_books import PostgresBursts, PostgresExpiries, PostgresStates
from gateway.storage.postgres.statements import changed
from gateway.storage.sealing import SealNeeded, new_key
from gateway.storage.sizes import StoreCounts
from pipeline.domain.errors import StorageError
from pipeline.domain.ids import ThreadKey

_BREAK = "UPDATE threads SET owner = NULL WHERE owner IS NOT NULL"
_PROBE = "INSERT INTO probe (n, filler) VALUES (1, ''::bytea) ON CONFLICT (n) DO NOTHING"
_TAKE_BACK = "DELETE FROM probe"


class PostgresStore(PostgresBooks):
    """The whole port in the schema `parlour` of one database.

    Writes run in the order of the calls, those that wait together in one transaction; a read sees every write
    that was awaited before it. Where the connection was lost, a write that raises StorageError may have been
    committed.
    """

    def __init__(self, url: str, *, use: Use = "beside", steps: Sequence[MigrationStep] = STEPS) -> None:
        """`use` says beside which other gateways it can be opened."""
        self.url = url
        self.database = Database(url, use=use, steps=steps)
        super().__init__(self.database)
        self.jobs = PostgresJobs(self.database)
        self.states = PostgresStates(self.database)
        self.expiries = PostgresExpiries(self.database)
        self.bursts = PostgresBursts(self.database)
        self.owners = PostgresOwners(self.database)

    erasures = None
    """Other processes erase too."""

    # -- life ---------------------------------------------------------------------------------
    async def open(self) -> None:
        await self.database.open()

    async def close(self) -> None:
        await self.database.close()

    async def check_writable(self) -> None:
        await self.database.write(lambda db: db.execute(_PROBE))
        await self.database.write(lambda db: db.execute(_TAKE_BACK))

    async def find_damage(self) -> tuple[str, ...]:
        # The server checks its own pages (data_checksums) and reports a damaged one in its log.
        return ()

    async def counts(self) -> StoreCounts:
        return StoreCounts(**dict((await self.database.fetch(entries.COUNTS))[0]))

    # -- inbox --------------------------------------------------------------------------------
    async def accept(self, entry: NewEntry, *, limit: int | None = None, begin: bool = False) -> Accepted:
        try:
            return await self.database.apply(operations.accept(entry, limit=limit, begin=begin))
        except SealNeeded:
            sealed = operations.accept(entry, limit=limit, begin=begin, key=new_key())
            return await self.database.apply(sealed)

    async def accept_with(self, entry: NewEntry, changed: Sequence[NewJob]) -> Accepted:
        return await self.database.write(lambda db: answers.accept_with(db, entry, changed))

    async def open_threads(self) -> tuple[str, ...]:
        return tuple(row[0] for row in await self.database.fetch(entries.OPEN_THREADS))

    async def next_entry(self, thread: str) -> InboxEntry | None:
        rows = await self.database.fetch(entries.OPEN_ENTRIES, thread, 1)
        return entries.entry_of(thread, rows[0], await self._keys(rows)) if rows else None

    async def open_entries(self, thread: str) -> tuple[InboxEntry, ...]:
        rows = await self.database.fetch(entries.OPEN_ENTRIES, thread, None)
        keys = await self._keys(rows)
        return tuple(entries.entry_of(thread, row, keys) for row in rows)

    async def newest_entries(self, *, limit: int) -> tuple[tuple[str, Mapping[str, Any]], ...]:
        rows = await self.database.fetch(entries.NEWEST_ENTRIES, limit)
        keys = await self._keys(rows)
        return tuple((row["key"], seals.readable(keys, row["message_id"], row["body"])) for row in rows)

    async def start_attempt(self, lease: Lease, seq: int) -> int:
        return await self.database.apply(operations.start_attempt(lease, seq))

    async def discount_attempt(self, lease: Lease, seq: int) -> None:
        await self.database.apply(operations.discount_attempt(lease, seq))

    async def cancel_open(self, thread: str, *, up_to_seq: int | None = None, from_seq: int = 0) -> int:
        return await self.database.apply(operations.cancel(thread, from_seq, up_to_seq))

    # -- leases -------------------------------------------------------------------------------
    async def acquire_lease(self, thread: str, owner: str, *, ttl_s: float, now: float) -> Lease | None:
        return await self.database.apply(operations.acquire(thread, owner, until=now + ttl_s, now=now))

    async def renew_lease(self, lease: Lease, *, ttl_s: float, now: float) -> Lease:
        return await self.database.apply(operations.renew(lease, until=now + ttl_s))

    async def release_lease(self, lease: Lease) -> None:
        await self.database.apply(operations.release(lease))

    async def break_leases(self) -> int:
        return changed(await self.database.write(lambda db: db.execute(_BREAK)))

    # -- log and turn -------------------------------------------------------------------------
    def append(
        self, lease: Lease, records: Sequence[NewRecord], *, attempt: int | None = None
    ) -> asyncio.Future[tuple[int, ...]]:
        try:
            future = self.database.apply(operations.append(lease, records, attempt))
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
        sql, values = log.read_statement(
            thread,
            after=after,
            before=before,
            kinds=kinds,
            session_id=session_id,
            message_id=message_id,
            limit=limit,
        )
        rows = await self.database.fetch(sql, *values)
        keys = await self._keys(rows)
        found = [log.record_of(thread, row, keys) for row in rows]
        if limit is not None:
            found.reverse()
        return tuple(found)

    async def current_session(self, thread: str) -> str | None:
        rows = await self.database.fetch(log.CURRENT_SESSION, thread)
        return str(rows[0][0]) if rows else None

    async def threads_of(self, channel: str, account: str, *, limit: int, chat: str = "") -> tuple[str, ...]:
        prefix = ThreadKey(channel=channel, account=account, chat=f"{chat}x").encode().removesuffix("x")
        return tuple(row[0] for row in await self.database.fetch(entries.SPOKEN_IN, prefix, limit))

    async def commit_turn(self, lease: Lease, commit: TurnCommit) -> Committed:
        operation = operations.commit(lease, commit)
        crisis = commit.crisis
        if crisis is None:
            return await self.database.apply(operation)

        async def work(db: Connection) -> Committed:
            committed = await answers.applied(db, operation)
            await crises.add(db, crisis)
            return committed

        return await self.database.write(work)

    # -- outbox -------------------------------------------------------------------------------
    async def outbox_open(self, thread: str | None = None) -> tuple[OutboxRow, ...]:
        if thread is None:
            rows = await self.database.fetch(entries.ALL_REPLIES)
        else:
            rows = await self.database.fetch(entries.REPLIES_OF_THREAD, thread)
        return tuple(entries.reply_of(row) for row in rows)

    async def mark_sending(self, lease: Lease, row_id: int) -> None:
        await self.database.apply(operations.reply(lease, row_id, "sending", attempts=1))

    async def mark_sent(
        self, lease: Lease, row_id: int, receipt: str, at: float, *, forget: bool = False
    ) -> None:
        operation = operations.reply(lease, row_id, "sent", receipt=plain(receipt), sent_at=at, forget=forget)
        await self._forget(operation, forget=forget)

    async def mark_retry(
        self, lease: Lease, row_id: int, error: str, not_before: float, *, maybe_sent: bool = False
    ) -> None:
        state = "sending" if maybe_sent else "ready"
        operation = operations.reply(lease, row_id, state, error=plain(error), not_before=not_before)
        await self.database.apply(operation)

    async def mark_failed(self, lease: Lease, row_id: int, error: str, *, forget: bool = False) -> None:
        operation = operations.reply(lease, row_id, "failed", error=plain(error), forget=forget)
        await self._forget(operation, forget=forget)

    async def outbox_row(self, row: int | str) -> OutboxRow | None:
        sql = entries.REPLY_BY_KEY if isinstance(row, str) else entries.REPLY
        rows = await self.database.fetch(sql, row)
        return entries.reply_of(rows[0]) if rows else None

    async def receipts(self, chat: str) -> tuple[str, ...]:
        return tuple(row[0] for row in await self.database.fetch(entries.RECEIPTS, chat))

    async def record_sent_part(self, lease: Lease, key: str, part: SentPart) -> None:
        await self.database.apply(operations.sent_part(lease, key, part))

    async def shown(self, key: str) -> tuple[SentPart, ...]:
        return tuple(entries.part_of(row) for row in await self.database.fetch(entries.SHOWN, key))

    # -- pending interactions -----------------------------------------------------------------
    async def open_interaction(self, interaction: Interaction) -> None:
        await self.database.write(lambda db: answers.ask(db, interaction))

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
        return await self.database.write(
            lambda db: answers.answer(
                db,
                interaction_id,
                thread=thread,
                user=user,
                choice=choice,
                now=now,
                entry=entry,
                finished=finished,
            )
        )

    async def interaction(self, interaction_id: str) -> tuple[Interaction, str | None] | None:
        rows = await self.database.fetch(entries.QUESTION, interaction_id)
        if not rows:
            return None
        return entries.question_of(rows[0], await self._keys(rows, "id")), rows[0]["choice"]

    async def pending_interactions(self, thread: str, *, now: float) -> tuple[Interaction, ...]:
        rows = await self.database.fetch(entries.PENDING, thread, now)
        keys = await self._keys(rows, "id")
        return tuple(entries.question_of(row, keys) for row in rows)

    # -- inside -------------------------------------------------------------------------------
    async def _keys(self, rows: Sequence[Row], name: str = "message_id") -> seals.Keys:
        """The keys of those of the rows that are sealed, by what `name` is the column of."""
        wanted = [row[name] for row in rows if row["body"].startswith(SEALED_TEXT)]
        found = await self.database.fetch(seals.KEYS, wanted) if wanted else ()
        return {row["name"]: row["key"] for row in found}

    async def _forget(self, operation: Operation[None], *, forget: bool) -> None:
        await self.database.apply(operation)
        if forget:
            seals.overwrite_keys(self.database)
