"""What works beside the crisis gate's rules: another model, the note to the agent, the operator's notice.

Covers: pipeline/safety/classifier.py, gateway/safety/classifier_client.py, gateway/app/safety.py,
gateway/safety/notices.py, gateway/scheduling/crisis_notices.py, pipeline/runtime/counted_answer.py.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pipeline.domain.clock import ManualClock
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from pipeline.safety.classifier import INSTRUCTIONS
from tests.support.harness import GatewayHarness, open_gateway
from tests.support.openai_server import Behaviour, FakeOpenAiServer
from tests.support.platforms.platform import Place
from tests.support.platforms.telegram import FakeTelegram
from tests.support.two_channels import TwoChannels, open_two_channels

ENGLISH = "Thank you for telling me."
INDIRECT = "the kitchen light has been flickering since the seventh letter"
"""Words in which no rule finds anything."""
UNWELL = "I feel completely hopeless"


def _says(level: int, code: str = "farewell") -> Behaviour:
    return Behaviour(chunks=(json.dumps({"level": level, "confidence": "high", "code": code}),))


def _judge(server: FakeOpenAiServer, *more: str) -> tuple[str, ...]:
    return (
        'safety.classifier="openai_compatible/judge"',
        f'safety.classifier_api_base="{server.api_base}"',
        "llm.retries=0",
        *more,
    )


async def _ask(harness: GatewayHarness, text: str) -> str:
    said = await harness.channel.say(text)
    return (await harness.channel.reply(said.message_id)).text


async def _records(place: TwoChannels | GatewayHarness) -> list[tuple[int, str, str]]:
    store = place.harness.store if isinstance(place, TwoChannels) else place.store
    found = await store.crises.listed(limit=50)
    return [(one.level, one.path, one.reason) for one in reversed(found)]


def _shown(body: Mapping[str, Any]) -> list[dict[str, str]]:
    """The conversation in a request to the classifier."""
    question = body["messages"][1]["content"]
    shown: list[dict[str, str]] = json.loads(question.splitlines()[1])
    return shown


async def test_the_classifier_raises_what_the_rules_leave_open_and_is_not_asked_about_the_rest(
    tmp_path: Path,
) -> None:
    async with (
        FakeOpenAiServer(default=_says(0, "none")) as judge,
        open_two_channels(tmp_path, *_judge(judge)) as place,
    ):
        for chat in place.chats:
            await chat.ask("hello")
            judge.script.append(_says(3))
            answer = await chat.ask(INDIRECT)
            assert answer.startswith(ENGLISH)
            assert "Please call the emergency services" in answer
            assert (await chat.ask("I want to kill myself")).startswith(ENGLISH)
        codes = [(3, "llm_fallback", "llm.farewell"), (2, "deterministic", "en.act")] * 2
        assert await _records(place) == codes
        asked = [one.body for one in judge.requests]
        assert len(asked) == 4, "what the rules find is not judged again"
        assert asked[0]["temperature"] == 0
        assert [one["by"] for one in _shown(asked[1])] == ["person", "bot", "person"]
        assert place.harness.llm.requests, "the others reach the agent"


async def test_the_classifier_lowers_no_level_and_its_words_are_kept_nowhere(tmp_path: Path) -> None:
    async with FakeOpenAiServer(default=_says(0, "none")) as judge:
        llm = ScriptedLlm()
        async with open_gateway(tmp_path, *_judge(judge), llm=llm) as harness:
            await _ask(harness, UNWELL)
            assert "sign of severe distress" in llm.requests[0].messages[0].content
            for words in ('{"level": 3}', '{"level": 3, "confidence": "high", "code": "I want to die"}', "3"):
                judge.script.append(Behaviour(chunks=(words,)))
                await _ask(harness, "/new")
                assert await _ask(harness, INDIRECT) == f"You said: {INDIRECT}"
            days = await harness.store.crises.days()
            assert [(one.level, one.events, one.llm_failures) for one in days] == [(0, 0, 3)]


@pytest.mark.parametrize(
    "behaviour", [Behaviour(status=500), Behaviour(cut_after=0), Behaviour(chunks=("no JSON",))]
)
async def test_a_classifier_that_fails_leaves_the_verdict_of_the_rules(
    tmp_path: Path, behaviour: Behaviour
) -> None:
    async with (
        FakeOpenAiServer(default=behaviour) as judge,
        open_gateway(tmp_path, *_judge(judge)) as harness,
    ):
        assert await _ask(harness, INDIRECT) == f"You said: {INDIRECT}"
        assert (await _ask(harness, "I want to die")).startswith(ENGLISH)
        assert await _records(harness) == [(2, "deterministic", "en.wish_to_die")]


async def test_a_classifier_that_does_not_answer_in_time_leaves_the_verdict_of_the_rules(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    async with (
        FakeOpenAiServer(default=Behaviour(hang_before=True)) as judge,
        open_gateway(tmp_path, *_judge(judge), clock=clock) as harness,
    ):
        said = await harness.channel.say(INDIRECT)
        await judge.arrived.wait()
        await clock.advance(9.0)
        assert (await harness.channel.reply(said.message_id)).text == f"You said: {INDIRECT}"


async def test_the_agents_own_model_may_judge_and_its_use_counts_as_the_persons(tmp_path: Path) -> None:
    verdict = json.dumps({"level": 2, "confidence": "low", "code": "ideation"})
    llm = ScriptedLlm([ScriptedAnswer(chunks=(verdict,), prompt_tokens=321)])
    async with open_gateway(
        tmp_path, "llm.model=scripted:echo", "safety.classifier=agent", llm=llm
    ) as harness:
        assert (await _ask(harness, INDIRECT)).startswith(ENGLISH)
        (request,) = llm.requests
        assert request.messages[0].content == INSTRUCTIONS
        assert "322" in await _ask(harness, "/usage")


async def test_off_the_record_the_classifier_works_too(tmp_path: Path) -> None:
    async with (
        FakeOpenAiServer(default=_says(2, "ideation")) as judge,
        open_gateway(tmp_path, *_judge(judge)) as harness,
    ):
        await _ask(harness, "/otr")
        assert (await _ask(harness, INDIRECT)).startswith(ENGLISH)
        (record,) = await harness.store.crises.listed(limit=9)
        assert (record.user, record.path, record.reason) == (None, "llm_fallback", "llm.ideation")


async def test_no_model_is_asked_for_who_has_used_up_their_budget(tmp_path: Path) -> None:
    async with (
        FakeOpenAiServer(default=_says(0, "none")) as judge,
        open_gateway(tmp_path, *_judge(judge, "budget.person_tokens=5")) as harness,
    ):
        await _ask(harness, "hello there, how are you today?")
        asked = len(judge.requests)
        await _ask(harness, INDIRECT)
        assert len(judge.requests) == asked
        assert (await _ask(harness, "I want to die")).startswith(ENGLISH)


async def test_the_agent_gets_a_note_of_distress_in_this_turn_alone_and_an_exempt_one_is_not(
    tmp_path: Path,
) -> None:
    llm = ScriptedLlm()
    async with open_two_channels(tmp_path, llm=llm) as place:
        assert await place.page.ask(UNWELL) == f"You said: {UNWELL}"
        assert "sign of severe distress" in llm.requests[-1].messages[0].content
        await place.page.ask("/new")
        await place.page.ask("what is the capital of Peru?")
        assert "sign of severe distress" not in llm.requests[-1].messages[0].content
        assert await _records(place) == [], "level 1 is not recorded"
    exempt = ScriptedLlm()
    (tmp_path / "exempt").mkdir()
    async with open_gateway(tmp_path / "exempt", 'safety.gate="off"', llm=exempt) as harness:
        await _ask(harness, UNWELL)
        assert "sign of severe distress" not in exempt.requests[-1].messages[0].content


async def test_the_operator_gets_one_notice_an_hour_and_without_a_word_of_the_person(tmp_path: Path) -> None:
    async with FakeTelegram() as telegram:
        chat = telegram.private_chat(telegram.person("operator"))
        notice = ('safety.notice.channel="telegram"', f'safety.notice.chat="{chat.chat}"')
        await _noticed_once(tmp_path, telegram, chat, notice)


async def _noticed_once(tmp_path: Path, telegram: FakeTelegram, chat: Place, notice: tuple[str, ...]) -> None:
    async with open_two_channels(tmp_path, *notice, telegram=telegram) as place:
        await place.page.ask("I want to die, my name is Zelda")
        await place.page.ask("I really want to die")
        await place.page.ask("I'm going to kill myself tonight")
        await telegram.until(lambda: len(telegram.bot_texts(chat)) >= 2)
        first, second = telegram.bot_texts(chat)
        assert "level 2" in first
        assert "level 3" in second
        assert "agent default, channel web" in first
        assert "Zelda" not in first + second
        (newest, *_) = await place.harness.store.crises.listed(limit=9)
        assert newest.id[:12] in second
