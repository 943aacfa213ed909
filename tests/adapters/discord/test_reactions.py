"""Reactions that Discord reports: which of them mean something, and to whom."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.discord.inbound import parse_event
from pipeline.domain.messages import Reaction
from tests.adapters.discord.payloads import BOT, NOW
from tests.adapters.discord.test_parsing import CONTEXT

_ADDED: dict[str, Any] = {
    "user_id": "300000000000000007",
    "channel_id": "200000000000000001",
    "message_id": "400000000000000001",
    "emoji": {"id": None, "name": "👍"},
}


def _parsed(name: str = "MESSAGE_REACTION_ADD", **changes: Any) -> object:
    return parse_event(name, {**_ADDED, **changes}, CONTEXT)


@pytest.mark.parametrize(
    ("emoji", "mark"), [("👍🏿", "up"), ("👎", "down"), ("✅", "yes"), ("✔️", "yes"), ("❌", "no")]
)
def test_a_reaction_names_its_message_and_what_it_means(emoji: str, mark: str) -> None:
    user = {"id": "300000000000000007", "username": "ben", "global_name": "Ben"}
    found = _parsed(emoji={"id": None, "name": emoji}, guild_id="1", member={"user": user})
    assert isinstance(found, Reaction)
    assert (found.mark, found.on, found.target, found.private) == (mark, True, "400000000000000001", False)
    assert (found.author.id, found.author.name, found.received_at) == ("300000000000000007", "Ben", NOW)
    assert found.thread.chat == "200000000000000001"
    removed = _parsed("MESSAGE_REACTION_REMOVE", emoji={"id": None, "name": emoji})
    assert isinstance(removed, Reaction)
    assert (removed.on, removed.private) == (False, True)


@pytest.mark.parametrize(
    "changes",
    [
        {"emoji": {"id": None, "name": "🎉"}},
        {"emoji": {"id": "9", "name": "thumbsup"}},
        {"emoji": None},
        {"user_id": BOT},
        {"user_id": 7},
        {"message_id": "x"},
        {"channel_id": None},
        {"member": {"user": {"id": "300000000000000007", "bot": True}}},
    ],
)
def test_other_reactions_are_nothing_to_the_bot(changes: dict[str, Any]) -> None:
    assert _parsed(**changes) is None
