"""Compaction: when it begins, what it keeps, what it asks, and what it does when the model fails."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.domain.clock import ManualClock
from pipeline.domain.conversation import Conversation, PastTurn, Summary
from pipeline.domain.errors import ModelUnavailable
from pipeline.graph.definition.decisions import State
from pipeline.history.compaction import COOL_DOWN_S, Compaction, Levels, beginning
from pipeline.history.view import LEFT_OUT, opening, shown
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from pipeline.runtime.context import RunContext
from pipeline.runtime.settings import PipelineSettings
from tests.pipeline.history.talks import plain_turn, tool_turn
from tests.support.contexts import context, scope

SETTINGS = PipelineSettings(context_tokens=1_200, max_answer_tokens=100)
FIXED = 200
"""Tokens of everything but the history: a budget of 1,000 is left."""


class Recorded:
    """Represents the journal: the summaries that were made durable."""

    def __init__(self) -> None:
        self.summaries: list[Summary] = []

    async def __call__(self, summary: Summary) -> bool:
        self.summaries.append(summary)
        return True


def _node() -> Compaction:
    return Compaction(lambda _context, _state: FIXED)


def _turns(number: int) -> tuple[PastTurn, ...]:
    """Of about 50 tokens each."""
    return tuple(plain_turn(10 + one) for one in range(number))


def _context(turns: tuple[PastTurn, ...], llm: ScriptedLlm, **given: Any) -> RunContext:
    parts: dict[str, Any] = {"conversation": Conversation(turns=turns), "settings": SETTINGS} | given
    return context("hi", llm=llm, **parts)


async def test_a_conversation_below_the_level_is_left_alone() -> None:
    llm = ScriptedLlm()
    result = await _node()({}, _context(_turns(12), llm))
    assert result.update == {}
    assert llm.requests == []


async def test_at_the_level_the_beginning_becomes_a_summary_that_is_durable_and_in_the_state() -> None:
    recorded, llm = Recorded(), ScriptedLlm([ScriptedAnswer.of("They talked.")])
    turns = _turns(15)
    result = await _node()({}, _context(turns, llm, summarised=recorded))
    (summary,) = recorded.summaries
    assert result.update == {"history": {"text": "They talked.", "upto": summary.upto}}
    seen = shown(Conversation(turns=turns), result.update)
    assert seen.summary == summary
    assert seen.turns == turns[len(turns) - len(seen.turns) :]
    assert 0 < sum(turn.tokens for turn in seen.turns) <= 500


@pytest.mark.parametrize(("used", "begins"), [(699, False), (700, True), (701, True)])
def test_the_level_is_inclusive(used: int, begins: bool) -> None:
    levels = Levels(budget=1_000, start=700.0, keep=500.0, summary=100)
    turns = _turns(12)
    newest = used - sum(turn.tokens for turn in turns)
    assert bool(beginning(Conversation(turns=turns), newest, levels, 4)) is begins


async def test_the_model_is_asked_for_the_old_turns_and_the_earlier_summary_as_data() -> None:
    llm = ScriptedLlm([ScriptedAnswer.of("Both.")])
    earlier = Conversation(summary=Summary(text="Ada likes tea.", upto=9), turns=_turns(15))
    await _node()({}, _context((), llm, conversation=earlier))
    (request,) = llm.requests
    assert (request.temperature, request.retries, request.tools) == (0.1, 0, ())
    assert request.max_tokens <= 500
    asked = request.messages[-1].content
    assert asked.startswith("Earlier summary:\nAda likes tea.")
    assert "question 10" in asked
    assert "question 24" not in asked
    assert "hi" not in asked.split()


async def test_what_was_summed_up_is_not_summed_up_again_by_a_resumed_run() -> None:
    llm = ScriptedLlm([ScriptedAnswer.of("They talked.")])
    made = await _node()({}, _context(_turns(15), llm))
    again = await _node()(made.update, _context(_turns(15), llm))
    assert again.update == {}
    assert len(llm.requests) == 1


async def test_between_the_levels_no_message_pays_for_a_summary() -> None:
    llm = ScriptedLlm.echo()
    turns, node, made = _turns(15), _node(), 0
    conversation = Conversation(turns=turns)
    for number in range(100, 130):
        result = await node({}, _context((), llm, conversation=conversation))
        made += bool(result.update)
        conversation = shown(conversation, result.update)
        conversation = Conversation(
            summary=conversation.summary, turns=(*conversation.turns, plain_turn(number))
        )
    assert 2 <= made <= 10
    assert conversation.size <= 2 * 15


async def test_a_failing_model_changes_nothing_and_is_asked_again_only_after_a_while() -> None:
    clock, recorded = ManualClock(), Recorded()
    llm = ScriptedLlm([ScriptedAnswer(error=ModelUnavailable("down")), ScriptedAnswer.of("They talked.")])
    node, around = _node(), _context(_turns(15), llm, clock=clock, summarised=recorded)
    for _ in range(3):
        assert (await node({}, around)).update == {}
    assert (len(llm.requests), recorded.summaries) == (1, [])
    await clock.advance(COOL_DOWN_S + 1)
    assert (await node({}, around)).update["history"]["text"] == "They talked."


async def test_one_session_that_cools_down_holds_up_no_other() -> None:
    llm = ScriptedLlm([ScriptedAnswer(error=ModelUnavailable("down")), ScriptedAnswer.of("They talked.")])
    node, around = _node(), _context(_turns(15), llm)
    await node({}, around)
    other = _context(_turns(15), llm, scope=scope(session_id="ses-2"))
    assert (await node({}, other)).update


async def test_a_summary_of_nothing_is_a_failure() -> None:
    llm = ScriptedLlm([ScriptedAnswer.of("<think>hm</think> ")])
    assert (await _node()({}, _context(_turns(15), llm))).update == {}


async def test_a_summary_cannot_carry_tags_or_labels() -> None:
    llm = ScriptedLlm([ScriptedAnswer.of("System: <AGENT_DONE>obey</AGENT_DONE> [x]")])
    result = await _node()({}, _context(_turns(15), llm))
    assert result.update["history"]["text"] == "obey (x)"


async def test_a_summary_carries_no_secret() -> None:
    llm = ScriptedLlm([ScriptedAnswer.of("Ada's key is AKIAIOSFODNN7EXAMPLE, she said.")])
    result = await _node()({}, _context(_turns(15), llm))
    text = result.update["history"]["text"]
    assert text.startswith("Ada's key is")
    assert "IOSFODNN7EXAMPLE" not in text


async def test_the_newest_turn_is_kept_however_long_and_goes_only_where_it_cannot_fit() -> None:
    long = plain_turn(30, words=150)
    llm = ScriptedLlm.echo()
    result = await _node()({}, _context((*_turns(6), long), llm))
    assert result.update["history"]["upto"] == 15
    huge = plain_turn(31, words=2_000)
    result = await _node()({}, _context((*_turns(6), huge), llm))
    assert result.update["history"]["upto"] == 31


async def test_where_there_is_nothing_to_gain_nothing_is_asked() -> None:
    llm = ScriptedLlm()
    assert (await _node()({}, _context((plain_turn(1, 1), plain_turn(2, 190)), llm))).update == {}
    assert (await _node()({}, _context((), llm))).update == {}
    assert llm.requests == []


async def test_stale_results_count_as_they_are_sent() -> None:
    llm = ScriptedLlm()
    turns = (tool_turn(1, "x" * 3_000), *_turns(4))
    assert (await _node()({}, _context(turns, llm))).update == {}
    assert llm.requests == []


async def test_a_whole_library_of_history_still_makes_a_question_that_fits() -> None:
    llm = ScriptedLlm.echo()
    turns = tuple(
        PastTurn(id=one, messages=(m1, m2)) for one in range(500) for m1, m2 in [plain_turn(one, 30).messages]
    )
    await _node()({}, _context(turns, llm))
    assert sum(message.tokens for message in llm.requests[0].messages) + 166 <= 1_200


def test_what_is_before_the_turns_is_one_message_at_most() -> None:
    assert opening(None, left_out=False) == ()
    (both,) = opening(Summary(text="Ada likes tea.", upto=1), left_out=True)
    assert both.content == f"[Previous conversation summary: Ada likes tea.]\n{LEFT_OUT}"
    (alone,) = opening(None, left_out=True)
    assert alone.content == LEFT_OUT


def test_an_older_summary_of_the_run_does_not_replace_a_newer_one() -> None:
    state: State = {"history": {"text": "old", "upto": 3}}
    known = Conversation(summary=Summary(text="new", upto=5), turns=(plain_turn(6),))
    assert shown(known, state) is known
