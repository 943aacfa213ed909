"""Convert the items of the inbox to plain data and back. Unknown keys in old rows are ignored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from itertools import compress
from operator import attrgetter
from typing import Any, Final, Literal

from gateway.storage.json_bodies import SEALED
from pipeline.domain.errors import InvalidInput
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import (
    Announcement,
    ApprovalReply,
    Author,
    BargeIn,
    HeartbeatDue,
    HeartbeatNews,
    InboundMessage,
    MediaRef,
    ReminderDue,
    SessionCommand,
    Speech,
    button_handle,
)

EntryKind = Literal[
    "message",
    "command",
    "approval",
    "barge_in",
    "reminder",
    "announcement",
    "heartbeat",
    "heartbeat_news",
]
Queued = (
    InboundMessage
    | SessionCommand
    | ApprovalReply
    | BargeIn
    | ReminderDue
    | Announcement
    | HeartbeatDue
    | HeartbeatNews
)
"""The items of the inbox. An ApprovalReply is queued only if it resumes a paused run, which has released its
thread; any other answer would wait for the turn that waits for it."""
ASKED_IN: Final = "asked_in"
"""The key, in the body of a question of a paused run and of its answer's entry, of the message whose run
asked."""
_OLD_REMINDER = "remind"
"""Rows of kind `command` with this command are due reminders, and those that are `quiet` are barge-ins: older
versions wrote them so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableItem:
    """An entry whose body is none that `to_body` writes. Its fields are what is left of the body."""

    message_id: str
    native_id: str
    author: Author
    reply_handle: str
    private: bool
    reason: str
    """Why it is not readable, for the log."""


StoredItem = Queued | UnreadableItem
_REPLIED_TO = (InboundMessage, SessionCommand, UnreadableItem)
"""Items with a reply handle."""


def kind_of(item: Queued) -> EntryKind:
    """The inbox kind of `item`."""
    return _KINDS.get(type(item), "message")


_KINDS: Final[Mapping[type[Queued], EntryKind]] = {
    SessionCommand: "command",
    ApprovalReply: "approval",
    BargeIn: "barge_in",
    ReminderDue: "reminder",
    Announcement: "announcement",
    HeartbeatDue: "heartbeat",
    HeartbeatNews: "heartbeat_news",
}


def to_body(item: Queued) -> dict[str, Any]:
    """The fields of `item` that the inbox row does not hold in columns; empty values are left out."""
    body: dict[str, Any] = {"native_id": item.native_id, "author": item.author.id, "name": item.author.name}
    if not item.private:
        body["private"] = False
    if isinstance(item, SessionCommand):
        body |= {"command": item.name, "argument": item.argument, "reply_handle": item.reply_handle}
    elif isinstance(item, ReminderDue | Announcement):
        body["text"] = item.text
    elif isinstance(item, HeartbeatNews):
        body |= {"text": item.text, "foreign": item.foreign, "labelled_as": item.labelled_as}
    elif isinstance(item, HeartbeatDue):
        body |= {
            "text": item.text,
            "sources": list(item.sources),
            "to": item.to,
            "agent": item.agent,
            "zone": item.zone,
            "instructions": item.instructions,
            "projects": list(item.projects),
            "tasks": list(item.tasks),
        }
    elif isinstance(item, ApprovalReply):
        body |= {
            "interaction": item.interaction_id,
            "choice": item.choice,
            "note": item.note,
            "by": item.by,
            "expired": item.expired or None,
            "asked": item.asked,
            ASKED_IN: item.asked_in,
        }
    kept = {key: value for key, value in body.items() if value not in (None, "", [])}
    return kept | _message_body(item) if isinstance(item, InboundMessage) else kept


def _message_body(item: InboundMessage) -> dict[str, Any]:
    """What the body of a message has, apart from its author. Most messages have few of the fields."""
    values = _FIELDS_IF_ANY(item)
    body: dict[str, Any] = {"text": item.text} if item.text else {}
    body |= compress(zip(_NAMES_IF_ANY, values, strict=True), values)
    if item.speech:
        body["speech"] = asdict(item.speech)
    if item.voice:
        body["voice"] = _media_body(item.voice)
    if item.attachments:
        body["attachments"] = [_media_body(ref) for ref in item.attachments]
    if item.unusable:
        body["unusable"] = list(item.unusable)
    if not item.addressed:
        body["addressed"] = False
    if item.mode != "normal":
        body["mode"] = item.mode
    return body


_NAMES_IF_ANY: Final = (
    *("reply_to", "if_named", "may_decline", "answers", "refusal", "quoted", "quoted_by", "forwarded"),
    *("passed_on", "edited", "place", "reply_handle", "workflow"),
)
"""The fields of a message that are left out of its body where they are empty or false."""
_FIELDS_IF_ANY: Final = attrgetter(*_NAMES_IF_ANY)


def item_of(
    kind: EntryKind, thread: str, message_id: str, received_at: float, body: Mapping[str, Any]
) -> StoredItem:
    """The item that `to_body` wrote."""
    if SEALED in body:
        return _unreadable(message_id, body, "it was off the record, and its key is gone")
    try:
        return _item_of(kind, thread, message_id, received_at, body)
    except (KeyError, TypeError, ValueError, AttributeError, InvalidInput) as error:
        return _unreadable(message_id, body, str(error))


def _unreadable(message_id: str, body: Mapping[str, Any], reason: str) -> UnreadableItem:
    return UnreadableItem(
        message_id=message_id,
        native_id=str(body.get("native_id", "")),
        author=Author(id=str(body.get("author", "")), name=str(body.get("name", ""))),
        reply_handle=str(body.get("reply_handle", "")),
        private=bool(body.get("private", True)),
        reason=f"inbox entry {message_id}: its stored body is not readable ({reason})",
    )


def _item_of(
    kind: EntryKind, thread: str, message_id: str, received_at: float, body: Mapping[str, Any]
) -> Queued:
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
    if kind == "announcement":
        return Announcement(**common, text=body["text"])
    if kind in ("heartbeat", "heartbeat_news"):
        return _of_heartbeat(kind, common, body)
    if kind == "barge_in" or (kind == "command" and body.get("quiet")):
        return BargeIn(**common)
    if kind == "command":
        return SessionCommand(
            **common,
            name=body["command"],
            argument=body.get("argument", ""),
            reply_handle=body.get("reply_handle", ""),
        )
    if kind == "approval":
        return ApprovalReply(
            **common,
            interaction_id=body["interaction"],
            choice=body["choice"],
            note=body.get("note", ""),
            by=body.get("by", ""),
            expired=body.get("expired", False),
            asked=body.get("asked", ""),
            asked_in=body.get(ASKED_IN, ""),
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
        may_decline=body.get("may_decline", False),
        answers=body.get("answers", False),
        refusal=body.get("refusal", ""),
        mode=body.get("mode", "normal"),
        quoted=body.get("quoted", ""),
        quoted_by=body.get("quoted_by", ""),
        forwarded=body.get("forwarded", False),
        passed_on=body.get("passed_on", ""),
        edited=body.get("edited", False),
        place=body.get("place", ""),
        reply_handle=body.get("reply_handle", ""),
        workflow=body.get("workflow", ""),
    )


def _of_heartbeat(
    kind: EntryKind, common: Mapping[str, Any], body: Mapping[str, Any]
) -> HeartbeatDue | HeartbeatNews:
    if kind == "heartbeat_news":
        foreign, session = body.get("foreign", ""), body.get("labelled_as", "")
        return HeartbeatNews(**common, text=body["text"], foreign=foreign, labelled_as=session)
    return HeartbeatDue(
        **common,
        text=body["text"],
        sources=tuple(body.get("sources", ())),
        to=body.get("to", ""),
        agent=body.get("agent", ""),
        zone=body.get("zone", "UTC"),
        instructions=body.get("instructions", ""),
        projects=tuple(body.get("projects", ())),
        tasks=tuple(body.get("tasks", ())),
    )


def native_id_of(body: Mapping[str, Any]) -> str:
    """The platform's identity of an entry, also of a finished one whose words were erased."""
    return str(body.get("native_id", ""))


def reply_handle_of(item: StoredItem) -> str:
    """What the adapter needs to reply to the item; empty if it needs nothing."""
    if isinstance(item, _REPLIED_TO):
        return item.reply_handle
    return ""


def asked_in(item: StoredItem) -> str:
    """The id of the message whose run the item continues: its own, or for an answer that of the question."""
    return (item.asked_in if isinstance(item, ApprovalReply) else "") or item.message_id


def run_handle(message_id: str) -> str:
    """How people name the run that a message began: 6 hexadecimal digits, the same in every process."""
    return button_handle(message_id)[:6]


def run_to_stop(command: SessionCommand) -> str:
    """The handle of the run that a `/runs stop` names; empty for any other command."""
    words = command.argument.casefold().split()
    return words[1] if command.name == "runs" and len(words) == 2 and words[0] == "stop" else ""


def is_voice_note(item: StoredItem) -> bool:
    """Whether it is a voice note, which is transcribed in its turn."""
    return isinstance(item, InboundMessage) and item.voice is not None


def has_media(item: StoredItem) -> bool:
    """Whether it has a voice note or attachments, which are fetched in its turn."""
    return isinstance(item, InboundMessage) and (item.voice is not None or bool(item.attachments))


def _media_body(ref: MediaRef) -> dict[str, Any]:
    body = {"channel": ref.channel, "handle": ref.handle, "mime": ref.mime}
    optional = {
        "size": ref.size,
        "duration_s": ref.duration_s,
        "kind": None if ref.kind == "file" else ref.kind,
        "name": ref.name or None,
    }
    return body | {key: value for key, value in optional.items() if value is not None}
