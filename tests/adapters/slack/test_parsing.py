"""The parsers on payloads as Slack sends them, and on payloads as no one should."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.slack.fields import read_handle
from adapters.slack.inbound import parse_event, parse_press, parse_slash
from adapters.slack.plain_text import plain_words
from adapters.slack.webhook import is_for, read_body
from pipeline.domain.messages import (
    ApprovalReply,
    Inbound,
    InboundMessage,
    SessionCommand,
    Withdrawal,
    button_handle,
)
from tests.adapters.slack.harness import ME
from tests.support.platforms.slack_state import APP, BOT, BOT_USER, TEAM
from tests.support.tables import each

TS = "1700000000.000100"
ROOT = "1699999999.000200"


def event(**fields: Any) -> dict[str, Any]:
    """A text in a direct chat, with changes; None takes a field out."""
    inner: dict[str, Any] = {
        "type": "message",
        "channel": "D1",
        "user": "U1",
        "ts": TS,
        "text": "hi",
        "channel_type": "im",
    }
    inner.update(fields)
    return {
        "type": "event_callback",
        "event": {key: value for key, value in inner.items() if value is not None},
    }


def room(**fields: Any) -> dict[str, Any]:
    return event(**{"channel": "C1", "channel_type": "channel", **fields})


def changed(text: str, *, before: str = "hi", **inner: Any) -> dict[str, Any]:
    message = {
        "user": "U1",
        "ts": TS,
        "text": text,
        "edited": {"user": "U1", "ts": "1700000009.000000"},
        **inner,
    }
    previous = {"user": "U1", "ts": TS, "text": before}
    return event(subtype="message_changed", message=message, previous_message=previous, user=None, text=None)


def deleted(*, tombstone: bool = False, **before: Any) -> dict[str, Any]:
    """What Slack sends when a message is deleted; of one with replies a tombstone stays."""
    previous = {"user": "U1", "ts": TS, "text": "hi", **before}
    common: dict[str, Any] = {
        "previous_message": previous,
        "user": None,
        "text": None,
        "ts": "1700000009.000000",
    }
    if not tombstone:
        return event(subtype="message_deleted", deleted_ts=TS, **common)
    stays = {"user": "USLACKBOT", "ts": TS, "subtype": "tombstone", "text": "This message was deleted."}
    return event(subtype="message_changed", message=stays, **common)


@pytest.mark.parametrize("tombstone", [False, True])
def test_a_deletion_names_the_message_that_is_gone(tombstone: bool) -> None:
    item = parse_event(deleted(tombstone=tombstone), ME, "main")
    asked = parse_event(event(), ME, "main")
    edited = parse_event(changed("ho"), ME, "main")
    assert isinstance(item, Withdrawal)
    assert isinstance(asked, InboundMessage)
    assert isinstance(edited, InboundMessage)
    assert item.place == asked.place == edited.place
    assert (item.thread, item.author) == (asked.thread, asked.author)
    assert item.native_id not in (asked.native_id, edited.native_id)


def test_a_deletion_in_a_thread_is_the_threads() -> None:
    payload = deleted(thread_ts=ROOT)
    payload["event"] |= {"channel": "C1", "channel_type": "channel"}
    item, asked = parse_event(payload, ME, "main"), parse_event(room(thread_ts=ROOT), ME, "main")
    assert item is not None
    assert asked is not None
    assert item.thread == asked.thread


def press(action: object = None, **fields: Any) -> dict[str, Any]:
    action_id = f"q:{button_handle('i')}:1" if action is None else action
    return {
        "type": "block_actions",
        "user": {"id": "U1", "name": "ann", "team_id": TEAM},
        "channel": {"id": "D1"},
        "container": {"message_ts": TS, "channel_id": "D1"},
        "message": {"ts": TS},
        "trigger_id": "12.34.ab",
        "actions": [{"action_id": action_id, "action_ts": "1700000001.5"}],
        **fields,
    }


def message(payload: Mapping[str, Any]) -> InboundMessage:
    item = parse_event(payload, ME, "main")
    assert isinstance(item, InboundMessage)
    return item


MENTION = f"<@{BOT_USER}>"
CLIP = {"id": "F1", "subtype": "slack_audio", "mimetype": "video/mp4", "duration_ms": 1500, "size": 9}


@each(
    "payload, expected",
    [
        (event(), {"text": "hi", "private": True, "addressed": True, "native_id": f"D1:{TS}"}),
        (event(text="a &lt;b&gt; &amp;amp;"), {"text": "a <b> &amp;"}),
        (event(thread_ts=ROOT), {"thread.topic": ROOT, "reply_to": f"D1:{ROOT}"}),
        (event(thread_ts=TS), {"thread.topic": None, "reply_to": None}),
        (event(subtype="me_message"), {"text": "hi"}),
        (event(text="\ud800hi"), {"text": "\ufffdhi"}),
        (event(text="x" * 50_000), {"text": "x" * 40_000}),
        (event(user_team="T9"), {"reply_handle": f"{TS}/U1/T9"}),
        (event(team=TEAM), {"reply_handle": f"{TS}/U1/{TEAM}"}),
        (event(team={"no": 1}), {"reply_handle": f"{TS}/U1/{TEAM}"}),
        (room(), {"addressed": False, "private": False, "thread.topic": TS, "text": "hi"}),
        (room(channel_type="mpim", channel="G1"), {"addressed": False, "private": False}),
        (room(text=f"{MENTION} hi"), {"addressed": True, "text": "hi"}),
        (room(text=f"{MENTION}: hi"), {"addressed": True, "text": "hi"}),
        (room(text=f"hey {MENTION} you"), {"addressed": True, "text": "hey you"}),
        (room(text=f"{MENTION} ask <@U7> in <#C7|general>"), {"text": "ask @U7 in #general"}),
        (room(text="<!here> <https://a.b|site>"), {"text": "@here site (https://a.b)", "addressed": False}),
        (room(type="app_mention", channel_type=None), {"addressed": True, "thread.topic": TS}),
        (room(thread_ts=ROOT), {"thread.topic": ROOT, "addressed": False}),
        (room(thread_ts=ROOT, parent_user_id=BOT_USER), {"addressed": True, "reply_to": f"C1:{ROOT}"}),
        (room(subtype="thread_broadcast", thread_ts=ROOT), {"thread.topic": ROOT}),
        (changed("ho"), {"text": "ho", "edited": True, "native_id": f"D1:{TS}:e1700000009.000000"}),
        (event(text="", files=[CLIP], subtype="file_share"), {"text": "", "voice.kind": "voice"}),
        (event(files=[{"id": "F1", "name": "audio_message.webm"}]), {"voice.kind": "voice"}),
        (event(files=[{"id": "F1", "mimetype": "audio/ogg"}]), {"voice": None, "files": ["audio"]}),
        (
            event(files=[{"id": "F1", "mimetype": "image/png", "name": "a.png"}]),
            {"voice": None, "files": ["image"]},
        ),
        (event(files=[CLIP, {"id": "F2", "mimetype": 5}]), {"voice.handle": "F1", "files": ["file"]}),
        (event(files=[{"id": "../x"}, {"id": 5}, "F1", None]), {"voice": None, "files": []}),
        (
            event(files=[{**CLIP, "size": -1, "duration_ms": "x"}]),
            {"voice.size": None, "voice.duration_s": None},
        ),
        (event(files=[{"id": "F1"}] * 50), {"files": ["file"] * 10}),
        (event(files={"id": "F1"}), {"files": []}),
        (
            event(text="look", attachments=[{"is_share": True, "text": "old words"}]),
            {"text": "look", "passed_on": "old words", "forwarded": False},
        ),
        (
            event(
                text="compare",
                attachments=[
                    {"is_share": True, "text": "one", "author_name": "Ben"},
                    {"text": "a preview"},
                    {"is_share": True, "text": "two &amp; three", "files": [{"id": "F7"}]},
                ],
            ),
            {"text": "compare", "passed_on": "Ben:\none\n\ntwo & three", "files": ["file"]},
        ),
        (
            event(text="", attachments=[{"is_share": True, "text": "old"}]),
            {"text": "old", "passed_on": "", "forwarded": True},
        ),
        (event(attachments=[{"text": "a link's preview"}]), {"quoted": "", "forwarded": False}),
        (event(text="/stop it"), {"text": "/stop it"}),
        (event(text="/stop@otherbot"), {"text": "/stop@otherbot"}),
        (room(text="/stop"), {"text": "/stop", "addressed": False}),
    ],
)
def test_messages(payload: dict[str, Any], expected: dict[str, Any]) -> None:
    item = message(payload)
    for path, value in expected.items():
        found: Any = item
        if path == "files":
            found = [ref.kind for ref in item.attachments]
        else:
            for name in path.split("."):
                found = getattr(found, name)
        assert found == value, path


@each(
    "payload",
    [
        event(user=BOT_USER),
        event(user="USLACKBOT"),
        event(bot_id=BOT),
        event(bot_id="B0OTHER"),
        event(bot_profile={"id": "B1"}),
        event(app_id=APP),
        event(subtype="bot_message", user=None, bot_id="B1"),
        event(subtype="channel_join"),
        event(subtype="message_deleted"),
        event(subtype="message_replied"),
        event(subtype=["file_share"]),
        event(type="reaction_added"),
        event(type={"message": 1}),
        event(user=None),
        event(user=5),
        event(user="u1"),
        event(user="U" * 40),
        event(channel=None),
        event(channel="../../etc"),
        event(ts=None),
        event(ts=1700000000.1),
        event(ts="soon"),
        event(ts="1" * 40 + ".1"),
        event(text=None),
        event(text="   "),
        event(text=["hi"]),
        room(text=MENTION),
        changed("hi"),
        changed("ho", edited=None),
        changed("ho", edited={"ts": "x"}),
        changed("ho", bot_id=BOT),
        changed("ho", user=BOT_USER),
        changed("ho", subtype="bot_message"),
        event(subtype="message_changed", message="no", previous_message=[]),
        {"event": None},
        {"event": []},
        {},
    ],
)
def test_what_is_nothing_to_us(payload: dict[str, Any]) -> None:
    assert parse_event(payload, ME, "main") is None


@pytest.mark.parametrize("text", ["/stop", "/new", "/help", f"{MENTION} /stop"])
def test_typed_commands(text: str) -> None:
    item = parse_event(event(text=text), ME, "main")
    assert isinstance(item, SessionCommand)
    assert item.name == text.rpartition("/")[2]


def test_both_events_of_a_mention_are_the_same_message() -> None:
    as_message = message(room(text=f"{MENTION} hi"))
    as_mention = message(room(text=f"{MENTION} hi", type="app_mention", channel_type=None))
    assert as_message == as_mention


def test_a_press_names_the_question_and_the_option() -> None:
    item = parse_press(press(), ME, "main")
    assert isinstance(item, ApprovalReply)
    assert (item.interaction_id, item.option, item.author.id) == (button_handle("i"), 1, "U1")
    assert (item.thread.chat, item.thread.topic, item.private) == ("D1", None, True)


def test_a_press_in_a_channel_belongs_to_its_thread() -> None:
    item = parse_press(press(channel={"id": "C1"}, message={"ts": TS, "thread_ts": ROOT}), ME, "main")
    assert item is not None
    assert (item.thread.topic, item.private) == (ROOT, False)


def test_the_stop_button_is_the_command() -> None:
    item = parse_press(press("stop"), ME, "main")
    assert isinstance(item, SessionCommand)
    assert (item.name, read_handle(item.reply_handle)) == ("stop", (TS, "U1", TEAM))


@each(
    "payload",
    [
        press("q:short:1"),
        press(f"q:{'g' * 16}:1"),
        press(f"q:{button_handle('i')}:"),
        press(f"q:{button_handle('i')}:-1"),
        press(f"q:{button_handle('i')}:1234"),
        press(f"q:{button_handle('i')}:²"),
        press(f"q:{button_handle('i')}:1:2"),
        press("other"),
        press(5),
        press(actions=[]),
        press(actions="stop"),
        press(user={"id": BOT_USER}),
        press(user="U1"),
        press(trigger_id=None),
        press(trigger_id="x" * 200),
        press(channel=None, container=None),
        press(message=None, container={"channel_id": "D1"}),
    ],
)
def test_presses_that_are_none(payload: dict[str, Any]) -> None:
    assert parse_press(payload, ME, "main") is None


SLASH = {"channel_id": "D1", "user_id": "U1", "user_name": "ann", "trigger_id": "1.2.x", "text": "stop"}


@each(
    "changes, name",
    [
        ({}, "stop"),
        ({"text": " New "}, "new"),
        ({"text": "/help"}, "help"),
        ({"text": "dance"}, None),
        ({"text": ""}, None),
        ({"text": 5}, None),
        ({"channel_id": "C1"}, None),
        ({"channel_id": None}, None),
        ({"user_id": BOT_USER}, None),
        ({"user_id": ""}, None),
        ({"trigger_id": ""}, None),
    ],
)
def test_slash_commands(changes: dict[str, Any], name: str | None) -> None:
    item = parse_slash({**SLASH, **changes}, ME, "main", now=5.0)
    assert (item.name if item is not None else None) == name


def test_a_slash_command_has_the_words_behind_it() -> None:
    item = parse_slash({**SLASH, "text": " agent  shop "}, ME, "main", now=5.0)
    assert item is not None
    assert (item.name, item.argument) == ("agent", "shop")


@pytest.mark.parametrize("handle", ["", "1.2", "1.2/U1", "1.2/U1/T1/x", "1.2/B1/T1", f"{'1' * 20}.2/U1/T1"])
def test_a_handle_that_is_not_ours_is_refused(handle: str) -> None:
    assert read_handle(handle) is None


def test_the_words_of_a_long_text_full_of_mentions_are_read_quickly() -> None:
    words, mentioned = plain_words(f"<@{BOT_USER}> " * 3000, BOT_USER)
    assert (words, mentioned) == ("", True)


_NAMES = (
    "type subtype event message previous_message channel channel_type user ts thread_ts text files id edited "
    "attachments is_share bot_id actions action_id container message_ts trigger_id channel_id user_id "
    "mimetype size duration_ms name team team_id authorizations response_url command parent_user_id"
)
_KEYS = st.sampled_from(_NAMES.split())
_LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(["message", "app_mention", "message_changed", "D1", "C1", "U1", "F1", TS, "stop", "hi"]),
)
_JSON = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=8),
    max_leaves=25,
)
_OBJECTS = st.dictionaries(_KEYS, _JSON, max_size=6)


@given(payload=_OBJECTS, inner=_OBJECTS)
def test_no_payload_makes_a_parser_raise(payload: dict[str, Any], inner: dict[str, Any]) -> None:
    wrapped = {**payload, "event": {"channel": "D1", "user": "U1", "ts": TS, "type": "message", **inner}}
    items: list[Inbound | None] = []
    for one in (payload, wrapped, {**press(), **payload}, {**SLASH, **payload}):
        items.append(parse_event(one, ME, "main"))
        items.append(parse_press(one, ME, "main"))
        items.append(parse_slash(one, ME, "main", now=1.0))
        is_for(one, ME)
    assert all(item is None or item.native_id for item in items)


@given(body=st.binary(max_size=200), form=st.booleans())
def test_no_body_makes_the_reader_raise(body: bytes, form: bool) -> None:
    found = read_body(body, "application/x-www-form-urlencoded" if form else "application/json")
    assert found is None or isinstance(found, dict)
