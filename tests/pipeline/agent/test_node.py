"""The agent node at its edges: what is streamed is the answer, and what was cut off is counted."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.agent.node import agent
from pipeline.domain.chat import ChatMessage, ToolCall, message_to_plain
from pipeline.domain.conversation import Conversation, PastTurn
from pipeline.domain.errors import ModelUnavailable
from pipeline.graph.execution.executor import Executor
from pipeline.llm.failures import EmptyAnswer
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from pipeline.redaction.redactor import Redactor
from pipeline.runtime.context import RunContext
from pipeline.runtime.settings import PipelineSettings
from pipeline.topologies import conversation_graph
from tests.support.contexts import CountedBudgets, Watched, context

SECRET = "hunter2-Secret-Value99"  # of no account
CONTINUING = "<AGENT_CONTINUE><STATUS_REPORT>More comes.</STATUS_REPORT></AGENT_CONTINUE>"
PIECES = (
    *("Hello ", "world", "\n", "```\n", "~~~\n", "<", "</", "a < b", "token", "Bearer ", "password="),
    *(
        "<AGENT_DONE>",
        "</AGENT_DONE>",
        "<KEY_RESULT>",
        "</KEY_RESULT>",
        "<agent_continue>",
        "<STATUS_REPORT>",
    ),
    *("</AGENT_CONTINUE>", "<AGENT_BLOCKED>", "<BLOCKER_REASON>", "</AGENT_BLOCKED>", "https://u:pw12345@h/"),
    *(SECRET, SECRET[:9], SECRET[9:], "abcdefg1234", "sk-ABCDEFGHIJKLMNOP1234567890"),
)


def answering(*answers: ScriptedAnswer, **given: Any) -> RunContext:
    return context(llm=ScriptedLlm(list(answers)), **given)


@settings(max_examples=150, deadline=None)
@given(
    parts=st.lists(st.sampled_from(PIECES), min_size=1, max_size=8),
    size=st.sampled_from((1, 2, 7, 100)),
    loop=st.sampled_from(({}, {"rounds": 25})),
)
def test_what_is_streamed_is_the_answer_and_holds_no_secret(
    parts: list[str], size: int, loop: dict[str, int]
) -> None:
    text, watched = "".join(parts), Watched()
    chunks = tuple(text[at : at + size] for at in range(0, len(text), size))
    run = answering(ScriptedAnswer(chunks=chunks), watched=watched, redactor=Redactor(lambda: (SECRET,)))
    try:
        result = asyncio.run(agent({"loop": loop}, run))
    except ModelUnavailable:
        assert watched.text == ""
        return
    assert watched.text.split() == result.update["agent"]["answer"].split()
    assert SECRET not in watched.text


@pytest.mark.parametrize("tags", ["</AGENT_DONE>", "<KEY_RESULT></KEY_RESULT>"])
async def test_an_answer_of_nothing_but_stray_tags_is_an_empty_one(tags: str) -> None:
    with pytest.raises(ModelUnavailable, match="empty answer"):
        await agent({}, answering(ScriptedAnswer.of(tags)))


@pytest.mark.parametrize("last", [CONTINUING, "That is all I know."])
async def test_out_of_rounds_the_next_answer_is_the_last_one_whatever_it_declares(last: str) -> None:
    llm = ScriptedLlm([ScriptedAnswer.of(last), ScriptedAnswer.of("one too many")])
    watched = Watched()
    limits = PipelineSettings(max_rounds=0, completion="declared")
    outcome = await Executor(conversation_graph()).run({}, context(llm=llm, settings=limits, watched=watched))
    outcome.raise_for_failure()
    assert len(llm.requests) == 1
    assert watched.text.count("I stopped here") == 1
    assert outcome.state["agent"]["answer"].split() == watched.text.split()


async def test_a_call_under_an_id_that_was_used_before_gets_its_own() -> None:
    used = ToolCall(id="call_0", name="look", arguments="{}")
    asked = ChatMessage(role="assistant", content="", tool_calls=(used,))
    result = ChatMessage(role="tool", content="seen", tool_call_id="call_0")
    question, answer = ChatMessage(role="user", content="?"), ChatMessage(role="assistant", content="!")
    earlier = Conversation(turns=(PastTurn(id=1, messages=(question, asked, result, answer)),))
    again = ScriptedAnswer.calling(used, ToolCall(id="fresh", name="look", arguments="{}"))
    update = (await agent({}, answering(again, conversation=earlier))).update
    assert [call["id"] for call in update["exchange"][0]["tool_calls"]] == ["call_0_2", "fresh"]
    exchange = [message_to_plain(message) for message in (asked, result)]
    update = (await agent({"exchange": exchange}, answering(again))).update
    assert [call["id"] for call in update["exchange"][0]["tool_calls"]] == ["call_0_2", "fresh"]


async def test_a_call_of_megabytes_is_cut_before_it_is_looked_through_and_kept() -> None:
    huge = ToolCall(id="c", name="n" * 100_000, arguments='{"text": "' + "word " * 300_000 + '"}')
    update = (await agent({}, answering(ScriptedAnswer.calling(huge)))).update
    (call,) = update["exchange"][0]["tool_calls"]
    assert call["name"] == "n" * 64
    assert len(call["arguments"]) == 400_000


async def test_an_answer_that_is_stopped_or_breaks_off_is_counted_all_the_same() -> None:
    budgets = CountedBudgets()
    broken = ScriptedAnswer(chunks=("Half an",), error=ModelUnavailable("gone"))
    with pytest.raises(ModelUnavailable):
        await agent({}, answering(broken, budgets=budgets))
    waiting = ScriptedAnswer(chunks=("Half an ", "answer"), gate=asyncio.Event(), gate_at=1)
    shown = asyncio.Event()

    async def on_text(_text: str) -> None:
        shown.set()

    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        task = group.create_task(agent({}, answering(waiting, budgets=budgets, on_text=on_text)))
        await shown.wait()
        task.cancel()
    assert len(budgets.tokens) == 2
    assert all(tokens > 0 for tokens in budgets.tokens)


async def test_an_answer_that_is_stopped_while_its_last_word_is_shown_is_counted() -> None:
    budgets, shown = CountedBudgets(), asyncio.Event()
    whole = ScriptedAnswer(chunks=("One",), prompt_tokens=10)

    async def on_text(_text: str) -> None:
        shown.set()
        await asyncio.Event().wait()

    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        task = group.create_task(agent({}, answering(whole, budgets=budgets, on_text=on_text)))
        await shown.wait()
        task.cancel()
    assert budgets.tokens == [11]


async def test_empty_answers_are_counted() -> None:
    budgets, empty = CountedBudgets(), ScriptedAnswer(prompt_tokens=10)
    with pytest.raises(EmptyAnswer):
        await agent({}, answering(empty, empty, budgets=budgets))
    assert budgets.tokens == [20]
