"""The words behind a command, however a person gives it."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.discord.inbound import Context, parse_event
from pipeline.domain.messages import SessionCommand
from tests.adapters.discord.payloads import BOT, in_room, message, slash

CONTEXT = Context(account="main", bot_id=BOT, now=5.0, bot_roles=frozenset())


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("MESSAGE_CREATE", message("/agent shop")),
        ("MESSAGE_CREATE", in_room(f"<@{BOT}> /agent  shop")),
        (
            "INTERACTION_CREATE",
            slash(
                "agent",
                data={
                    "id": "1",
                    "name": "agent",
                    "type": 1,
                    "options": [{"name": "name", "type": 3, "value": "shop"}],
                },
            ),
        ),
    ],
    ids=["typed", "typed in a room", "picked from the list"],
)
def test_a_command_has_the_words_behind_it(name: str, data: dict[str, Any]) -> None:
    item = parse_event(name, data, CONTEXT)

    assert isinstance(item, SessionCommand)
    assert (item.name, item.argument) == ("agent", "shop")
