"""People's reactions to the bot's messages, on every platform: feedback on answers, and answers to approvals.

Covers: gateway/ingress/reactions.py, adapters/*/reaction*.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Protocol

from gateway.storage.feedback import Feedback
from pipeline.domain.chat import ToolCall
from pipeline.domain.clock import SystemClock
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.all_platforms import AllPlatforms, open_all_platforms
from tests.support.gateway_process import free_port
from tests.support.harness import open_gateway
from tests.support.platforms.platform import FakePlatform, Faults, Person, Place, Shown
from tests.support.web_client import WebChat


class Reacting(FakePlatform, Protocol):
    """A fake platform whose people can react."""

    async def react(
        self, place: Place, person: Person, native_id: str, emoji: str, *, on: bool = True
    ) -> None: ...


def _reacting(place: AllPlatforms) -> list[tuple[Reacting, Place]]:
    return [
        (one, one.private_chat(one.person("ann"))) for one in (place.telegram, place.slack, place.discord)
    ]


async def _given(place: AllPlatforms) -> list[Feedback]:
    return list(await place.harness.store.feedback.listed(limit=100))


async def _until(place: AllPlatforms, *wanted: tuple[str, str]) -> list[Feedback]:
    """Wait until the feedback is that: (channel, value)."""
    for _ in range(3_000):
        given = await _given(place)
        if sorted((one.channel, one.value) for one in given) == sorted(wanted):
            return given
        await SystemClock().sleep(0.01)
    raise AssertionError(f"not {wanted}: {await _given(place)}")


async def _answer_to(place: AllPlatforms, platform: Reacting, chat: Place, text: str) -> str:
    """The native id of the bot's answer to the person's message, once it is on record."""
    await platform.say(chat, platform.person("ann"), text)
    await platform.until(lambda: f"You said: {text}" in platform.bot_texts(chat))
    while await place.harness.store.outbox_open():
        await SystemClock().sleep(0.01)
    return next(one.native_id for one in platform.visible(chat) if one.text == f"You said: {text}")


def _calling(name: str, **arguments: object) -> ScriptedAnswer:
    return ScriptedAnswer.calling(ToolCall(id=name, name=name, arguments=json.dumps(arguments)))


def _account(place: AllPlatforms, platform: FakePlatform) -> str:
    statuses = place.harness.gateway.channel_statuses()
    return next(one.account for one in statuses if one.channel == platform.name)


def _asked(platform: FakePlatform, chat: Place) -> Shown | None:
    """The bot's message with the question's buttons."""
    return next((one for one in platform.visible(chat) if "Allow" in one.buttons), None)


async def test_a_thumb_is_stored_with_its_run_changed_and_removed_on_each_platform(tmp_path: Path) -> None:
    async with open_all_platforms(tmp_path) as place:
        for platform, chat in _reacting(place):
            ann, name = platform.person("ann"), platform.name
            answer = await _answer_to(place, platform, chat, f"hello on {name}")
            platform.faults = Faults(duplicate_share=1.0)
            await platform.react(chat, ann, answer, "👍")
            (given,) = await _until(place, (name, "up"))
            assert given.user == ann.id
            assert given.run_id.startswith("run")
            await platform.react(chat, ann, answer, "🎉")
            if name != "telegram":
                await platform.react(chat, ann, answer, "👍", on=False)
            await platform.react(chat, ann, answer, "👎")
            await _until(place, (name, "down"))
            await platform.react(chat, ann, answer, "👎", on=False)
            await _until(place)


async def test_in_private_the_person_who_was_answered_may_react_and_in_a_room_all_who_may_speak(
    tmp_path: Path,
) -> None:
    async with open_all_platforms(tmp_path) as place:
        telegram = place.telegram
        ann, ben, eve = (telegram.person(name) for name in ("ann", "ben", "eve"))
        chat = telegram.private_chat(ann)
        answer = await _answer_to(place, telegram, chat, "hello")
        await telegram.react(chat, ben, answer, "👎")
        room = telegram.room("lounge", ann, ben)
        said = await telegram.say(room, ann, "hello all")
        await telegram.until(lambda: bool(telegram.bot_texts(room)))
        while await place.harness.store.outbox_open():
            await SystemClock().sleep(0.01)
        shown = next(one.native_id for one in telegram.visible(room) if not one.author)
        await telegram.react(room, eve, said, "👎")
        await telegram.react(room, ben, shown, "👍")
        (given,) = await _until(place, ("telegram", "up"))
    assert (given.user, given.name) == (ben.id, "ben")


async def test_a_person_without_access_gives_no_feedback_and_gets_no_words(tmp_path: Path) -> None:
    async with open_all_platforms(tmp_path, 'channels.telegram.deny=["1002"]') as place:
        telegram = place.telegram
        ann, eve = telegram.person("ann"), telegram.person("eve")
        assert eve.id == "1002"
        room = telegram.room("lounge", ann, eve)
        await telegram.say(room, ann, "hello")
        await telegram.until(lambda: bool(telegram.bot_texts(room)))
        while await place.harness.store.outbox_open():
            await SystemClock().sleep(0.01)
        answer = next(one.native_id for one in telegram.visible(room) if not one.author)
        calls = len(telegram.calls)
        await telegram.react(room, eve, answer, "👎")
        await telegram.react(room, ann, answer, "👍")
        (given,) = await _until(place, ("telegram", "up"))
        sent = [call.method for call in telegram.calls[calls:] if call.method.startswith("send")]
    assert given.user == ann.id
    assert sent == []


async def test_a_tick_of_the_author_allows_and_a_cross_denies_and_nothing_else_counts(tmp_path: Path) -> None:
    llm = ScriptedLlm()
    async with open_all_platforms(tmp_path, llm=llm) as place:
        for platform in (place.slack, place.discord):
            for emoji, kept in (("✅", True), ("❌", False)):
                file = f"{platform.name}-{kept}.txt"
                llm.script += (
                    _calling("load_tools", groups=["files"]),
                    _calling("write_file", path=file, text="hello"),
                    ScriptedAnswer.of(f"Done with {file}."),
                )
                ann, eve = platform.person("ann"), platform.person("eve")
                chat = platform.private_chat(ann)
                await platform.say(chat, ann, "write it down")
                await platform.until(lambda: _asked(platform, chat) is not None)  # noqa: B023 - used before the next turn
                asked = _asked(platform, chat)
                assert asked is not None
                key = f"{platform.name}:{_account(place, platform)}:{chat.chat}"
                while await place.harness.store.feedback.part_shown_by(key, asked.native_id) is None:
                    await SystemClock().sleep(0.01)
                await platform.react(chat, eve, asked.native_id, emoji)
                await platform.react(chat, ann, asked.native_id, "👍")
                await platform.react(chat, ann, asked.native_id, "🎉")
                await platform.react(chat, ann, asked.native_id, emoji, on=False)
                await platform.react(chat, ann, asked.native_id, emoji)
                await platform.until(lambda: f"Done with {file}." in platform.bot_texts(chat))  # noqa: B023 - as above
                answered = "Answered: Allow" if kept else "Answered: Deny"
                await platform.until(lambda: answered in "".join(platform.bot_texts(chat)))  # noqa: B023 - as above
        assert await _given(place) == [], "a thumb on a question is no feedback"
    assert _written(tmp_path) == {"slack-True.txt", "discord-True.txt"}


def _written(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("data/workspace/people/*/files/*.txt")}


async def test_a_thumb_on_the_page_is_stored_for_an_answer_of_that_chat_alone(tmp_path: Path) -> None:
    web = ("channels.web.enabled=true", f"server.port={free_port()}")
    async with WebChat() as chat, WebChat() as other, open_gateway(tmp_path, *web) as harness:
        token = (tmp_path / "web-token").read_text(encoding="ascii").strip()
        for one in (chat, other):
            await one.connect(harness.gateway.url, token)
        await chat.send_text("t1", "hello")
        message_id = await chat.accepted("t1")
        await chat.answer(message_id)
        await other.rate("f0", message_id, up=False)
        await chat.rate("f1", "m_no_such_message", up=False)
        assert await harness.store.feedback.listed(limit=10) == ()
        await chat.rate("f2", message_id, up=True)
        (given,) = await harness.store.feedback.listed(limit=10)
        assert (given.channel, given.user, given.value, given.message_id) == (
            "web",
            "owner",
            "up",
            message_id,
        )
        history = await chat.connect(harness.gateway.url, token, after=0)
        assert [frame.get("feedback") for frame in history if frame.get("role") == "assistant"] == ["up"]
        await chat.rate("f3", message_id, up=True, on=False)
        assert await harness.store.feedback.listed(limit=10) == ()
        await chat.send_text("t2", "/otr")
        await chat.send_text("t3", "a secret")
        secret = await chat.accepted("t3")
        await chat.answer(secret)
        await chat.rate("f4", secret, up=True)
        assert await harness.store.feedback.listed(limit=10) == (), "off the record nothing is kept"
