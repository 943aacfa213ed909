"""The rows of MemoryStore: mutable inside, returned as the port's frozen values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gateway.storage.inbox_items import EntryKind, item_of
from gateway.storage.json_bodies import FORGOTTEN, SEALED_TEXT, decode_body, encode_body, encode_record
from gateway.storage.memory.seals import Keys, kept_body, readable
from gateway.storage.ports import (
    Accepted,
    InboxEntry,
    Interaction,
    NewEntry,
    NewOutboxRow,
    NewRecord,
    OutboxRow,
    OutboxState,
    Outcome,
    Record,
)
from pipeline.domain.ids import ThreadKey


@dataclass(slots=True, kw_only=True)
class EntryRow:
    """An inbox entry; finished once `outcome` is set."""

    seq: int
    thread: str
    message_id: str
    kind: EntryKind
    body: str
    received_at: float
    attempts: int = 0
    excused: int = 0
    cancelled: bool = False
    outcome: Outcome | None = None
    finished_at: float = 0.0
    joined: int = 0
    steered: bool = False
    seals: bool = False
    keys: Keys

    @classmethod
    def new(cls, seq: int, entry: NewEntry, keys: Keys, *, begun: bool, sealed: bool) -> EntryRow:
        """The row of a newly accepted entry; the key of a sealed one is put into `keys`."""
        return cls(
            keys=keys,
            seals=entry.seals,
            seq=seq,
            thread=entry.thread,
            message_id=entry.message_id,
            kind=entry.kind,
            body=kept_body(entry.body, keys, entry.message_id if sealed else ""),
            received_at=entry.received_at,
            attempts=int(begun),
        )

    @property
    def accepted(self) -> Accepted:
        """What `accept` returns for the entry when it is new."""
        begun = self.attempts > 0
        sealed = self.body.startswith(SEALED_TEXT)
        return Accepted(seq=self.seq, message_id=self.message_id, duplicate=False, begun=begun, sealed=sealed)

    def view(self) -> InboxEntry:
        """The entry as the port's value."""
        body = readable(self.body, self.keys, self.message_id)
        return InboxEntry(
            seq=self.seq,
            thread=self.thread,
            message_id=self.message_id,
            kind=self.kind,
            body=body,
            item=item_of(self.kind, self.thread, self.message_id, self.received_at, body),
            received_at=self.received_at,
            attempts=self.attempts,
            excused=self.excused,
            cancelled=self.cancelled,
            joined=self.joined,
            steered=self.steered,
            sealed=self.body.startswith(SEALED_TEXT),
        )


@dataclass(slots=True, kw_only=True)
class LogRow:
    """A record, its body as text."""

    id: int
    record: NewRecord
    body: str
    keys: Keys

    def passes(
        self,
        after: int,
        before: int | None,
        kinds: Collection[str] | None,
        session_id: str | None,
        message_id: str | None,
    ) -> bool:
        """Whether `Store.read_log` with these filters returns it."""
        return (
            self.id > after
            and (before is None or self.id < before)
            and (kinds is None or self.record.kind in kinds)
            and (session_id is None or self.record.session_id == session_id)
            and (message_id is None or self.record.message_id == message_id)
        )

    def view(self, thread: str) -> Record:
        """The record as the port's value."""
        return Record(
            id=self.id,
            thread=thread,
            kind=self.record.kind,
            session_id=self.record.session_id,
            message_id=self.record.message_id,
            body=readable(self.body, self.keys, self.record.message_id),
            at=self.record.at,
        )


@dataclass(slots=True, kw_only=True)
class ReplyRow:
    """An outbox row."""

    id: int
    new: NewOutboxRow
    thread: str
    entry_id: int
    body: str
    state: OutboxState = "ready"
    attempts: int = 0
    not_before: float = 0.0
    receipt: str = ""
    error: str = ""
    sent_at: float = 0.0

    @classmethod
    def committed(cls, row_id: int, thread: str, entry_id: int, new: NewOutboxRow, body: str) -> ReplyRow:
        """The row of a newly committed reply."""
        row = cls(id=row_id, new=replace(new, body={}), thread=thread, entry_id=entry_id, body=body)
        row.state, row.attempts = new.state, int(new.state == "sending")
        if new.state == "sent":
            row.receipt, row.sent_at = str(entry_id), new.created_at
        return row

    @property
    def is_open(self) -> bool:
        """Whether it still has to be sent."""
        return self.state in ("ready", "sending")

    @staticmethod
    def newest_receipts(rows: Iterable[ReplyRow], chat: str) -> tuple[str, ...]:
        """Receipts of the last replies to the thread `chat` and its topics, newest first."""
        views = [row.view() for row in sorted(rows, key=lambda row: row.id, reverse=True)]
        ours = [row for row in views if row.thread == chat or row.thread.startswith(f"{chat}:")]
        return tuple(row.receipt for row in ours if row.state == "sent")[:20]

    def view(self) -> OutboxRow:
        """The row as the port's value."""
        return OutboxRow(
            id=self.id,
            key=self.new.key,
            thread=self.thread,
            message_id=self.new.message_id,
            entry_id=self.entry_id,
            body=decode_body(self.body),
            state=self.state,
            attempts=self.attempts,
            not_before=self.not_before,
            created_at=self.new.created_at,
            receipt=self.receipt,
            error=self.error,
        )


@dataclass(slots=True, kw_only=True)
class InteractionRow:
    """An interaction and its one answer."""

    interaction: Interaction
    body: str
    keys: Keys
    choice: str | None = None
    """The answer; None while there is none."""

    def is_open(self, thread: str, now: float) -> bool:
        """Whether it can still be answered from the thread."""
        asked = self.interaction
        return asked.thread == thread and self.choice is None and now < asked.expires_at

    def is_of(self, session_id: str) -> bool:
        """Whether it was asked in the session."""
        return self.interaction.session_id == session_id

    def view(self) -> Interaction:
        """The interaction as the port's value."""
        return replace(self.interaction, body=readable(self.body, self.keys, self.interaction.id))


@dataclass(slots=True, kw_only=True)
class ThreadRow:
    """The data of one thread: its lease, its unfinished entries by seq, its log."""

    keys: Keys
    fence: int = 0
    owner: str | None = None
    off_record: bool = False
    expires_at: float = 0.0
    unfinished: dict[int, EntryRow] = field(default_factory=dict)
    log: list[LogRow] = field(default_factory=list)
    user_records: dict[str, int] = field(default_factory=dict)
    """Record id of the `user` record of each message id."""

    def add(self, record: NewRecord, body: str, new_id: int) -> int:
        """Append a record under `new_id`, unless it is of a user's message that has one; its id."""
        if record.kind == "user" and record.message_id in self.user_records:
            return self.user_records[record.message_id]
        self.log.append(LogRow(id=new_id, record=replace(record, body={}), body=body, keys=self.keys))
        if record.kind == "user":
            self.user_records[record.message_id] = new_id
        return new_id

    @property
    def seals(self) -> bool:
        """Whether what is accepted now is sealed."""
        return self.off_record or any(row.seals for row in self.unfinished.values())

    def finish(self, row: EntryRow, outcome: Outcome, body: str | None, at: float) -> None:
        """Close an unfinished entry, with another body unless it is None."""
        row.outcome, row.finished_at = outcome, at
        row.body = row.body if body is None else body
        self.keys.pop(row.message_id, None)
        del self.unfinished[row.seq]

    def forget(self, message_id: str) -> None:
        """Erase the text of the message's records."""
        for row in self.log:
            if row.record.message_id == message_id:
                row.body = FORGOTTEN


def newest_first(
    threads: Mapping[str, ThreadRow],
    channel: str,
    account: str,
    chat: str,
    is_deleted: Callable[[str], bool],
) -> tuple[str, ...]:
    """The account's threads with records or waiting entries, ordered as `Store.threads_of`."""
    prefix = ThreadKey(channel=channel, account=account, chat=f"{chat}x").encode().removesuffix("x")
    found = [
        (bool(row.log), -row.log[-1].id if row.log else 0, key)
        for key, row in threads.items()
        if key.startswith(prefix) and (row.log or row.unfinished) and not is_deleted(key)
    ]
    return tuple(key for _, _, key in sorted(found))


def encoded(records: Sequence[NewRecord]) -> list[tuple[NewRecord, str]]:
    """The records with their bodies as text. Raises StorageError for bodies that are not plain data."""
    return [(record, encode_record(record.kind, record.body)) for record in records]


def encoded_or_none(body: Mapping[str, Any] | None) -> str | None:
    """The body as text; None for None. Raises StorageError for a body that is not plain data."""
    return None if body is None else encode_body(body)
