"""Reactions that Telegram reports: a person's reactions before and after a change."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.telegram.inbound import ParseContext, chat_of
from adapters.telegram.reactions import parse_reactions

CONTEXT = ParseContext(account="main", bot_id=1, bot_username="parlour_bot", received_at=5.0)


def _update(before: str = "", after: str = "👍", **changes: Any) -> dict[str, Any]:
    body = {
        "chat": {"id": -100, "type": "supergroup"},
        "message_id": 7,
        "user": {"id": 9, "first_name": "Ben"},
        "date": 1_700_000_000,
        "old_reaction": [{"type": "emoji", "emoji": one} for one in before],
        "new_reaction": [{"type": "emoji", "emoji": one} for one in after],
    }
    return {"update_id": 3, "message_reaction": {**body, **changes}}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("", "👍", [("up", True)]),
        ("👍", "👎", [("up", False), ("down", True)]),
        ("👎", "", [("down", False)]),
        ("🎉", "🎉👍", [("up", True)]),
        ("👍", "👍🎉", []),
        ("", "🎉", []),
    ],
)
def test_a_change_is_what_was_removed_and_what_was_added(
    before: str, after: str, expected: list[tuple[str, bool]]
) -> None:
    found = parse_reactions(_update(before, after), CONTEXT)
    assert [(one.mark, one.on) for one in found] == expected
    assert {(one.target, one.thread.chat, one.private, one.received_at) for one in found} <= {
        ("7", "-100", False, 1_700_000_000.0)
    }
    assert {(one.author.id, one.author.name) for one in found} <= {("9", "Ben")}
    assert len({one.message_id for one in found}) == len(found)


@pytest.mark.parametrize(
    "changes",
    [
        {"user": None, "actor_chat": {"id": -100}},
        {"user": {"id": 9, "is_bot": True}},
        {"chat": None},
        {"message_id": "7"},
        {"new_reaction": "👍"},
        {"new_reaction": [{"type": "custom_emoji", "custom_emoji_id": "1"}, None, 3]},
    ],
)
def test_other_changes_are_nothing_to_the_bot(changes: dict[str, Any]) -> None:
    assert parse_reactions(_update(**changes), CONTEXT) == ()


def test_a_reaction_is_ordered_with_the_messages_of_its_chat() -> None:
    assert chat_of(_update()) == -100
