"""Convert inbound items and replies to plain data and back, for inbox and outbox. Unknown keys in old rows
are ignored."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, Final

from adapters.channel import OutboundReply
from gateway.storage.ports import EntryKind, InboxEntry, Interaction, NewEntry, NewOutboxRow, OutboxRow
from pipeline.domain.errors import InvalidInput, StorageError
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import (
    ApprovalReply,
    Author,
    BargeIn,
    InboundMessage,
    MediaRef,
    ReminderDue,
    SessionCommand,
    Speech,
)
from pipeline.graph.run.outcome import Gate
from pipeline.runtime.questions import choices

Queued = InboundMessage | SessionCommand | ApprovalReply | BargeIn | ReminderDue
"""The items of the inbox. An ApprovalReply is queued only if it resumes a paused run, which has released its
thread; any other answer would wait for the turn that waits for it."""
_OLD_REMINDER = "remind"
"""Rows of kind `command` with this command are due reminders, and those that are `quiet` are barge-ins: older
versions wrote them so."""
GATE: Final = "gate"
"""The kind of the interactions that a paused run waits for."""
TOOL: Final = "tool"
"""The kind of the interactions that a running turn waits for."""
ASKED_IN: Final = "asked_in"
"""The key, in the body of a GATE interaction and of its answer's entry, of the message whose run asked."""
NEVER: Final = 253_402_300_799.0
"""The expiry of a GATE interaction without an end: in the year 9999."""


def kind_of(item: Queued) -> EntryKind:
    """The inbox kind of `item`."""
    match item:
        case SessionCommand():
            return "command"
        case ApprovalReply():
            return "approval"
        case BargeIn():
            return "barge_in"
        case ReminderDue():
            return "reminder"
        case _:
            return "message"


def to_body(item: Queued) -> dict[str, Any]:
    """The fields of `item` that the inbox row does not hold in columns; empty values are left out."""
    body: dict[str, Any] = {"native_id": item.native_id, "author": item.author.id, "name": item.author.name}
    if not item.private:
        body["private"] = False
    if isinstance(item, SessionCommand):
        body |= {"command": item.name, "reply_handle": item.reply_handle}
    elif isinstance(item, ReminderDue):
        body["text"] = item.text
    elif isinstance(item, ApprovalReply):
        body |= {
            "interaction": item.interaction_id,
            "choice": item.choice,
            "expired": item.expired or None,
            "asked": item.asked,
        }
    elif isinstance(item, InboundMessage):
        body |= {
            "text": item.text,
            "speech": asdict(item.speech) if item.speech else None,
            "voice": _media_body(item.voice) if item.voice else None,
            "attachments": [_media_body(ref) for ref in item.attachments],
            "unusable": list(item.unusable),
            "reply_to": item.reply_to,
            "addressed": None if item.addressed else False,
            "if_named": item.if_named or None,
            "mode": item.mode if item.mode != "normal" else None,
            "quoted": item.quoted,
            "forwarded": item.forwarded or None,
            "passed_on": item.passed_on,
            "edited": item.edited or None,
            "place": item.place,
            "reply_handle": item.reply_handle,
        }
    return {key: value for key, value in body.items() if value not in (None, "", [])}


def from_body(
    kind: EntryKind, thread: str, message_id: str, received_at: float, body: Mapping[str, Any]
) -> Queued:
    """The item that `to_body` wrote. Raises StorageError for a body it could not have written."""
    try:
        common: dict[str, Any] = {
            "message_id": message_id,
            "native_id": body["native_id"],
            "thread": ThreadKey.decode(thread),
            "author": Author(id=body["author"], name=body.get("name", "")),
            "received_at": received_at,
            "private": body.get("private", True),
        }
        if kind == "reminder" or (kind == "command" and body["command"] == _OLD_REMINDER):
            return ReminderDue(**common, text=body.get("text", ""))
        if kind == "barge_in" or (kind == "command" and body.get("quiet")):
            return BargeIn(**common)
        if kind == "command":
            return SessionCommand(**common, name=body["command"], reply_handle=body.get("reply_handle", ""))
        if kind == "approval":
            return ApprovalReply(
                **common,
                interaction_id=body["interaction"],
                choice=body["choice"],
                expired=body.get("expired", False),
                asked=body.get("asked", ""),
            )
        return InboundMessage(
            **common,
            text=body.get("text", ""),
            speech=Speech(**body["speech"]) if body.get("speech") else None,
            voice=MediaRef(**body["voice"]) if body.get("voice") else None,
            attachments=tuple(MediaRef(**ref) for ref in body.get("attachments", ())),
            unusable=tuple(body.get("unusable", ())),
            reply_to=body.get("reply_to"),
            addressed=body.get("addressed", True),
            if_named=body.get("if_named", False),
            mode=body.get("mode", "normal"),
            quoted=body.get("quoted", ""),
            forwarded=body.get("forwarded", False),
            passed_on=body.get("passed_on", ""),
            edited=body.get("edited", False),
            place=body.get("place", ""),
            reply_handle=body.get("reply_handle", ""),
        )
    except (KeyError, TypeError, ValueError, InvalidInput) as error:
        raise StorageError(f"inbox entry {message_id}: its stored body is not readable ({error})") from error


def new_entry(item: Queued) -> NewEntry:
    """The inbox entry for `item`."""
    return NewEntry(
        dedupe_key=f"{item.thread.channel}:{item.thread.account}:{item.native_id}",
        thread=item.thread.encode(),
        message_id=item.message_id,
        kind=kind_of(item),
        body=to_body(item),
        received_at=item.received_at,
    )


def resume_entry(answer: ApprovalReply, asked: Interaction) -> NewEntry:
    """The inbox entry that resumes a paused run with an answer."""
    entry = new_entry(answer)
    return replace(entry, body={**entry.body, ASKED_IN: asked.body[ASKED_IN]})


def resume_entry_once(answer: ApprovalReply, asked: Interaction) -> NewEntry:
    """Like `resume_entry`, with the question's dedupe key, if the answer's own key is taken or not stored."""
    return replace(resume_entry(answer, asked), dedupe_key=f"{GATE}:{asked.id}")


def question_of(gate: Gate, entry: InboxEntry, session_id: str, *, at: float) -> Interaction:
    """The interaction with which only the author of the entry's message can answer the gate."""
    options = choices(gate)
    action = "\n".join((gate.id, gate.prompt, *options))
    return Interaction(
        id=gate.id,
        thread=entry.thread,
        session_id=session_id,
        kind=GATE,
        options=options,
        allowed_users=(str(entry.body["author"]),),
        action_hash=hashlib.sha256(action.encode("utf-8", "surrogatepass")).hexdigest()[:16],
        created_at=at,
        expires_at=NEVER if gate.expires_at is None else gate.expires_at,
        body={
            ASKED_IN: str(entry.body.get(ASKED_IN, entry.message_id)),
            "message_id": entry.message_id,
            "node": gate.node,
            "prompt": gate.prompt,
            "name": str(entry.body.get("name", "")),
            "private": bool(entry.body.get("private", True)),
        },
    )


def reply_of(row: NewOutboxRow | OutboxRow, thread: str, *, entry_id: int, text: str) -> OutboundReply:
    """The reply of an outbox row. `text` comes from the log record; the row's body holds the other fields,
    without empty values."""
    body = row.body
    return OutboundReply(
        key=row.key,
        thread=ThreadKey.decode(thread),
        message_id=row.message_id,
        entry_id=entry_id,
        role=body["role"],
        text=text,
        created_at=row.created_at,
        code=str(body.get("code", "")),
        heard=str(body.get("heard", "")),
        reply_handle=str(body.get("reply_handle", "")),
        private=bool(body.get("private", True)),
        asks=bool(body.get("asks", False)),
        author=str(body.get("author", "")),
        off_record=bool(body.get("off_record", False)),
    )


def _media_body(ref: MediaRef) -> dict[str, Any]:
    body = {"channel": ref.channel, "handle": ref.handle, "mime": ref.mime}
    optional = {
        "size": ref.size,
        "duration_s": ref.duration_s,
        "kind": None if ref.kind == "file" else ref.kind,
        "name": ref.name or None,
    }
    return body | {key: value for key, value in optional.items() if value is not None}
