"""Updates in the shapes that Telegram sends, to build test cases from."""

from __future__ import annotations

from typing import Any

from adapters.telegram.inbound import ParseContext

CONTEXT = ParseContext(account="main", bot_id=42, bot_username="Parlour_bot", received_at=1_700_000_000.0)
ANN: dict[str, Any] = {
    "id": 1001,
    "is_bot": False,
    "first_name": "Ann",
    "last_name": "Lee",
    "username": "ann",
    "language_code": "en",
}
BOT: dict[str, Any] = {"id": 42, "is_bot": True, "first_name": "Parlour", "username": "Parlour_bot"}
PRIVATE: dict[str, Any] = {"id": 1001, "type": "private", "first_name": "Ann", "username": "ann"}
GROUP: dict[str, Any] = {"id": -100200, "type": "supergroup", "title": "Team"}


def message(kind: str = "message", /, **fields: Any) -> dict[str, Any]:
    """An update with one message from Ann to the bot, with `fields` set or, where None, left out."""
    whole = {"message_id": 7, "date": 1_700_000_000, "chat": PRIVATE, "from": ANN, **fields}
    return {"update_id": 9001, kind: {key: value for key, value in whole.items() if value is not None}}


def in_group(text: str, **fields: Any) -> dict[str, Any]:
    """The same in a group."""
    return message(chat=GROUP, text=text, **fields)


def file(**fields: Any) -> dict[str, Any]:
    """A file's description."""
    return {"file_id": "AwACAgIAAx-1_z", "file_unique_id": "AgAD", "file_size": 4096, **fields}


def mark(kind: str, offset: int, length: int, **fields: Any) -> list[dict[str, Any]]:
    """One entity."""
    return [{"type": kind, "offset": offset, "length": length, **fields}]


def press(data: object, **fields: Any) -> dict[str, Any]:
    """An update with a press on a button of the bot's message."""
    shown = {"message_id": 8, "date": 1, "chat": PRIVATE, "from": BOT, "text": "May I?"}
    query = {"id": "4382bfdwdsb323b2d9", "from": ANN, "message": shown, "chat_instance": "1", "data": data}
    return {"update_id": 9002, "callback_query": query | fields}
