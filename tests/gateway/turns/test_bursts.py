"""Which messages may be answered in the turn of an earlier one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gateway.storage.inbox_items import StoredItem
from gateway.storage.ports import InboxEntry
from gateway.turns.bursts import may_join
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Author, BargeIn, InboundMessage, MediaRef, SessionCommand
from tests.support.tables import each

_THREAD = ThreadKey(channel="web", account="local", chat="c")
_COMMON: dict[str, Any] = {"thread": _THREAD, "author": Author(id="ann"), "received_at": 0.0}


def _message(**fields: Any) -> InboundMessage:
    return InboundMessage(**{"message_id": "m", "native_id": "n", "text": "hi", **_COMMON, **fields})


def _entry(item: StoredItem | None = None, *, seq: int = 2, **fields: Any) -> InboxEntry:
    item = item or _message()
    known: dict[str, Any] = {"attempts": 0, "excused": 0, "cancelled": False, **fields}
    return InboxEntry(
        seq=seq,
        thread=_THREAD.encode(),
        message_id=item.message_id,
        kind="message",
        body={},
        item=item,
        received_at=0.0,
        **known,
    )


FIRST = _entry(seq=1)
VOICE = MediaRef(channel="web", handle="v")


@pytest.mark.parametrize(
    "fields",
    [{}, {"voice": VOICE, "text": ""}, {"attachments": (VOICE,)}, {"quoted": "what you said"}],
    ids=["text", "voice note", "attachment", "reply in a private chat"],
)
def test_a_plain_message_of_the_same_person_may_join(fields: dict[str, Any]) -> None:
    assert may_join(FIRST, _entry(_message(**fields)))


@each(
    "fields",
    [
        {"author": Author(id="bob")},
        {"private": False},
        {"mode": "otr"},
        {"edited": True},
        {"if_named": True},
        {"may_decline": True},
        {"answers": True},
        {"refusal": "too many"},
        {"forwarded": True},
        {"passed_on": "what bob said"},
        {"text": " /unknown"},
    ],
)
def test_a_message_with_other_rights_or_a_special_duty_neither_joins_nor_is_joined(
    fields: dict[str, Any],
) -> None:
    other = _message(**fields)
    assert not may_join(FIRST, _entry(other))
    assert not may_join(_entry(other, seq=1), _entry())


def test_in_a_room_a_reply_to_another_message_stays_apart() -> None:
    first = _entry(_message(private=False), seq=1)
    assert may_join(first, _entry(_message(private=False)))
    assert not may_join(first, _entry(_message(private=False, quoted="bob said")))


@pytest.mark.parametrize(
    "item",
    [
        SessionCommand(message_id="m", native_id="n", name="new", **_COMMON),
        BargeIn(message_id="m", native_id="n", **_COMMON),
    ],
    ids=["command", "barge-in"],
)
def test_what_is_no_message_never_joins(item: SessionCommand | BargeIn) -> None:
    assert not may_join(FIRST, _entry(item))
    assert not may_join(_entry(item, seq=1), _entry())


@pytest.mark.parametrize("state", [{"attempts": 1}, {"cancelled": True}, {"joined": 1}], ids=str)
def test_an_entry_that_was_begun_cancelled_or_joined_elsewhere_does_not_join(state: dict[str, Any]) -> None:
    assert not may_join(FIRST, replace(_entry(), **state))
