"""After an interruption: everything accepted is finished, once, from where it stood.

Covers: gateway/storage/sqlite/threads.py.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from adapters.channel import Failure
from gateway.delivery.poster import REPEAT_LABEL
from gateway.storage.ports import Lease, NewRecord, TurnCommit
from gateway.storage.sqlite import SqliteStore
from pipeline.domain.chat import ToolCall
from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import FenceLost, StorageError
from pipeline.domain.events import ErrorEvent, LlmToken
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.channel import MemoryChannel, types_of
from tests.support.harness import THREAD, GatewayHarness, open_gateway


def _never() -> ScriptedAnswer:
    return ScriptedAnswer(chunks=("never",), gate=asyncio.Event())


async def test_an_interrupted_turn_is_answered_after_the_restart_without_running_intake_again(
    tmp_path: Path,
) -> None:
    llm = ScriptedLlm([_never()])
    async with open_gateway(tmp_path, llm=llm, drain_s=0) as harness:
        accepted = await harness.channel.say("hi")
        await harness.channel.until(lambda: llm.requests)
    async with open_gateway(tmp_path) as harness:
        reply = await harness.channel.reply(accepted.message_id)
        assert reply.text == "You said: hi"
        started = [e for e in types_of(harness.channel.events_of(accepted.message_id)) if e == "node_started"]
        assert len(started) == 1
        kinds = [record.kind for record in await harness.records()]
        assert kinds == ["session", "user", "step", "assistant"]


async def test_everything_queued_is_answered_in_order_after_the_restart(tmp_path: Path) -> None:
    llm = ScriptedLlm([_never()])
    async with open_gateway(tmp_path, llm=llm, drain_s=0) as harness:
        accepted = [await harness.channel.say(f"m{number}") for number in range(4)]
        await harness.channel.until(lambda: llm.requests)
    async with open_gateway(tmp_path) as harness:
        for one in accepted:
            await harness.channel.reply(one.message_id)
        assert [reply.text for reply in harness.channel.sent] == [f"You said: m{n}" for n in range(4)]


async def test_a_drain_lets_the_running_turn_finish_and_refuses_new_ones(tmp_path: Path) -> None:
    gate = asyncio.Event()
    llm = ScriptedLlm([ScriptedAnswer(chunks=("done",), gate=gate)])
    async with open_gateway(tmp_path, llm=llm) as harness:
        accepted = await harness.channel.say("hi")
        await harness.channel.until(lambda: llm.requests)
        async with asyncio.TaskGroup() as group:
            stopping = group.create_task(harness.gateway.stop(10))
            await asyncio.sleep(0)
            with pytest.raises(StorageError, match="shutting down"):
                await harness.channel.say("too late")
            gate.set()
        assert stopping.result() is True
        assert [reply.message_id for reply in harness.channel.sent] == [accepted.message_id]


async def test_a_turn_that_still_runs_halts_before_its_next_node_and_goes_from_there_after_the_restart(
    tmp_path: Path,
) -> None:
    gate, load = asyncio.Event(), ToolCall(id="c1", name="load_tools", arguments='{"groups": ["notes"]}')
    llm = ScriptedLlm([ScriptedAnswer(calls=(load,), gate=gate), ScriptedAnswer.of("too soon")])
    async with open_gateway(tmp_path, llm=llm) as harness:
        accepted = await harness.channel.say("hi")
        await harness.channel.until(lambda: llm.requests)
        async with asyncio.TaskGroup() as group:
            stopping = group.create_task(harness.gateway.stop(60, halt_after_s=0))
            await asyncio.sleep(0)
            with pytest.raises(StorageError, match="shutting down"):
                await harness.channel.say("too late")
            gate.set()
        assert stopping.result() is False, "it waits for the next start"
        assert harness.channel.sent == []
    assert len(llm.requests) == 1, "the call in progress was finished, and none began"
    llm = ScriptedLlm([ScriptedAnswer.of("done")])
    async with open_gateway(tmp_path, llm=llm) as harness:
        assert (await harness.channel.reply(accepted.message_id)).text == "done"
        roles = [message.role for message in llm.requests[0].messages]
        assert roles[-2:] == ["assistant", "tool"], "the first call is not made again"


async def test_a_turn_off_the_record_does_not_halt_as_its_steps_are_not_recorded(tmp_path: Path) -> None:
    gate, load = asyncio.Event(), ToolCall(id="c1", name="load_tools", arguments='{"groups": ["system"]}')
    llm = ScriptedLlm([ScriptedAnswer(calls=(load,), gate=gate), ScriptedAnswer.of("done")])
    async with open_gateway(tmp_path, llm=llm) as harness:
        await harness.channel.reply((await harness.channel.say("/otr")).message_id)
        accepted = await harness.channel.say("hi")
        await harness.channel.until(lambda: llm.requests)
        async with asyncio.TaskGroup() as group:
            stopping = group.create_task(harness.gateway.stop(60, halt_after_s=0))
            await asyncio.sleep(0)
            gate.set()
        assert stopping.result() is True
        assert (await harness.channel.reply(accepted.message_id)).text == "done"


async def _cut_off_by_a_crash(harness: GatewayHarness) -> None:
    """Leave the attempt open in the store, as a process that dies does."""
    entry = await harness.store.next_entry(THREAD)
    assert entry is not None
    await harness.store.close()


async def test_a_message_that_took_the_process_down_three_times_is_set_aside_and_the_next_is_answered(
    tmp_path: Path,
) -> None:
    poison = ""
    for _ in range(3):
        llm = ScriptedLlm([_never()])
        async with open_gateway(tmp_path, llm=llm, drain_s=0) as harness:
            poison = poison or (await harness.channel.say("poison")).message_id
            await harness.channel.until(lambda seen=llm: seen.requests)
            await _cut_off_by_a_crash(harness)
    async with open_gateway(tmp_path) as harness:
        event = await harness.channel.terminal(poison)
        assert isinstance(event, ErrorEvent)
        assert event.code == "gave_up"
        assert "3 times" in event.message
        fine = await harness.channel.say("fine")
        assert (await harness.channel.reply(fine.message_id)).text == "You said: fine"


async def test_messages_at_work_together_are_not_set_aside_however_often_the_process_dies(
    tmp_path: Path,
) -> None:
    sent: list[str] = []
    for _ in range(3):
        llm = ScriptedLlm([_never(), _never()])
        async with open_gateway(tmp_path, llm=llm, drain_s=0) as harness:
            if not sent:
                sent = [
                    (await harness.channel.say(f"to {chat}", chat=chat)).message_id for chat in ("c1", "c2")
                ]
            await harness.channel.until(lambda seen=llm: len(seen.requests) == 2)
            await _cut_off_by_a_crash(harness)
    for _ in range(4):
        llm = ScriptedLlm([_never(), _never()])
        async with open_gateway(tmp_path, llm=llm, drain_s=0) as harness:
            await harness.channel.until(lambda seen=llm: len(seen.requests) == 1)
            await _cut_off_by_a_crash(harness)
    # Of four deaths alone, each has had two: they take turns.
    async with open_gateway(tmp_path) as harness:
        answers = [(await harness.channel.reply(message_id)).text for message_id in sent]
        assert answers == ["You said: to c1", "You said: to c2"]


async def test_of_two_messages_only_the_one_that_the_process_dies_of_is_set_aside(tmp_path: Path) -> None:
    ids: dict[str, str] = {}
    for _ in range(3):
        llm = ScriptedLlm([_never(), _never()])
        async with open_gateway(tmp_path, llm=llm, drain_s=0) as harness:
            for chat, text in (("c1", "poison"), ("c2", "harmless")):
                if text not in ids:
                    ids[text] = (await harness.channel.say(text, chat=chat)).message_id
            await harness.channel.until(lambda seen=llm: len(seen.requests) == 2)
            await _cut_off_by_a_crash(harness)
    # The first is alone, and the process dies; then the other one is, and it does not.
    llm = ScriptedLlm([_never()])
    async with open_gateway(tmp_path, llm=llm, drain_s=0) as harness:
        await harness.channel.until(lambda: llm.requests)
        await _cut_off_by_a_crash(harness)
    llm = ScriptedLlm([ScriptedAnswer.of("fine"), _never()])
    async with open_gateway(tmp_path, llm=llm, drain_s=0) as harness:
        assert (await harness.channel.reply(ids["harmless"])).text == "fine"
        await harness.channel.until(lambda: len(llm.requests) == 2)
        await _cut_off_by_a_crash(harness)
    llm = ScriptedLlm([_never()])
    async with open_gateway(tmp_path, llm=llm, drain_s=0) as harness:
        await harness.channel.until(lambda: llm.requests)
        await _cut_off_by_a_crash(harness)
    async with open_gateway(tmp_path) as harness:
        event = await harness.channel.terminal(ids["poison"])
        assert isinstance(event, ErrorEvent)
        assert event.code == "gave_up"


async def test_a_new_message_waits_for_those_that_are_taken_up_one_at_a_time(tmp_path: Path) -> None:
    for _ in range(3):
        llm = ScriptedLlm([_never(), _never()])
        async with open_gateway(tmp_path, llm=llm, drain_s=0) as harness:
            if not await harness.store.open_threads():
                for chat in ("c1", "c2"):
                    await harness.channel.say(f"to {chat}", chat=chat)
            await harness.channel.until(lambda seen=llm: len(seen.requests) == 2)
            await _cut_off_by_a_crash(harness)
    gate = asyncio.Event()
    slow = ScriptedAnswer(chunks=("slowly",), gate=gate)
    llm = ScriptedLlm([slow, ScriptedAnswer.of("then"), ScriptedAnswer.of("last")])
    async with open_gateway(tmp_path, llm=llm) as harness:
        new = await harness.channel.say("new", chat="c3")
        await harness.channel.until(lambda: llm.requests)
        gate.set()
        assert (await harness.channel.reply(new.message_id)).text == "last"
    assert [request.messages[-1].content for request in llm.requests] == ["to c1", "to c2", "new"]


async def test_restarts_in_the_middle_of_an_answer_are_not_the_messages_fault(tmp_path: Path) -> None:
    patient = ""
    for _ in range(5):
        llm = ScriptedLlm([_never()])
        async with open_gateway(tmp_path, llm=llm, drain_s=0) as harness:
            patient = patient or (await harness.channel.say("be patient")).message_id
            await harness.channel.until(lambda seen=llm: seen.requests)
    async with open_gateway(tmp_path) as harness:
        assert (await harness.channel.reply(patient)).text == "You said: be patient"


async def test_the_beginning_of_an_answer_is_shown_again_before_the_rest(tmp_path: Path) -> None:
    load = ToolCall(id="l", name="load_tools", arguments='{"groups": ["files"]}')
    llm = ScriptedLlm([ScriptedAnswer.calling(load, text="One moment."), _never()])
    async with open_gateway(tmp_path, llm=llm, drain_s=0) as harness:
        asked = await harness.channel.say("what is there?")
        await harness.channel.until(lambda: len(llm.requests) == 2)
    llm = ScriptedLlm([ScriptedAnswer.of("There is nothing.")])
    async with open_gateway(tmp_path, llm=llm) as harness:
        reply = await harness.channel.reply(asked.message_id)
        events = harness.channel.events_of(asked.message_id)
        assert "".join(event.text for event in events if isinstance(event, LlmToken)) == reply.text
        assert reply.text == "One moment.\n\nThere is nothing."


async def test_what_was_left_leaves_before_what_is_new(tmp_path: Path) -> None:
    channel, clock = MemoryChannel(), ManualClock()
    channel.failures.append(Failure(kind="rate_limit", message="slow down", retry_after_s=5.0))
    llm = ScriptedLlm([ScriptedAnswer.of("older"), _never()])
    async with open_gateway(tmp_path, llm=llm, channel=channel, clock=clock, drain_s=0) as harness:
        first = await harness.channel.say("first")
        await harness.channel.terminal(first.message_id)
        await harness.channel.say("second")
        await harness.channel.until(lambda: len(llm.requests) == 2)
    async with open_gateway(tmp_path, clock=clock) as harness:
        third = await harness.channel.say("third")
        await harness.channel.terminal(third.message_id)
        await clock.advance(5.0)
        await harness.channel.reply(third.message_id)
        assert [reply.text for reply in harness.channel.sent] == [
            "older",
            "You said: second",
            "You said: third",
        ]


async def test_an_owner_that_lost_its_lease_writes_nothing_and_the_new_owner_answers(
    tmp_path: Path,
) -> None:
    gate = asyncio.Event()
    llm = ScriptedLlm([ScriptedAnswer(chunks=("stale",), gate=gate), ScriptedAnswer.of("fresh")])
    async with open_gateway(tmp_path, llm=llm) as harness:
        accepted = await harness.channel.say("hi")
        await harness.channel.until(lambda: llm.requests)
        await harness.store.break_leases()
        stolen = await harness.store.acquire_lease(THREAD, "somebody else", ttl_s=0.2, now=0.0)
        assert stolen is not None
        gate.set()
        reply = await harness.channel.reply(accepted.message_id)
        assert reply.text == "fresh"
        assert [r.body["text"] for r in await harness.records("assistant")] == ["fresh"]


async def test_a_commit_with_a_stale_fence_leaves_no_trace(tmp_path: Path) -> None:
    llm = ScriptedLlm([_never()])
    async with open_gateway(tmp_path, llm=llm, drain_s=0) as harness:
        await harness.channel.say("hi")
        await harness.channel.until(lambda: llm.requests)
        entry = await harness.store.next_entry(THREAD)
        assert entry is not None
        await harness.store.break_leases()
        first = await harness.store.acquire_lease(THREAD, "one", ttl_s=10, now=0.0)
        await harness.store.break_leases()
        second = await harness.store.acquire_lease(THREAD, "two", ttl_s=10, now=0.0)
        assert first is not None
        assert second is not None
        record = NewRecord(kind="assistant", session_id="s", message_id="m", body={"text": "x"}, at=0.0)
        before = await harness.records()
        commit = TurnCommit(seq=entry.seq, outcome="answered", records=(record,))
        with pytest.raises(FenceLost):
            await harness.store.commit_turn(first, commit)
        assert await harness.records() == before


async def test_a_reply_that_could_not_be_sent_is_delivered_after_the_restart(tmp_path: Path) -> None:
    channel, clock = MemoryChannel(), ManualClock()
    channel.failures.append(Failure(kind="rate_limit", message="slow down", retry_after_s=60.0))
    async with open_gateway(tmp_path, channel=channel, clock=clock, drain_s=0.1) as harness:
        accepted = await harness.channel.say("hi")
        await _put_off(harness)
    assert channel.sent == []
    async with open_gateway(tmp_path, clock=clock) as harness:
        await clock.advance(59)
        assert harness.channel.sent == [], "the platform's word counts for the next process too"
        await clock.advance(1)
        assert (await harness.channel.reply(accepted.message_id)).text == "You said: hi"
        assert harness.llm.requests == []


async def _put_off(harness: GatewayHarness) -> None:
    """Return when the refusal of the one reply is on record."""
    async with asyncio.timeout(60):
        while not any(row.not_before for row in await harness.store.outbox_open()):  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.01)


async def test_a_send_whose_outcome_is_unknown_is_repeated_with_a_label_where_it_may_show_twice(
    tmp_path: Path,
) -> None:
    unknown = Failure(kind="transient", message="connection lost", maybe_delivered=True, retry_after_s=0.01)
    for idempotent, expected in ((True, "You said: hi"), (False, REPEAT_LABEL + "You said: hi")):
        channel = MemoryChannel(idempotent=idempotent)
        channel.failures.append(unknown)
        async with open_gateway(tmp_path / str(idempotent), channel=channel) as harness:
            accepted = await harness.channel.say("hi")
            assert (await harness.channel.reply(accepted.message_id)).text == expected


class _ForgetfulStore(SqliteStore):
    """Fails each kind of receipt once, as a disk that is full for a moment does."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, synchronous="NORMAL")
        self.failing = {"retry", "sent"}

    async def mark_retry(
        self, lease: Lease, row_id: int, error: str, not_before: float, *, maybe_sent: bool = False
    ) -> None:
        self._fail_once("retry")
        await super().mark_retry(lease, row_id, error, not_before, maybe_sent=maybe_sent)

    async def mark_sent(
        self, lease: Lease, row_id: int, receipt: str, at: float, *, forget: bool = False
    ) -> None:
        self._fail_once("sent")
        await super().mark_sent(lease, row_id, receipt, at, forget=forget)

    def _fail_once(self, what: str) -> None:
        if what in self.failing:
            self.failing.remove(what)
            raise StorageError("the disk is full")


async def test_a_store_that_fails_for_a_moment_neither_ends_a_queue_nor_repeats_a_reply(
    tmp_path: Path,
) -> None:
    channel = MemoryChannel(idempotent=False)
    channel.failures.append(Failure(kind="transient", message="try again", retry_after_s=0.01))
    store = _ForgetfulStore(tmp_path / "parlour.sqlite3")
    async with open_gateway(tmp_path, channel=channel, store=store) as harness:
        await harness.channel.say("first")
        second = await harness.channel.say("second")
        await harness.channel.reply(second.message_id)
        assert [reply.text for reply in channel.sent] == ["You said: first", "You said: second"]
        assert store.failing == set()


async def test_an_adapter_that_cannot_classify_its_error_does_not_end_its_queue(tmp_path: Path) -> None:
    class Clumsy(MemoryChannel):
        def classify(self, error: Exception) -> Failure:
            raise KeyError("no such error")

    channel = Clumsy()
    channel.failures.append(Failure(kind="transient", message="x"))
    async with open_gateway(tmp_path, channel=channel) as harness:
        first = await harness.channel.say("first")
        assert (await harness.channel.reply(first.message_id)).text == "You said: first"


async def test_a_reply_that_the_platform_refuses_for_good_is_given_up_and_the_queue_continues(
    tmp_path: Path,
) -> None:
    channel = MemoryChannel()
    channel.failures.append(Failure(kind="permission", message="the bot was removed"))
    async with open_gateway(tmp_path, channel=channel) as harness:
        await harness.channel.say("first")
        second = await harness.channel.say("second")
        await harness.channel.reply(second.message_id)
        assert [reply.text for reply in channel.sent] == ["You said: second"]
        row = await harness.store.outbox_row(1)
        assert row is not None
        assert (row.state, row.error) == ("failed", "the bot was removed")
