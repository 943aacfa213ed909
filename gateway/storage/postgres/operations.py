"""The operations of `parlour.apply` as JSON text, and what their results mean."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from json import JSONEncoder
from typing import Any, Generic, TypeVar

from gateway.storage.append_errors import fence_lost, foreign_row
from gateway.storage.jobs import NewJob
from gateway.storage.json_bodies import encode_body, encode_record, storable_text
from gateway.storage.ports import (
    Accepted,
    Committed,
    Interaction,
    Lease,
    NewEntry,
    NewRecord,
    OutboxState,
    SentPart,
    TurnCommit,
)
from gateway.storage.sealing import SealNeeded, sealed, sealed_commit
from gateway.storage.states import StateChanged
from pipeline.domain.errors import AlreadyDone, StorageError
from pipeline.domain.frozen import dataclass

T_co = TypeVar("T_co", covariant=True)
GREATEST = 2**63 - 1
"""The greatest id that the database can hold."""
_encode = JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation(Generic[T_co]):
    """One operation."""

    text: str
    """The operation as JSON text."""
    read: Callable[[Any], T_co]
    """Makes the caller's value of the result's `r`."""
    lease: Lease | None = None
    row_id: int = 0

    def outcome(self, result: dict[str, Any]) -> T_co:
        """The value of a result. Raises the refusal that it names."""
        code = result.get("e")
        if code is None:
            return self.read(result["r"])
        raise self._refusal(code, result)

    def _refusal(self, code: str, result: dict[str, Any]) -> StorageError:
        seq = result.get("seq")
        match code:
            case "fence_lost" if self.lease is not None:
                return fence_lost(self.lease)
            case "foreign_row" if self.lease is not None:
                return foreign_row(self.lease, self.row_id)
            case "row_done":
                return AlreadyDone(f"outbox row {self.row_id} is not waiting to be sent")
            case "not_open":
                return AlreadyDone(f"inbox entry {seq} is not an unfinished entry of this thread")
            case "no_turn":
                return AlreadyDone(f"inbox entry {seq} has no turn that others can join")
            case "cannot_join":
                return AlreadyDone(f"inbox entry {seq} cannot join the turn of entry {self.row_id}")
            case "seal":
                return SealNeeded("the thread is off the record: the entry must be sealed")
            case "state_changed":
                return state_changed(str(result["graph"]))
        return StorageError(f"the database refused an operation: {code}")


def state_changed(graph: str) -> StateChanged:
    """The error for a state that another turn has written."""
    return StateChanged(f"the state of {graph} has changed since it was read")


def message_key(key: str) -> str:
    """The dedupe key of a message as Postgres can hold it: a channel's plug-in makes what is in it."""
    return key.replace("\0", "\\x00")


def accept(
    entry: NewEntry, *, limit: int | None = None, begin: bool = False, key: bytes = b""
) -> Operation[Accepted]:
    """Enqueue the entry, sealed by a `key`, or find the one that was enqueued under its dedupe key before.
    Without a key it raises SealNeeded while the thread is off the record."""
    text = _operation(
        "accept",
        thread=entry.thread,
        key=message_key(entry.dedupe_key),
        message=entry.message_id,
        kind=entry.kind,
        body=encode_body(sealed(entry.body, key) if key else entry.body),
        at=entry.received_at,
        seals=entry.seals,
        sealed_by=in_base64(key),
        limit=limit,
        begin=begin,
    )

    def read(found: list[Any] | None) -> Accepted:
        if found is None:
            return Accepted(seq=0, message_id=entry.message_id, duplicate=False, full=True)
        seq, message_id, duplicate, begun = found
        is_sealed = bool(key) and not duplicate
        return Accepted(seq=seq, message_id=message_id, duplicate=duplicate, begun=begun, sealed=is_sealed)

    return Operation(text=text, read=read)


def start_attempt(lease: Lease, seq: int) -> Operation[int]:
    """Count one attempt; the new count."""
    return Operation(text=_leased("start", lease, seq=seq), read=int, lease=lease)


def discount_attempt(lease: Lease, seq: int) -> Operation[None]:
    """Count one attempt as interrupted from outside."""
    return Operation(text=_leased("discount", lease, seq=seq), read=_nothing, lease=lease)


def cancel(thread: str, first: int, last: int | None) -> Operation[int]:
    """Mark unfinished entries cancelled; how many were not marked before."""
    text = _operation("cancel", thread=thread, first=first, last=GREATEST if last is None else last)
    return Operation(text=text, read=int)


def join(lease: Lease, turn: int, seqs: Sequence[int], *, steered: bool) -> Operation[None]:
    """Record that the turn of an entry answers others too."""
    text = _leased("join", lease, turn=turn, seqs=list(seqs), steered=steered)
    return Operation(text=text, read=_nothing, lease=lease, row_id=turn)


def acquire(thread: str, owner: str, *, until: float, now: float) -> Operation[Lease | None]:
    """A lease with the next fence, unless another owner's has not expired."""
    text = _operation("acquire", thread=thread, owner=owner, until=until, now=now)

    def read(fence: int | None) -> Lease | None:
        return None if fence is None else Lease(thread=thread, owner=owner, fence=fence, expires_at=until)

    return Operation(text=text, read=read)


def renew(lease: Lease, *, until: float) -> Operation[Lease]:
    """The lease with a new expiry."""
    longer = Lease(thread=lease.thread, owner=lease.owner, fence=lease.fence, expires_at=until)
    return Operation(text=_leased("renew", lease, until=until), read=lambda _: longer, lease=lease)


def release(lease: Lease) -> Operation[None]:
    """Release the lease if it is current."""
    return Operation(text=_leased("release", lease), read=_nothing, lease=lease)


def append(lease: Lease, records: Sequence[NewRecord], attempt: int | None) -> Operation[tuple[int, ...]]:
    """Add records to the thread's log, and count an attempt at an entry."""
    text = _leased("append", lease, attempt=attempt, records=[_record(one) for one in records])
    return Operation(text=text, read=_ids, lease=lease)


def commit(lease: Lease, turn: TurnCommit) -> Operation[Committed]:
    """A whole turn, but for the record of a crisis."""
    turn, sealed_as, key = sealed_commit(turn) if turn.sealed else (turn, "", b"")
    ended = [(turn.seq, turn.body), *((one.seq, one.body) for one in turn.also)]
    text = _leased(
        "commit",
        lease,
        outcome=turn.outcome,
        at=turn.at,
        entries=[(seq, None if body is None else encode_body(body)) for seq, body in ended],
        records=[_record(one) for one in turn.records],
        outbox=[
            (row.key, row.message_id, encode_body(row.body), row.created_at, *_begins(row.state))
            for row in turn.outbox
        ],
        forget=turn.forget_session,
        sealed_as=sealed_as,
        sealed_by=in_base64(key),
        mode=turn.mode,
        questions=[question(one) for one in turn.interactions],
        jobs=[job(one) for one in turn.jobs],
        states=[
            {
                "owner": one.owner,
                "graph": one.graph,
                "revision": one.revision,
                "body": encode_body(one.body),
            }
            for one in turn.states
        ],
    )

    def read(found: list[list[int] | None]) -> Committed:
        return Committed(record_ids=_ids(found[0]), outbox_ids=_ids(found[1]))

    return Operation(text=text, read=read, lease=lease)


def reply(lease: Lease, row_id: int, state: str, **changes: object) -> Operation[None]:
    """Change an open row of the outbox: `attempts` are added, other `changes` replace the column's value."""
    values = {"attempts": 0, "forget": False} | changes
    text = _leased("reply", lease, row=row_id, state=state, **values)
    return Operation(text=text, read=_nothing, lease=lease, row_id=row_id)


def sent_part(lease: Lease, key: str, part: SentPart) -> Operation[None]:
    """Record which message shows a part of a reply."""
    text = _leased(
        "part",
        lease,
        key=key,
        part=part.part,
        native=plain(part.native_id),
        final=part.final,
        at=part.at,
    )
    return Operation(text=text, read=_nothing, lease=lease)


def question(one: Interaction) -> dict[str, object]:
    """An interaction as `add_question` takes it."""
    return {
        "id": one.id,
        "thread": one.thread,
        "session": one.session_id,
        "kind": one.kind,
        "options": _encode(one.options),
        "users": _encode(one.allowed_users),
        "hash": one.action_hash,
        "created": one.created_at,
        "expires": one.expires_at,
        "body": encode_body(one.body),
    }


def job(one: NewJob) -> dict[str, object]:
    """A job as `add_job` takes it."""
    return {
        "kind": one.kind,
        "key": one.key,
        "due": one.due,
        "thread": one.thread,
        "owner": one.owner,
        "body": encode_body(one.body),
    }


def in_base64(key: bytes) -> str | None:
    """A key as the database takes it; None for none."""
    return base64.b64encode(key).decode() if key else None


def as_json(value: object) -> str:
    """`value` as JSON text that Postgres can read. Raises StorageError for a value that it cannot hold."""
    try:
        text = _encode(value)
        text.encode("utf-8")
    except (TypeError, ValueError) as error:
        raise StorageError(f"a value cannot be stored: {error}") from error
    return text


def plain(text: str) -> str:
    """A foreign text, with question marks for characters that Postgres cannot hold."""
    return storable_text(text).replace("\0", "?")


def _operation(name: str, **values: object) -> str:
    return as_json({"op": name} | values)


def _leased(name: str, lease: Lease, **values: object) -> str:
    return _operation(name, thread=lease.thread, fence=lease.fence, owner=lease.owner, **values)


def _record(one: NewRecord) -> tuple[object, ...]:
    return one.kind, one.session_id, one.message_id, encode_record(one.kind, one.body), one.at


def _ids(found: list[int] | None) -> tuple[int, ...]:
    return tuple(found or ())


def _nothing(_: object) -> None:
    return None


def _begins(state: OutboxState) -> tuple[bool, bool]:
    """Whether a reply's row begins as being sent, and whether it begins as sent."""
    return state == "sending", state == "sent"
