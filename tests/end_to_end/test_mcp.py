"""An MCP server in a conversation: its tools are asked for, and where it ends, the conversation continues."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from gateway.storage.ports import Interaction
from pipeline.domain.chat import ToolCall
from pipeline.domain.clock import Clock, ManualClock
from pipeline.domain.events import ActionCompleted, ApprovalRequired
from pipeline.domain.ids import ThreadKey
from pipeline.domain.marking import unmarked
from pipeline.domain.messages import ApprovalReply, Author, button_handle
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.architecture.sources import ROOT
from tests.support.channel import MemoryChannel
from tests.support.harness import THREAD, GatewayHarness, open_gateway
from tests.support.mcp_log import listening
from tests.support.plain_mcp_server import entry

LOAD = ScriptedAnswer.calling(ToolCall(id="l", name="load_tools", arguments='{"groups": ["mcp:weather"]}'))


def asking(tool: str, **arguments: Any) -> ScriptedAnswer:
    name = f"mcp__weather__{tool}"
    return ScriptedAnswer.calling(ToolCall(id="c", name=name, arguments=json.dumps(arguments)))


@asynccontextmanager
async def with_server(
    folder: Path, answers: Sequence[ScriptedAnswer], clock: Clock | None = None, **given: Any
) -> AsyncIterator[GatewayHarness]:
    """A gateway whose mcp.json names the weather's server."""
    file = folder / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"weather": entry(cwd=str(ROOT), **given)}}), encoding="utf-8")
    llm = ScriptedLlm(list(answers))
    async with open_gateway(folder / "data", f'tools.mcp_file="{file}"', llm=llm, clock=clock) as harness:
        yield harness


async def allow(channel: MemoryChannel, harness: GatewayHarness, number: int) -> Interaction:
    """Press Allow on the question that the turn asks as its `number`th."""
    await channel.until(lambda: sum(isinstance(one, ApprovalRequired) for one in channel.events) == number)
    (question,) = await harness.store.pending_interactions(THREAD, now=0.0)
    pressed = ApprovalReply(
        message_id=f"m_press{number}",
        native_id=f"press{number}",
        thread=ThreadKey.decode(THREAD),
        author=Author(id="owner"),
        received_at=1_700_000_000.0,
        interaction_id=button_handle(question.id),
        choice="",
        option=question.options.index("Allow"),
    )
    assert (await channel.bring(pressed)).status == "accepted"
    return question


async def turn(harness: GatewayHarness, text: str, number: int) -> str:
    """Say something whose turn asks for one tool, and allow it; what the model got of it."""
    said = await harness.channel.say(text)
    await allow(harness.channel, harness, number)
    await harness.channel.reply(said.message_id)
    return harness.llm.requests[-1].messages[-1].content


def outcomes(harness: GatewayHarness) -> list[bool]:
    return [one.success for one in harness.channel.events if isinstance(one, ActionCompleted)]


async def test_a_servers_tool_is_offered_asked_for_by_its_whole_name_and_called(tmp_path: Path) -> None:
    answers = [LOAD, asking("weather", city="Bonn"), ScriptedAnswer.of("Take an umbrella.")]
    async with with_server(tmp_path, answers) as harness:
        said = await harness.channel.say("how is the weather?")
        question = await allow(harness.channel, harness, 1)
        reply = await harness.channel.reply(said.message_id)
        (asked,) = [one for one in harness.channel.events if isinstance(one, ApprovalRequired)]

    assert reply.text.endswith("Take an umbrella.")
    assert [tool.name for tool in harness.llm.requests[0].tools] == ["load_tools"]
    assert "mcp__weather__weather" in {tool.name for tool in harness.llm.requests[1].tools}
    assert "It rains in Bonn." in harness.llm.requests[-1].messages[-1].content
    assert "mcp__weather__weather" in asked.reasoning
    assert 'City: "Bonn"' in asked.reasoning
    assert question.allowed_users == ("owner",)


async def test_a_crash_and_ten_megabytes_are_words_and_the_conversation_continues(tmp_path: Path) -> None:
    answers = [LOAD, asking("crash"), ScriptedAnswer.of("It broke.")]
    answers += [LOAD, asking("big", megabytes=10), ScriptedAnswer.of("That is long.")]
    answers += [LOAD, asking("weather", city="Bonn"), ScriptedAnswer.of("Rain.")]
    async with with_server(tmp_path, answers) as harness:
        crashed = await turn(harness, "break it", 1)
        big = await turn(harness, "everything, please", 2)
        again = await turn(harness, "and the weather?", 3)
        stored = [record.body["text"] for record in await harness.records("assistant")]

    assert "the connection to the MCP server weather is over (it ended: out of cheese)" in crashed
    assert unmarked(crashed) != crashed
    assert "[9995000 more characters are not shown]" in big
    assert len(big) < 6_000
    assert "It rains in Bonn." in again
    assert stored == ["It broke.", "That is long.", "Rain."]
    assert outcomes(harness) == [False, True, True]


async def test_a_server_that_hangs_is_words_and_the_conversation_continues(tmp_path: Path) -> None:
    clock = ManualClock()
    answers = [LOAD, asking("hang"), ScriptedAnswer.of("It hangs.")]
    answers += [LOAD, asking("weather", city="Bonn"), ScriptedAnswer.of("Rain.")]
    with listening() as server:
        async with with_server(tmp_path, answers, clock) as harness:
            said = await harness.channel.say("wait for it")
            await allow(harness.channel, harness, 1)
            await server.hanging.wait()
            await clock.advance(60)
            await harness.channel.reply(said.message_id)
            hung = harness.llm.requests[-1].messages[-1].content
            again = await turn(harness, "and the weather?", 2)

    assert "the MCP server weather did not answer within 60 seconds and was stopped" in hung
    assert "It rains in Bonn." in again


async def test_a_key_on_a_cut_of_a_servers_words_is_nowhere_halved(tmp_path: Path) -> None:
    key = "Zq7-horse-battery-staple"
    (tmp_path / "key.txt").write_text(key, encoding="utf-8")
    (tmp_path / "key.txt").chmod(0o600)
    answers = [LOAD, asking("blurt"), ScriptedAnswer.of("That was long.")]
    answers += [LOAD, asking("complain", before=490), ScriptedAnswer.of("It complains.")]
    with listening() as server:
        async with with_server(tmp_path, answers, env={"KEY": "file:key.txt"}) as harness:
            reported = [await turn(harness, "tell me all", 1), await turn(harness, "and again", 2)]
            kept = repr([(record.kind, dict(record.body)) for record in await harness.store.read_log(THREAD)])
        events = repr(harness.channel.events)

    assert reported[0].count("Zq7-[REDACTED]") == 1
    assert "wwwZq7-[REDA…" in reported[1]
    for seen in (*reported, kept, events, *server.lines):
        assert key[:6] not in seen
    assert sum("wwww" in line for line in server.lines) == 1


async def test_a_tool_that_cannot_be_used_is_named_to_the_model_with_the_reason(tmp_path: Path) -> None:
    odd = {"command": sys.executable, "args": ["-m", "tests.support.odd_mcp_server"], "cwd": str(ROOT)}
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"odd": odd}}), encoding="utf-8")
    load = ToolCall(id="l", name="load_tools", arguments='{"groups": ["mcp:odd"]}')
    llm = ScriptedLlm([ScriptedAnswer.calling(load), ScriptedAnswer.of("One tool is broken.")])
    async with open_gateway(tmp_path / "data", f'tools.mcp_file="{file}"', llm=llm) as harness:
        said = await harness.channel.say("use the odd tools")
        await harness.channel.reply(said.message_id)
    assert harness.llm.requests[-1].messages[-1].content == (
        "mcp:odd: loaded mcp__odd__fine\n"
        "mcp:odd: not usable: mcp__odd__strange (its inputSchema is not what the protocol asks for)"
    )
    assert [tool.name for tool in harness.llm.requests[-1].tools] == ["load_tools", "mcp__odd__fine"]
