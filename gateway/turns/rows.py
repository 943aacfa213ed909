"""Build the rows of one turn: its outbox row, and what is left of its inbox entry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.storage.ports import InboxEntry, NewOutboxRow, NewRecord, OutboxState
from pipeline.domain.timeline import EntryRole


def bare_body(entry: InboxEntry) -> dict[str, Any]:
    """The body of an inbox entry whose words are not kept: only that it existed."""
    return {"native_id": entry.item.native_id}


def body_left(entry: InboxEntry, *, forget: bool = False) -> Mapping[str, Any] | None:
    """The body that a finished entry gets: None, which leaves it as it is, if its words are neither to be
    forgotten nor sealed."""
    if forget:
        return bare_body(entry)
    return entry.body if entry.sealed else None


def reply_row(
    entry: InboxEntry,
    role: EntryRole,
    reply_handle: str,
    code: str,
    now: float,
    transcript: str,
    *,
    asks: bool,
    off_record: bool,
    state: OutboxState,
) -> NewOutboxRow:
    """The outbox row of the reply to `entry`, with what a posting channel needs to show it beside the words.
    Its key is the message's id, since each turn has one reply. Empty values are left out."""
    body = {
        "role": role,
        "code": code or None,
        "heard": transcript or None,
        "reply_handle": reply_handle or None,
        "private": None if entry.item.private else False,
        "asks": asks or None,
        "author": entry.item.author.id or None,
        "off_record": off_record or None,
    }
    shown = {name: value for name, value in body.items() if value is not None}
    key = entry.message_id
    return NewOutboxRow(key=key, message_id=key, body=shown, created_at=now, state=state)


def with_more(record: NewRecord, more: Mapping[str, Any]) -> NewRecord:
    """The record with `more` in its body. `dataclasses.replace` takes five times as long."""
    return NewRecord(
        kind=record.kind,
        session_id=record.session_id,
        message_id=record.message_id,
        body={**record.body, **more},
        at=record.at,
    )
