"""Parse an update's JSON to the shared types. Pure, for any input: an update that is no person's message,
press or command gives None, and nothing raises.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from adapters.button_data import STOP, read_answer
from adapters.identity import derived_message_id
from adapters.json_fields import integer, items, mapping, text
from adapters.telegram.content import described, moves, unusable
from adapters.telegram.media import TelegramFiles, media_of
from adapters.telegram.settings import CHANNEL
from pipeline.domain.attachments import attached_note
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import (
    ApprovalReply,
    Author,
    Inbound,
    InboundMessage,
    ParsedCommand,
    SessionCommand,
    parse_command,
)

ALLOWED_UPDATES = (
    "message",
    "edited_message",
    "callback_query",
    "stopped_message_generation",
    "message_reaction",
)

_MAX_TEXT = 32_768
_MAX_QUOTE = 2_000
_MAX_NAME = 200
_MAX_ENTITIES = 200
_GENERAL_TOPIC = 1
_COMMAND_TO = re.compile(r"(/[a-z0-9_]{1,64})(@[a-z0-9_]{1,64}bot)\b", re.IGNORECASE)
"""A command addressed to a bot by name; bot names end in `bot`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParseContext:
    """The parser's other input."""

    account: str
    bot_id: int
    bot_username: str
    received_at: float
    """Unix seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Origin:
    """The source and identity of an update."""

    native_id: str
    message_id: str
    thread: ThreadKey
    author: Author
    private: bool
    reply_handle: str = ""


def parse_update(update: Mapping[str, Any], context: ParseContext) -> Inbound | None:
    """The message, command or answer in `update`, or None."""
    number = integer(mapping(update).get("update_id"))
    if number is None or number < 0:
        return None
    if "callback_query" in update:
        return _press(mapping(update["callback_query"]), number, context)
    if "stopped_message_generation" in update:
        return _stopped(mapping(update["stopped_message_generation"]), number, context)
    for kind in ("message", "edited_message"):
        if kind in update:
            return _message(mapping(update[kind]), number, context, edited=kind == "edited_message")
    return None


def chat_of(update: Mapping[str, Any]) -> int | None:
    """The chat within which the update is ordered; None where there is none."""
    for kind in ("message", "edited_message", "stopped_message_generation", "message_reaction"):
        if kind in update:
            return integer(mapping(mapping(update[kind]).get("chat")).get("id"))
    message = mapping(mapping(update.get("callback_query")).get("message"))
    return integer(mapping(message.get("chat")).get("id"))


def _message(
    message: Mapping[str, Any], number: int, context: ParseContext, *, edited: bool
) -> InboundMessage | SessionCommand | None:
    origin = _origin(message, mapping(message.get("from")), number, context)
    if origin is None or message.get("is_automatic_forward"):
        return None
    words = _Words.of(message, context)
    if words.for_another_bot:
        return None
    media = media_of(message)
    forwarded = any(key in message for key in ("forward_origin", "forward_date", "via_bot"))
    # A forwarded text is no command, and a file with such a caption is answered, not lost.
    command = None if forwarded or media != TelegramFiles() else _command(words.bare)
    if command is not None:
        return SessionCommand(
            message_id=origin.message_id,
            native_id=origin.native_id,
            thread=origin.thread,
            author=origin.author,
            received_at=context.received_at,
            name=command.name,
            argument=command.argument,
            private=origin.private,
            reply_handle=origin.reply_handle,
        )
    said = "\n\n".join(part for part in (words.bare, described(message)) if part.strip())
    left_out = unusable(message)
    if not said and media == TelegramFiles() and not left_out:
        return None
    if edited and moves(message):
        return None
    replied = mapping(message.get("reply_to_message"))
    if "forum_topic_created" in replied:
        # In a forum, every message replies to the one that opened its topic.
        replied = {}
    return InboundMessage(
        message_id=origin.message_id,
        native_id=origin.native_id,
        thread=origin.thread,
        author=origin.author,
        received_at=context.received_at,
        text=said,
        voice=media.voice,
        attachments=media.attachments,
        unusable=left_out,
        reply_to=_id_text(replied.get("message_id")),
        addressed=origin.private or words.mentions_bot or _is_by_bot(replied, context),
        private=origin.private,
        quoted=_quoted(message, replied),
        quoted_by=_quoted_by(replied, context),
        forwarded=forwarded,
        edited=edited,
        place=origin.reply_handle,
        reply_handle=origin.reply_handle,
    )


def _press(
    query: Mapping[str, Any], number: int, context: ParseContext
) -> ApprovalReply | SessionCommand | None:
    message = mapping(query.get("message"))
    # A press is never made in the name of a chat: the presser is always a person.
    origin = _origin({**message, "sender_chat": None}, mapping(query.get("from")), number, context)
    data = text(query.get("data"), most=64)
    if origin is None:
        return None
    if data == STOP:
        return _stop(origin, context)
    answer = read_answer(data)
    if answer is None:
        return None
    handle, option = answer
    return ApprovalReply(
        message_id=origin.message_id,
        native_id=origin.native_id,
        thread=origin.thread,
        author=origin.author,
        received_at=context.received_at,
        interaction_id=handle,
        choice="",
        option=option,
        private=origin.private,
    )


def _stopped(stopped: Mapping[str, Any], number: int, context: ParseContext) -> SessionCommand | None:
    """The Stop button of a streamed preview. Telegram does not say who pressed it: in a private chat it is
    the only person there."""
    chat = mapping(stopped.get("chat"))
    person = {"id": chat.get("id"), "first_name": chat.get("first_name")}
    message = {"chat": chat, "message_thread_id": stopped.get("message_thread_id"), "is_topic_message": True}
    origin = _origin(message, person, number, context)
    return _stop(origin, context) if origin is not None and origin.private else None


def _stop(origin: _Origin, context: ParseContext) -> SessionCommand:
    return SessionCommand(
        message_id=origin.message_id,
        native_id=origin.native_id,
        thread=origin.thread,
        author=origin.author,
        received_at=context.received_at,
        name="stop",
        private=origin.private,
        reply_handle=origin.reply_handle,
    )


def _origin(
    message: Mapping[str, Any], sender: Mapping[str, Any], number: int, context: ParseContext
) -> _Origin | None:
    chat = mapping(message.get("chat"))
    chat_id, kind = integer(chat.get("id")), chat.get("type")
    if not chat_id or kind not in ("private", "group", "supergroup"):
        return None
    author = author_of(sender, mapping(message.get("sender_chat")), chat_id)
    if author is None:
        return None
    topic = integer(message.get("message_thread_id")) if message.get("is_topic_message") is True else None
    native_id = f"u{number}"
    return _Origin(
        native_id=native_id,
        message_id=derived_message_id(CHANNEL, context.account, native_id),
        thread=ThreadKey(
            channel=CHANNEL,
            account=context.account,
            chat=str(chat_id),
            topic=None if topic in (None, _GENERAL_TOPIC) else str(topic),
        ),
        author=author,
        private=kind == "private",
        reply_handle=_id_text(message.get("message_id")) or "",
    )


def author_of(sender: Mapping[str, Any], sender_chat: Mapping[str, Any], chat_id: int) -> Author | None:
    """The person who sent something, or the group in whose name they did; None for bots and channels."""
    if sender_chat:
        # An anonymous administrator writes in the group's name, and only the group's id is known. A
        # channel's posts, forwarded here or written in its name, have no person as author.
        if integer(sender_chat.get("id")) != chat_id:
            return None
        return Author(id=str(chat_id), name=text(sender_chat.get("title"), most=_MAX_NAME))
    number = integer(sender.get("id"))
    if number is None or number <= 0 or sender.get("is_bot"):
        return None
    names = (text(sender.get(key), most=_MAX_NAME) for key in ("first_name", "last_name"))
    name = " ".join(part for part in names if part) or text(sender.get("username"), most=_MAX_NAME)
    return Author(id=str(number), name=name)


def _command(words: str) -> ParsedCommand | None:
    # The first message to a bot is /start, with or without the parameter of a link.
    if words.strip().lower().split(" ", 1)[0] == "/start":
        return ParsedCommand(name="help")
    return parse_command(words)


def _is_by_bot(replied: Mapping[str, Any], context: ParseContext) -> bool:
    return integer(mapping(replied.get("from")).get("id")) == context.bot_id


def _quoted(message: Mapping[str, Any], replied: Mapping[str, Any]) -> str:
    if not replied and "quote" not in message:
        return ""
    for source, key in ((message.get("quote"), "text"), (replied, "text"), (replied, "caption")):
        words = text(mapping(source).get(key), most=_MAX_QUOTE)
        if words:
            return words
    media = media_of(replied)
    refs = (*filter(None, (media.voice,)), *media.attachments)
    return described(replied) or attached_note(refs, unusable(replied))


def _quoted_by(replied: Mapping[str, Any], context: ParseContext) -> str:
    """The name of the author of the message that is replied to."""
    if _is_by_bot(replied, context):
        return "You"
    chat = integer(mapping(replied.get("chat")).get("id")) or 0
    author = author_of(mapping(replied.get("from")), mapping(replied.get("sender_chat")), chat)
    return "" if author is None else author.name


def _id_text(value: object) -> str | None:
    number = integer(value)
    return str(number) if number is not None and number > 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Words:
    """A message's text and its addressee."""

    bare: str
    """Without the mention of the bot."""
    mentions_bot: bool
    for_another_bot: bool
    """Whether it is a command with another bot's name."""

    @classmethod
    def of(cls, message: Mapping[str, Any], context: ParseContext) -> _Words:
        key = "text" if message.get("text") else "caption"
        whole = text(message.get(key), most=_MAX_TEXT)
        marks = items(message.get("entities" if key == "text" else "caption_entities"), most=_MAX_ENTITIES)
        name, raw = f"@{context.bot_username}".lower(), _units(whole)
        bare, mentioned = raw, False
        # From the end, so that the offsets before a cut stay valid.
        for start, end, entity in sorted(_spans(marks, raw), key=lambda span: span[:2], reverse=True):
            marked = raw[start:end].decode("utf-16-le", "replace").lower()
            if _is_mention(entity, marked, name, context.bot_id):
                mentioned = True
                bare = _cut(bare, start, end)
        stripped = bare.decode("utf-16-le", "replace").strip() or whole
        command = _COMMAND_TO.match(stripped)
        if command is None:
            return cls(bare=stripped, mentions_bot=mentioned, for_another_bot=False)
        mine = command[2].lower() == name
        bare_command = command[1] + stripped[command.end() :]
        return cls(bare=bare_command, mentions_bot=mentioned or mine, for_another_bot=not mine)


def _spans(marks: list[Any], raw: bytes) -> list[tuple[int, int, Mapping[str, Any]]]:
    """Start and end of each usable entity in bytes."""
    spans = []
    last_start = len(raw) + 1
    for mark in sorted((mapping(mark) for mark in marks), key=_offset, reverse=True):
        start, length = _offset(mark) * 2, (integer(mark.get("length")) or 0) * 2
        # An entity that overlaps a later one would be cut twice.
        if start >= 0 and length > 0 and start + length <= min(len(raw), last_start):
            spans.append((start, start + length, mark))
            if mark.get("type") in ("mention", "text_mention"):
                last_start = start
    return spans


def _offset(mark: Mapping[str, Any]) -> int:
    offset = integer(mark.get("offset"))
    return -1 if offset is None else offset


def _is_mention(entity: Mapping[str, Any], marked: str, name: str, bot_id: int) -> bool:
    if entity.get("type") == "mention":
        return marked == name
    return entity.get("type") == "text_mention" and integer(mapping(entity.get("user")).get("id")) == bot_id


def _cut(raw: bytes, start: int, end: int) -> bytes:
    before, after = raw[:start].decode("utf-16-le", "replace"), raw[end:].decode("utf-16-le", "replace")
    if not before.strip():
        # "@bot: what is …" addresses the bot; the colon belongs to the mention.
        after = after.lstrip(" ,:")
    elif before.endswith(" "):
        after = after.removeprefix(" ")
    return _units(before + after)


def _units(words: str) -> bytes:
    """The text in UTF-16, as Telegram counts it: two bytes per unit."""
    return words.encode("utf-16-le", "surrogatepass")
