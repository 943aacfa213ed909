"""Convert messages of a channel or thread to lines with names: the context before a mention. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from adapters.discord.content import described
from adapters.discord.inbound import readable
from adapters.discord.media import media_of
from adapters.discord.payload import snowflake, unix_of
from adapters.json_fields import mapping, mappings, text
from pipeline.domain.attachments import attached_note
from pipeline.domain.rooms import RoomLine

_NAME_CHARS = 100
_TEXT_CHARS = 4_000
_SAID_TYPES = (0, 19, 20, 23)
"""A message, a reply, and the answers to slash commands and to menus of other bots."""
_THREAD_STARTER = 21
"""Represents the message below which a thread was opened."""


def lines_of(messages: Iterable[Mapping[str, Any]], bot_id: str) -> tuple[RoomLine, ...]:
    """The lines of the messages that contain text, in the same order."""
    lines = (_line(message, bot_id) for message in messages)
    return tuple(line for line in lines if line is not None)


def _line(message: Mapping[str, Any], bot_id: str) -> RoomLine | None:
    if message.get("type") == _THREAD_STARTER:
        message = mapping(message.get("referenced_message"))
    message_id = snowflake(message.get("id"))
    author = mapping(message.get("author"))
    if not message_id or message.get("type", 0) not in _SAID_TYPES:
        return None
    words = _words(message, bot_id)
    if not words:
        return None
    return RoomLine(
        text=words,
        name=text(author.get("global_name") or author.get("username"), most=_NAME_CHARS),
        author=snowflake(author.get("id")),
        at=unix_of(message_id),
        own=snowflake(author.get("id")) == bot_id,
    )


def _words(message: Mapping[str, Any], bot_id: str) -> str:
    said, _ = readable(message, bot_id, frozenset())
    forwarded = [mapping(one.get("message")) for one in mappings(message.get("message_snapshots"), most=1)]
    passed_on = (f"{text(one.get('content'), most=_TEXT_CHARS)} {described(one)}" for one in forwarded)
    media = media_of(message, forwarded)
    refs = (*((media.voice,) if media.voice else ()), *media.attachments)
    parts = (said[:_TEXT_CHARS], described(message), *passed_on, attached_note(refs))
    return " ".join(part for part in parts if part.strip())
