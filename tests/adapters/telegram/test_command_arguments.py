"""The words behind a command, wherever a person writes it."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.telegram.inbound import parse_update
from pipeline.domain.messages import SessionCommand
from tests.adapters.telegram.payloads import CONTEXT, in_group, mark, message


@pytest.mark.parametrize(
    "update",
    [
        message(text="/agent shop"),
        in_group("/agent@parlour_bot shop", entities=mark("bot_command", 0, 18)),
        in_group("@parlour_bot /agent shop", entities=mark("mention", 0, 12)),
    ],
    ids=["in private", "in a group", "after a mention"],
)
def test_a_command_has_the_words_behind_it(update: dict[str, Any]) -> None:
    item = parse_update(update, CONTEXT)
    assert isinstance(item, SessionCommand)
    assert (item.name, item.argument) == ("agent", "shop")
