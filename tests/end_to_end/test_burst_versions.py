"""/retry and /undo of a turn that answered several messages: each concerns all of them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from pipeline.domain.chat import ToolCall
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.burst_talk import held_answer, scripted
from tests.support.harness import GatewayHarness, open_gateway

MERGE, STEER = "turn.bursts=merge", "turn.while_busy=steer"


async def _two_in_one_turn(harness: GatewayHarness) -> None:
    asked = len(harness.llm.requests)
    first = await harness.channel.say("red")
    await harness.channel.until(lambda: len(harness.llm.requests) > asked)
    await harness.channel.say("blue", at=1.0)
    assert (await harness.channel.reply(first.message_id)).text == "Both."


async def _say(harness: GatewayHarness, text: str) -> str:
    said = await harness.channel.say(text, at=60)
    return (await harness.channel.reply(said.message_id)).text


def _seen(llm: ScriptedLlm, number: int) -> list[str]:
    return [message.content for message in llm.requests[number].messages[1:]]


async def test_a_retry_answers_all_messages_of_the_turn_again_and_replaces_the_answer(tmp_path: Path) -> None:
    held, _ = held_answer()
    llm = scripted(held, "Both.", "Again.", "Later.")
    async with open_gateway(tmp_path, MERGE, llm=llm) as harness:
        await _two_in_one_turn(harness)
        assert await _say(harness, "/retry") == "Again."
        assert await _say(harness, "and now?") == "Later."
    assert _seen(llm, 2) == ["red\nblue"]
    assert _seen(llm, 3) == ["red\nblue", "Again.", "and now?"]


async def test_a_retry_after_a_restart_finds_all_messages_of_the_turn(tmp_path: Path) -> None:
    held, _ = held_answer()
    async with open_gateway(tmp_path, MERGE, llm=scripted(held, "Both.")) as harness:
        await _two_in_one_turn(harness)
    llm = scripted("Again.", "Once more.", "Later.")
    async with open_gateway(tmp_path, MERGE, llm=llm) as harness:
        assert await _say(harness, "/retry") == "Again."
        assert await _say(harness, "/retry") == "Once more."
        assert await _say(harness, "and now?") == "Later."
    assert [_seen(llm, number) for number in (0, 1)] == [["red\nblue"]] * 2
    assert _seen(llm, 2) == ["red\nblue", "Once more.", "and now?"]


async def test_a_retry_has_the_words_that_steered_the_run_and_has_them_once(tmp_path: Path) -> None:
    gate = asyncio.Event()
    reads = ToolCall(id="c1", name="load_tools", arguments='{"groups": ["notes"]}')
    tool = ScriptedAnswer(chunks=("Let me look.",), gate=gate, gate_at=1, calls=(reads,))
    llm = scripted(tool, "For Paris.", "Again.")
    async with open_gateway(tmp_path, MERGE, STEER, llm=llm) as harness:
        channel = harness.channel
        first = await channel.say("the weather in Rome")
        await channel.until(lambda: any(one.type == "llm_token" for one in channel.events))
        await channel.say("I mean Paris", at=30)
        gate.set()
        await channel.terminal(first.message_id)
        assert await _say(harness, "/retry") == "Again."
    later = scripted("Later.")
    async with open_gateway(tmp_path, MERGE, STEER, llm=later) as harness:
        assert await _say(harness, "thanks") == "Later."
    both = "the weather in Rome\nI mean Paris"
    assert _seen(llm, 2) == [both]
    assert _seen(later, 0) == [both, "Again.", "thanks"]


async def test_undo_takes_all_messages_of_the_turn_out_of_the_conversation_and_marks_them(
    tmp_path: Path,
) -> None:
    held, _ = held_answer()
    llm = scripted(held, "Both.", "Later.")
    async with open_gateway(tmp_path, MERGE, llm=llm) as harness:
        await _two_in_one_turn(harness)
        await _say(harness, "/undo")
        assert await _say(harness, "and now?") == "Later."
        exported = await _say(harness, "/export jsonl")
    assert _seen(llm, 2) == ["and now?"]
    lines = [json.loads(line) for line in exported.splitlines() if line.startswith("{")]
    out = {line["text"] for line in lines if line.get("taken_out")}
    assert out == {"red", "blue", "Both."}
