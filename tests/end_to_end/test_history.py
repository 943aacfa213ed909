"""The care of a history from outside: failures, interruptions and questions in between."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.agent.model_messages import EXCHANGE
from pipeline.domain.chat import ChatMessage, ToolCall, message_to_plain
from pipeline.domain.errors import ModelRejected
from pipeline.graph.definition.decisions import NodeResult, Pause, State
from pipeline.graph.definition.reducers import append
from pipeline.graph.definition.spec import EdgeSpec, GraphSpec, NodeSpec
from pipeline.history.view import LEFT_OUT
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from pipeline.runtime.context import RunContext
from tests.pipeline.nodes.documents import node, steps
from tests.support.gate_graph import answer_to
from tests.support.harness import THREAD, GatewayHarness, open_gateway

SETTINGS = (
    "llm.context_tokens=1000",
    "llm.max_tokens=100",
    'bot.system_prompt="You are Parlour."',
    "agent.titles=false",
    "tools.enabled=false",
    "limits.messages_per_minute=0",
)
LONG = ("please tell me more " * 20).strip()
"""About 140 tokens: of these and their answers, four reach 70 % of what is left of the window."""


async def _say(harness: GatewayHarness, *texts: str) -> None:
    for text in texts:
        accepted = await harness.channel.say(text)
        await harness.channel.reply(accepted.message_id)


def _answers(number: int) -> list[ScriptedAnswer]:
    return [ScriptedAnswer.of(f"answer {one}") for one in range(number)]


def _asked(llm: ScriptedLlm) -> list[str]:
    """What the users said, in the newest request."""
    return [message.content.split()[0] for message in llm.requests[-1].messages if message.role == "user"]


async def test_without_a_summary_the_answer_comes_and_the_prompt_says_what_is_missing(tmp_path: Path) -> None:
    llm = ScriptedLlm([*_answers(4), ScriptedAnswer(error=ModelRejected("no")), *_answers(3)])
    texts = [f"{number} {LONG}" for number in range(7)]
    async with open_gateway(tmp_path, *SETTINGS, llm=llm) as harness:
        await _say(harness, *texts)
        assert await harness.records("summary", "error") == []
        assert [record.body["text"] for record in await harness.records("user")] == [
            text.strip() for text in texts
        ]
    assert len(llm.requests) == 8
    assert llm.requests[-1].messages[1] == ChatMessage(role="system", content=LEFT_OUT)
    asked = _asked(llm)
    assert asked == ["0", "1", "2", "3", "4", "5", "6"][-len(asked) :]
    assert len(asked) > 3


async def test_a_resumed_turn_is_answered_behind_the_summary_that_was_made_before(tmp_path: Path) -> None:
    never = ScriptedAnswer(chunks=("late",), gate=asyncio.Event())
    llm = ScriptedLlm([*_answers(4), ScriptedAnswer.of("They talked."), never])
    texts = [f"{number} {LONG}" for number in range(5)]
    async with open_gateway(tmp_path, *SETTINGS, llm=llm, drain_s=0.0) as harness:
        await _say(harness, *texts[:4])
        last = await harness.channel.say(texts[4])
        await harness.channel.until(lambda: len(llm.requests) == 6)
    again = ScriptedLlm([ScriptedAnswer.of("at last")])
    async with open_gateway(tmp_path, *SETTINGS, llm=again) as harness:
        assert (await harness.channel.reply(last.message_id)).text == "at last"
        assert len(await harness.records("summary")) == 1
    assert [request.messages for request in again.requests] == [llm.requests[-1].messages]
    assert again.requests[0].messages[1].content == "[Previous conversation summary: They talked.]"


async def test_a_stop_while_the_conversation_is_summed_up_ends_the_turn(tmp_path: Path) -> None:
    never = ScriptedAnswer(chunks=("late",), gate=asyncio.Event())
    llm = ScriptedLlm([*_answers(4), never, ScriptedAnswer.of("They talked."), *_answers(1)])
    async with open_gateway(tmp_path, *SETTINGS, llm=llm) as harness:
        await _say(harness, *(f"{number} {LONG}" for number in range(4)))
        stopped = await harness.channel.say(f"4 {LONG}")
        await harness.channel.until(lambda: len(llm.requests) == 5)
        await harness.channel.say("/stop")
        await harness.channel.reply(stopped.message_id)
        assert llm.cancelled == 1
        assert [record.body["code"] for record in await harness.records("error")] == ["stopped"]
        await _say(harness, f"5 {LONG}")
        assert len(await harness.records("summary")) == 1


@pytest.mark.parametrize(
    "kind",
    [{"run": "agent"}, {"run": "task", "with": {"instructions": "x", "outputs": ["a"], "answer": "a"}}],
)
async def test_a_step_of_a_document_sums_up_the_history_when_it_needs_it(
    tmp_path: Path, kind: dict[str, Any]
) -> None:
    check = node("check", "condition", **{"if": "'short' in message", "then": "short", "else": "long"})
    document = steps(check, node("short", "reply", text="Yes."), {"id": "long", **kind})
    path = tmp_path / "bot.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    llm = ScriptedLlm(_answers(4))
    async with open_gateway(tmp_path, *SETTINGS, llm=llm) as harness:
        await _say(harness, *(f"{number} {LONG}" for number in range(4)))
    done = ScriptedAnswer.calling(ToolCall(id="s", name="set_output", arguments='{"key": "a", "value": "b"}'))
    llm = ScriptedLlm([ScriptedAnswer.of("They talked."), done if kind["run"] == "task" else _answers(1)[0]])
    async with open_gateway(tmp_path, *SETTINGS, f'agent.graph="{path}"', llm=llm) as harness:
        await _say(harness, "short")
        assert await harness.records("summary") == []
        await _say(harness, f"5 {LONG}")
        assert len(await harness.records("summary")) == 1
    assert len(llm.requests) == 2


CALL = ToolCall(id="c1", name="pay", arguments="{}")
PAID = (
    ChatMessage(role="assistant", content="I pay.", tool_calls=(CALL,)),
    ChatMessage(role="tool", content="paid", tool_call_id="c1"),
)


def _paying(seen: list[tuple[ChatMessage, ...]]) -> GraphSpec[RunContext]:
    """Asks each person who wants to pay, pays, and notes what of the conversation each run was shown."""

    async def ask(_state: State, context: RunContext) -> NodeResult:
        seen.append((await context.history.conversation()).messages)
        pause = Pause(prompt="Pay?", options=("approve", "deny"))
        return NodeResult(decision=pause) if context.text == "pay" else NodeResult()

    async def act(_state: State, context: RunContext) -> NodeResult:
        seen.append((await context.history.conversation()).messages)
        if context.text != "pay":
            return NodeResult(update={"agent": {"answer": "fine"}})
        exchange = [message_to_plain(message) for message in PAID]
        return NodeResult(update={EXCHANGE: exchange, "agent": {"answer": "I pay.\n\nDone."}})

    return GraphSpec(
        name="paying",
        entry="ask",
        channels={EXCHANGE: append},
        nodes={"ask": NodeSpec(run=ask, goes_to=()), "act": act},
        edges=(EdgeSpec(source="ask", target="act"),),
    )


async def test_a_run_that_asked_is_remembered_once_with_its_exchange(tmp_path: Path) -> None:
    seen: list[tuple[ChatMessage, ...]] = []
    async with open_gateway(tmp_path, graph=_paying(seen)) as harness:
        await _say(harness, "hello", "pay")
        (question,) = await harness.store.pending_interactions(THREAD, now=0.0)
        await _say(harness, "meanwhile")
        await harness.channel.bring(answer_to(question.id, "approve"))
        await harness.channel.reply("m_answer")
        await _say(harness, "and now")
        live = seen[-1]
    async with open_gateway(tmp_path, graph=_paying(seen)) as harness:
        await _say(harness, "again")
    hello = (ChatMessage(role="user", content="hello"), ChatMessage(role="assistant", content="fine"))
    assert seen[-5] == hello  # what the run was shown that continued with "pay"
    assert live == (
        *hello,
        ChatMessage(role="user", content="pay"),
        ChatMessage(role="assistant", content="Pay?\n(approve / deny)"),
        ChatMessage(role="user", content="meanwhile"),
        ChatMessage(role="assistant", content="fine"),
        ChatMessage(role="user", content="approve"),
        *PAID,
        ChatMessage(role="assistant", content="Done."),
    )
    assert seen[-1][: len(live)] == live
