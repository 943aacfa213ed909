"""Replies on a posting channel: shown once, in order, whatever the platform does; previews and questions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from adapters.channel import OutboundReply, Resolution
from gateway.delivery import Delivery
from gateway.failpoints import Failpoints
from gateway.lanes import Lanes
from gateway.live import LiveReplies, Origin
from gateway.posting import REPEAT_LABEL, Posting
from gateway.storage.memory import MemoryStore
from gateway.storage.ports import NewEntry, NewOutboxRow, NewRecord, OutboxRow, ShownPart, TurnCommit
from gateway.tasks import Supervisor
from gateway.telemetry import Telemetry
from gateway.timeline import StoreTimeline
from pipeline.domain.clock import ManualClock
from pipeline.domain.events import (
    ApprovalRequired,
    ErrorEvent,
    LlmToken,
    ResponseComplete,
    TranscriptReady,
    TurnStarted,
)
from tests.support.posting_channel import MemoryPosts, refusal

RESOLUTIONS: tuple[Resolution, ...] = ("placeholder", "nonce", "lookup", "none")


@dataclass(kw_only=True)
class Desk:
    """The way out of a gateway, over a store that outlives it."""

    channel: MemoryPosts
    store: MemoryStore
    clock: ManualClock
    delivery: Delivery
    live: LiveReplies
    supervisor: Supervisor

    async def reply(self, text: str, *, message_id: str = "m1", **body: Any) -> OutboundReply:
        """A reply that a turn has committed, not yet handed to the delivery."""
        thread = self.channel.thread().encode()
        accepted = await self.store.accept(
            NewEntry(
                dedupe_key=message_id,
                thread=thread,
                message_id=message_id,
                kind="message",
                body={},
                received_at=self.clock.now(),
            )
        )
        lease = await self.store.acquire_lease(thread, "me", ttl_s=30, now=self.clock.now())
        assert lease is not None
        now = self.clock.now()
        record = NewRecord(
            kind="assistant", session_id="s", message_id=message_id, body={"text": text}, at=now
        )
        row = NewOutboxRow(
            key=message_id, message_id=message_id, body={"role": "assistant", **body}, created_at=now
        )
        commit = TurnCommit(seq=accepted.seq, outcome="answered", records=(record,), outbox=(row,), at=now)
        committed = await self.store.commit_turn(lease, commit)
        self.row_id = committed.outbox_ids[0]
        return OutboundReply(
            key=message_id,
            thread=self.channel.thread(),
            message_id=message_id,
            entry_id=committed.record_ids[0],
            role="assistant",
            text=text,
            created_at=now,
            **body,
        )

    async def row(self) -> OutboxRow:
        row = await self.store.outbox_row(self.row_id)
        assert row is not None
        return row

    async def send(self, text: str, *, message_id: str = "m1", **body: Any) -> OutboxRow:
        """Commit and deliver, with as much time as it takes."""
        reply = await self.reply(text, message_id=message_id, **body)
        self.delivery.enqueue(self.row_id, reply)
        await self.clock.advance(4_000)
        return await self.row()


def _desk(channel: MemoryPosts, store: MemoryStore, clock: ManualClock) -> Desk:
    supervisor = Supervisor()
    lanes = Lanes(clock, supervisor)
    live = LiveReplies(store=store, lanes=lanes, clock=clock, supervisor=supervisor)
    failpoints = Failpoints()
    delivery = Delivery(
        store=store,
        channels={(channel.name, channel.account): channel},
        lanes=lanes,
        posting=Posting(store=store, live=live, clock=clock, failpoints=failpoints),
        timeline=StoreTimeline(store, clock),
        clock=clock,
        telemetry=Telemetry(clock),
        failpoints=failpoints,
    )
    return Desk(
        channel=channel, store=store, clock=clock, delivery=delivery, live=live, supervisor=supervisor
    )


@asynccontextmanager
async def desk(channel: MemoryPosts | None = None) -> AsyncIterator[Desk]:
    made = _desk(channel or MemoryPosts(), MemoryStore(), ManualClock())
    await made.store.open()
    try:
        yield made
    finally:
        await made.supervisor.close()


async def restarted(old: Desk) -> Desk:
    """What the next process sees after kill -9: the platform and the store, and nothing else."""
    await old.supervisor.close()
    new = _desk(old.channel, old.store, old.clock)
    new.row_id = old.row_id
    return new


def tokens(*pieces: str, message_id: str = "m1") -> list[LlmToken]:
    offset, events = 0, []
    for piece in pieces:
        events.append(LlmToken(session_id="s", message_id=message_id, text=piece, offset=offset))
        offset += len(piece)
    return events


@pytest.mark.parametrize("resolution", RESOLUTIONS)
async def test_a_reply_is_shown_once_and_its_receipt_is_on_record(resolution: Resolution) -> None:
    async with desk(MemoryPosts(resolution=resolution)) as out:
        row = await out.send("The answer", reply_handle="to-1")
        assert out.channel.texts() == ["The answer"]
        assert (row.state, row.receipt) == ("sent", "n1")
        assert out.channel.messages[0].reply_handle == "to-1"
        assert await out.store.shown("m1") == ()


async def test_a_placeholder_is_on_record_before_the_answer_takes_its_place() -> None:
    async with desk() as out:
        await out.send("The answer")
        assert out.channel.calls == ["post …", "edit The answer"]


@pytest.mark.parametrize("resolution", RESOLUTIONS)
async def test_a_long_reply_is_shown_in_parts_and_only_the_first_points_at_the_message(
    resolution: Resolution,
) -> None:
    async with desk(MemoryPosts(resolution=resolution)) as out:
        row = await out.send("a" * 40 + "b" * 40 + "c", reply_handle="to-1")
        assert out.channel.texts() == ["a" * 40, "b" * 40, "c"]
        assert [message.reply_handle for message in out.channel.messages] == ["to-1", "", ""]
        assert row.receipt == "n1,n2,n3"


async def test_too_many_parts_end_in_a_file() -> None:
    async with desk() as out:
        await out.send("x" * 1_000)
        first, file = out.channel.messages
        assert (first.text, file.file_name) == ("x" * 40, "answer.md")


@pytest.mark.parametrize(
    ("resolution", "texts"),
    [
        # A placeholder that nobody knows of stays behind; the answer itself is there once.
        ("placeholder", ["…", "The answer"]),
        ("nonce", ["The answer"]),
        ("lookup", ["The answer"]),
        ("none", ["The answer", REPEAT_LABEL + "The answer"]),
    ],
)
async def test_a_post_that_was_done_and_not_confirmed_is_resolved_as_the_channel_can(
    resolution: Resolution, texts: list[str]
) -> None:
    async with desk(MemoryPosts(resolution=resolution)) as out:
        out.channel.failures.append(refusal("transient", done=True))
        row = await out.send("The answer")
        assert out.channel.texts() == texts
        assert row.state == "sent"


async def test_an_edit_that_was_done_and_not_confirmed_is_simply_done_again() -> None:
    async with desk() as out:
        out.channel.failures.extend([None, refusal("transient", done=True)])
        await out.send("The answer")
        assert out.channel.texts() == ["The answer"]
        assert out.channel.calls == ["post …", "edit The answer", "edit The answer"]


async def test_the_next_process_goes_on_with_the_placeholder_and_the_parts_that_are_done() -> None:
    async with desk() as out:
        out.channel.failures.extend([None, None, None, refusal("transient")])
        reply = await out.reply("a" * 40 + "b" * 40)
        out.delivery.enqueue(out.row_id, reply)
        await out.clock.advance(0.5)
        assert out.channel.texts() == ["a" * 40, "…"]
        later = await restarted(out)
        assert await later.delivery.recover() == 1
        await later.clock.advance(4_000)
        assert out.channel.texts() == ["a" * 40, "b" * 40]
        assert (await later.row()).receipt == "n1,n2"
        await later.supervisor.close()


@pytest.mark.parametrize(("waited_s", "looked"), [(10.0, False), (1_000.0, True)])
async def test_a_nonce_is_trusted_for_minutes_and_then_the_message_is_looked_for(
    waited_s: float, looked: bool
) -> None:
    async with desk(MemoryPosts(resolution="nonce")) as out:
        out.channel.failures.append(refusal("transient", done=True))
        reply = await out.reply("The answer")
        out.delivery.enqueue(out.row_id, reply)
        await out.clock.advance(0.5)
        later = await restarted(out)
        await later.clock.advance(waited_s)
        await later.delivery.recover()
        await later.clock.advance(4_000)
        assert out.channel.texts() == ["The answer"]
        assert ("find 0" in out.channel.calls) == looked
        await later.supervisor.close()


async def test_a_rate_limit_is_obeyed_and_does_not_count_as_a_failed_attempt() -> None:
    async with desk(MemoryPosts(resolution="nonce")) as out:
        out.channel.failures.extend([refusal("rate_limit", retry_after_s=30.0)] * 50)
        reply = await out.reply("The answer")
        out.delivery.enqueue(out.row_id, reply)
        await out.clock.advance(29)
        assert len(out.channel.calls) == 1
        await out.clock.advance(2)
        assert len(out.channel.calls) == 2
        await out.clock.advance(49 * 30)
        assert out.channel.texts() == ["The answer"]
        assert (await out.row()).state == "sent"


@pytest.mark.parametrize("kind", ["permission", "not_found", "invalid"])
async def test_a_reply_that_can_never_arrive_is_given_up_and_the_next_one_leaves(kind: Any) -> None:
    async with desk(MemoryPosts(resolution="nonce")) as out:
        out.channel.failures.append(refusal(kind))
        assert (await out.send("one")).state == "failed"
        assert (await out.send("two", message_id="m2")).state == "sent"
        assert out.channel.texts() == ["two"]


async def test_a_token_that_is_refused_keeps_the_reply_until_somebody_mended_it() -> None:
    async with desk(MemoryPosts(resolution="nonce")) as out:
        out.channel.failures.extend([refusal("auth")] * 5)
        assert (await out.send("one")).state == "sent"


async def test_replies_to_one_chat_arrive_in_order_though_the_first_has_to_wait() -> None:
    async with desk(MemoryPosts(resolution="nonce")) as out:
        out.channel.failures.append(refusal("rate_limit", retry_after_s=60.0))
        first = await out.reply("one")
        out.delivery.enqueue(out.row_id, first)
        await out.clock.advance(1)
        second = await out.reply("two", message_id="m2")
        out.delivery.enqueue(out.row_id, second)
        await out.clock.advance(100)
        assert out.channel.texts() == ["one", "two"]


async def test_the_answer_grows_in_one_message_and_the_final_words_take_it_over() -> None:
    async with desk(MemoryPosts(resolution="nonce")) as out:
        sender = out.live.sender_for(out.channel, out.channel.thread(), Origin(message_id="m1"))
        await sender.send_event(TurnStarted(session_id="s", message_id="m1"))
        for event in tokens("The ", "ans"):
            await sender.send_event(event)
        await out.clock.advance(1)
        assert (out.channel.texts(), out.channel.messages[0].buttons) == (["The ans"], ("Stop",))
        assert await out.store.shown("m1") == (ShownPart(part=0, native_id="n1", final=False),)
        await sender.send_event(LlmToken(session_id="s", message_id="m1", text="wer", offset=7))
        await out.clock.advance(5)
        assert out.channel.texts() == ["The answer"]
        row = await out.send("The answer.")
        assert out.channel.texts() == ["The answer."]
        assert (out.channel.messages[0].buttons, row.receipt) == ((), "n1")


async def test_an_answer_that_is_ready_at_once_has_no_preview() -> None:
    async with desk(MemoryPosts(resolution="nonce")) as out:
        sender = out.live.sender_for(out.channel, out.channel.thread(), Origin(message_id="m1"))
        await sender.send_event(TurnStarted(session_id="s", message_id="m1"))
        for event in tokens("The answer"):
            await sender.send_event(event)
        reply = await out.reply("The answer")
        out.delivery.enqueue(out.row_id, reply)
        done = ResponseComplete(session_id="s", message_id="m1", content="The answer", entry_id=1)
        await sender.send_event(done)
        await out.clock.advance(10)
        assert out.channel.calls == ["post The answer"]


async def test_previews_are_sampled_not_queued() -> None:
    async with desk(MemoryPosts(resolution="nonce")) as out:
        sender = out.live.sender_for(out.channel, out.channel.thread(), Origin(message_id="m1"))
        await sender.send_event(TurnStarted(session_id="s", message_id="m1"))
        for number, event in enumerate(tokens(*("x" for _ in range(30)))):
            await sender.send_event(event)
            await out.clock.advance(0.1 if number else 0.8)
        # Three seconds of text at the pace of one edit in 1.1 s.
        assert 3 <= len(out.channel.calls) <= 4


async def test_the_interrupted_turns_preview_is_gone_on_with_and_not_left_behind() -> None:
    async with desk(MemoryPosts(resolution="nonce")) as out:
        sender = out.live.sender_for(out.channel, out.channel.thread(), Origin(message_id="m1"))
        await sender.send_event(TurnStarted(session_id="s", message_id="m1"))
        await sender.send_event(tokens("The first try")[0])
        await out.clock.advance(1)
        out.row_id = 0
        later = await restarted(out)
        sender = later.live.sender_for(out.channel, out.channel.thread(), Origin(message_id="m1"))
        await sender.send_event(TurnStarted(session_id="s", message_id="m1"))
        await sender.send_event(tokens("The second")[0])
        await later.clock.advance(1)
        assert out.channel.texts() == ["The second"]
        await later.send("The second try")
        assert out.channel.texts() == ["The second try"]
        await later.supervisor.close()


async def test_a_deleted_preview_makes_the_answer_a_message_of_its_own() -> None:
    async with desk(MemoryPosts(resolution="nonce")) as out:
        sender = out.live.sender_for(out.channel, out.channel.thread(), Origin(message_id="m1"))
        await sender.send_event(TurnStarted(session_id="s", message_id="m1"))
        await sender.send_event(tokens("The")[0])
        await out.clock.advance(1)
        out.channel.messages.clear()
        assert (await out.send("The answer")).state == "sent"
        assert out.channel.texts() == ["The answer"]


async def test_previews_that_fail_are_given_up_and_the_answer_arrives() -> None:
    async with desk(MemoryPosts(resolution="nonce")) as out:
        out.channel.failures.append(refusal("permission"))
        sender = out.live.sender_for(out.channel, out.channel.thread(), Origin(message_id="m1"))
        await sender.send_event(TurnStarted(session_id="s", message_id="m1"))
        for event in tokens("The ", "answer"):
            await sender.send_event(event)
            await out.clock.advance(2)
        assert out.channel.calls == ["post The "]
        await out.send("The answer")
        assert out.channel.texts() == ["The answer"]


async def test_a_limited_preview_waits_as_long_as_it_is_told() -> None:
    async with desk(MemoryPosts(resolution="nonce")) as out:
        out.channel.failures.append(refusal("rate_limit", retry_after_s=20.0))
        sender = out.live.sender_for(out.channel, out.channel.thread(), Origin(message_id="m1"))
        await sender.send_event(TurnStarted(session_id="s", message_id="m1"))
        await sender.send_event(tokens("The answer")[0])
        await out.clock.advance(19)
        assert out.channel.texts() == []
        await out.clock.advance(3)
        assert out.channel.texts() == ["The answer"]


async def test_what_was_heard_is_shown_at_once_and_stays_above_the_answer() -> None:
    async with desk(MemoryPosts(resolution="nonce")) as out:
        sender = out.live.sender_for(out.channel, out.channel.thread(), Origin(message_id="m1"))
        await sender.send_event(TurnStarted(session_id="s", message_id="m1"))
        heard = TranscriptReady(session_id="s", message_id="m1", text="hello", language="en", confidence=1.0)
        await sender.send_event(heard)
        await out.clock.advance(1)
        assert out.channel.texts() == ["heard: hello\n"]
        await out.send("Hi!", heard="hello")
        assert out.channel.texts() == ["heard: hello\nHi!"]


async def test_typing_is_a_lease_that_ends_with_the_turn() -> None:
    async with desk(MemoryPosts(resolution="nonce", typing_s=5.0)) as out:
        sender = out.live.sender_for(out.channel, out.channel.thread(), Origin(message_id="m1"))
        await sender.send_event(TurnStarted(session_id="s", message_id="m1"))
        await out.clock.advance(9)
        assert out.channel.calls == ["typing c1"] * 3
        failed = ErrorEvent(session_id="s", message_id="m1", code="x", message="no", recoverable=True)
        await sender.send_event(failed)
        await out.clock.advance(60)
        assert out.channel.calls == ["typing c1"] * 3


async def test_typing_never_outlasts_a_turn_that_hangs() -> None:
    async with desk(MemoryPosts(resolution="nonce", typing_s=5.0)) as out:
        sender = out.live.sender_for(out.channel, out.channel.thread(), Origin(message_id="m1"))
        await sender.send_event(TurnStarted(session_id="s", message_id="m1"))
        await out.clock.advance(3_600)
        assert len(out.channel.calls) <= 80


async def test_a_question_of_a_working_turn_is_posted_whole_with_its_buttons() -> None:
    async with desk(MemoryPosts(resolution="nonce")) as out:
        sender = out.live.sender_for(out.channel, out.channel.thread(), Origin(message_id="m1"))
        question = ApprovalRequired(
            session_id="s",
            message_id="m1",
            interaction_id="int_1",
            tool_name="shell",
            reasoning="rm \u202e x",
            options=("allow", "deny"),
            timeout_s=60.0,
        )
        await sender.send_event(question)
        await out.clock.advance(1)
        shown = "".join(out.channel.texts())
        assert "<U+202E>" in shown
        assert "\u202e" not in shown
        assert out.channel.messages[-1].buttons == ("allow", "deny")


async def test_a_notice_is_said_once_and_its_failure_stops_nothing() -> None:
    async with desk(MemoryPosts(resolution="nonce")) as out:
        out.channel.failures.append(refusal("transient"))
        out.delivery.say(out.channel.thread(), "Not allowed.", private=True)
        await out.clock.advance(100)
        assert out.channel.texts() == []
        out.delivery.say(out.channel.thread(), "Not allowed.", private=True)
        await out.clock.advance(1)
        assert out.channel.texts() == ["Not allowed."]
