"""Questions of a turn at work on a posting channel: one message each, over restarts, and its ending."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from adapters.channel import FailureKind, Part, Receipt, Resolution
from gateway.delivery.origin import Origin
from pipeline.domain.events import ApprovalRequired, ApprovalResolved, ErrorEvent
from pipeline.domain.ids import ThreadKey
from tests.gateway.delivery_harness import DeliveryHarness, open_delivery, restarted
from tests.support.posting_channel import MemoryPosts, refusal

QUESTION = ApprovalRequired(
    session_id="s",
    message_id="m1",
    interaction_id="int_1",
    tool_name="shell",
    reasoning="rm x",
    options=("Allow", "Deny"),
    timeout_s=60.0,
)


async def _ask(out: DeliveryHarness, question: ApprovalRequired = QUESTION) -> None:
    sender = out.live.sender_for(out.channel, out.channel.thread(), Origin(message_id="m1"))
    await sender.send_event(question)
    await out.clock.advance(10)


async def _resolve(out: DeliveryHarness, choice: str) -> None:
    sender = out.live.sender_for(out.channel, out.channel.thread(), Origin(message_id="m1"))
    resolved = ApprovalResolved(session_id="s", message_id="m1", interaction_id="int_1", choice=choice)
    await sender.send_event(resolved)
    await out.clock.advance(10)


def _buttons(out: DeliveryHarness) -> list[tuple[str, ...]]:
    return [message.buttons for message in out.channel.messages]


@pytest.mark.parametrize(
    ("choice", "ending"),
    [("Allow", "Answered: Allow"), ("expired", "No one answered in time; nothing was done.")],
)
async def test_the_message_that_asked_says_what_became_of_it_and_loses_its_buttons(
    choice: str, ending: str
) -> None:
    async with open_delivery(MemoryPosts(resolution="nonce")) as out:
        await _ask(out)
        before = len(out.channel.messages)
        await _resolve(out, choice)
        assert len(out.channel.messages) == before
        assert "".join(out.channel.texts()).endswith(ending)
        assert set(_buttons(out)) == {()}


@pytest.mark.parametrize("kind", ["rate_limit", "transient"])
async def test_the_ending_is_shown_though_the_platform_refuses_it_for_a_moment(kind: FailureKind) -> None:
    async with open_delivery(MemoryPosts(resolution="nonce")) as out:
        await _ask(out)
        out.channel.failures.append(refusal(kind, retry_after_s=1.0))
        await _resolve(out, "Allow")
        assert "".join(out.channel.texts()).endswith("Answered: Allow")


async def test_a_turn_that_ends_without_an_answer_closes_its_question() -> None:
    async with open_delivery(MemoryPosts(resolution="nonce")) as out:
        await _ask(out)
        sender = out.live.sender_for(out.channel, out.channel.thread(), Origin(message_id="m1"))
        stopped = ErrorEvent(session_id="s", message_id="m1", code="stopped", message="x", recoverable=True)
        await sender.send_event(stopped)
        await out.clock.advance(10)
        assert "".join(out.channel.texts()).endswith("No longer open.")
        assert set(_buttons(out)) == {()}


async def test_a_question_that_a_stop_left_open_is_closed_though_its_reply_was_sent_first() -> None:
    async with open_delivery(MemoryPosts(resolution="nonce")) as out:
        await _ask(out)
        sender = out.live.sender_for(out.channel, out.channel.thread(), Origin(message_id="m1"))
        # As a turn ends: its reply is in the queue before the event that tells of it.
        reply = await out.reply("Stopped.")
        out.delivery.enqueue(out.row_id, reply)
        stopped = ErrorEvent(session_id="s", message_id="m1", code="stopped", message="x", recoverable=True)
        await sender.send_event(stopped)
        await out.clock.advance(10)
        assert out.channel.texts()[-1] == "Stopped."
        assert "".join(out.channel.texts()[:-1]).endswith("No longer open.")
        assert set(_buttons(out)) == {()}


async def test_the_next_process_closes_a_question_that_is_settled_before_its_queue_reached_it() -> None:
    async with open_delivery() as out:
        await _ask(out)
        out.row_id = 0
        later = await restarted(out)
        sender = later.live.sender_for(later.channel, later.channel.thread(), Origin(message_id="m1"))
        reply = await later.reply("Stopped.")
        await sender.send_event(QUESTION)
        later.delivery.enqueue(later.row_id, reply)
        stopped = ErrorEvent(session_id="s", message_id="m1", code="stopped", message="x", recoverable=True)
        await sender.send_event(stopped)
        await later.clock.advance(10)
        assert set(_buttons(later)) == {()}
        await later.supervisor.close()


async def test_the_next_process_keeps_the_question_that_is_open_and_ends_it() -> None:
    async with open_delivery() as out:
        await _ask(out, replace(QUESTION, reasoning="a long command " * 6))
        shown = out.channel.texts()
        assert len(shown) > 1
        out.row_id = 0
        later = await restarted(out)
        await _ask(later, replace(QUESTION, reasoning="a long command " * 6, timeout_s=20.0))
        assert later.channel.texts() == shown
        assert later.channel.messages[-1].buttons == QUESTION.options
        await _resolve(later, "Deny")
        assert "Answered: Deny" in "".join(later.channel.texts())
        assert set(_buttons(later)) == {()}
        await later.supervisor.close()


async def test_a_question_that_somebody_deleted_is_asked_again() -> None:
    async with open_delivery() as out:
        await _ask(out)
        out.channel.messages.clear()
        out.row_id = 0
        later = await restarted(out)
        await _ask(later)
        assert later.channel.messages[-1].buttons == QUESTION.options
        await later.supervisor.close()


class Dying(MemoryPosts):
    """The process that posts dies before it hears which message it is."""

    dies = True
    looks = True

    async def post(self, thread: ThreadKey, part: Part, *, key: str, reply_handle: str = "") -> Receipt:
        receipt = await super().post(thread, part, key=key, reply_handle=reply_handle)
        if self.dies:
            await asyncio.Event().wait()
        return receipt

    async def find(self, thread: ThreadKey, part: Part, *, key: str, since: float) -> Receipt | None:
        return await super().find(thread, part, key=key, since=since) if self.looks else None


@pytest.mark.parametrize(
    ("resolution", "looks", "messages"), [("lookup", True, 1), ("nonce", True, 1), ("placeholder", False, 2)]
)
async def test_a_post_that_died_is_looked_for_and_where_no_one_can_look_it_is_asked_once_more(
    resolution: Resolution, looks: bool, messages: int
) -> None:
    channel = Dying(resolution=resolution)
    channel.looks = looks
    question = replace(QUESTION, tool_name="ls", reasoning="x", options=("A", "B"))
    async with open_delivery(channel) as out:
        await _ask(out, question)
        channel.dies = False
        out.row_id = 0
        later = await restarted(out)
        await _ask(later, question)
        assert _buttons(later) == [("A", "B")] * messages
        assert len({message.data for message in channel.messages}) == 1, "an answer to one is one to both"
        await later.supervisor.close()


@pytest.mark.parametrize("resolution", ["lookup", "nonce"])
async def test_a_post_that_the_platform_did_and_did_not_confirm_is_looked_for(resolution: Resolution) -> None:
    async with open_delivery(MemoryPosts(resolution=resolution)) as out:
        out.channel.failures.append(refusal("transient", done=True))
        question = replace(QUESTION, tool_name="ls", reasoning="x", options=("A", "B"))
        await _ask(out, question)
        assert _buttons(out) == [("A", "B")]
        await _resolve(out, "A")
        assert _buttons(out) == [()]


async def test_an_answer_that_is_quicker_than_the_platform_leaves_no_question() -> None:
    async with open_delivery() as out:
        sender = out.live.sender_for(out.channel, out.channel.thread(), Origin(message_id="m1"))
        out.channel.failures.append(refusal("rate_limit", retry_after_s=5.0))
        await sender.send_event(QUESTION)
        await sender.send_event(replace(QUESTION, interaction_id="int_2"))
        resolved = ApprovalResolved(session_id="s", message_id="m1", interaction_id="int_2", choice="Allow")
        await sender.send_event(resolved)
        await out.clock.advance(30)
        assert len([one for one in out.channel.messages if one.buttons]) == 1


async def test_a_question_in_doubt_whose_look_up_is_refused_is_asked_again() -> None:
    async with open_delivery(MemoryPosts(resolution="lookup")) as out:
        out.channel.failures.append(refusal("transient", done=True))
        out.channel.lookup_failures.append(refusal("permission"))
        question = replace(QUESTION, tool_name="ls", reasoning="x", options=("A", "B"))
        await _ask(out, question)
        assert _buttons(out) == [("A", "B")] * 2
        assert len({message.data for message in out.channel.messages}) == 1, "an answer to one is one to both"


async def test_a_question_outlives_an_outage_that_is_shorter_than_its_time() -> None:
    async with open_delivery(MemoryPosts(resolution="lookup")) as out:
        out.channel.failures.extend([refusal("transient")] * 6)
        await _ask(out)
        assert _buttons(out) == []
        await out.clock.advance(40)
        assert [one for one in _buttons(out) if one] == [("Allow", "Deny")]


async def test_a_question_that_is_settled_while_the_platform_is_away_is_not_asked_any_more() -> None:
    async with open_delivery(MemoryPosts(resolution="lookup")) as out:
        out.channel.failures.extend([refusal("transient")] * 1_000)
        await _ask(out)
        await _resolve(out, "expired")
        await out.clock.advance(60)
        before = len(out.channel.calls)
        await out.clock.advance(600)
        assert len(out.channel.calls) == before
