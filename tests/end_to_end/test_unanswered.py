"""Turns that end without an answer: the next turn knows what was said and what was done in them."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pipeline.agent.unfinished import CUT_OFF, NOT_DONE
from pipeline.domain.chat import ChatMessage, ToolCall, ToolDefinition
from pipeline.domain.errors import ModelUnavailable
from pipeline.domain.events import ErrorEvent
from pipeline.graph.definition.decisions import NodeResult, State
from pipeline.graph.definition.retry import RetryPolicy
from pipeline.graph.definition.spec import GraphSpec, NodeSpec
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from pipeline.runtime.context import RunContext
from pipeline.runtime.scope import TurnScope
from pipeline.tools.registry import FixedGroup
from pipeline.tools.tool import Tool, ToolOutput, tool_schema
from tests.support.harness import THREAD, GatewayHarness, open_gateway

LOAD = ScriptedAnswer.calling(ToolCall(id="l", name="load_tools", arguments='{"groups": ["diary"]}'))
AWAY = ScriptedAnswer(error=ModelUnavailable("The model is away."))
FAILED = "[Not answered: an error ended the turn.]"
STOPPED = "[Stopped by the user before the answer was complete.]"


class Diary:
    """A tool that changes something; the words `wait` make it wait for ever."""

    def __init__(self) -> None:
        self.written: list[str] = []

    @property
    def group(self) -> FixedGroup:
        """The group that a message loads."""
        definition = ToolDefinition(
            name="write", description="Write a line.", parameters=tool_schema({"line": {"type": "string"}})
        )
        tool = Tool(definition=definition, group="diary", run=self._run, own_only=True, own_words=True)
        return FixedGroup(name="diary", description="the diary", fixed=(tool,))

    async def _run(self, arguments: Mapping[str, Any], _scope: TurnScope) -> ToolOutput:
        self.written.append(arguments["line"])
        if arguments["line"] == "wait":
            await asyncio.Event().wait()
        return ToolOutput(text=f"Written: {arguments['line']}")


def _write(*lines: str, text: str = "") -> ScriptedAnswer:
    calls = [
        ToolCall(id=f"w{number}", name="write", arguments=json.dumps({"line": line}))
        for number, line in enumerate(lines)
    ]
    return ScriptedAnswer.calling(*calls, text=text)


def _spoken(llm: ScriptedLlm) -> list[str]:
    """What the newest request holds, without the prompt."""
    return [message.content for message in llm.requests[-1].messages if message.role != "system"]


async def _say(harness: GatewayHarness, text: str) -> None:
    accepted = await harness.channel.say(text)
    await harness.channel.reply(accepted.message_id)


@pytest.mark.parametrize("restarted", [False, True], ids=["live", "restarted"])
async def test_what_a_person_said_is_known_after_the_model_failed(tmp_path: Path, restarted: bool) -> None:
    llm = ScriptedLlm([AWAY, ScriptedAnswer.of("On Monday at 9.")])
    async with open_gateway(tmp_path, llm=llm) as harness:
        await _say(harness, "My flight is LX318 on Monday at 9")
        if not restarted:
            await _say(harness, "When is it?")
    if restarted:
        async with open_gateway(tmp_path, llm=llm) as harness:
            await _say(harness, "When is it?")
    assert _spoken(llm) == ["My flight is LX318 on Monday at 9", FAILED, "When is it?"]


async def test_a_message_that_was_refused_for_the_budget_is_known_to_the_next(tmp_path: Path) -> None:
    first = ScriptedLlm([ScriptedAnswer(chunks=("Hello.",), prompt_tokens=900)])
    limit = "budget.tokens=500"
    async with open_gateway(tmp_path, limit, llm=first) as harness:
        await _say(harness, "hello")
        await _say(harness, "My flight is LX318")
        codes = [record.body["code"] for record in await harness.records("error")]
        assert codes == ["budget"]
    second = ScriptedLlm([ScriptedAnswer.of("LX318.")])
    async with open_gateway(tmp_path, llm=second) as harness:
        await _say(harness, "which flight?")
    assert _spoken(second)[2:] == [
        "My flight is LX318",
        "[Not answered: the budget was used up.]",
        "which flight?",
    ]


@pytest.mark.parametrize("restarted", [False, True], ids=["live", "restarted"])
async def test_what_tools_did_is_known_after_the_model_failed(tmp_path: Path, restarted: bool) -> None:
    diary = Diary()
    llm = ScriptedLlm([LOAD, _write("eggs", text="I write it."), AWAY, ScriptedAnswer.of("It is written.")])
    async with open_gateway(tmp_path, llm=llm, tools=(diary.group,)) as harness:
        await _say(harness, "write eggs")
        if not restarted:
            await _say(harness, "try again")
    if restarted:
        async with open_gateway(tmp_path, llm=llm, tools=(diary.group,)) as harness:
            await _say(harness, "try again")
    assert diary.written == ["eggs"]
    asked, *_, call, result, ending, again = llm.requests[-1].messages[1:]
    assert asked.content == "write eggs"
    assert [(one.name, one.arguments) for one in call.tool_calls] == [("write", '{"line": "eggs"}')]
    assert result == ChatMessage(role="tool", content="Written: eggs", tool_call_id="w0")
    assert (ending.content, again.content) == (FAILED, "try again")


async def test_a_stopped_turn_says_of_each_call_how_far_it_came(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    diary = Diary()
    llm = ScriptedLlm([LOAD, _write("eggs", "wait", "milk"), ScriptedAnswer.of("Eggs only.")])
    async with open_gateway(tmp_path, llm=llm, tools=(diary.group,)) as harness:
        stopped = await harness.channel.say("write all three")
        await harness.channel.until(lambda: diary.written == ["eggs", "wait"])
        await harness.channel.say("/stop")
        await harness.channel.reply(stopped.message_id)
        await _say(harness, "what is written?")
    assert _spoken(llm)[-5:] == ["Written: eggs", CUT_OFF, NOT_DONE, STOPPED, "what is written?"]
    assert [record.message for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_a_turn_that_was_stopped_while_the_gateway_was_away_still_knows_what_it_did(
    tmp_path: Path,
) -> None:
    diary = Diary()
    llm = ScriptedLlm([LOAD, _write("eggs", "wait", "milk"), ScriptedAnswer.of("Eggs only.")])
    async with open_gateway(tmp_path, llm=llm, tools=(diary.group,), drain_s=0.0) as harness:
        cut_off = await harness.channel.say("write all three")
        await harness.channel.until(lambda: diary.written == ["eggs", "wait"])
        seq = (await harness.store.open_entries(THREAD))[0].seq
        await harness.store.cancel_open(THREAD, up_to_seq=seq)
    async with open_gateway(tmp_path, llm=llm, tools=(diary.group,)) as harness:
        await harness.channel.reply(cut_off.message_id)
        await _say(harness, "what is written?")
    assert diary.written == ["eggs", "wait"]
    assert _spoken(llm)[-5:] == ["Written: eggs", CUT_OFF, NOT_DONE, STOPPED, "what is written?"]


async def test_a_mistake_in_the_program_ends_the_turn_in_words_and_the_next_turn_knows(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broken = True

    async def work(_state: State, context: RunContext) -> NodeResult:
        if broken:
            raise KeyError("the name of an inner part")
        said = [message.content for message in (await context.history.conversation()).messages]
        return NodeResult(update={"agent": {"answer": "; ".join(said)}})

    node = NodeSpec(run=work, retry=RetryPolicy(max_attempts=1))
    graph = GraphSpec(name="broken", entry="work", nodes={"work": node}, edges=())
    async with open_gateway(tmp_path, graph=graph) as harness:
        accepted = await harness.channel.say("hello")
        error = await harness.channel.terminal(accepted.message_id)
        assert isinstance(error, ErrorEvent)
        assert (error.code, error.recoverable) == ("internal", True)
        assert error.message == "Something went wrong inside the assistant. Please send the message again."
        (record,) = await harness.records("error")
        assert record.body["text"] == error.message
        assert "the name of an inner part" in caplog.text
        broken = False
        accepted = await harness.channel.say("and now?")
        reply = (await harness.channel.reply(accepted.message_id)).text
        assert reply == f"hello; {FAILED}"
