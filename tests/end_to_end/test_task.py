"""Judged steps and sub-agents through a whole gateway: message in, events and stored answer out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from examples.report_bot import report_graph
from pipeline.domain.chat import ToolCall
from pipeline.domain.clock import ManualClock
from pipeline.domain.events import (
    ActionCompleted,
    ErrorEvent,
    SubAgentCancelled,
    SubAgentCompleted,
    SubAgentSpawned,
)
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from pipeline.subagents import MAX_SECONDS
from tests.support.harness import GatewayHarness, open_gateway
from tests.support.verdicts import verdict


def calls(name: str, **arguments: Any) -> ScriptedAnswer:
    return ScriptedAnswer.calling(ToolCall(id="c", name=name, arguments=json.dumps(arguments)))


def sets(key: str, value: Any) -> ScriptedAnswer:
    return calls("set_output", key=key, value=value)


def llm_of(*answers: ScriptedAnswer | str) -> ScriptedLlm:
    return ScriptedLlm([ScriptedAnswer.of(one) if isinstance(one, str) else one for one in answers])


async def answer_to(harness: GatewayHarness, text: str) -> str:
    """What the bot answers, as it is delivered and as it is stored."""
    accepted = await harness.channel.say(text)
    reply = await harness.channel.reply(accepted.message_id)
    (record,) = [one for one in await harness.records("assistant") if one.message_id == accepted.message_id]
    assert record.body["text"] == reply.text
    return reply.text


async def test_two_judged_steps_answer_a_message(tmp_path: Path) -> None:
    llm = llm_of(
        calls("calculate", expression="6 * 7"),
        "It is 42.",
        sets("facts", '["6 * 7 = 42"]'),
        sets("report", "It may be 43."),
        verdict("RETRY", 0.9, "the facts say 42"),
        sets("report", "It is 42."),
        verdict("ACCEPT", 0.9, "good"),
    )
    async with open_gateway(tmp_path, llm=llm, graph=report_graph()) as harness:
        assert await answer_to(harness, "What is 6 times 7?") == "It is 42."
        done = [event for event in harness.channel.events if isinstance(event, ActionCompleted)]
        assert [(event.tool_name, event.success) for event in done] == [("calculate", True)]
    said = [[(message.role, message.content) for message in request.messages] for request in llm.requests]
    assert ("tool", "6 * 7 = 42") in said[1]
    assert said[2][-1][1].startswith("[Judge feedback]: Missing output keys: facts")
    assert "PHASE TRANSITION: gather → write" in said[3][-1][1]
    assert said[5][-1] == ("user", "[Judge feedback]: the facts say 42")
    assert not llm.script


async def test_a_step_that_is_given_up_is_explained(tmp_path: Path) -> None:
    llm = llm_of(
        sets("facts", "nothing"),
        sets("report", "Who knows."),
        verdict("ESCALATE", 1, "there are no facts"),
    )
    async with open_gateway(tmp_path, llm=llm, graph=report_graph()) as harness:
        assert (
            await answer_to(harness, "What will be tomorrow?")
            == "I could not do that. Judge escalated: there are no facts"
        )


async def test_sub_agents_report_to_the_conversation(tmp_path: Path) -> None:
    agents = [
        {"name": "sums", "task": "What is 6 * 7?", "groups": ["system"]},
        {"name": "words", "task": "Say hello.", "groups": []},
    ]
    llm = llm_of(calls("load_tools", groups=["agents"]), calls("run_agents", agents=agents))
    async with open_gateway(tmp_path, llm=llm) as harness:
        # Every agent, and then the conversation, gets the echo of what it received last.
        answer = await answer_to(harness, "Ask two helpers.")
        spawned = [event.name for event in harness.channel.events if isinstance(event, SubAgentSpawned)]
        completed = {
            event.name: event.result
            for event in harness.channel.events
            if isinstance(event, SubAgentCompleted)
        }
    assert sorted(spawned) == ["sums", "words"]
    assert completed == {"sums": "You said: What is 6 * 7?", "words": "You said: Say hello."}
    assert "You said: Ask two helpers." in answer
    result = llm.requests[-1].messages[-1].content
    assert result.index("## sums: completed") < result.index("## words: completed")


async def test_stop_ends_the_sub_agents_with_the_turn(tmp_path: Path) -> None:
    never = asyncio.Event()
    llm = llm_of(
        calls("load_tools", groups=["agents"]),
        calls("run_agents", agents=[{"name": "slow", "task": "Wait."}]),
        ScriptedAnswer(chunks=("x",), gate=never),
    )
    async with open_gateway(tmp_path, llm=llm) as harness:
        accepted = await harness.channel.say("Ask a helper.")
        await harness.channel.until(lambda: len(llm.requests) == 3)
        await harness.channel.say("/stop")
        ended = await harness.channel.terminal(accepted.message_id)
        assert isinstance(ended, ErrorEvent)
        assert ended.code == "stopped"
        cancelled = [event.name for event in harness.channel.events if isinstance(event, SubAgentCancelled)]
        assert cancelled == ["slow"]
        assert llm.cancelled == 1


async def _patiently(clock: ManualClock, holds: Callable[[], bool]) -> None:
    """Turn the clock on, little by little, until it holds."""
    for _ in range(2_000):
        if holds():
            return
        await clock.advance(0.1)
        await asyncio.sleep(0.01)
    raise AssertionError("it never came to that")


def _helped(ready: asyncio.Event) -> ScriptedLlm:
    """A conversation with one sub-agent, which says something when it is `ready`."""
    return llm_of(
        calls("load_tools", groups=["agents"]),
        calls("run_agents", agents=[{"name": "slow", "task": "Wait."}]),
        ScriptedAnswer(chunks=("Found it.",), gate=ready),
        "Done.",
    )


async def test_sub_agents_do_not_use_up_the_turns_time(tmp_path: Path) -> None:
    clock, ready = ManualClock(), asyncio.Event()
    settings = ("turn.timeout_s=30", "llm.timeout_s=3600")
    llm = _helped(ready)
    async with open_gateway(tmp_path, *settings, llm=llm, clock=clock) as harness:
        accepted = await harness.channel.say("Ask a helper.")
        await harness.channel.until(lambda: len(llm.requests) == 3)
        await clock.advance(MAX_SECONDS - 60)
        ready.set()
        await _patiently(clock, lambda: bool(harness.channel.sent))
        assert (await harness.channel.reply(accepted.message_id)).text.endswith("Done.")
    assert "Found it." in llm.requests[-1].messages[-1].content


async def test_a_sub_agent_that_takes_too_long_leaves_its_turn_time_to_say_so(tmp_path: Path) -> None:
    clock = ManualClock()
    settings = ("turn.timeout_s=30", "llm.timeout_s=3600")
    llm = _helped(asyncio.Event())
    async with open_gateway(tmp_path, *settings, llm=llm, clock=clock) as harness:
        accepted = await harness.channel.say("Ask a helper.")
        await harness.channel.until(lambda: len(llm.requests) == 3)
        await clock.advance(MAX_SECONDS + 1)
        await _patiently(clock, lambda: bool(harness.channel.sent))
        assert (await harness.channel.reply(accepted.message_id)).text.endswith("Done.")
    assert "longer than 15 minutes" in llm.requests[-1].messages[-1].content
