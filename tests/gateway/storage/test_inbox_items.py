from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from gateway.storage.codec import new_entry
from gateway.storage.inbox_items import EntryKind, Queued, UnreadableItem, item_of
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import (
    Announcement,
    ApprovalReply,
    Author,
    BargeIn,
    InboundMessage,
    ReminderDue,
    SessionCommand,
)

HERE = ThreadKey(channel="telegram", account="main", chat="1")
COMMON: Mapping[str, Any] = {
    "message_id": "m1",
    "native_id": "n1",
    "thread": HERE,
    "author": Author(id="ada", name="Ada"),
    "received_at": 5.0,
    "private": False,
}
BODY: Mapping[str, Any] = {"native_id": "n1", "author": "ada", "name": "Ada", "private": False}


@pytest.mark.parametrize(
    ("item", "kind"),
    [
        (InboundMessage(**COMMON, text="hello"), "message"),
        (SessionCommand(**COMMON, name="stop", reply_handle="r"), "command"),
        (ApprovalReply(**COMMON, interaction_id="q", choice="yes", asked_in="m0"), "approval"),
        (BargeIn(**COMMON), "barge_in"),
        (ReminderDue(**COMMON, text="tea"), "reminder"),
        (Announcement(**COMMON, text="A chat was linked."), "announcement"),
    ],
)
def test_each_kind_of_item_is_read_back_from_its_entry(item: Queued, kind: EntryKind) -> None:
    entry = new_entry(item)
    assert entry.kind == kind
    assert item_of(entry.kind, entry.thread, entry.message_id, entry.received_at, entry.body) == item


@pytest.mark.parametrize(
    ("fields", "item"),
    [
        ({"command": "remind", "text": "tea"}, ReminderDue(**COMMON, text="tea")),
        ({"command": "stop", "quiet": True}, BargeIn(**COMMON)),
        ({"command": "stop"}, SessionCommand(**COMMON, name="stop")),
    ],
)
def test_commands_of_older_versions_are_read_as_what_they_are_now(
    fields: Mapping[str, Any], item: Queued
) -> None:
    assert item_of("command", HERE.encode(), "m1", 5.0, {**BODY, **fields}) == item


@pytest.mark.parametrize(
    "damage", [{"text": ["a"]}, {"text": ""}, {"voice": {"handle": 1}}, {"speech": 5}, {"attachments": 5}]
)
def test_a_body_of_another_form_leaves_what_can_be_read_of_it(damage: Mapping[str, Any]) -> None:
    item = item_of("message", HERE.encode(), "m1", 5.0, {**BODY, "text": "hi", **damage})
    assert isinstance(item, UnreadableItem)
    assert (item.native_id, item.author.name, item.private) == ("n1", "Ada", False)
    assert "not readable" in item.reason
