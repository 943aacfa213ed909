"""Tools in the agent's loop through the public path: order, rounds, thoughts, and going round in circles.

Covers: gateway/turns/journal.py, pipeline/agent/tool_node.py, pipeline/agent/node.py.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.domain.chat import ChatMessage, ToolCall, ToolDefinition
from pipeline.domain.events import ErrorEvent, LlmToken, PipelineEvent, ResponseComplete
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from pipeline.runtime.scope import TurnScope
from pipeline.tools.registry import FixedGroup
from pipeline.tools.tool import Tool, ToolOutput, tool_schema
from tests.support.channel import types_of
from tests.support.harness import GatewayHarness, open_gateway

LOAD = ScriptedAnswer.calling(ToolCall(id="l", name="load_tools", arguments='{"groups": ["weather"]}'))


class Weather:
    """A tool of the host's own, and what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    @property
    def group(self) -> FixedGroup:
        """The group that a message loads."""
        definition = ToolDefinition(
            name="weather",
            description="The weather in a city.",
            parameters=tool_schema({"city": {"type": "string"}}),
        )
        tool = Tool(definition=definition, group="weather", run=self._run, reads_only=True)
        return FixedGroup(name="weather", description="the weather", fixed=(tool,))

    async def _run(self, arguments: Mapping[str, Any], _scope: TurnScope) -> ToolOutput:
        self.asked.append(arguments["city"])
        return ToolOutput(text=f"sunny in {arguments['city']}")


def _ask(*cities: str, text: str = "", at: int = 0) -> ScriptedAnswer:
    calls = [
        ToolCall(id=f"c{at}{number}", name="weather", arguments=json.dumps({"city": city}))
        for number, city in enumerate(cities)
    ]
    return ScriptedAnswer.calling(*calls, text=text)


async def _answered(harness: GatewayHarness, text: str = "how is the weather?") -> PipelineEvent:
    accepted = await harness.channel.say(text)
    return await harness.channel.terminal(accepted.message_id)


async def test_calls_of_one_answer_are_done_in_order_and_their_results_come_back_together(
    tmp_path: Path,
) -> None:
    weather = Weather()
    llm = ScriptedLlm([LOAD, _ask("Oslo", "Rome", text="Two cities."), ScriptedAnswer.of("Sunny in both.")])
    async with open_gateway(tmp_path, llm=llm, tools=(weather.group,)) as harness:
        done = await _answered(harness)
        assert isinstance(done, ResponseComplete)
        assert weather.asked == ["Oslo", "Rome"]
        assert done.content == "Two cities.\n\nSunny in both."
        seen = types_of(
            event
            for event in harness.channel.events_of(done.message_id)
            if event.type.startswith(("action", "shield"))
        )
        assert seen == ["action_started", "shield_verdict", "action_completed"] * 2
        tokens = [one.text for one in harness.channel.events_of(done.message_id) if isinstance(one, LlmToken)]
        assert "".join(tokens).split() == done.content.split()
    asked, *results = llm.requests[-1].messages[-3:]
    assert [call.id for call in asked.tool_calls] == [result.tool_call_id for result in results]
    assert ["Oslo" in results[0].content, "Rome" in results[1].content] == [True, True]


async def test_a_turn_begins_with_the_loader_alone_each_time(tmp_path: Path) -> None:
    llm = ScriptedLlm([LOAD, _ask("Oslo"), ScriptedAnswer.of("Sunny."), ScriptedAnswer.of("Bye.")])
    async with open_gateway(tmp_path, llm=llm, tools=(Weather().group,)) as harness:
        await _answered(harness)
        await _answered(harness, "thanks")
    offered = [[tool.name for tool in request.tools] for request in llm.requests]
    assert offered == [["load_tools"], ["load_tools", "weather"], ["load_tools", "weather"], ["load_tools"]]


async def test_words_before_a_call_and_the_call_are_thoughts_stored_with_the_answer(tmp_path: Path) -> None:
    llm = ScriptedLlm([LOAD, _ask("Oslo", text="Let me look."), ScriptedAnswer.of("Sunny.")])
    async with open_gateway(tmp_path, llm=llm, tools=(Weather().group,)) as harness:
        done = await _answered(harness)
        assert isinstance(done, ResponseComplete)
        reported = [(thought.stage, thought.detail.get("tool_name")) for thought in done.thoughts]
        assert reported == [("tool_call", "load_tools"), ("reasoning", None), ("tool_call", "weather")]
        assert done.thoughts[1].summary == "Let me look."
        assert done.thoughts[2].detail["success"] is True
        (stored,) = await harness.records("assistant")
        assert [thought["stage"] for thought in stored.body["thoughts"]] == [stage for stage, _ in reported]


async def test_what_was_said_and_done_in_a_turn_is_shown_to_the_next_also_after_a_restart(
    tmp_path: Path,
) -> None:
    weather = Weather()
    first = ScriptedLlm([LOAD, _ask("Oslo"), ScriptedAnswer.of("Sunny.")])
    async with open_gateway(tmp_path, llm=first, tools=(weather.group,)) as harness:
        await _answered(harness)
    second = ScriptedLlm([ScriptedAnswer.of("As I said.")])
    async with open_gateway(tmp_path, llm=second, tools=(weather.group,)) as harness:
        await _answered(harness, "and now?")
    (request,) = second.requests
    before = [*first.requests[-1].messages[1:], ChatMessage(role="assistant", content="Sunny.")]
    assert list(request.messages[1:-1]) == before


async def test_after_the_last_round_the_answer_says_that_it_stopped(tmp_path: Path) -> None:
    rounds = [_ask(f"City {number}", at=number) for number in range(8)]
    llm = ScriptedLlm([LOAD, *rounds])
    weather = Weather()
    async with open_gateway(tmp_path, "agent.max_rounds=4", llm=llm, tools=(weather.group,)) as harness:
        done = await _answered(harness)
        assert isinstance(done, ResponseComplete)
        assert "4 rounds of tools are the most" in done.content
    # Loading counts twice, so two rounds are left for the tool; then the model is asked without tools.
    assert weather.asked == ["City 0", "City 1"]
    assert len(llm.requests) == 4
    assert llm.requests[-1].tools == ()


async def test_the_same_call_a_third_time_is_not_made_and_the_fifth_ends_the_turn(tmp_path: Path) -> None:
    weather = Weather()
    llm = ScriptedLlm([LOAD, *[_ask("Oslo", at=number) for number in range(8)]])
    async with open_gateway(tmp_path, llm=llm, tools=(weather.group,)) as harness:
        failed = await _answered(harness)
        assert isinstance(failed, ErrorEvent)
        assert failed.code == "max_loops"
    assert weather.asked == ["Oslo", "Oslo"]
    assert llm.requests[4].messages[-1].content.startswith("Not done: this is the same call")


async def test_an_unknown_tool_and_arguments_without_json_are_reported_to_the_model(tmp_path: Path) -> None:
    wrong = ScriptedAnswer.calling(
        ToolCall(id="a", name="teleport", arguments="{}"),
        ToolCall(id="b", name="weather", arguments='{"city": '),
    )
    llm = ScriptedLlm([LOAD, wrong, ScriptedAnswer.of("I cannot.")])
    async with open_gateway(tmp_path, llm=llm, tools=(Weather().group,)) as harness:
        done = await _answered(harness)
        assert isinstance(done, ResponseComplete)
    unknown, garbled = llm.requests[-1].messages[-2:]
    assert "Unknown tool: teleport" in unknown.content
    assert "JSON" in garbled.content
