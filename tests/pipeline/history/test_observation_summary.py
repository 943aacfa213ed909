"""The background summary: what is too old, what the model's observations become, and the fallback."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from pipeline.domain.clock import ManualClock
from pipeline.domain.conversation import Conversation, Summary
from pipeline.domain.errors import ModelError, ModelRejected, ModelUnavailable
from pipeline.history.observation_summary import ATTEMPTS, observed, sum_up, too_old
from pipeline.history.summarization import ModelSummary
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from pipeline.redaction.redactor import Redactor
from tests.pipeline.history.talks import of, plain_turn, tool_turn

LONG = of(*(plain_turn(number) for number in range(41)))
"""82 messages."""
GOOD = json.dumps(
    [
        {"priority": "low", "content": "They spoke of words."},
        {"priority": "high", "content": "Ada is allergic to nuts."},
        {"priority": "medium", "content": "Ada likes tea."},
    ]
)
TEXT = (
    "Critical context:\n- Ada is allergic to nuts.\nKey context:\n- Ada likes tea.\n"
    "Background:\n- They spoke of words."
)


async def _sum_up(llm: ScriptedLlm, conversation: Conversation = LONG) -> Summary | None:
    clock, spent = ManualClock(), list[ModelSummary]()

    async def spend(said: ModelSummary) -> None:
        spent.append(said)

    async with asyncio.TaskGroup() as group:
        summing = group.create_task(
            _caught(
                sum_up(
                    conversation, 80, llm=llm, clock=clock, timeout_s=30.0, redactor=Redactor(), spent=spend
                )
            )
        )
        for _ in range(10):
            await clock.advance(1.0)
    summary = summing.result()
    if isinstance(summary, ModelError):
        raise summary
    return summary


async def _caught(summing: object) -> Summary | ModelError | None:
    assert asyncio.iscoroutine(summing)
    try:
        found = await summing
    except ModelError as error:
        return error
    assert found is None or isinstance(found, Summary)
    return found


def test_80_messages_are_not_too_many_and_81_are() -> None:
    eighty = of(*(plain_turn(number) for number in range(40)))
    assert too_old(eighty, 80) == ()
    old = too_old(LONG, 80)
    assert old == LONG.turns[: len(old)]
    assert LONG.size - 2 * len(old) == 40


def test_turns_are_whole_and_the_newest_is_never_too_old() -> None:
    with_tools = of(*(tool_turn(number, "result") for number in range(21)))
    old = too_old(with_tools, 80)
    assert len(old) == 11
    assert too_old(of(replace(plain_turn(1), messages=plain_turn(1).messages * 60)), 80) == ()


async def test_observations_become_one_summary_the_most_important_first() -> None:
    llm = ScriptedLlm([ScriptedAnswer.of(f"Here it is:\n```json\n{GOOD}\n```")])
    summary = await _sum_up(llm)
    assert summary == Summary(text=TEXT, upto=too_old(LONG, 80)[-1].id)
    (request,) = llm.requests
    assert (request.temperature, request.max_tokens, request.retries) == (0.1, 1_000, 0)
    assert len(request.messages[-1].content) <= 12_000


async def test_the_earlier_summary_is_part_of_the_new_one() -> None:
    llm = ScriptedLlm([ScriptedAnswer.of(GOOD)])
    await _sum_up(llm, replace(LONG, summary=Summary(text="Ada lives in Graz.", upto=-1)))
    assert llm.requests[0].messages[-1].content.startswith("Earlier summary:\nAda lives in Graz.")


async def test_a_long_transcript_is_capped() -> None:
    llm = ScriptedLlm([ScriptedAnswer.of(GOOD)])
    await _sum_up(llm, of(*(plain_turn(number, words=500) for number in range(41))))
    assert len(llm.requests[0].messages[-1].content) <= 12_000


async def test_an_answer_of_no_use_is_asked_for_again_and_then_the_first_words_are_used() -> None:
    llm = ScriptedLlm([ScriptedAnswer.of("I cannot do JSON.")] * ATTEMPTS)
    summary = await _sum_up(llm, replace(LONG, summary=Summary(text="Ada lives in Graz.", upto=-1)))
    assert summary is not None
    lines = summary.text.splitlines()
    assert len(llm.requests) == ATTEMPTS
    assert lines[0] == "Ada lives in Graz."
    assert lines[-1].startswith("- The user said: question 20 word")
    assert len(lines) == 9


async def test_a_model_that_recovers_is_believed() -> None:
    llm = ScriptedLlm(
        [ScriptedAnswer(error=ModelUnavailable("down")), ScriptedAnswer.of("[]"), ScriptedAnswer.of(GOOD)]
    )
    summary = await _sum_up(llm)
    assert summary is not None
    assert summary.text == TEXT


@pytest.mark.parametrize(("error", "asked"), [(ModelUnavailable("down"), 3), (ModelRejected("no"), 1)])
async def test_a_model_that_gives_no_answer_replaces_nothing(error: ModelError, asked: int) -> None:
    llm = ScriptedLlm([ScriptedAnswer(error=error)] * 3)
    with pytest.raises(type(error)):
        await _sum_up(llm)
    assert len(llm.requests) == asked


async def test_a_short_conversation_asks_no_one() -> None:
    llm = ScriptedLlm()
    assert await _sum_up(llm, of(plain_turn(1))) is None
    assert llm.requests == []


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ('[{"priority": "🔴", "content": "a"}]', (("high", "a"),)),
        ('[{"priority": "urgent", "content": "a"}, {"content": "b"}]', (("low", "a"), ("low", "b"))),
        ('[{"content": ["a"]}, "b", 3, {"content": " "}]', ()),
        ('[{"content": "System: <b>a</b>\\n[b]"}]', (("low", "a (b)"),)),
        ('{"content": "a"}', ()),
        ("[1, 2", ()),
        ("", ()),
        ("[" * 5_000 + "]" * 5_000, ()),
    ],
)
def test_observations_are_read_from_whatever_the_model_says(
    answer: str, found: tuple[tuple[str, str], ...]
) -> None:
    assert observed(answer) == found


def test_eight_observations_at_most() -> None:
    assert len(observed(json.dumps([{"content": str(number)} for number in range(20)]))) == 8
