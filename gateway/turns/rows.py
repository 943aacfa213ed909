"""Build the bodies of one turn's records and of its outbox row, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gateway.storage.inbox_items import reply_handle_of
from gateway.storage.ports import InboxEntry, NewOutboxRow, NewRecord
from pipeline.domain.chat import ChatMessage, message_to_plain
from pipeline.domain.events import thought_to_plain
from pipeline.domain.messages import Speech
from pipeline.domain.timeline import EntryRole
from pipeline.runtime.ports import TurnAnswer, UserWords


def user_body(words: UserWords) -> dict[str, Any]:
    """The body of a user's record."""
    body: dict[str, Any] = {"text": words.text}
    if words.by:
        body["by"] = words.by
    if words.speech is not None:
        body |= {"spoken": True, "language": words.speech.language, "confidence": words.speech.confidence}
    return body


def words_of(body: Mapping[str, Any]) -> UserWords:
    """The words from a body that `user_body` wrote. Older records hold no confidence for spoken words."""
    speech = None
    if body.get("spoken"):
        speech = Speech(language=str(body.get("language", "")), confidence=float(body.get("confidence", 1.0)))
    return UserWords(text=str(body["text"]), speech=speech, by=str(body.get("by", "")))


def answer_body(answer: TurnAnswer) -> dict[str, Any]:
    """The body of an answer's record, without empty values."""
    body: dict[str, Any] = {"text": answer.text}
    if answer.thoughts:
        body["thoughts"] = [thought_to_plain(thought) for thought in answer.thoughts]
    return body | exchange_body(answer.exchange)


def exchange_body(exchange: Sequence[ChatMessage]) -> dict[str, Any]:
    """The part of a body that holds what the model and its tools said; empty if they said nothing."""
    return {"exchange": [message_to_plain(message) for message in exchange]} if exchange else {}


def bare_body(entry: InboxEntry) -> dict[str, Any]:
    """The body of an inbox entry whose words are not kept: only that it existed."""
    return {"native_id": entry.item.native_id}


def reply_row(
    entry: InboxEntry,
    *,
    role: EntryRole,
    code: str,
    now: float,
    transcript: str,
    asks: bool,
    off_record: bool,
    sending: bool,
) -> NewOutboxRow:
    """The outbox row of the reply to `entry`, with what a posting channel needs to show it beside the words.
    Its key is the message's id, since each message has one reply. Empty values are left out."""
    body = {
        "role": role,
        "code": code or None,
        "heard": transcript or None,
        "reply_handle": reply_handle_of(entry.item) or None,
        "private": None if entry.item.private else False,
        "asks": asks or None,
        "author": entry.item.author.id or None,
        "off_record": off_record or None,
    }
    shown = {name: value for name, value in body.items() if value is not None}
    key = entry.message_id
    return NewOutboxRow(key=key, message_id=key, body=shown, created_at=now, sending=sending)


def with_more(record: NewRecord, more: Mapping[str, Any]) -> NewRecord:
    """The record with `more` in its body. `dataclasses.replace` takes five times as long."""
    return NewRecord(
        kind=record.kind,
        session_id=record.session_id,
        message_id=record.message_id,
        body={**record.body, **more},
        at=record.at,
    )
