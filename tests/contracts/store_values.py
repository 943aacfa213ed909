"""Short functions for the values that the store's contract tests pass around."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.storage.leases import lease_key
from gateway.storage.ports import (
    Accepted,
    Interaction,
    Lease,
    NewEntry,
    NewOutboxRow,
    NewRecord,
    Outcome,
    RecordKind,
    Store,
    TurnCommit,
)
from pipeline.domain.ids import ThreadKey

THREAD = "telegram:mainbot:-1001234:77"
OTHER = "web:site:room"
NOW = 1_700_000_000.0


def entry(key: str, *, thread: str = THREAD, body: Mapping[str, Any] | None = None) -> NewEntry:
    return NewEntry(
        dedupe_key=key,
        thread=thread,
        message_id=f"msg-{key}",
        kind="message",
        body={"text": f"hello {key}"} if body is None else body,
        received_at=NOW,
    )


def record(
    kind: RecordKind = "user", *, message: str = "msg-1", session: str = "ses-1", **body: Any
) -> NewRecord:
    return NewRecord(kind=kind, session_id=session, message_id=message, body=body, at=NOW)


def reply(key: str = "msg-1:answer", *, message: str = "msg-1") -> NewOutboxRow:
    return NewOutboxRow(key=key, message_id=message, body={"text": "an answer"}, created_at=NOW)


def turn(
    seq: int,
    *records: NewRecord,
    outbox: tuple[NewOutboxRow, ...] = (),
    outcome: Outcome = "answered",
) -> TurnCommit:
    return TurnCommit(seq=seq, outcome=outcome, records=records, outbox=outbox, at=NOW)


def interaction(name: str = "act-1", *, thread: str = THREAD, created_at: float = NOW) -> Interaction:
    return Interaction(
        id=name,
        thread=thread,
        session_id="ses-1",
        kind="tool",
        options=("allow", "deny"),
        allowed_users=("ann", "bob"),
        action_hash="9f2c",
        created_at=created_at,
        expires_at=NOW + 60,
        body={"tool": "shell", "argv": ["ls", "-l"]},
    )


async def lease_on(store: Store, thread: str = THREAD, *, owner: str = "me", now: float = NOW) -> Lease:
    lease = await store.acquire_lease(thread, owner, ttl_s=30, now=now)
    assert lease is not None
    return lease


async def accepted_with_lease(store: Store, key: str = "1") -> tuple[Accepted, Lease]:
    return await store.accept(entry(key)), await lease_on(store)


async def sent_row(store: Store, key: str = "1") -> int:
    """The id of an outbox row that a committed turn left ready to send."""
    accepted, lease = await accepted_with_lease(store, key)
    committed = await store.commit_turn(
        lease, turn(accepted.seq, record("assistant"), outbox=(reply(f"msg-{key}:answer"),))
    )
    return committed.outbox_ids[0]


async def sender(store: Store, thread: str = THREAD) -> Lease:
    """The lease under which the replies of the thread's account are sent. A later one makes it stale."""
    return await lease_on(store, lease_key(ThreadKey.decode(thread).account_key))
