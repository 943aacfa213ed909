"""A long conversation is summed up while no one speaks: never in the way of a turn, never off its lease."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path

from gateway.storage.jobs import Job
from gateway.storage.ports import Record
from gateway.turns.summarizer import QUIET_S, RETRY_AFTER_S
from pipeline.domain.chat import ChatMessage
from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import ModelRejected
from pipeline.llm.client import LlmItem, LlmRequest
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.harness import GatewayHarness, open_gateway

SETTINGS = ("agent.summarise_above=4", "agent.titles=false", "limits.messages_per_minute=0")
SUMMARY = json.dumps([{"priority": "high", "content": "Ada likes tea."}])
TEXT = "Critical context:\n- Ada likes tea."


async def _say(harness: GatewayHarness, *texts: str, chat: str = "c1") -> None:
    for text in texts:
        accepted = await harness.channel.say(text, chat=chat)
        await harness.channel.reply(accepted.message_id)


async def _quiet(clock: ManualClock, harness: GatewayHarness, seconds: float = QUIET_S + 0.5) -> list[Record]:
    """Let time go by; the summaries there are."""
    for _ in range(20):
        await asyncio.sleep(0.005)  # the store answers from a separate thread
        await clock.advance(seconds / 20)
    return await harness.records("summary")


async def _summed_up(clock: ManualClock, harness: GatewayHarness) -> Record:
    """Let time go by until there is a summary; it is the only one."""
    found = await _quiet(clock, harness)
    async with asyncio.timeout(60):
        while not found:
            found = await _a_little_later(clock, harness)
    (record,) = found
    return record


async def _asked(clock: ManualClock, harness: GatewayHarness, times: int) -> list[Record]:
    """Let time go by until the model was asked so often, and has had its say; the summaries there are."""
    found = await _quiet(clock, harness)
    async with asyncio.timeout(60):
        while len(harness.llm.requests) < times:
            found = await _a_little_later(clock, harness)
    assert len(harness.llm.requests) == times
    return found


async def _a_little_later(clock: ManualClock, harness: GatewayHarness) -> list[Record]:
    # Hardly faster than real time: on a busy machine the leases are renewed late as well.
    await asyncio.sleep(0.05)
    await clock.advance(0.1)
    return await harness.records("summary")


def _script(*more: ScriptedAnswer) -> ScriptedLlm:
    return ScriptedLlm([*(ScriptedAnswer.of(f"answer {number}") for number in range(3)), *more])


async def test_above_the_limit_the_beginning_becomes_a_summary_and_the_next_message_sees_it(
    tmp_path: Path,
) -> None:
    clock, llm = ManualClock(), _script(ScriptedAnswer.of(SUMMARY), ScriptedAnswer.of("yes"))
    async with open_gateway(tmp_path, *SETTINGS, llm=llm, clock=clock) as harness:
        await _say(harness, "one", "two")
        assert await _quiet(clock, harness) == []
        await _say(harness, "three")
        record = await _summed_up(clock, harness)
        assert record.body["text"] == TEXT
        await _say(harness, "four")
        assert await _quiet(clock, harness) == [record]
    assert llm.requests[3].messages[-1].content.startswith("User: one")
    assert llm.requests[4].messages[1:] == (
        ChatMessage(role="system", content=f"[Previous conversation summary: {TEXT}]"),
        ChatMessage(role="user", content="three"),
        ChatMessage(role="assistant", content="answer 2"),
        ChatMessage(role="user", content="four"),
    )


async def test_a_conversation_that_continues_begins_no_summary_after_each_turn(tmp_path: Path) -> None:
    clock, llm = ManualClock(), ScriptedLlm.echo()
    async with open_gateway(tmp_path, *SETTINGS, llm=llm, clock=clock) as harness:
        await _say(harness, "one", "two", "three")
        put_off = await _put_off(harness)
        assert (put_off.kind, put_off.ready) == ("summary", clock.now() + QUIET_S)
        await _say(harness, "five", "six")
        assert await harness.store.jobs.listed(limit=10) == (put_off,)
        await _summed_up(clock, harness)


async def _put_off(harness: GatewayHarness) -> Job:
    """The one job, once a message has come before its work was done."""
    async with asyncio.timeout(60):
        while True:
            await _say(harness, "and more")
            await asyncio.sleep(0.005)
            (job,) = await harness.store.jobs.listed(limit=10)
            if job.fence and not job.claimed:
                return job


async def test_the_summary_outlives_the_process(tmp_path: Path) -> None:
    clock, llm = ManualClock(), _script(ScriptedAnswer.of(SUMMARY))
    async with open_gateway(tmp_path, *SETTINGS, llm=llm, clock=clock) as harness:
        await _say(harness, "one", "two", "three")
        await _summed_up(clock, harness)
    again = ScriptedLlm([ScriptedAnswer.of("yes")])
    async with open_gateway(tmp_path, *SETTINGS, llm=again) as harness:
        await _say(harness, "four")
    assert [message.content for message in again.requests[0].messages[1:3]] == [
        f"[Previous conversation summary: {TEXT}]",
        "three",
    ]


async def test_a_summary_that_a_stop_prevents_is_made_by_the_next_process(tmp_path: Path) -> None:
    clock, llm = ManualClock(), _script()
    async with open_gateway(tmp_path, *SETTINGS, llm=llm, clock=clock) as harness:
        await _say(harness, "one", "two", "three")
    again = ScriptedLlm([ScriptedAnswer.of(SUMMARY)])
    async with open_gateway(tmp_path, *SETTINGS, llm=again, clock=clock) as harness:
        record = await _summed_up(clock, harness)
        assert record.body["text"] == TEXT
    assert len(llm.requests) == 3


async def test_a_message_does_not_wait_for_a_summary_that_is_being_made(tmp_path: Path) -> None:
    never = ScriptedAnswer(chunks=("[",), gate=asyncio.Event())
    clock, llm = ManualClock(), _script(never, ScriptedAnswer.of("at once"))
    async with open_gateway(tmp_path, *SETTINGS, llm=llm, clock=clock) as harness:
        await _say(harness, "one", "two", "three")
        await _asked(clock, harness, 4)
        await _say(harness, "four")
        assert harness.channel.sent[-1].text == "at once"
        assert llm.cancelled == 1
        assert await harness.records("summary") == []
        assert [message.content for message in llm.requests[-1].messages[1::2]] == [
            "one",
            "two",
            "three",
            "four",
        ]


async def test_a_failing_model_loses_nothing_and_is_left_alone_for_a_while(tmp_path: Path) -> None:
    failing = ScriptedAnswer(error=ModelRejected("no"))
    answers = (ScriptedAnswer.of("yes"), ScriptedAnswer.of(SUMMARY))
    clock, llm = ManualClock(), _script(failing, *answers)
    async with open_gateway(tmp_path, *SETTINGS, llm=llm, clock=clock) as harness:
        await _say(harness, "one", "two", "three")
        assert await _asked(clock, harness, 4) == []
        await _say(harness, "four")
        assert await _quiet(clock, harness) == []
        assert [message.content for message in llm.requests[-1].messages[1::2]] == [
            "one",
            "two",
            "three",
            "four",
        ]
        (job,) = await harness.store.jobs.listed(limit=10)
        assert (job.kind, job.attempts, job.error) == ("summary", 1, "ModelRejected: no")
        await clock.advance(RETRY_AFTER_S[0])
        await _summed_up(clock, harness)
        assert await harness.store.jobs.listed(limit=10) == ()


class _Broken(ScriptedLlm):
    """Answers three messages and then fails with an unknown error."""

    def stream(self, request: LlmRequest) -> AsyncGenerator[LlmItem, None]:
        if len(self.requests) == 3:
            self.requests.append(request)
            raise ValueError("a defect")
        return super().stream(request)


async def test_a_defect_in_a_chore_is_not_met_again_and_again(tmp_path: Path) -> None:
    clock, llm = ManualClock(), _Broken()
    async with open_gateway(tmp_path, *SETTINGS, llm=llm, clock=clock) as harness:
        await _say(harness, "one", "two", "three")
        await _asked(clock, harness, 4)
        assert await _quiet(clock, harness, 60) == []
        assert len(llm.requests) == 4
        await _say(harness, "four")
        assert len(llm.requests) == 5


async def test_another_chat_is_not_summed_up_with_it(tmp_path: Path) -> None:
    clock, llm = ManualClock(), ScriptedLlm.echo()
    async with open_gateway(tmp_path, *SETTINGS, llm=llm, clock=clock) as harness:
        await _say(harness, "one", chat="a")
        await _say(harness, "one", "two", chat="b")
        await _quiet(clock, harness)
        assert await harness.records("summary", thread="console:local:a") == []
        assert await harness.records("summary", thread="console:local:b") == []
