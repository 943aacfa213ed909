"""The port of the gateway's store. Every implementation passes tests/contracts/test_store.py.

Terms: an *entry* is one accepted inbound item; a *record* is one line of a thread's append-only log; an
*outbox row* is one reply to send. Times are Unix seconds, bodies plain JSON; all methods raise StorageError.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Final, Literal, Protocol

from gateway.storage.books import Books
from gateway.storage.bursts import BurstBook as BurstBook  # noqa: PLC0414 - a part of the port
from gateway.storage.bursts import FinishedToo
from gateway.storage.crises import CrisisRecord
from gateway.storage.expiries import InteractionKind
from gateway.storage.inbox_items import EntryKind, StoredItem
from gateway.storage.jobs import NewJob
from gateway.storage.lease import NO_LEASE as NO_LEASE  # noqa: PLC0414 - as above
from gateway.storage.lease import Lease as Lease  # noqa: PLC0414 - as above
from gateway.storage.sizes import StoreCounts
from gateway.storage.states import StateWrite
from pipeline.domain.frozen import dataclass
from pipeline.domain.messages import Mode

RecordKind = Literal["session", "user", "step", "assistant", "error", "notice", "summary", "title", "model"]
VISIBLE_KINDS: tuple[RecordKind, ...] = ("session", "user", "assistant", "error", "notice")
OutboxState = Literal["ready", "sending", "sent", "failed"]
Outcome = Literal["answered", "error", "cancelled", "command", "declined"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEntry:
    """An inbound item to accept."""

    dedupe_key: str
    thread: str
    message_id: str
    kind: EntryKind
    body: Mapping[str, Any]
    received_at: float
    seals: bool = False
    """It may take the thread off the record: what is accepted behind it is sealed while it is unfinished."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The result of `accept`: the entry's place in the queue, and whether it was already there."""

    seq: int
    """0 when the queue was full."""
    message_id: str
    duplicate: bool
    full: bool = False
    """The entry is new and was not accepted, because its thread's queue had reached the limit."""
    begun: bool = False
    """The entry is the first of its thread, and its first attempt is counted."""
    sealed: bool = False
    """The entry was stored sealed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxEntry:
    """An accepted item that is not finished."""

    seq: int
    thread: str
    message_id: str
    kind: EntryKind
    body: Mapping[str, Any]
    item: StoredItem
    """What the body holds, decoded."""
    received_at: float
    attempts: int
    """How often work on it was started."""
    excused: int
    """The attempts among them that were interrupted from outside, by a shutdown or the store."""
    cancelled: bool
    begun: bool = False
    """It comes from `accept`, not from a read: its first attempt is counted, but not yet in `attempts`."""
    joined: int = 0
    """The seq of the earlier entry whose turn answers this one too; 0 if it has a separate turn."""
    steered: bool = False
    """It joined a run that was in progress."""
    sealed: bool = False
    """Its body is stored sealed: once it is finished, it cannot be read any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRecord:
    """A record to append."""

    kind: RecordKind
    session_id: str
    message_id: str
    body: Mapping[str, Any]
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A record as stored; `id` grows within its thread."""

    id: int
    thread: str
    kind: RecordKind
    session_id: str
    message_id: str
    body: Mapping[str, Any]
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NewOutboxRow:
    """A reply to send. `key` is unique: adding the same key twice adds nothing."""

    key: str
    message_id: str
    body: Mapping[str, Any]
    created_at: float
    state: OutboxState = "ready"
    """In which the row begins: sending, with one attempt counted, for a reply that is posted at once; sent,
    with the entry's id as its receipt, for one whose channel shows what is on record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxRow:
    """A reply as stored. `entry_id` is the log record it shows."""

    id: int
    key: str
    thread: str
    message_id: str
    entry_id: int
    body: Mapping[str, Any]
    state: OutboxState
    attempts: int
    not_before: float
    created_at: float
    receipt: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SentPart:
    """A message on the platform that shows, or will show, a part of a reply."""

    part: int
    """Its index in the reply, from 0; a question of the turn has a far larger one."""
    native_id: str
    """Empty for a preview that was about to be posted: it may exist or not."""
    final: bool
    """Whether it shows the final text; otherwise it is a placeholder or a preview."""
    at: float = 0.0
    """Unix time at which it was recorded."""


ASKS: Final = "asks"
"""In the body of an interaction that offers no choices: what it asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interaction:
    """A question that waits for a person's answer: single use, bound to people and to one action."""

    id: str
    thread: str
    session_id: str
    kind: InteractionKind
    options: tuple[str, ...]
    allowed_users: tuple[str, ...]  # empty: no user may answer
    action_hash: str
    created_at: float
    expires_at: float
    body: Mapping[str, Any] = field(default_factory=dict)

    @property
    def asks(self) -> str:
        """`choice`, `words` where any words are the answer, or `nothing` where a run waits for a time."""
        return str(self.body.get(ASKS, "choice"))


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCommit:
    """Everything that makes a turn final, applied in one transaction or not at all."""

    seq: int
    """The inbox entry that this finishes."""
    outcome: Outcome
    records: tuple[NewRecord, ...] = ()
    outbox: tuple[NewOutboxRow, ...] = ()
    """Each row's entry_id becomes the id of the last record of `records`."""
    interactions: tuple[Interaction, ...] = ()
    """Interactions to open. An existing id is not changed, because its question was asked already."""
    jobs: tuple[NewJob, ...] = ()
    states: tuple[StateWrite, ...] = ()
    """If one was changed since it was read, the commit raises StateChanged and nothing is written."""
    crisis: CrisisRecord | None = None
    """The record of a crisis response, which is what the turn commits."""
    body: Mapping[str, Any] | None = None
    """Replaces the entry's body if that must be forgotten; None keeps it."""
    also: tuple[FinishedToo, ...] = ()
    """Later entries of the thread that the turn answers too; they get the same outcome."""
    forget_session: str = ""
    """The id of an off-the-record session whose questions are deleted."""
    sealed: bool = False
    """The words of its records are stored sealed, until the reply is forgotten."""
    mode: Mode | None = None
    """The mode of the session that it begins; None if it begins none. The thread's entries are stored sealed
    while it is off the record."""
    at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """The ids given by a commit, in the order of its records and rows."""

    record_ids: tuple[int, ...]
    outbox_ids: tuple[int, ...]


AnswerStatus = Literal["accepted", "unknown", "already_answered", "expired", "not_allowed", "invalid_choice"]


class Store(Books, Protocol):
    """The whole store."""

    async def open(self) -> None:
        """Create or migrate the schema. Raises StorageError for a newer schema than this program's."""

    async def close(self) -> None:
        """Finish queued writes and release everything. Safe to call twice."""

    async def check_writable(self) -> None:
        """Write and delete a probe; raises StorageError with the reason."""

    async def find_damage(self) -> tuple[str, ...]:
        """The damage found, one line each. May take minutes, but blocks nothing. Raises StorageError."""

    async def counts(self) -> StoreCounts: ...

    @property
    def erasures(self) -> int | None:
        """How often logs were rewritten, counted before it shows; None where other processes do it too."""

    @property
    def bursts(self) -> BurstBook:
        """Entries that are answered together."""

    # -- inbox --------------------------------------------------------------------------------
    async def accept(self, entry: NewEntry, *, limit: int | None = None, begin: bool = False) -> Accepted:
        """Dedupe and enqueue in one statement; durable when it returns. With `limit`, a new entry is not
        accepted while its thread has that many unfinished ones; a redelivery is still recognised. The body is
        stored sealed while the thread is off the record (`gateway.storage.sealing`).

        With `begin`, for a turn that starts at once, the statement counts one attempt at a new entry if its
        thread has no other unfinished one.
        """

    async def accept_with(self, entry: NewEntry, changed: Sequence[NewJob]) -> Accepted:
        """Accept the entry, and give open jobs of these kinds, owners and keys their new due times and
        bodies, all or nothing; jobs that are gone are left out."""

    async def open_threads(self) -> tuple[str, ...]:
        """Threads with unfinished entries, longest waiting first."""

    async def next_entry(self, thread: str) -> InboxEntry | None:
        """The oldest unfinished entry of `thread`."""

    async def open_entries(self, thread: str) -> tuple[InboxEntry, ...]:
        """All unfinished entries of `thread`, oldest first."""

    async def newest_entries(self, *, limit: int) -> tuple[tuple[str, Mapping[str, Any]], ...]:
        """Thread and body of the newest `limit` entries, finished ones included, newest first."""

    async def start_attempt(self, lease: Lease, seq: int) -> int:
        """Count one attempt at the entry, durably, before any work; the new count. FenceLost if stale."""

    async def discount_attempt(self, lease: Lease, seq: int) -> None:
        """Count an attempt as interrupted from outside; at most all of them. FenceLost, AlreadyDone."""

    async def cancel_open(self, thread: str, *, up_to_seq: int | None = None, from_seq: int = 0) -> int:
        """Mark the unfinished entries of `thread`, between the seqs where given, cancelled; how many."""

    # -- leases -------------------------------------------------------------------------------
    async def acquire_lease(self, thread: str, owner: str, *, ttl_s: float, now: float) -> Lease | None:
        """The lease with a new, higher fence, or None while another owner's lease has not expired."""

    async def renew_lease(self, lease: Lease, *, ttl_s: float, now: float) -> Lease:
        """The same lease for longer. Raises FenceLost when it is no longer ours."""

    async def release_lease(self, lease: Lease) -> None:
        """Release it; does nothing if it is no longer ours. The fence is kept."""

    async def break_leases(self) -> int:
        """Expire every lease; how many. Only for a start that has made sure that no other process runs."""

    # -- log and turn -------------------------------------------------------------------------
    def append(
        self, lease: Lease, records: Sequence[NewRecord], *, attempt: int | None = None
    ) -> asyncio.Future[tuple[int, ...]]:
        """Queue records for the thread's log, in order with every other write of this store.

        With `attempt`, an unfinished entry's seq, one attempt at it is counted in the same transaction, as
        by `start_attempt`. Returns at once; the future gives the ids, or FenceLost, or StorageError. A `user`
        record for a (thread, message_id) that already has one is not added; the existing id is returned.
        """

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
        """Records with id > `after` and id < `before`, oldest first; with `limit`, the NEWEST of those."""

    async def current_session(self, thread: str) -> str | None:
        """The id of the newest session: that of the newest record of kind "session"."""

    async def threads_of(self, channel: str, account: str, *, limit: int, chat: str = "") -> tuple[str, ...]:
        """Threads with records or waiting entries whose chat ids begin with `chat`, without the deleted ones:
        those without records first, then by newest record."""

    async def commit_turn(self, lease: Lease, commit: TurnCommit) -> Committed:
        """Apply `commit` in one transaction after checking the fence.

        Raises FenceLost, or AlreadyDone when one of the entries is finished; then nothing is written.
        """

    # -- outbox -------------------------------------------------------------------------------
    async def outbox_open(self, thread: str | None = None) -> tuple[OutboxRow, ...]:
        """Rows in state ready or sending, oldest first."""

    async def mark_sending(self, lease: Lease, row_id: int) -> None:
        """Durably set state sending and count one attempt, before the platform is called. This and the three
        methods below raise FenceLost unless `lease` is current and that of the row's thread or account, and
        AlreadyDone for a row that is sent, failed or unknown."""

    async def mark_sent(
        self, lease: Lease, row_id: int, receipt: str, at: float, *, forget: bool = False
    ) -> None:
        """Set state sent, with the receipt; delete what `record_sent_part` stored for the row's key. With
        `forget`, the same transaction erases the row's body and the text of every record of its message."""

    async def mark_retry(
        self, lease: Lease, row_id: int, error: str, not_before: float, *, maybe_sent: bool = False
    ) -> None:
        """Set state ready with the error; no attempt before the given time. With `maybe_sent` the
        state stays sending, so that the next process knows that the reply may have arrived."""

    async def mark_failed(self, lease: Lease, row_id: int, error: str, *, forget: bool = False) -> None:
        """Set state failed, with the reason. Deletes and erases as `mark_sent` does."""

    async def outbox_row(self, row: int | str) -> OutboxRow | None:
        """The row with that id, or, for a string, with that key."""

    async def receipts(self, chat: str) -> tuple[str, ...]:
        """Receipts of the last replies to the thread `chat` and its topics: newest first, at most 20."""

    async def record_sent_part(self, lease: Lease, key: str, part: SentPart) -> None:
        """Store which message shows a part of the reply under `key`, replacing an earlier value. `lease` is
        that of the reply's thread or account. Raises FenceLost."""

    async def shown(self, key: str) -> tuple[SentPart, ...]:
        """The parts that `record_sent_part` stored for `key`, by part."""

    # -- pending interactions -----------------------------------------------------------------
    async def open_interaction(self, interaction: Interaction) -> None: ...

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
        """Record the one answer, atomically: exactly one of many concurrent answers is accepted.

        With `entry`, an accepted answer also enqueues it, in the same transaction and without the queue's
        limit. With `finished` the entry needs no work: it is in the inbox only so that `accept` recognises a
        redelivery. If its dedupe key exists already, the result is `already_answered` and nothing changes.
        """
        ...

    async def interaction(self, interaction_id: str) -> tuple[Interaction, str | None] | None:
        """The interaction, answered or not, and its answer's choice; None if there is no such id."""

    async def pending_interactions(self, thread: str, *, now: float) -> tuple[Interaction, ...]:
        """Unanswered, unexpired interactions, oldest first."""
