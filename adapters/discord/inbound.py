"""Parse Discord's gateway events to inbound items: pure, from the raw JSON, and never raising.

Not here: the source of the events (`gateway`, `backfill`), and the answers to buttons (`interactions`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from adapters.button_data import STOP, read_answer
from adapters.discord.content import described, unusable
from adapters.discord.media import media_of
from adapters.discord.payload import snowflake
from adapters.discord.reaction_events import KINDS, parse_reaction
from adapters.discord.settings import CHANNEL
from adapters.identity import derived_message_id
from adapters.json_fields import integer, mapping, mappings, text
from pipeline.domain.attachments import attached_note
from pipeline.domain.command_types import CommandName
from pipeline.domain.commands import COMMAND_NAMES, argument_chars
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import (
    ApprovalReply,
    Author,
    Inbound,
    InboundMessage,
    SessionCommand,
    Withdrawal,
    parse_command,
)

_TEXT_CHARS = 16_000
"""Four times the longest message that Discord allows."""
_QUOTE_CHARS = 4_000
_NAME_CHARS = 100
_MENTIONS = 100
_ROLES = 500
_ORDINARY_TYPES = (0, 19)
"""A message and a reply; other types are joins, pins, boosts and new threads."""
_FORWARD = 1
_SLASH_COMMAND, _COMPONENT = 2, 3
_SERVER, _BOT_DM = 0, 1
_OUR_CONTEXTS = (_SERVER, _BOT_DM)
"""Not the third context: a chat among people, where an app installed by a user can be called."""
_MENTION = re.compile(r"<@([!&]?)([0-9]{1,20})>")
_ROLE = "&"
NO_REFERENCE = "~"
"""How the reply handle of a message begins whose answer is not shown as a reply to it: in direct chats."""
_STALE_EDIT_S = 900.0
"""An update with an older edit has another cause, such as a pin or a link preview."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The parser's other input."""

    account: str
    bot_id: str
    now: float
    """Unix seconds."""
    bot_roles: frozenset[str] = frozenset()
    """The roles that servers created for the bot, with its name: people also mention those."""
    stale_edit_s: float = _STALE_EDIT_S
    """The maximum age of an edit."""


def parse_event(name: str, data: object, context: Context) -> Inbound | None:
    """The item in the gateway event `name` with the payload `data`; None for events that are not for the bot.

    `MESSAGE_CREATE` also parses messages fetched by REST, given their `guild_id`, which REST omits.
    """
    payload = mapping(data)
    if name == "MESSAGE_CREATE":
        return _message(payload, context, edited=False)
    if name == "MESSAGE_UPDATE":
        return _message(payload, context, edited=True)
    if name == "MESSAGE_DELETE":
        return _deleted(payload, context)
    if name == "INTERACTION_CREATE":
        return _interaction(payload, context)
    if name in KINDS:
        return parse_reaction(name, payload, account=context.account, bot_id=context.bot_id, now=context.now)
    return None


def bot_roles(name: str, data: object, bot_id: str) -> frozenset[str]:
    """The bot's own roles named in a server's event."""
    payload = mapping(data)
    if name == "GUILD_CREATE":
        roles = mappings(payload.get("roles"), most=_ROLES)
    elif name == "GUILD_ROLE_CREATE":
        roles = [mapping(payload.get("role"))]
    else:
        return frozenset()
    ours = [role for role in roles if mapping(role.get("tags")).get("bot_id") == bot_id]
    return frozenset(snowflake(role.get("id")) for role in ours)


def _message(payload: Mapping[str, Any], context: Context, *, edited: bool) -> Inbound | None:
    author = _person(payload.get("author"))
    message_id, channel = snowflake(payload.get("id")), snowflake(payload.get("channel_id"))
    if author is None or not message_id or not channel or author.id == context.bot_id:
        return None
    if payload.get("webhook_id") is not None or payload.get("type", 0) not in _ORDINARY_TYPES:
        return None
    native_id = message_id
    if edited:
        native_id = _edit_id(message_id, payload.get("edited_timestamp"), context)
        if not native_id:
            return None
    written = payload.get("content")
    if not isinstance(written, str) or len(written) > _TEXT_CHARS:
        return None
    return _from_words(payload, context, author, native_id=native_id, edited=edited)


def _from_words(
    payload: Mapping[str, Any], context: Context, author: Author, *, native_id: str, edited: bool
) -> Inbound | None:
    private = payload.get("guild_id") is None
    replied = mapping(payload.get("referenced_message"))
    words, mentioned = readable(payload, context.bot_id, context.bot_roles)
    words = _joined(words, described(payload))
    forwarded = _forwarded(payload)
    passed_on = "" if forwarded is None else _all_words(forwarded)
    media = media_of(payload, () if forwarded is None else (forwarded,))
    if not words or (media.voice is not None and passed_on):
        words, passed_on = _joined(words, passed_on), ""
    # A person who adds text to a forwarded message has written that text, unless they are one with its voice.
    all_forwarded = forwarded is not None and not passed_on
    addressed = private or mentioned or snowflake(mapping(replied.get("author")).get("id")) == context.bot_id
    command = None if edited or media.any or forwarded is not None else parse_command(words)
    thread = _thread(payload, context)
    message_id = derived_message_id(CHANNEL, context.account, native_id)
    # In a group chat only a mentioned bot knows that the command is for it.
    if command is not None and addressed:
        return SessionCommand(
            message_id=message_id,
            native_id=native_id,
            thread=thread,
            author=author,
            received_at=context.now,
            name=command.name,
            argument=command.argument,
            private=private,
            reply_handle=_reply_handle(payload, private=private),
        )
    left_out = unusable(payload)
    if not words.strip() and not media.any and not left_out:
        return None
    return InboundMessage(
        message_id=message_id,
        native_id=native_id,
        thread=thread,
        author=author,
        received_at=context.now,
        text=words,
        voice=media.voice,
        attachments=media.attachments,
        unusable=left_out,
        reply_to=snowflake(replied.get("id")) or None,
        addressed=addressed,
        private=private,
        quoted=_quoted(replied),
        quoted_by=_quoted_by(replied, context.bot_id),
        forwarded=all_forwarded,
        passed_on=passed_on,
        edited=edited,
        place=snowflake(payload.get("id")),
        reply_handle=_reply_handle(payload, private=private),
    )


def _deleted(payload: Mapping[str, Any], context: Context) -> Withdrawal | None:
    """A deleted message. Discord does not say who wrote it."""
    place, channel = snowflake(payload.get("id")), snowflake(payload.get("channel_id"))
    if not place or not channel:
        return None
    native_id = f"{place}:deleted"
    return Withdrawal(
        message_id=derived_message_id(CHANNEL, context.account, native_id),
        native_id=native_id,
        thread=_thread(payload, context),
        author=Author(id=""),
        received_at=context.now,
        place=place,
        private=payload.get("guild_id") is None,
    )


def _argument(data: Mapping[str, Any], command: CommandName) -> str:
    """The words that a person wrote behind a slash command."""
    most = argument_chars(command)
    return next((text(option.get("value"), most=most) for option in mappings(data.get("options"))), "")


def _interaction(payload: Mapping[str, Any], context: Context) -> Inbound | None:
    native_id, channel = snowflake(payload.get("id")), snowflake(payload.get("channel_id"))
    author = _person(mapping(payload.get("member")).get("user") or payload.get("user"))
    if not native_id or not channel or author is None or payload.get("context", _BOT_DM) not in _OUR_CONTEXTS:
        return None
    data, kind = mapping(payload.get("data")), payload.get("type")
    private = payload.get("guild_id") is None
    thread = _thread(payload, context)
    message_id = derived_message_id(CHANNEL, context.account, native_id)
    pressed = data.get("custom_id") if kind == _COMPONENT else None
    named = data.get("name") if kind == _SLASH_COMMAND else None
    named = STOP if pressed == STOP else named
    for command in COMMAND_NAMES:
        if named == command:
            return SessionCommand(
                message_id=message_id,
                native_id=native_id,
                thread=thread,
                author=author,
                received_at=context.now,
                name=command,
                argument=_argument(data, command),
                private=private,
            )
    answer = read_answer(pressed) if isinstance(pressed, str) else None
    if answer is None:
        return None
    handle, option = answer
    return ApprovalReply(
        message_id=message_id,
        native_id=native_id,
        thread=thread,
        author=author,
        received_at=context.now,
        interaction_id=handle,
        choice="",
        option=option,
        private=private,
    )


def _person(value: object) -> Author | None:
    """The author, unless it is a bot or Discord itself."""
    user = mapping(value)
    user_id = snowflake(user.get("id"))
    if not user_id or user.get("bot") or user.get("system"):
        return None
    name = user.get("global_name") or user.get("username")
    return Author(id=user_id, name=text(name, most=_NAME_CHARS))


def _thread(payload: Mapping[str, Any], context: Context) -> ThreadKey:
    # A Discord thread is a separate channel.
    return ThreadKey(channel=CHANNEL, account=context.account, chat=str(payload["channel_id"]))


def _reply_handle(payload: Mapping[str, Any], *, private: bool) -> str:
    return f"{NO_REFERENCE if private else ''}{payload['id']}"


def _edit_id(message_id: str, stamp: object, context: Context) -> str:
    """The native id of an edit; empty for an update that changed no text.

    A link preview that Discord adds to an edited message has the timestamp of that edit, and so its id."""
    if not isinstance(stamp, str) or len(stamp) > 40:
        return ""
    try:
        at = datetime.fromisoformat(stamp).timestamp()
    except (ValueError, OverflowError, OSError):
        return ""
    return f"{message_id}:e{stamp}" if context.now - at < context.stale_edit_s else ""


def readable(payload: Mapping[str, Any], bot_id: str, bot_roles: frozenset[str]) -> tuple[str, bool]:
    """The text without the bot's mention and with people's names for mentions; whether the bot was
    mentioned."""
    words = text(payload.get("content"), most=_TEXT_CHARS)
    names = {
        snowflake(user.get("id")): text(user.get("global_name") or user.get("username"), most=_NAME_CHARS)
        for user in mappings(payload.get("mentions"), most=_MENTIONS)
    }
    mentioned = False

    def name(match: re.Match[str]) -> str:
        nonlocal mentioned
        sign, named = match.groups()
        if named == bot_id if sign != _ROLE else named in bot_roles:
            mentioned = True
            return ""
        known = "" if sign == _ROLE else names.get(named)
        return f"@{known}" if known else match.group(0)

    readable = _MENTION.sub(name, words)
    return (readable.strip() if mentioned else readable), mentioned


def _all_words(message: Mapping[str, Any]) -> str:
    return _joined(text(message.get("content"), most=_TEXT_CHARS), described(message))


def _quoted(replied: Mapping[str, Any]) -> str:
    if words := _all_words(replied):
        return words[:_QUOTE_CHARS]
    media = media_of(replied, ())
    return attached_note((*filter(None, (media.voice,)), *media.attachments))


def _quoted_by(replied: Mapping[str, Any], bot_id: str) -> str:
    """The name of the author of the message that is replied to."""
    author = mapping(replied.get("author"))
    if snowflake(author.get("id")) == bot_id:
        return "You"
    return text(author.get("global_name") or author.get("username"), most=_NAME_CHARS)


def _joined(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part.strip())


def _forwarded(payload: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The forwarded message, if there is one."""
    if integer(mapping(payload.get("message_reference")).get("type")) != _FORWARD:
        return None
    for snapshot in mappings(payload.get("message_snapshots"), most=1):
        return mapping(snapshot.get("message"))
    return None
