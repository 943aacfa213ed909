"""Build the inbox entries of items, the questions of paused runs, and the replies of outbox rows."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Final

from adapters.channel import OutboundReply
from gateway.storage.inbox_items import ASKED_IN, Queued, StoredItem, asked_in, kind_of, to_body
from gateway.storage.ports import ASKS, Accepted, InboxEntry, Interaction, NewEntry, NewOutboxRow, OutboxRow
from pipeline.domain.commands import parsed_name
from pipeline.domain.files import StoredFile
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import ApprovalReply, Author, SessionCommand
from pipeline.graph.run.outcome import Gate
from pipeline.runtime.questions import choices

GATE: Final = "gate"
"""The kind of the interactions that a paused run waits for."""
TOOL: Final = "tool"
"""The kind of the interactions that a running turn waits for."""
COMMAND: Final = "command"
"""The kind of the interactions that offer the values of a session command."""
_MOST_OPTIONS = 20
"""Fewer than any platform shows buttons in a message."""
MENU_S: Final = 900.0
"""How long those can be answered, in seconds."""
NEVER: Final = 253_402_300_799.0
"""The expiry of a GATE interaction without an end: in the year 9999."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionDetails:
    """What the body of an interaction holds. Only `message_id` is set for one of a running turn."""

    message_id: str
    """The message whose turn asked; empty in questions of earlier versions."""
    asked_in: str
    """The message whose run asked."""
    node: str
    prompt: str
    name: str
    """The display name of the person who is asked."""
    private: bool
    """False in questions of earlier versions: the safe value where others can read."""
    reply_handle: str
    """Of the command whose values a COMMAND interaction offers."""
    notes: bool = False
    """Whether the answer may have a note."""
    worded: tuple[str, ...] = ()
    """The options that count only with a note."""


def details_of(question: Interaction) -> QuestionDetails:
    """What the question's body holds."""
    body = question.body
    return QuestionDetails(
        message_id=str(body.get("message_id", "")),
        asked_in=str(body.get(ASKED_IN, "")),
        node=str(body.get("node", "")),
        prompt=str(body.get("prompt", "")),
        name=str(body.get("name", "")),
        private=bool(body.get("private", False)),
        reply_handle=str(body.get("reply_handle", "")),
        notes=bool(body.get("notes", False)),
        worded=tuple(body.get("worded", ())),
    )


def new_entry(item: Queued) -> NewEntry:
    """The inbox entry for `item`."""
    return NewEntry(
        dedupe_key=f"{item.thread.channel}:{item.thread.account}:{item.native_id}",
        thread=item.thread.encode(),
        message_id=item.message_id,
        kind=kind_of(item),
        body=to_body(item),
        received_at=item.received_at,
        seals=isinstance(item, SessionCommand) and item.name == "otr",
    )


def resume_entry(answer: ApprovalReply, asked: Interaction) -> NewEntry:
    """The inbox entry that resumes a paused run with an answer: as the person who began it, whose rights
    count, also where another one has answered."""
    began = str(asked.body.get("author", ""))
    if began and began != answer.author.id:
        starter = Author(id=began, name=details_of(asked).name)
        answer = replace(answer, author=starter, by=answer.author.id)
    return new_entry(replace(answer, asked_in=str(asked.body[ASKED_IN])))


def resume_entry_once(answer: ApprovalReply, asked: Interaction) -> NewEntry:
    """Like `resume_entry`, with the question's dedupe key, if the answer's own key is taken or not stored."""
    return replace(resume_entry(answer, asked), dedupe_key=f"{GATE}:{asked.id}")


def answer_entry(answer: ApprovalReply, asked: Interaction) -> NewEntry | None:
    """The inbox entry to which an answer leads: one that resumes a paused run, or a session command; None for
    the answer that a running turn waits for."""
    if asked.kind == GATE:
        return resume_entry_once(answer, asked)
    if asked.kind != COMMAND:
        return None
    details = details_of(asked)
    chosen = SessionCommand(
        message_id=answer.message_id,
        native_id=answer.native_id,
        thread=answer.thread,
        author=answer.author,
        received_at=answer.received_at,
        name=parsed_name(details.node),
        argument=answer.choice,
        private=details.private,
        reply_handle=details.reply_handle,
    )
    return replace(new_entry(chosen), dedupe_key=f"{COMMAND}:{asked.id}")


def menu_of(
    command: SessionCommand, prompt: str, options: tuple[str, ...], session_id: str, *, at: float
) -> Interaction:
    """The interaction that offers the author of `command` its values. The same for every attempt at it."""
    return Interaction(
        id=f"{COMMAND}_{command.message_id}",
        thread=command.thread.encode(),
        session_id=session_id,
        kind=COMMAND,
        options=options[:_MOST_OPTIONS],
        allowed_users=(command.author.id,),
        action_hash="",
        created_at=at,
        expires_at=at + MENU_S,
        body={
            "message_id": command.message_id,
            "node": command.name,
            "prompt": prompt,
            "name": command.author.name,
            "private": command.private,
            "reply_handle": command.reply_handle,
        },
    )


def question_of(gate: Gate, entry: InboxEntry, session_id: str, *, at: float) -> Interaction:
    """The interaction with which the gate can be answered: by the users whom it allows, else only by the
    author of the entry's message."""
    item, options = entry.item, choices(gate)
    action = "\n".join((gate.id, gate.prompt, *options))
    return Interaction(
        id=gate.id,
        thread=entry.thread,
        session_id=session_id,
        kind=GATE,
        options=options,
        allowed_users=gate.allowed or (item.author.id,),
        action_hash=hashlib.sha256(action.encode("utf-8", "surrogatepass")).hexdigest()[:16],
        created_at=at,
        expires_at=NEVER if gate.expires_at is None else gate.expires_at,
        body={
            ASKED_IN: asked_in(item),
            "message_id": entry.message_id,
            "node": gate.node,
            "prompt": gate.prompt,
            "name": item.author.name,
            "private": item.private,
            **({"notes": True} if gate.notes else {}),
            **({ASKS: gate.asks} if gate.asks != "choice" else {}),
            **({"worded": list(gate.worded)} if gate.worded else {}),
            **({"author": item.author.id} if gate.allowed else {}),
        },
    )


def reply_of(
    row: NewOutboxRow | OutboxRow,
    thread: str,
    *,
    entry_id: int,
    text: str,
    files: tuple[StoredFile, ...] = (),
) -> OutboundReply:
    """The reply of an outbox row. `text` and `files` come from the log record; the row's body holds the other
    fields, without empty values."""
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
        files=files,
    )


def begun_entry(entry: NewEntry, item: StoredItem, accepted: Accepted) -> InboxEntry:
    """The accepted entry as its turn gets it."""
    return InboxEntry(
        seq=accepted.seq,
        thread=entry.thread,
        message_id=entry.message_id,
        kind=entry.kind,
        body=entry.body,
        item=item,
        received_at=entry.received_at,
        attempts=0,
        excused=0,
        cancelled=False,
        begun=True,
        sealed=accepted.sealed,
    )
