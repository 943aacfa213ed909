"""Payload by payload: what each gateway event is to the bot; nothing hostile gets through or raises."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.discord.inbound import Context, bot_roles, parse_event
from adapters.identity import derived_message_id
from pipeline.domain.messages import ApprovalReply, InboundMessage, SessionCommand, Withdrawal, button_handle
from tests.adapters.discord.payloads import (
    ADA,
    BOT,
    CHAT,
    EDITED,
    GUILD,
    ID,
    NOW,
    attachment,
    in_room,
    message,
    press,
    slash,
    user,
)
from tests.support.tables import each

ROLE = "600000000000000001"
CONTEXT = Context(account="main", bot_id=BOT, now=NOW, bot_roles=frozenset({ROLE}))
HANDLE = button_handle("int_1")


def heard(data: object, name: str = "MESSAGE_CREATE") -> InboundMessage:
    item = parse_event(name, data, CONTEXT)
    assert isinstance(item, InboundMessage)
    return item


REPLIED = {"message_reference": {"type": 0, "message_id": "7"}, "type": 19}
MESSAGES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (
        "a direct message",
        message(),
        {"text": "hello", "private": True, "addressed": True, "reply_handle": f"~{ID}"},
    ),
    ("room chatter", in_room(), {"addressed": False, "private": False, "reply_handle": ID}),
    ("a mention", in_room(f"<@{BOT}> do it"), {"text": "do it", "addressed": True}),
    ("an old mention", in_room(f"do <@!{BOT}> it"), {"text": "do  it", "addressed": True}),
    ("a mention of the bot's role", in_room(f"<@&{ROLE}> do it"), {"text": "do it", "addressed": True}),
    ("another role", in_room(f"<@&{BOT}> look"), {"text": f"<@&{BOT}> look", "addressed": False}),
    ("a user with the role's id", in_room(f"<@{ROLE}> look"), {"addressed": False}),
    ("a mention in private", message(f"<@{BOT}> hi"), {"text": "hi", "addressed": True}),
    (
        "somebody else's mention",
        in_room(f"<@{ADA}> look", mentions=[user()]),
        {"text": "@Ada look", "addressed": False},
    ),
    ("an unknown mention", in_room("<@5> look"), {"text": "<@5> look", "addressed": False}),
    (
        "a reply to the bot",
        in_room("and?", referenced_message=message("answer", id="7", author=user(BOT, bot=True)), **REPLIED),
        {"addressed": True, "quoted": "answer", "reply_to": "7"},
    ),
    (
        "a reply to somebody",
        in_room("yes", referenced_message=message("question", id="7"), **REPLIED),
        {"addressed": False, "quoted": "question", "reply_to": "7"},
    ),
    (
        "a reply to a deleted message",
        message("yes", referenced_message=None, **REPLIED),
        {"quoted": "", "reply_to": None},
    ),
    (
        "a forwarded message",
        message(
            "",
            message_reference={"type": 1, "message_id": "7"},
            message_snapshots=[{"message": {"content": "their words", "attachments": []}}],
        ),
        {"text": "their words", "forwarded": True},
    ),
    (
        "a forwarded command is no command",
        message(
            "",
            message_reference={"type": 1, "message_id": "7"},
            message_snapshots=[{"message": {"content": "/stop", "attachments": []}}],
        ),
        {"text": "/stop", "forwarded": True},
    ),
    (
        "a forwarded message with words above it",
        message(
            "look",
            message_reference={"type": 1, "message_id": "7"},
            message_snapshots=[
                {"message": {"content": "", "embeds": [{"title": "Down", "description": "db [1]"}]}}
            ],
        ),
        {"text": "look", "passed_on": "[Embed: Down | db (1)]", "forwarded": False},
    ),
    (
        "a sticker alone",
        message("", sticker_items=[{"id": "1", "name": "wave"}]),
        {"text": "[Sticker wave]"},
    ),
    (
        "a poll",
        message(
            "",
            poll={
                "question": {"text": "Where?"},
                "answers": [
                    {"poll_media": {"text": "Here"}},
                    {"poll_media": 5},
                    {"poll_media": {"text": "There"}},
                ],
            },
        ),
        {"text": "[Poll: Where? Here / There]"},
    ),
    (
        "a link with its preview",
        message("https://a.test", embeds=[{"title": "A"}]),
        {"text": "https://a.test"},
    ),
    (
        "an invitation to an activity",
        message("", activity={"type": 1}),
        {"text": "", "unusable": ("an invitation to an activity",)},
    ),
    (
        "a reply to a file",
        message("sum it up", referenced_message=message("", id="7", attachments=[attachment()]), **REPLIED),
        {"reply_to": "7"},
    ),
    ("a user without a global name", message(author=user(global_name=None)), {"text": "hello"}),
    (
        "a type that is missing",
        {key: one for key, one in message().items() if key != "type"},
        {"text": "hello"},
    ),
    ("another bot's command", message("/start"), {"text": "/start"}),
    ("words after a command", message("/stop it"), {"text": "/stop it"}),
    ("a command to no one in a room", in_room("/stop"), {"text": "/stop", "addressed": False}),
    ("a command below a file", message("/stop", attachments=[attachment()]), {"text": "/stop"}),
    ("half a surrogate pair", message("a\ud800b"), {"text": "a\ufffdb"}),
    ("mentions of a wrong shape", message("hi", mentions={"a": 1}), {"text": "hi"}),
    ("attachments of a wrong shape", message("hi", attachments=[7, {"id": 3}, None]), {"attachments": ()}),
    ("a referenced message of a wrong shape", message("hi", referenced_message="x"), {"quoted": ""}),
    ("a reply to a message without words", message("hi", referenced_message={"content": 3}), {"quoted": ""}),
]


@each("data, wanted", [row[1:] for row in MESSAGES])
def test_it_is_heard_as(data: dict[str, Any], wanted: dict[str, Any]) -> None:
    item = heard(data)

    assert {key: getattr(item, key) for key in wanted} == wanted
    assert (item.native_id, item.thread.chat, item.thread.topic) == (ID, CHAT, None)
    assert item.message_id == derived_message_id("discord", "main", ID)
    assert (item.author.id, item.received_at) == (ADA, NOW)


NOTHING: list[tuple[str, str, object]] = [
    ("own words", "MESSAGE_CREATE", message(author=user(BOT))),
    ("a bot", "MESSAGE_CREATE", message(author=user(bot=True))),
    ("the system", "MESSAGE_CREATE", message(author=user(system=True))),
    ("a webhook", "MESSAGE_CREATE", message(webhook_id="9")),
    ("a join", "MESSAGE_CREATE", message(type=7)),
    ("a pin", "MESSAGE_CREATE", message(type=6)),
    ("an opened thread", "MESSAGE_CREATE", message(type=18)),
    ("a slash command's own message", "MESSAGE_CREATE", message(type=20)),
    ("an unknown type", "MESSAGE_CREATE", message(type=999)),
    ("a type in words", "MESSAGE_CREATE", message(type="0x")),
    ("no words", "MESSAGE_CREATE", message("")),
    ("only the mention", "MESSAGE_CREATE", in_room(f"<@{BOT}>")),
    ("no content", "MESSAGE_CREATE", message(None)),
    ("content of a wrong type", "MESSAGE_CREATE", message(["hello"])),
    ("content without end", "MESSAGE_CREATE", message("x" * 16_001)),
    ("no author", "MESSAGE_CREATE", message(author=None)),
    ("an author that is a list", "MESSAGE_CREATE", message(author=[])),
    ("an author without id", "MESSAGE_CREATE", message(author={"username": "x"})),
    ("a number for an id", "MESSAGE_CREATE", message(id=5)),
    ("an id that is a path", "MESSAGE_CREATE", message(id="../5")),
    ("an id in other digits", "MESSAGE_CREATE", message(id="٤٥")),
    ("a channel that is none", "MESSAGE_CREATE", message(channel_id="x" * 500)),
    ("no payload", "MESSAGE_CREATE", None),
    ("a list", "MESSAGE_CREATE", [message()]),
    ("an update without edit", "MESSAGE_UPDATE", message()),
    ("an update of an old edit", "MESSAGE_UPDATE", message(edited_timestamp="2026-09-20T14:13:10+00:00")),
    ("an edit at no time", "MESSAGE_UPDATE", message(edited_timestamp="yesterday")),
    ("an edit at a number", "MESSAGE_UPDATE", message(edited_timestamp=5)),
    ("an edit outside all times", "MESSAGE_UPDATE", message(edited_timestamp="0001-01-01T00:00:00")),
    ("a partial update", "MESSAGE_UPDATE", {"id": ID, "channel_id": CHAT, "embeds": []}),
    ("an edit by the bot", "MESSAGE_UPDATE", message(author=user(BOT), edited_timestamp=EDITED)),
    ("a reaction", "MESSAGE_REACTION_ADD", message()),
    ("a deletion in no chat", "MESSAGE_DELETE", {"id": ID}),
    ("a deletion of nothing", "MESSAGE_DELETE", {"id": "x", "channel_id": CHAT}),
    ("typing", "TYPING_START", {"user_id": ADA}),
    ("an unknown event", "SOMETHING_NEW", message()),
    ("a foreign button", "INTERACTION_CREATE", press("hello")),
    ("a forged handle", "INTERACTION_CREATE", press("q:0123456789ABCDEF:0")),
    ("a forged option", "INTERACTION_CREATE", press(f"q:{HANDLE}:100")),
    ("an option below zero", "INTERACTION_CREATE", press(f"q:{HANDLE}:-1")),
    ("a custom id that is a list", "INTERACTION_CREATE", press(["stop"])),
    ("a press by a bot", "INTERACTION_CREATE", press("stop", user=user(bot=True))),
    ("a press by no one", "INTERACTION_CREATE", press("stop", user=None)),
    ("a foreign slash command", "INTERACTION_CREATE", slash("ban")),
    ("a name that is a number", "INTERACTION_CREATE", slash(1)),
    ("an autocompletion", "INTERACTION_CREATE", slash("stop", type=4)),
    ("a command in a chat among people", "INTERACTION_CREATE", slash("stop", guild_id=None, context=2)),
    ("a ping", "INTERACTION_CREATE", slash("stop", type=1)),
    ("an interaction without data", "INTERACTION_CREATE", press("stop", data=None)),
]


@each("name, data", [row[1:] for row in NOTHING])
def test_it_is_nothing_to_the_bot(name: str, data: object) -> None:
    assert parse_event(name, data, CONTEXT) is None


COMMANDS: list[tuple[str, str, dict[str, Any], str, bool]] = [
    ("typed in private", "MESSAGE_CREATE", message("/Stop "), "stop", True),
    ("typed to the bot in a room", "MESSAGE_CREATE", in_room(f"<@{BOT}> /new"), "new", False),
    ("a slash command in a room", "INTERACTION_CREATE", slash("help"), "help", False),
    (
        "a slash command in private",
        "INTERACTION_CREATE",
        slash("new", guild_id=None, member=None, user=user(), context=1),
        "new",
        True,
    ),
    ("the Stop button", "INTERACTION_CREATE", press("stop"), "stop", True),
    (
        "the Stop button in a room",
        "INTERACTION_CREATE",
        press("stop", guild_id=GUILD, user=None, member={"user": user()}),
        "stop",
        False,
    ),
]


@pytest.mark.parametrize(
    ("name", "data", "command", "private"), [row[1:] for row in COMMANDS], ids=[row[0] for row in COMMANDS]
)
def test_it_is_a_command(name: str, data: dict[str, Any], command: str, private: bool) -> None:
    item = parse_event(name, data, CONTEXT)

    assert isinstance(item, SessionCommand)
    assert (item.name, item.private, item.author.id, item.native_id) == (command, private, ADA, ID)


ROLES: list[tuple[str, object, set[str]]] = [
    ("GUILD_CREATE", {"roles": [{"id": ROLE, "tags": {"bot_id": BOT}}, {"id": "1", "tags": {}}]}, {ROLE}),
    ("GUILD_ROLE_CREATE", {"role": {"id": ROLE, "tags": {"bot_id": BOT}}}, {ROLE}),
    ("GUILD_ROLE_CREATE", {"role": {"id": ROLE, "tags": {"bot_id": ADA}}}, set()),
    ("GUILD_CREATE", {"roles": "x"}, set()),
    ("GUILD_ROLE_CREATE", {"role": 1}, set()),
    ("MESSAGE_CREATE", message(), set()),
]


@pytest.mark.parametrize(("name", "data", "ours"), ROLES)
def test_the_bots_own_roles_are_those_that_servers_made_for_it(
    name: str, data: object, ours: set[str]
) -> None:
    assert bot_roles(name, data, BOT) == ours


def test_a_press_is_an_answer_with_the_place_of_its_option() -> None:
    item = parse_event("INTERACTION_CREATE", press(f"q:{HANDLE}:12"), CONTEXT)

    assert isinstance(item, ApprovalReply)
    assert (item.interaction_id, item.option, item.choice) == (HANDLE, 12, "")


def test_an_edit_is_a_separate_message() -> None:
    item = heard(message("better", edited_timestamp=EDITED), "MESSAGE_UPDATE")

    assert (item.native_id, item.text, item.edited) == (f"{ID}:e{EDITED}", "better", True)
    assert item.place == heard(message("worse"), "MESSAGE_CREATE").place == ID


def test_a_deletion_names_the_message_that_is_gone() -> None:
    item = parse_event("MESSAGE_DELETE", {"id": ID, "channel_id": CHAT}, CONTEXT)

    assert isinstance(item, Withdrawal)
    asked = heard(message("asked"), "MESSAGE_CREATE")
    assert (item.place, item.thread) == (asked.place, asked.thread)
    assert item.native_id != asked.native_id


def test_an_edited_command_is_no_command() -> None:
    assert heard(message("/stop", edited_timestamp=EDITED), "MESSAGE_UPDATE").text == "/stop"


def test_a_voice_message_is_a_voice_and_a_sound_file_is_an_attachment() -> None:
    note = attachment("audio/ogg", filename="voice-message.ogg", duration_secs=2.5, waveform="AAAA")
    voice = heard(message("", flags=8192, attachments=[note])).voice
    song = heard(message("what is this?", attachments=[attachment(), attachment("audio/mpeg", id="6")]))

    assert voice is not None
    assert (voice.kind, voice.mime, voice.duration_s, voice.size) == ("voice", "audio/ogg", 2.5, 1234)
    assert voice.handle == f"{CHAT}/{ID}/500000000000000001"
    assert song.voice is None
    assert [(one.kind, one.handle) for one in song.attachments][1] == ("audio", f"{CHAT}/{ID}/6")


@pytest.mark.parametrize(
    ("mime", "kind"),
    [
        ("image/webp", "image"),
        ("video/mp4", "video"),
        ("application/pdf", "file"),
        (None, "file"),
        (7, "file"),
    ],
)
def test_other_attachments_keep_kind_and_name(mime: object, kind: str) -> None:
    (one,) = heard(message("", attachments=[attachment(mime)])).attachments

    assert (one.kind, one.name) == (kind, "a.png")


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), -1, 10**400, True, "2.5", None])
def test_an_odd_duration_or_size_is_none(odd: object) -> None:
    note = attachment("audio/ogg", duration_secs=odd, size=odd if not isinstance(odd, int) else -5)
    voice = heard(message("", flags=8192, attachments=[note])).voice

    assert voice is not None
    assert (voice.duration_s, voice.size) == (None, None)


_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from([ID, CHAT, BOT, ADA, EDITED, "stop", f"q:{HANDLE}:0"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
_names = st.sampled_from(["MESSAGE_CREATE", "MESSAGE_UPDATE", "INTERACTION_CREATE", "READY", ""])
_shapes = st.sampled_from(
    [
        message(edited_timestamp=EDITED),
        in_room(attachments=[attachment("audio/ogg")], flags=8192),
        message(
            message_reference={"type": 1},
            message_snapshots=[{"message": message(attachments=[attachment()])}],
            referenced_message=message(),
        ),
        press("stop"),
        slash("new"),
    ]
)


@given(name=_names, data=_json)
def test_any_json_is_survived(name: str, data: object) -> None:
    item = parse_event(name, data, CONTEXT)

    assert item is None or item.thread.channel == "discord"


@given(
    name=_names, shape=_shapes, change=st.dictionaries(st.integers(0, 40), _json, max_size=4), drawn=st.data()
)
def test_any_field_of_a_real_payload_may_hold_anything(
    name: str, shape: dict[str, Any], change: dict[int, object], drawn: st.DataObject
) -> None:
    keys = list(shape)
    changed = shape | {keys[place % len(keys)]: value for place, value in change.items()}
    for key, value in list(changed.items()):
        if isinstance(value, dict) and value:
            changed[key] = value | {drawn.draw(st.sampled_from(list(value))): drawn.draw(_json)}

    item = parse_event(name, changed, CONTEXT)

    if item is not None:
        assert item.author.id != BOT
        assert item.thread.encode()
        item.native_id.encode("ascii")
