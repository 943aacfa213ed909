"""The parse table: what each kind of update becomes, and that nothing at all makes the parser raise."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from adapters.identity import derived_message_id
from adapters.telegram.callback_queries import callback_query_of
from adapters.telegram.inbound import chat_of, parse_update
from adapters.telegram.media_groups import by_chat
from pipeline.domain.messages import ApprovalReply, InboundMessage, SessionCommand
from tests.adapters.telegram.payloads import (
    ANN,
    BOT,
    CONTEXT,
    GROUP,
    PRIVATE,
    file,
    in_group,
    mark,
    message,
    press,
)
from tests.support.tables import each

TOPIC = {"message_thread_id": 77, "is_topic_message": True}
BY_BOT = {"message_id": 3, "date": 1, "chat": GROUP, "from": BOT, "text": "earlier answer"}
CHANNEL_CHAT = {"id": -100999, "type": "channel", "title": "News"}
OPENED = {"message_id": 77, "chat": GROUP, "from": BOT, "forum_topic_created": {"name": "x", "icon_color": 1}}

MESSAGES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "text": (
        message(text="hello"),
        {"text": "hello", "private": True, "addressed": True, "reply_handle": "7"},
    ),
    "caption": (
        message(photo=[file(width=90), file(file_id="big", width=900)], caption="look"),
        {"text": "look", "attachments": [("image", "big")]},
    ),
    "edited": (message("edited_message", text="hullo", edit_date=2), {"text": "hullo", "edited": True}),
    "name from the username": (
        message(text="x", **{"from": {"id": 5, "is_bot": False, "username": "u"}}),
        {"author": ("5", "u")},
    ),
    "first and last name": (message(text="x"), {"author": ("1001", "Ann Lee")}),
    "group chatter": (in_group("hello all"), {"addressed": False, "private": False}),
    "mention": (
        in_group("@parlour_bot what now", entities=mark("mention", 0, 12)),
        {"addressed": True, "text": "what now"},
    ),
    "mention with a colon": (
        in_group("@Parlour_bot: what now", entities=mark("mention", 0, 12)),
        {"addressed": True, "text": "what now"},
    ),
    "mention in the middle, after an emoji": (
        in_group("\U0001f600 so @Parlour_bot what now", entities=mark("mention", 6, 12)),
        {"addressed": True, "text": "\U0001f600 so what now"},
    ),
    "mention alone": (
        in_group("@Parlour_bot", entities=mark("mention", 0, 12)),
        {"addressed": True, "text": "@Parlour_bot"},
    ),
    "mention of somebody else": (
        in_group("@parlour_bots hi", entities=mark("mention", 0, 13)),
        {"addressed": False, "text": "@parlour_bots hi"},
    ),
    "mention in a caption": (
        message(
            chat=GROUP, document=file(), caption="@parlour_bot x", caption_entities=mark("mention", 0, 12)
        ),
        {"addressed": True, "text": "x", "attachments": [("file", "AwACAgIAAx-1_z")]},
    ),
    "mention by name": (
        in_group("Parlour, hi", entities=mark("text_mention", 0, 7, user=BOT)),
        {"addressed": True, "text": "hi"},
    ),
    "reply to the bot": (
        in_group("and then?", reply_to_message=BY_BOT),
        {"addressed": True, "quoted": "earlier answer", "reply_to": "3"},
    ),
    "reply to somebody": (
        in_group("no", reply_to_message={**BY_BOT, "from": ANN, "text": None, "caption": "a picture"}),
        {"addressed": False, "quoted": "a picture", "reply_to": "3"},
    ),
    "quote of a part": (
        message(text="this?", quote={"text": "a part", "position": 2}, reply_to_message=BY_BOT),
        {"quoted": "a part"},
    ),
    "forum topic": (in_group("hi", **TOPIC), {"topic": "77"}),
    "forum topic, first level": (
        in_group("hi", reply_to_message=OPENED, **TOPIC),
        {"topic": "77", "addressed": False, "reply_to": None, "quoted": ""},
    ),
    "general topic by number": (
        in_group("hi", message_thread_id=1, is_topic_message=True),
        {"topic": None},
    ),
    "reply chain that is no topic": (in_group("hi", message_thread_id=55), {"topic": None}),
    "private topic": (message(text="hi", **TOPIC), {"topic": "77", "private": True}),
    "forwarded": (
        message(text="chain letter", forward_origin={"type": "hidden_user", "sender_user_name": "x"}),
        {"forwarded": True},
    ),
    "through an inline bot": (message(text="gif", via_bot=BOT), {"forwarded": True}),
    "anonymous administrator": (
        in_group(
            "hi",
            sender_chat=GROUP,
            **{"from": {"id": 1087968824, "is_bot": True, "first_name": "Group"}},
        ),
        {"author": ("-100200", "Team"), "private": False},
    ),
    "voice": (
        message(voice=file(duration=3, mime_type="audio/ogg")),
        {"voice": ("voice", "AwACAgIAAx-1_z"), "attachments": [], "text": ""},
    ),
    "voice with a caption": (
        message(voice=file(), caption="hear"),
        {"text": "hear", "voice": ("voice", "AwACAgIAAx-1_z")},
    ),
    "audio": (message(audio=file(mime_type="audio/mpeg")), {"attachments": [("audio", "AwACAgIAAx-1_z")]}),
    "sound as a document": (
        message(document=file(mime_type="audio/ogg")),
        {"attachments": [("audio", "AwACAgIAAx-1_z")]},
    ),
    "photo with a size that bots may not download": (
        message(photo=[file(file_id="fits", width=900), file(width=4000, file_size=20_000_001)]),
        {"attachments": [("image", "fits")]},
    ),
    "round video": (message(video_note=file(length=240)), {"voice": ("video", "AwACAgIAAx-1_z")}),
    "video": (message(video=file(mime_type="video/mp4")), {"attachments": [("video", "AwACAgIAAx-1_z")]}),
    "animation": (
        message(animation=file(file_id="anim"), document=file()),
        {"attachments": [("video", "anim")]},
    ),
    "image as a document": (
        message(document=file(mime_type="image/png")),
        {"attachments": [("image", "AwACAgIAAx-1_z")]},
    ),
    "sticker": (message(sticker=file(emoji="\U0001f600")), {"text": "[Sticker \U0001f600]"}),
    "location": (
        message(location={"latitude": 47.3769, "longitude": -8.5}),
        {"text": "[Location: latitude 47.3769, longitude -8.5]"},
    ),
    "live location": (
        message(location={"latitude": 1.0, "longitude": 2.0, "live_period": 60}),
        {"text": "[Live location, at first: latitude 1, longitude 2]"},
    ),
    "venue": (
        message(
            venue={
                "title": "Caf\u00e9 [x]",
                "address": "Main St 1",
                "location": {"latitude": 1, "longitude": 2},
            },
            location={"latitude": 1, "longitude": 2},
        ),
        {"text": "[Venue: Caf\u00e9 (x), Main St 1, latitude 1, longitude 2]"},
    ),
    "contact": (
        message(contact={"first_name": "Bob", "last_name": "Lee", "phone_number": "+41 79"}),
        {"text": "[Contact: Bob Lee, +41 79]"},
    ),
    "poll": (
        message(poll={"question": "Eat\nwhere?", "options": [{"text": "Here"}, {"text": "There"}, 5]}),
        {"text": "[Poll: Eat where? Here / There]"},
    ),
    "dice": (message(dice={"emoji": "\U0001f3b2", "value": 3}), {"text": "[Dice \U0001f3b2: 3]"}),
    "checklist": (
        message(
            checklist={
                "title": "Shop",
                "tasks": [{"id": 1, "text": "eggs"}, {"id": 2, "text": "milk", "completion_date": 5}],
            }
        ),
        {"text": "[Checklist Shop: open: eggs; done: milk]"},
    ),
    "story": (message(story={"chat": PRIVATE, "id": 4}), {"text": "", "unusable": ("a story",)}),
    "reply to a file": (
        message(text="sum it up", reply_to_message={"document": file(file_name="a.pdf", file_size=1200)}),
        {"quoted": '[Attached: file "a.pdf" (1.2 KB). The content is not available to you.]'},
    ),
    "reply to a poll": (
        message(text="?", reply_to_message={"poll": {"question": "Where?"}}),
        {"quoted": "[Poll: Where?]"},
    ),
    "sound as a document of no type": (
        message(document=file(file_name="Talk.MP3")),
        {"attachments": [("audio", "AwACAgIAAx-1_z")]},
    ),
    "half a character": (message(text="a\ud800b"), {"text": "a\ufffdb"}),
    "unknown command": (message(text="/weather tomorrow"), {"text": "/weather tomorrow"}),
    "path with an at": (message(text="/srv@host is down"), {"text": "/srv@host is down"}),
    "entities that lie": (
        in_group("hi", entities=[*mark("mention", 0, 900), *mark("mention", -5, 2), "x", None]),
        {"text": "hi", "addressed": False},
    ),
}

COMMANDS: dict[str, tuple[dict[str, Any], str]] = {
    "stop": (message(text="/stop"), "stop"),
    "in capitals": (message(text=" /Stop "), "stop"),
    "new in a group, to the bot": (in_group("/new@parlour_bot", entities=mark("bot_command", 0, 16)), "new"),
    "stop in a group, to no one": (in_group("/stop", entities=mark("bot_command", 0, 5)), "stop"),
    "help after a mention": (in_group("@parlour_bot /help", entities=mark("mention", 0, 12)), "help"),
    "start": (message(text="/start"), "help"),
    "start by a link": (message(text="/start ref42"), "help"),
    "the preview's stop button": (
        {"update_id": 1, "stopped_message_generation": {"chat": PRIVATE, "draft_id": 5}},
        "stop",
    ),
    "the stop button of a message": (press("stop"), "stop"),
}

NOTHING: dict[str, object] = {
    "own message": message(text="x", **{"from": BOT}),
    "another bot": message(text="x", chat=GROUP, **{"from": {**BOT, "id": 43}}),
    "channel post": {"update_id": 1, "channel_post": {"message_id": 1, "chat": CHANNEL_CHAT, "text": "x"}},
    "a channel as a chat": message(text="x", chat=CHANNEL_CHAT),
    "a channel's post in its group": in_group("x", sender_chat=CHANNEL_CHAT, is_automatic_forward=True),
    "written as a channel": in_group("x", sender_chat=CHANNEL_CHAT),
    "somebody joined": message(chat=GROUP, new_chat_members=[ANN]),
    "somebody left": message(chat=GROUP, left_chat_member=ANN),
    "pinned": message(chat=GROUP, pinned_message=BY_BOT),
    "group became a supergroup": message(chat=GROUP, migrate_to_chat_id=-100300),
    "topic opened": message(chat=GROUP, forum_topic_created={"name": "x"}, **TOPIC),
    "a live location that moved": message(
        "edited_message", location={"latitude": 1.0, "longitude": 2.0}, edit_date=2
    ),
    "a location nowhere": message(location={"latitude": "north", "longitude": 10**400}),
    "a poll without a question": message(poll={"id": "1", "question": 5}),
    "dice without a value": message(dice={"emoji": "x", "value": True}),
    "reaction": {"update_id": 1, "message_reaction": {"chat": PRIVATE, "message_id": 1}},
    "membership": {"update_id": 1, "my_chat_member": {"chat": PRIVATE, "from": ANN}},
    "command for another bot": in_group("/stop@other_bot"),
    "blank": message(text="  \n"),
    "no sender": message(text="x", **{"from": None}),
    "no chat": message(text="x", chat=None),
    "chat id in words": message(text="x", chat={"id": "1001", "type": "private"}),
    "chat id true": message(text="x", chat={"id": True, "type": "private"}),
    "huge chat id": message(text="x", chat={"id": 10**30, "type": "private"}),
    "text as a number": message(text=5),
    "voice as a list": message(voice=[1]),
    "file id as a path": message(voice=file(file_id="../../etc/passwd")),
    "huge file id": message(voice=file(file_id="x" * 5000)),
    "no update id": {"message": message(text="x")["message"]},
    "negative update id": {**message(text="x"), "update_id": -4},
    "update id in words": {**message(text="x"), "update_id": "9001"},
    "message is null": {"update_id": 1, "message": None},
    "a list": [],
    "nothing": None,
    "unknown button": press("buy:now"),
    "press without data": press(None),
    "press by a bot": press("stop", **{"from": BOT}),
    "press on an inline message": press("stop", message=None, inline_message_id="x"),
    "option out of bounds": press("q:0123456789abcdef:123"),
    "long data": press("q:" + "0" * 500),
    "stop of a preview in a group": {
        "update_id": 1,
        "stopped_message_generation": {"chat": GROUP, "draft_id": 5},
    },
}


@each("update, expected", MESSAGES.values())
def test_a_message_of_a_person(update: dict[str, Any], expected: dict[str, Any]) -> None:
    item = parse_update(update, CONTEXT)
    assert isinstance(item, InboundMessage)
    found: dict[str, Any] = {
        "author": (item.author.id, item.author.name),
        "topic": item.thread.topic,
        "voice": (item.voice.kind, item.voice.handle) if item.voice else None,
        "attachments": [(ref.kind, ref.handle) for ref in item.attachments],
    }
    for key, value in expected.items():
        assert (found[key] if key in found else getattr(item, key)) == value, key
    assert item.native_id == "u9001"
    assert item.message_id == derived_message_id("telegram", "main", "u9001")
    json.dumps(item.text).encode()
    item.text.encode()


@each("update, name", COMMANDS.values())
def test_a_command(update: dict[str, Any], name: str) -> None:
    item = parse_update(update, CONTEXT)
    assert isinstance(item, SessionCommand)
    assert item.name == name
    assert item.author.id == "1001"


@each("update", NOTHING.values())
def test_what_is_nothing_for_the_bot(update: Any) -> None:
    assert parse_update(update, CONTEXT) is None


def test_a_press_answers_a_question() -> None:
    item = parse_update(press("q:0123456789abcdef:1"), CONTEXT)
    assert isinstance(item, ApprovalReply)
    assert (item.interaction_id, item.option, item.choice) == ("0123456789abcdef", 1, "")
    assert (item.author.id, item.thread.chat, item.private) == ("1001", "1001", True)
    assert item.native_id == "u9002"


def test_a_press_below_an_anonymous_message_is_the_pressers() -> None:
    shown = {"message_id": 8, "date": 1, "chat": GROUP, "from": BOT, "sender_chat": GROUP, **TOPIC}
    item = parse_update(press("q:0123456789abcdef:0", message=shown), CONTEXT)
    assert isinstance(item, ApprovalReply)
    assert (item.author.id, item.thread.topic, item.private) == ("1001", "77", False)


def test_sizes_and_durations_are_kept_where_they_make_sense() -> None:
    item = parse_update(message(voice=file(duration=2.5, mime_type="audio/ogg", file_name="v.ogg")), CONTEXT)
    assert isinstance(item, InboundMessage)
    assert item.voice is not None
    assert (item.voice.size, item.voice.duration_s, item.voice.mime) == (4096, 2.5, "audio/ogg")
    assert item.voice.name == "v.ogg"
    odd = file(file_size=-1, duration=float("nan"), mime_type=["x"])
    item = parse_update(message(voice=odd), CONTEXT)
    assert isinstance(item, InboundMessage)
    assert item.voice is not None
    assert (item.voice.size, item.voice.duration_s, item.voice.mime) == (None, None, "")


def test_an_edit_has_the_place_of_the_message_before() -> None:
    before, after = message("message", text="helo"), message("edited_message", text="hello", edit_date=2)
    places = {getattr(parse_update(update, CONTEXT), "place", None) for update in (before, after)}
    assert len(places) == 1
    assert places != {""}


KEYS = st.sampled_from(
    [
        "update_id",
        "message",
        "edited_message",
        "callback_query",
        "stopped_message_generation",
        "chat",
        "id",
        "type",
        "from",
        "is_bot",
        "text",
        "caption",
        "entities",
        "offset",
        "length",
        "voice",
        "file_id",
        "photo",
        "document",
        "data",
        "message_thread_id",
        "reply_to_message",
        "sender_chat",
        "quote",
        "media_group_id",
    ]
)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(
        ["private", "supergroup", "/stop", "@parlour_bot hi", "q:0123456789abcdef:0", "mention"]
    )
)
ANYTHING = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(KEYS | st.text(max_size=8), inner, max_size=6)
    ),
    max_leaves=40,
)


@given(ANYTHING)
def test_nothing_makes_the_parser_raise(value: Any) -> None:
    update = value if isinstance(value, dict) else {"update_id": 1, "message": value}
    parse_update(value, CONTEXT)
    parse_update({"update_id": 1, **update}, CONTEXT)
    callback_query_of(update)
    chat_of(update)
    assert sum(len(part) for queue in by_chat([update, update]) for part in queue) == 2


@given(st.dictionaries(KEYS, ANYTHING, max_size=8), st.sampled_from(["message", "edited_message"]))
def test_no_field_of_a_message_makes_the_parser_raise(fields: dict[str, Any], kind: str) -> None:
    item = parse_update({"update_id": 1, kind: {**message()["message"], **fields}}, CONTEXT)
    assert item is None or item.native_id == "u1"
