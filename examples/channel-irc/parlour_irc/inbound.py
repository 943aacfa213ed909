"""From a line of IRC to what the gateway accepts. Pure: no clock, no network; unknown lines give None."""

from __future__ import annotations

import re
import string
from typing import Any, Literal

from irctokens.line import Line

from adapters.identity import derived_message_id
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Author, Inbound, InboundMessage, SessionCommand, parse_command

_FORMATTING = re.compile(r"\x03(?:[0-9]{1,2}(?:,[0-9]{1,2})?)?|\x04[0-9A-Fa-f]{6}|[\x00-\x08\x0b-\x1f\x7f]")
_ACTION = re.compile(r"\x01ACTION (.*?)\x01?")
_ROOM_SIGNS = ("#", "&")
_LONGEST_ID = 150

Identity = Literal["account", "hostmask"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A message of a person."""

    nick: str
    person: str
    """Who it is, as `identity` says; empty for somebody who is not known."""
    room: str
    """The room as the server writes it; empty for a private message."""
    text: str
    native_id: str
    """The server's id of the message, empty if it gives none."""


def said(line: Line, *, own_nick: str, identity: Identity) -> Said | None:
    """What a person said; None for every other line: of bots, of the bot itself, CTCP, and notices, to which
    RFC 1459 (4.4.2) forbids an answer."""
    if line.command != "PRIVMSG" or len(line.params) != 2 or not line.source:
        return None
    tags = line.tags or {}
    mask = line.hostmask
    target, words = line.params
    action = _ACTION.fullmatch(words)
    if action is None and words.startswith("\x01"):
        return None
    text = _FORMATTING.sub("", action[1] if action else words).strip()
    if not text or "bot" in tags or mask.username is None or folded(mask.nickname) == folded(own_nick):
        return None
    room = target if target.startswith(_ROOM_SIGNS) else ""
    if not room and folded(target) != folded(own_nick):
        return None
    return Said(
        nick=mask.nickname,
        person=person_of(line, identity),
        room=room,
        text=f"* {text}" if action else text,
        native_id=tags.get("msgid", "")[:200],
    )


def person_of(line: Line, identity: Identity) -> str:
    """The id of the line's author; empty without one. Never the nick, which anybody can take."""
    mask = line.hostmask
    if identity == "hostmask":
        name = f"{mask.username}@{mask.hostname}" if mask.username and mask.hostname else ""
    else:
        account = (line.tags or {}).get("account", "")
        name = "" if account == "*" else account
    # A person with the id of a room would have its conversation.
    return "" if name.startswith(_ROOM_SIGNS) else escaped(name)


def inbound(
    message: Said, *, channel: str, account: str, own_nick: str, native_id: str, at: float
) -> Inbound | None:
    """The gateway's item; None for a message of somebody unknown, or without words."""
    if not message.person:
        return None
    private = not message.room
    words, addressed = (message.text, True) if private else addressed_words(message.text, own_nick)
    thread = ThreadKey(channel=channel, account=account, chat=escaped(message.room) or message.person)
    common: dict[str, Any] = {
        "message_id": derived_message_id(channel, account, native_id),
        "native_id": native_id,
        "thread": thread,
        "author": Author(id=message.person, name=message.nick),
        "received_at": at,
        "private": private,
        "reply_handle": message.nick,
    }
    command = parse_command(words) if addressed else None
    if command is not None:
        return SessionCommand(name=command.name, argument=command.argument, **common)
    return InboundMessage(text=words, addressed=addressed, **common) if words else None


def addressed_words(text: str, own_nick: str) -> tuple[str, bool]:
    """The words without the bot's nick in front, and whether it is there: `parlour: …`, `parlour, …`,
    `@parlour …`."""
    nick = re.escape(own_nick)
    match = re.match(rf"(?:@{nick}(?=[\s:,]|$)[:,]?|{nick}[:,])\s*", text, re.IGNORECASE)
    return (text[match.end() :], True) if match else (text, False)


def folded(name: str) -> str:
    """The nick as servers compare it (RFC 1459, 2.2: {}|~ are the small letters of []\\^)."""
    return name.translate(_SAME_NICK)


def escaped(name: str) -> str:
    """The name as an id of the gateway: in small letters, without / : and , which separate ids. Empty for one
    that is too long.

    Only A to Z are made small. What else a server takes for the same differs, and two accounts must never
    have one id."""
    if len(name) > _LONGEST_ID:
        return ""
    small = name.translate(_SMALL)
    return small.replace("%", "%25").replace("/", "%2F").replace(":", "%3A").replace(",", "%2C")


_SMALL = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_SAME_NICK = _SMALL | str.maketrans("[]\\^", "{}|~")
