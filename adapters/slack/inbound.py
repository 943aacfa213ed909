"""Parse Slack's payloads to inbound items. Pure: no clock, no network, and nothing raises.

A mention arrives as `message` and as `app_mention`; both have the native id `<channel>:<ts>`, so the inbox
accepts only the first. Payloads that are not for the gateway (messages of this and other bots, joins, pins,
link previews, unknown kinds and shapes) give None.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.button_data import STOP, read_answer
from adapters.identity import derived_message_id
from adapters.json_fields import mapping, mappings, text
from adapters.media_kinds import media_kind
from adapters.slack.fields import count, ident, reply_handle, stamp, trigger
from adapters.slack.plain_text import plain_words
from adapters.slack.reaction_events import KINDS, parse_reaction
from adapters.slack.settings import CHANNEL
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import (
    ApprovalReply,
    Author,
    Inbound,
    InboundMessage,
    MediaKind,
    MediaRef,
    SessionCommand,
    Withdrawal,
    parse_command,
)

TEXT_CHARS = 40_000
"""The maximum length of a Slack message."""
_MOST_FILES = 10
_OPTION_DIGITS = 3
"""A Slack message can have more than a hundred buttons."""
_FOR_READERS = ("", None, "file_share", "thread_broadcast", "me_message")
"""Subtypes of messages written by people."""
_REMOVED = "tombstone"
"""How a file is marked that is no longer in its message."""
_SLACKBOT = "USLACKBOT"
_MOST_SHARED = 10
_MAX_SLASH_CHARS = 150
"""Of the text behind the app's slash command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bot:
    """The bot's identity, from auth.test."""

    user: str
    bot: str
    team: str
    app: str = ""
    """The app's id where it is known."""
    name: str = ""


def teams_of(payload: Mapping[str, Any]) -> frozenset[str]:
    """The workspaces named in a payload.

    In channels shared between companies the team that comes first may be the other's."""
    found = [payload.get("team_id"), payload.get("context_team_id"), mapping(payload.get("team")).get("id")]
    found += [one.get("team_id") for one in mappings(payload.get("authorizations"))]
    return frozenset(ident(one) for one in found) - {""}


def parse_event(payload: Mapping[str, Any], bot: Bot, account: str) -> Inbound | None:
    """An Events API payload (`event_callback`)."""
    event = mapping(payload.get("event"))
    kind, subtype = event.get("type"), event.get("subtype")
    if kind == "app_mention":
        return _message(event, bot, account)
    if isinstance(kind, str) and kind in KINDS:
        return parse_reaction(event, bot.user, account)
    if kind != "message":
        return None
    if subtype == "message_changed":
        return _edited(event, bot, account)
    if subtype == "message_deleted":
        return _deleted(event, account)
    return _message(event, bot, account) if subtype in _FOR_READERS else None


def parse_press(payload: Mapping[str, Any], bot: Bot, account: str) -> Inbound | None:
    """A `block_actions` payload: a button below one of our messages."""
    container, message = mapping(payload.get("container")), mapping(payload.get("message"))
    user = mapping(payload.get("user"))
    chat = ident(mapping(payload.get("channel")).get("id")) or ident(container.get("channel_id"))
    ts = stamp(container.get("message_ts")) or stamp(message.get("ts"))
    pressed, presser = trigger(payload.get("trigger_id")), ident(user.get("id"))
    actions = mappings(payload.get("actions"))
    if not (chat and ts and pressed and presser and actions) or presser == bot.user:
        return None
    root = stamp(message.get("thread_ts")) or stamp(container.get("thread_ts"))
    common: dict[str, Any] = {
        "message_id": derived_message_id(CHANNEL, account, pressed),
        "native_id": pressed,
        "thread": _thread(account, chat, root, ts, private=_is_direct(chat)),
        "author": Author(id=presser, name=text(user.get("name"), most=80)),
        "received_at": float(stamp(actions[0].get("action_ts")) or ts),
        "private": _is_direct(chat),
    }
    action = text(actions[0].get("action_id"), most=64)
    if action == STOP:
        handle = reply_handle(ts, presser, ident(user.get("team_id")) or bot.team)
        return SessionCommand(name="stop", reply_handle=handle, **common)
    answer = read_answer(action, digits=_OPTION_DIGITS)
    if answer is None:
        return None
    handle, option = answer
    return ApprovalReply(interaction_id=handle, choice="", option=option, **common)


def parse_slash(payload: Mapping[str, Any], bot: Bot, account: str, *, now: float) -> SessionCommand | None:
    """The app's slash command with a command's name, in a direct chat. Slack does not say in which thread
    of a channel a command was typed, so there it is ambiguous."""
    chat, user = ident(payload.get("channel_id")), ident(payload.get("user_id"))
    native_id = trigger(payload.get("trigger_id"))
    command = parse_command(f"/{text(payload.get('text'), most=_MAX_SLASH_CHARS).strip().removeprefix('/')}")
    if command is None or not (user and native_id and _is_direct(chat)) or user == bot.user:
        return None
    return SessionCommand(
        message_id=derived_message_id(CHANNEL, account, native_id),
        native_id=native_id,
        thread=ThreadKey(channel=CHANNEL, account=account, chat=chat),
        author=Author(id=user, name=text(payload.get("user_name"), most=80)),
        received_at=now,
        name=command.name,
        argument=command.argument,
    )


# -- messages -------------------------------------------------------------------------------------


def _edited(outer: Mapping[str, Any], bot: Bot, account: str) -> Inbound | None:
    """An edited message, also one with other files; None where only a link preview was added."""
    inner, before = mapping(outer.get("message")), mapping(outer.get("previous_message"))
    if inner.get("subtype") == "tombstone":
        # The placeholder of a deleted message that has replies.
        return _deleted(outer, account)
    edited = stamp(mapping(inner.get("edited")).get("ts"))
    if before and _file_ids(inner) != _file_ids(before):
        # A deleted file leaves its message without the time of an edit, or with that of an earlier one.
        earlier = stamp(mapping(before.get("edited")).get("ts"))
        edited = edited if edited != earlier else stamp(outer.get("ts"))
    elif inner.get("text") == before.get("text"):
        return None
    if not edited or inner.get("subtype") not in _FOR_READERS:
        return None
    event = {**inner, "channel": outer.get("channel"), "channel_type": outer.get("channel_type")}
    return _message(event, bot, account, edited=edited)


def _file_ids(message: Mapping[str, Any]) -> set[str]:
    voice, others = files_of({"files": message.get("files")})
    return {ref.handle for ref in (voice, *others) if ref is not None}


def _deleted(outer: Mapping[str, Any], account: str) -> Withdrawal | None:
    """A deleted message."""
    before = mapping(outer.get("previous_message"))
    chat = ident(outer.get("channel"))
    ts = stamp(before.get("ts")) or stamp(outer.get("deleted_ts"))
    if not (chat and ts):
        return None
    private = _is_direct(chat) or outer.get("channel_type") == "im"
    native_id = f"{chat}:{ts}:deleted"
    return Withdrawal(
        message_id=derived_message_id(CHANNEL, account, native_id),
        native_id=native_id,
        thread=_thread(account, chat, stamp(before.get("thread_ts")), ts, private=private),
        author=Author(id=ident(before.get("user"))),
        received_at=float(stamp(outer.get("ts")) or ts),
        place=f"{chat}:{ts}",
        private=private,
    )


def _message(event: Mapping[str, Any], bot: Bot, account: str, *, edited: str = "") -> Inbound | None:
    chat, ts, user = ident(event.get("channel")), stamp(event.get("ts")), ident(event.get("user"))
    if not (chat and ts and user) or not _is_person(event, user, bot):
        return None
    private = _is_direct(chat) or event.get("channel_type") == "im"
    root = stamp(event.get("thread_ts"))
    said, mentioned = plain_words(text(event.get("text"), most=TEXT_CHARS), bot.user)
    passed_on = shared_words(event)
    voice, attachments = files_of(event)
    forwarded = _all_forwarded(event, said, voice)
    if forwarded:
        said, passed_on = "\n\n".join(part for part in (said, passed_on) if part.strip()), ""
    if not said.strip() and voice is None and not attachments:
        return None
    native_id = f"{chat}:{ts}:e{edited}" if edited else f"{chat}:{ts}"
    addressed = private or mentioned or event.get("type") == "app_mention"
    addressed = addressed or event.get("parent_user_id") == bot.user
    common: dict[str, Any] = {
        "message_id": derived_message_id(CHANNEL, account, native_id),
        "native_id": native_id,
        "thread": _thread(account, chat, root, ts, private=private),
        "author": Author(id=user),
        "received_at": float(edited or ts),
        "private": private,
        "reply_handle": reply_handle(ts, user, _team(event, bot)),
    }
    # A forwarded text is no command, and a file with such a text is answered, not lost.
    content = forwarded or bool(passed_on) or voice is not None or bool(attachments)
    command = parse_command(said) if addressed and not content and "@" not in said else None
    if command is not None:
        return SessionCommand(name=command.name, argument=command.argument, **common)
    return InboundMessage(
        text=said,
        voice=voice,
        attachments=attachments,
        reply_to=f"{chat}:{root}" if root and root != ts else None,
        addressed=addressed,
        forwarded=forwarded,
        passed_on=passed_on,
        edited=bool(edited),
        place=f"{chat}:{ts}",
        **common,
    )


def _is_person(event: Mapping[str, Any], user: str, bot: Bot) -> bool:
    if user in (bot.user, _SLACKBOT) or event.get("bot_id") or event.get("bot_profile"):
        return False
    return not (bot.app and event.get("app_id") == bot.app)


def _team(event: Mapping[str, Any], bot: Bot) -> str:
    """The author's team, which may be another company's in a shared channel."""
    return ident(event.get("user_team")) or ident(event.get("team")) or bot.team


def _thread(account: str, chat: str, root: str, ts: str, *, private: bool) -> ThreadKey:
    """In a channel every thread is a conversation, and a message outside one starts a new one."""
    topic = (root if root and root != ts else None) if private else root or ts
    return ThreadKey(channel=CHANNEL, account=account, chat=chat, topic=topic)


def _all_forwarded(event: Mapping[str, Any], said: str, voice: MediaRef | None) -> bool:
    """Whether the sender added no words and no clip to the messages that this one forwards. Words above
    another author's clip count as part of it: they would be read as one text."""
    if voice is not None:
        return files_of({**event, "attachments": ()})[0] is None
    return not said.strip() and bool(shared_words(event) or files_of({**event, "files": ()})[1])


def _shared(event: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [one for one in mappings(event.get("attachments")) if one.get("is_share") is True]


def shared_words(event: Mapping[str, Any]) -> str:
    """The text of the messages that this one forwards, each below its author's name where there are
    several; empty where none is forwarded."""
    shared = _shared(event)[:_MOST_SHARED]
    said = [(one, plain_words(text(one.get("text"), most=TEXT_CHARS), "")[0]) for one in shared]
    said = [(one, passed_on) for one, passed_on in said if passed_on]
    if len(said) <= 1:
        return "".join(passed_on for _, passed_on in said)
    whole = "\n\n".join(f"{_name_of(one)}\n{passed_on}".strip() for one, passed_on in said)
    return whole[:TEXT_CHARS]


def _name_of(attachment: Mapping[str, Any]) -> str:
    name = " ".join(text(attachment.get("author_name"), most=80).split())
    return f"{name}:" if name else ""


# -- files ----------------------------------------------------------------------------------------


def files_of(event: Mapping[str, Any]) -> tuple[MediaRef | None, tuple[MediaRef, ...]]:
    """The first voice clip of a message, and its other files; including those of messages that it shares."""
    voice: MediaRef | None = None
    others: list[MediaRef] = []
    files = [file for one in (event, *_shared(event)) for file in mappings(one.get("files"))]
    for file in files[:_MOST_FILES]:
        handle = ident(file.get("id"))
        if not handle or file.get("mode") == _REMOVED:
            continue
        kind = _kind(file)
        milliseconds = count(file.get("duration_ms"))
        ref = MediaRef(
            channel=CHANNEL,
            handle=handle,
            mime=text(file.get("mimetype"), most=100),
            size=count(file.get("size")),
            duration_s=milliseconds / 1000 if milliseconds is not None else None,
            kind=kind,
            name=text(file.get("name"), most=200),
        )
        if voice is None and kind == "voice":
            voice = ref
        else:
            others.append(ref)
    return voice, tuple(others)


def _kind(file: Mapping[str, Any]) -> MediaKind:
    """The kind of a file. A clip's type is often video/mp4: its subtype and name are more exact."""
    if file.get("subtype") == "slack_audio" or text(file.get("name"), most=200).startswith("audio_message"):
        return "voice"
    return media_kind(text(file.get("mimetype"), most=100), text(file.get("name"), most=200))


# -- helpers --------------------------------------------------------------------------------------


def _is_direct(chat: str) -> bool:
    return chat.startswith("D")
