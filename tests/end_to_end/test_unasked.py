"""Rooms where the bot may answer what was not addressed to it: it decides in one call, and may stay silent.

Covers: pipeline/unasked.py, gateway/access/room_checks.py, gateway/ingress/room_history.py.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from pipeline.domain.clock import SystemClock
from pipeline.domain.errors import ModelUnavailable
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from pipeline.unasked import QUESTION
from tests.pipeline.nodes.documents import node, steps
from tests.support.all_platforms import AllPlatforms, open_all_platforms
from tests.support.platforms.platform import FakePlatform, Place
from tests.support.platforms.slack import FakeSlack

LISTENING = tuple(f'channels.{name}.rooms="may_answer"' for name in ("telegram", "slack", "discord"))
REACTING = tuple(f'channels.{name}.reactions="taken"' for name in ("telegram", "slack", "discord"))
_SHOWN = (
    *("send", "edit", "setMessageReaction", "chat.", "reactions."),
    *("assistant.", "react", "create", "typing"),
)


@dataclass(frozen=True, slots=True)
class Lounge:
    """A room on each platform, with Ann in it."""

    all: AllPlatforms
    llm: ScriptedLlm

    def room(self, platform: FakePlatform) -> Place:
        return platform.room("lounge", platform.person("ann"))

    async def done(self, entries: int) -> None:
        """Wait until so many entries are finished, and nothing waits to be sent."""
        store = self.all.harness.store
        while (await store.counts()).inbox_done < entries or await store.outbox_open():
            await SystemClock().sleep(0.01)

    def texts(self, platform: FakePlatform) -> list[str]:
        """The bot's texts in the room, in any of its threads."""
        room = self.room(platform)
        if not isinstance(platform, FakeSlack):
            return platform.bot_texts(room)
        return [one.read() for one in platform.workspace.of(room.chat) if one.ours]


@asynccontextmanager
async def _lounge(
    tmp_path: Path, *overrides: str, script: tuple[ScriptedAnswer, ...]
) -> AsyncIterator[Lounge]:
    llm = ScriptedLlm(list(script))
    async with open_all_platforms(tmp_path, *LISTENING, *overrides, llm=llm) as place:
        yield Lounge(place, llm)


def _say(*texts: str) -> tuple[ScriptedAnswer, ...]:
    return tuple(ScriptedAnswer.of(text) for text in texts)


async def test_it_stays_silent_on_each_platform_and_nothing_of_that_is_seen_or_kept(tmp_path: Path) -> None:
    script = _say("NO_REPLY", "no_reply.", "I could help: ANSWER")
    async with _lounge(tmp_path, *REACTING, script=script) as lounge:
        for number, platform in enumerate(lounge.all.platforms, 1):
            calls = len(platform.calls)
            await platform.say(lounge.room(platform), platform.person("ann"), "nice weather", addressed=False)
            await lounge.done(number)
            shown = [call.method for call in platform.calls[calls:] if call.method.startswith(_SHOWN)]
            assert shown == []
            assert lounge.texts(platform) == []
        assert len(lounge.llm.requests) == 3
        store = lounge.all.harness.store
        entries = await store.newest_entries(limit=9)
        assert [record for thread, _ in entries for record in await store.read_log(thread)] == []
    assert len(entries) == 3
    assert "weather" not in str(entries)


async def test_it_answers_where_it_decides_to_and_the_deciding_word_is_not_shown(tmp_path: Path) -> None:
    async with _lounge(tmp_path, script=_say("ANSWER", "In Bonn it rains.") * 3) as lounge:
        for number, platform in enumerate(lounge.all.platforms, 1):
            await platform.say(
                lounge.room(platform), platform.person("ann"), "does it rain in Bonn?", addressed=False
            )
            await lounge.done(number)
            assert lounge.texts(platform) == ["In Bonn it rains."]
        decide, answer = lounge.llm.requests[:2]
    assert decide.messages[-1].content == QUESTION
    assert decide.messages[-2].content.endswith("ann: does it rain in Bonn?")
    assert decide.messages[-2].content.count("does it rain") == 1, (
        "it is not among the room's earlier messages"
    )
    assert decide.tools == ()
    assert answer.messages[-1].content.endswith("ann: does it rain in Bonn?")


async def test_a_message_to_the_bot_is_answered_without_a_decision_also_over_every_limit(
    tmp_path: Path,
) -> None:
    script = _say("NO_REPLY", "Hello Ann.")
    limits = ("channels.telegram.room_checks_per_hour=1", "channels.telegram.open_messages_per_day=1")
    async with _lounge(tmp_path, *limits, script=script) as lounge:
        telegram = lounge.all.telegram
        room, ann = lounge.room(telegram), telegram.person("ann")
        await telegram.say(room, ann, "one", addressed=False)
        await lounge.done(1)
        await telegram.say(room, ann, "two", addressed=False)
        await telegram.say(room, ann, "hello bot")
        await telegram.until(lambda: telegram.bot_texts(room) == ["Hello Ann."])
        first, last = lounge.llm.requests
    assert first.messages[-1].content == QUESTION
    said = last.messages[-1].content
    assert "ann: one\nann: two" in said, "what it did not answer, or did not consider, is context later"
    assert said.endswith("ann: hello bot")


async def test_another_bot_is_not_considered(tmp_path: Path) -> None:
    async with _lounge(tmp_path, script=_say("Hello Ann.") * 3) as lounge:
        for number, platform in enumerate(lounge.all.platforms, 1):
            room = lounge.room(platform)
            await platform.say(room, platform.person("robot", bot=True), "does it rain?", addressed=False)
            await platform.say(room, platform.person("ann"), "hello")
            await lounge.done(number)
        assert len(lounge.llm.requests) == 3
        assert all(request.messages[-1].content != QUESTION for request in lounge.llm.requests)


@pytest.mark.parametrize(
    "answer", [ScriptedAnswer(chunks=(), error=ModelUnavailable("busy")), ScriptedAnswer.of("ANSWER" * 100)]
)
async def test_a_model_that_fails_or_writes_something_else_means_silence(
    tmp_path: Path, answer: ScriptedAnswer
) -> None:
    async with _lounge(tmp_path, script=(answer,)) as lounge:
        telegram = lounge.all.telegram
        await telegram.say(lounge.room(telegram), telegram.person("ann"), "does it rain?", addressed=False)
        await lounge.done(1)
        assert lounge.texts(telegram) == []


async def test_people_who_may_not_write_there_are_not_considered(tmp_path: Path) -> None:
    async with _lounge(tmp_path, 'channels.telegram.deny=["1002"]', script=_say("NO_REPLY")) as lounge:
        telegram = lounge.all.telegram
        ann, room, eve = telegram.person("ann"), lounge.room(telegram), telegram.person("eve")
        assert eve.id == "1002"
        await telegram.say(room, eve, "does it rain?", addressed=False)
        await telegram.say(room, ann, "does it rain?", addressed=False)
        await lounge.done(1)
        assert len(lounge.llm.requests) == 1
        assert lounge.texts(telegram) == []


async def test_a_reply_names_the_author_of_the_message_it_replies_to(tmp_path: Path) -> None:
    async with _lounge(tmp_path, script=_say("NO_REPLY", "ANSWER", "First.", "Second.")) as lounge:
        telegram = lounge.all.telegram
        ann, ben, room = telegram.person("ann"), telegram.person("ben"), lounge.room(telegram)
        said = await telegram.say(room, ann, "it rains", addressed=False)
        await lounge.done(1)
        telegram.reply(room, ben, said, "is that so?")
        await telegram.until(lambda: "First." in telegram.bot_texts(room))
        await lounge.done(2)
        (own,) = [one.native_id for one in telegram.visible(room) if not one.author]
        telegram.reply(room, ann, own, "really?")
        await telegram.until(lambda: "Second." in telegram.bot_texts(room))
        _, second, third = lounge.llm.requests[1:]
    assert "ben:\n> ann: it rains\n\n" in second.messages[-1].content
    assert "ann:\n> You: First.\n\nreally?" in third.messages[-1].content


async def test_a_gate_sees_the_message_before_the_model_does_and_what_it_takes_over_is_not_answered(
    tmp_path: Path,
) -> None:
    gate = _gate(tmp_path)
    async with _lounge(tmp_path, gate, script=_say("NO_REPLY")) as lounge:
        telegram = lounge.all.telegram
        ann, room = telegram.person("ann"), lounge.room(telegram)
        await telegram.say(room, ann, "I am in danger", addressed=False)
        await lounge.done(1)
        assert lounge.llm.requests == []
        await telegram.say(room, ann, "nice weather", addressed=False)
        await lounge.done(2)
        assert len(lounge.llm.requests) == 1
        assert lounge.texts(telegram) == []


def _gate(folder: Path) -> str:
    """The setting of a gate that takes messages about danger over."""
    path = folder / "gate.json"
    check = node("check", "condition", **{"if": "'danger' in message", "then": "help"})
    path.write_text(json.dumps(steps(check, node("help", "reply", text="Please call 112."))), "utf-8")
    return f'agent.gate="{path}"'
