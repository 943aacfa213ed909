"""The crisis gate over several messages of one chat: what stays, what ends it, and what is recorded.

Covers: pipeline/safety/ladder.py, pipeline/crisis_check.py, gateway/safety/crisis_records.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.companion import Talk, open_companion
from tests.support.false_alarms import KNOWN_FALSE_ALARMS
from tests.support.harness import open_gateway
from tests.support.two_channels import open_two_channels

FULL = "Thank you for telling me."
AGAIN = "I am still here"


async def _levels(talk: Talk) -> list[int]:
    found = await talk.harness.store.crises.listed(limit=50)
    return [one.level for one in reversed(found)]


async def test_a_clear_message_counts_for_three_exchanges_and_then_the_agent_answers(tmp_path: Path) -> None:
    async with open_two_channels(tmp_path) as place:
        for chat in place.chats:
            assert (await chat.ask("I want to kill myself")).startswith(FULL)
            for text in ("I keep thinking about it", "what is for dinner?", "…"):
                assert (await chat.ask(text)).startswith(AGAIN), text
            assert await chat.ask("what is for dinner?") == "You said: what is for dinner?"


async def test_an_idiom_takes_back_only_its_own_message(tmp_path: Path) -> None:
    async with open_two_channels(tmp_path) as place:
        chat = place.page
        assert (await chat.ask("work is killing me")).startswith("You said")
        assert (await chat.ask("I want to kill myself")).startswith(FULL)
        await chat.ask("/new")
        assert (await chat.ask("homework is killing me and I want to die")).startswith(FULL)
        await chat.ask("/new")
        both = await chat.ask("work is killing me, so I'm going to kill myself tonight")
        assert "emergency" in both
        found = await place.harness.store.crises.listed(limit=9)
        assert [one.override for one in found] == ["imminent_risk", "none", "none"]
        assert found[0].level == 3


@pytest.mark.parametrize("answer", ["…", "I don't want to say", "No, I'm still thinking about ending it"])
async def test_silence_evasion_and_a_no_to_something_else_are_no_denial(tmp_path: Path, answer: str) -> None:
    async with open_companion(tmp_path) as talk:
        await talk.say("I want to kill myself")
        said = await talk.say(answer)
        assert said.startswith((FULL, AGAIN))
        assert await _levels(talk) == [2, 2]


async def test_a_denial_ends_what_is_clear_and_not_what_is_imminent(tmp_path: Path) -> None:
    async with open_companion(tmp_path) as talk:
        await talk.say("I want to kill myself")
        await talk.say("No, I am safe and I would never do that")
        state = await talk.state()
        assert (state["crisis"]["level"], state["crisis"]["override"]) == (0, "safety_denial")
        await talk.say("/new")
        await talk.say("I'm going to kill myself tonight")
        assert (await talk.say("no, I'm not suicidal")).startswith((FULL, AGAIN))
        assert await _levels(talk) == [2, 3, 3]


async def test_a_means_that_is_named_after_a_clear_wish_makes_it_imminent(tmp_path: Path) -> None:
    async with open_companion(tmp_path) as talk:
        await talk.say("I want to kill myself")
        answer = await talk.say("the pills are in front of me, all of them")
        assert not answer.startswith(AGAIN), "it is new"
        assert await _levels(talk) == [2, 3]


async def test_what_is_unclear_reaches_the_agent_and_leaves_no_record(tmp_path: Path) -> None:
    async with open_gateway(tmp_path) as harness:
        said = await harness.channel.say("I feel completely hopeless and worthless")
        assert (await harness.channel.reply(said.message_id)).text.startswith("You said")
        assert await harness.store.crises.listed(limit=9) == ()


@pytest.mark.parametrize("text", KNOWN_FALSE_ALARMS)
async def test_a_companion_takes_none_of_the_known_false_alarms_for_danger(tmp_path: Path, text: str) -> None:
    async with open_companion(tmp_path) as talk:
        await talk.say(text)
        assert (await talk.state())["routing"]["route"] == "therapeutic"
        assert await _levels(talk) == []
