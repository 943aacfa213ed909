"""What somebody else wrote is never a command, however it reads."""

from __future__ import annotations

from typing import Any

from adapters.telegram.inbound import parse_update
from pipeline.domain.messages import InboundMessage, SessionCommand
from tests.adapters.telegram.payloads import CONTEXT, message
from tests.support.tables import each

_ORIGIN = {"type": "hidden_user", "sender_user_name": "Mallory", "date": 1}


@each("text", ["/new", "/stop", "/start", "/help@Parlour_bot"])
@each("passed_on", [{"forward_origin": _ORIGIN}, {"forward_date": 1}, {"via_bot": {"id": 5, "is_bot": True}}])
def test_a_forwarded_command_is_a_message(text: str, passed_on: dict[str, Any]) -> None:
    item = parse_update(message(text=text, **passed_on), CONTEXT)
    assert isinstance(item, InboundMessage)
    assert item.forwarded
    assert item.text == text.partition("@")[0]


def test_a_command_of_ones_own_stays_one() -> None:
    assert isinstance(parse_update(message(text="/new"), CONTEXT), SessionCommand)


def test_a_command_below_a_voice_note_does_not_lose_the_voice_note() -> None:
    voice = {"file_id": "AwACAgIAAx-1_z", "duration": 3}
    item = parse_update(message(voice=voice, caption="/help"), CONTEXT)
    assert isinstance(item, InboundMessage)
    assert item.voice is not None
