"""Answer a press on one of the bot's buttons: a short text, and the buttons are removed."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from telegram.error import TelegramError

from adapters.button_data import STOP
from adapters.channel import Acceptance
from adapters.json_fields import integer, items, mapping, text
from adapters.telegram.api import TelegramApi
from adapters.telegram.failures import classify
from adapters.telegram.question_buttons import without_question
from adapters.telegram.sending import Sender
from pipeline.domain.frozen import dataclass

_log = logging.getLogger(__name__)

_MAX_WORDS = 200
_UNKNOWN = "This button does nothing any more."


@dataclass(frozen=True, slots=True, kw_only=True)
class CallbackQuery:
    """The data needed to answer a press."""

    query_id: str
    data: str
    chat: int | None
    message_id: int | None
    markup: Mapping[str, Any]
    """The buttons of the message, as Telegram showed them."""


def callback_query_of(update: Mapping[str, Any]) -> CallbackQuery | None:
    """The press in `update`, or None. Pure."""
    query = mapping(update.get("callback_query"))
    query_id = text(query.get("id"), most=100)
    if not query_id:
        return None
    message = mapping(query.get("message"))
    return CallbackQuery(
        query_id=query_id,
        data=text(query.get("data"), most=64),
        chat=integer(mapping(message.get("chat")).get("id")),
        message_id=integer(message.get("message_id")),
        markup={"inline_keyboard": _rows(message)},
    )


async def answer(
    api: TelegramApi, sender: Sender, press: CallbackQuery, acceptance: Acceptance | None
) -> None:
    """Show the outcome to the person who pressed. `acceptance` None: the button is unknown. Raises only
    CancelledError: the press itself is already durable, or was refused."""
    try:
        words = _words(press, acceptance)[:_MAX_WORDS]
        await api.call("answerCallbackQuery", {"callback_query_id": press.query_id, "text": words})
    except TelegramError as error:
        _log.info("a press was not answered", extra={"reason": classify(error).message})
    if press.chat is None or press.message_id is None or not _is_over(press, acceptance):
        return
    try:
        await sender.set_buttons(press.chat, press.message_id, without_question(press.markup, press.data))
    except TelegramError as error:
        _log.info("buttons were not removed", extra={"reason": classify(error).message})


def _words(press: CallbackQuery, acceptance: Acceptance | None) -> str:
    if acceptance is None:
        return _UNKNOWN
    if acceptance.status == "refused":
        return acceptance.reason
    if press.data == STOP:
        return "Stopping"
    for row in press.markup["inline_keyboard"]:
        for button in row:
            if button.get("callback_data") == press.data:
                return text(button.get("text"), most=_MAX_WORDS)
    return ""


def _is_over(press: CallbackQuery, acceptance: Acceptance | None) -> bool:
    # The Stop button disappears with its preview.
    if acceptance is None or press.data == STOP:
        return False
    return acceptance.status != "refused" or acceptance.over


def _rows(message: Mapping[str, Any]) -> list[list[Mapping[str, Any]]]:
    rows = items(mapping(message.get("reply_markup")).get("inline_keyboard"), most=100)
    return [[mapping(button) for button in items(row, most=8)] for row in rows]
