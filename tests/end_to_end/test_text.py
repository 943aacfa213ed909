"""One typed message the whole way: accepted, recorded, answered, committed, delivered, receipted.

Covers: gateway/delivery/event_router.py, gateway/turns/sessions.py, gateway/turns/journal.py,
pipeline/agent/node.py, pipeline/agent/model_messages.py, pipeline/service.py, pipeline/topologies.py.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from gateway.storage.ports import Committed, Lease, TurnCommit
from gateway.storage.sqlite import SqliteStore
from gateway.turns.run_codec import from_rows
from pipeline.domain.chat import ChatMessage
from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import ModelRejected, ModelUnavailable
from pipeline.domain.events import ErrorEvent, LlmToken, PipelineEvent, ResponseComplete
from pipeline.domain.ids import ThreadKey
from pipeline.domain.ports import EventSender
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.channel import MemoryChannel, types_of
from tests.support.harness import THREAD, open_gateway


async def test_a_message_is_answered_with_events_in_order_and_a_receipt(tmp_path: Path) -> None:
    async with open_gateway(tmp_path, llm=ScriptedLlm([ScriptedAnswer.of("Hello my friend")])) as harness:
        accepted = await harness.channel.say("hi")
        done = await harness.channel.terminal(accepted.message_id)
        reply = await harness.channel.reply(accepted.message_id)

        events = harness.channel.events_of(accepted.message_id)
        assert types_of(event for event in events if not isinstance(event, LlmToken)) == [
            "turn_started",
            "node_started",
            "node_completed",
            "node_started",
            "node_completed",
            "response_complete",
        ]
        tokens = [event for event in events if isinstance(event, LlmToken)]
        assert "".join(token.text for token in tokens) == "Hello my friend"
        lengths = [len(token.text) for token in tokens]
        assert [token.offset for token in tokens] == [sum(lengths[:at]) for at in range(len(tokens))]
        assert isinstance(done, ResponseComplete)
        assert done.content == reply.text == "Hello my friend"
        assert done.entry_id == reply.entry_id

        kinds = [record.kind for record in await harness.records()]
        assert kinds == ["session", "user", "step", "assistant"]


async def test_the_receipt_is_recorded_and_nothing_stays_open(tmp_path: Path) -> None:
    async with open_gateway(tmp_path) as harness:
        accepted = await harness.channel.say("hi")
        await harness.channel.reply(accepted.message_id)
    async with open_gateway(tmp_path) as again:
        assert await again.store.outbox_open() == ()
        assert await again.store.open_threads() == ()
        counts = await again.store.counts()
        assert (counts.inbox_done, counts.outbox_open) == (1, 0)
        assert again.channel.sent == []


async def test_the_user_message_is_durable_before_the_model_is_asked(tmp_path: Path) -> None:
    gate = asyncio.Event()
    llm = ScriptedLlm([ScriptedAnswer(chunks=("ok",), gate=gate)])
    async with open_gateway(tmp_path, llm=llm) as harness:
        accepted = await harness.channel.say("remember me")
        await harness.channel.until(lambda: llm.requests)
        assert [one.body["text"] for one in await harness.store.open_entries(THREAD)] == ["remember me"]
        gate.set()
        await harness.channel.terminal(accepted.message_id)
        assert [record.body["text"] for record in await harness.records("user")] == ["remember me"]


async def test_the_model_sees_the_conversation_and_the_new_message_exactly_once(tmp_path: Path) -> None:
    llm = ScriptedLlm([ScriptedAnswer.of("first answer"), ScriptedAnswer.of("second answer")])
    async with open_gateway(tmp_path, llm=llm) as harness:
        for text in ("first question", "second question"):
            accepted = await harness.channel.say(text)
            await harness.channel.terminal(accepted.message_id)
    assert llm.requests[1].messages[1:] == (
        ChatMessage(role="user", content="first question"),
        ChatMessage(role="assistant", content="first answer"),
        ChatMessage(role="user", content="second question"),
    )


async def test_a_restart_in_between_does_not_change_what_the_model_sees(tmp_path: Path) -> None:
    async with open_gateway(tmp_path, llm=ScriptedLlm([ScriptedAnswer.of("first answer")])) as harness:
        await harness.channel.terminal((await harness.channel.say("first question")).message_id)
    llm = ScriptedLlm([ScriptedAnswer.of("second answer")])
    async with open_gateway(tmp_path, llm=llm) as harness:
        await harness.channel.terminal((await harness.channel.say("second question")).message_id)
    assert [message.content for message in llm.requests[0].messages[1:]] == [
        "first question",
        "first answer",
        "second question",
    ]


async def test_messages_of_one_thread_are_answered_in_order_one_at_a_time(tmp_path: Path) -> None:
    async with open_gateway(tmp_path) as harness:
        accepted = [await harness.channel.say(f"message {number}") for number in range(6)]
        for one in accepted:
            await harness.channel.reply(one.message_id)
        assert [reply.text for reply in harness.channel.sent] == [f"You said: message {n}" for n in range(6)]
        ends = [event.message_id for event in harness.channel.events if event.is_terminal]
        starts = [event.message_id for event in harness.channel.events if event.type == "turn_started"]
        assert ends == starts == [one.message_id for one in accepted]


async def test_a_thread_that_hangs_does_not_hold_up_another(tmp_path: Path) -> None:
    gate = asyncio.Event()
    llm = ScriptedLlm([ScriptedAnswer(chunks=("late",), gate=gate), ScriptedAnswer.of("at once")])
    async with open_gateway(tmp_path, llm=llm) as harness:
        slow = await harness.channel.say("slow one", chat="a")
        await harness.channel.until(lambda: llm.requests)
        quick = await harness.channel.say("quick one", chat="b")
        assert (await harness.channel.reply(quick.message_id)).text == "at once"
        assert not any(event.is_terminal for event in harness.channel.events_of(slow.message_id))
        gate.set()
        assert (await harness.channel.reply(slow.message_id)).text == "late"


async def test_a_redelivery_is_recognised_and_answered_once(tmp_path: Path) -> None:
    async with open_gateway(tmp_path) as harness:
        first = await harness.channel.say("hi", native_id="n1")
        again = await harness.channel.say("hi", native_id="n1")
        await harness.channel.reply(first.message_id)
        late = await harness.channel.say("hi", native_id="n1")
        other = await harness.channel.say("bye", native_id="n2")
        await harness.channel.reply(other.message_id)
        assert [first.status, again.status, late.status] == ["accepted", "duplicate", "duplicate"]
        assert first.message_id == again.message_id == late.message_id
        assert len(harness.llm.requests) == 2


@pytest.mark.parametrize(
    ("error", "code", "recoverable"),
    [
        (ModelUnavailable("The model is not reachable."), "model_unavailable", True),
        (ModelRejected("The key is wrong; check llm.api_key."), "model_rejected", False),
    ],
)
async def test_a_failing_model_ends_the_turn_visibly_and_the_next_one_works(
    tmp_path: Path, error: ModelUnavailable, code: str, recoverable: bool
) -> None:
    llm = ScriptedLlm([ScriptedAnswer(chunks=("part ", "two"), error=error, fail_at=1)])
    async with open_gateway(tmp_path, llm=llm) as harness:
        failed = await harness.channel.say("hi")
        event = await harness.channel.terminal(failed.message_id)
        assert isinstance(event, ErrorEvent)
        assert (event.code, event.message, event.recoverable) == (code, str(error), recoverable)
        assert (await harness.channel.reply(failed.message_id)).role == "error"
        partial = await harness.records("assistant")
        assert [record.body for record in partial] == [{"text": "part", "partial": True}]
        fine = await harness.channel.say("again")
        assert (await harness.channel.reply(fine.message_id)).text == "You said: again"


async def test_an_empty_answer_is_an_error_in_words(tmp_path: Path) -> None:
    llm = ScriptedLlm([ScriptedAnswer(chunks=(" ", "\n"))])
    async with open_gateway(tmp_path, llm=llm) as harness:
        accepted = await harness.channel.say("hi")
        event = await harness.channel.terminal(accepted.message_id)
        assert isinstance(event, ErrorEvent)
        assert "empty answer" in event.message


async def test_an_answer_cut_at_its_limit_says_so(tmp_path: Path) -> None:
    llm = ScriptedLlm([ScriptedAnswer(chunks=("very long",), finish_reason="length")])
    async with open_gateway(tmp_path, llm=llm) as harness:
        accepted = await harness.channel.say("hi")
        reply = await harness.channel.reply(accepted.message_id)
        tokens = [e.text for e in harness.channel.events_of(accepted.message_id) if isinstance(e, LlmToken)]
        assert reply.text == "very long\n\n[The answer reached its length limit.]"
        assert "".join(tokens) == reply.text


async def test_a_turn_that_takes_too_long_ends_with_words(tmp_path: Path) -> None:
    llm = ScriptedLlm([ScriptedAnswer(chunks=("never",), gate=asyncio.Event())])
    clock = ManualClock()
    async with open_gateway(tmp_path, "turn.timeout_s=1", llm=llm, clock=clock) as harness:
        accepted = await harness.channel.say("hi")
        await harness.channel.until(lambda: llm.requests)
        await clock.advance(1)
        event = await harness.channel.terminal(accepted.message_id)
        assert isinstance(event, ErrorEvent)
        assert event.code == "timeout"
        assert "longer than 1 seconds" in event.message
        assert llm.cancelled == 1


async def test_a_long_history_is_cut_to_the_window_and_the_newest_survives(tmp_path: Path) -> None:
    llm = ScriptedLlm.echo()
    async with open_gateway(tmp_path, "llm.context_tokens=1000", "llm.max_tokens=100", llm=llm) as harness:
        for number in range(12):
            accepted = await harness.channel.say(f"{number} " + "x" * 300)
            await harness.channel.terminal(accepted.message_id)
        last = llm.requests[-1].messages
        assert last[-1].content.startswith("11 ")
        assert last[-2].role == "assistant"
        assert sum(message.tokens for message in last) <= 1000 - 100
        said = [message for message in last if message.role == "user"]
        assert 1 < len(said) < 12
        records = [step for row in await harness.records("step") for step in from_rows(row.body) if step]
        intakes = [step for step in records if step.get("node") == "intake"]
        assert intakes[-1]["update"]["intake"]["long"]
        assert max(len(str(step)) for step in intakes) < 600


def _lines(caplog: pytest.LogCaptureFixture, event: str) -> list[dict[str, object]]:
    return [vars(record) for record in caplog.records if record.getMessage() == event]


async def test_every_turn_leaves_its_run_and_its_outcome_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    llm = ScriptedLlm([ScriptedAnswer.of("fine"), ScriptedAnswer(error=ModelUnavailable("It is away."))])
    async with open_gateway(tmp_path, llm=llm) as harness:
        for text in ("one", "two"):
            await harness.channel.terminal((await harness.channel.say(text)).message_id)
    ended = _lines(caplog, "turn ended")
    assert [line["outcome"] for line in ended] == ["answered", "error"]
    runs = [str(line["run_id"]) for line in ended]
    assert len(set(runs)) == 2
    assert all(run.startswith("run_") for run in runs)
    (failure,) = _lines(caplog, "the model gave no answer")
    assert (failure["code"], failure["reason"]) == ("model_unavailable", "It is away.")


async def test_a_channel_that_cannot_show_events_still_gets_its_answer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(MemoryChannel):
        def sender_for(self, thread: ThreadKey) -> EventSender:
            return _Throws()

    async with open_gateway(tmp_path, channel=Broken()) as harness:
        accepted = await harness.channel.say("hi")
        assert (await harness.channel.reply(accepted.message_id)).text == "You said: hi"
    assert "a channel failed to show an event" in caplog.text


class _Throws:
    async def send_event(self, event: PipelineEvent) -> None:
        raise ConnectionResetError(event.type)


class _TellsOfCommits(SqliteStore):
    committed: asyncio.Event

    async def commit_turn(self, lease: Lease, commit: TurnCommit) -> Committed:
        done = await super().commit_turn(lease, commit)
        self.committed.set()
        return done


async def test_an_answer_for_a_channel_that_is_gone_waits_in_the_outbox(tmp_path: Path) -> None:
    class Elsewhere(MemoryChannel):
        account = "another"

    llm = ScriptedLlm([ScriptedAnswer(chunks=("x",), gate=asyncio.Event())])
    async with open_gateway(tmp_path, llm=llm, drain_s=0) as harness:
        accepted = await harness.channel.say("hi")
        await harness.channel.until(lambda: llm.requests)
    store = _TellsOfCommits(tmp_path / "parlour.sqlite3", synchronous="NORMAL")
    store.committed = asyncio.Event()
    async with open_gateway(tmp_path, channel=Elsewhere(), store=store) as harness:
        await store.committed.wait()
        assert harness.channel.sent == []
    async with open_gateway(tmp_path) as harness:
        assert (await harness.channel.reply(accepted.message_id)).text == "You said: hi"
        assert harness.llm.requests == []
