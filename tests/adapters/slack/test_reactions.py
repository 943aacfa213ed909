"""Reactions that Slack reports: on the bot's messages, from people, with a meaning."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.slack.inbound import parse_event
from pipeline.domain.messages import Reaction
from tests.adapters.slack.harness import ME

_ADDED: dict[str, Any] = {
    "type": "reaction_added",
    "user": "U0000007",
    "reaction": "+1",
    "item_user": ME.user,
    "item": {"type": "message", "channel": "C0000001", "ts": "1700000000.000100"},
    "event_ts": "1700000001.000200",
}


def _parsed(**changes: Any) -> object:
    return parse_event({"event": {**_ADDED, **changes}}, ME, "main")


@pytest.mark.parametrize(
    ("name", "mark"),
    [("+1", "up"), ("thumbsup::skin-tone-2", "up"), ("-1", "down"), ("white_check_mark", "yes"), ("x", "no")],
)
def test_a_reaction_names_its_message_and_what_it_means(name: str, mark: str) -> None:
    found = _parsed(reaction=name)
    assert isinstance(found, Reaction)
    assert (found.mark, found.on, found.target) == (mark, True, "C0000001:1700000000.000100")
    assert (found.author.id, found.received_at, found.private) == ("U0000007", 1_700_000_001.0002, False)
    removed = _parsed(type="reaction_removed", reaction=name)
    assert isinstance(removed, Reaction)
    assert not removed.on


@pytest.mark.parametrize(
    "changes",
    [
        {"reaction": "tada"},
        {"reaction": 3},
        {"item_user": "U0000009"},
        {"user": ME.user},
        {"item": {"type": "file", "file": "F1"}},
        {"item": None},
        {"event_ts": "soon"},
    ],
)
def test_other_reactions_are_nothing_to_the_bot(changes: dict[str, Any]) -> None:
    assert _parsed(**changes) is None
