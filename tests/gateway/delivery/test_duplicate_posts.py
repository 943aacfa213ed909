"""A post that no one confirmed is made again, labelled, and then the first is looked for below it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace

import pytest

from adapters.channel import Part, Receipt
from gateway.delivery.origin import Origin
from gateway.delivery.poster import REPEAT_LABEL
from pipeline.domain.errors import InvalidInput
from pipeline.domain.events import ApprovalRequired, ApprovalResolved, TurnStarted
from pipeline.domain.ids import ThreadKey
from pipeline.domain.ports import EventSender
from tests.gateway.delivery_harness import DeliveryHarness, open_delivery, restarted, tokens
from tests.support.posting_channel import MemoryPosts, Refused, refusal


class Adopting(MemoryPosts):
    """Looks for lost messages as a platform with guessable ids lets it."""

    def __init__(self) -> None:
        super().__init__(resolution="none", previews=False)
        self.capabilities = replace(self.capabilities, adopts=True)
        self.known: set[str] = set()
        self.adoption_failures: list[Exception] = []

    async def adopt(
        self, thread: ThreadKey, part: Part, *, repeat: str, labels: Iterable[str], known: Iterable[str]
    ) -> Receipt | None:
        self.known = set(known)
        if self.adoption_failures:
            raise self.adoption_failures.pop(0)
        others = {repeat, *labels, *self.known}
        for message in self.messages:
            if message.native_id not in others and message.thread == thread:
                message.text = str(part.body["text"])
                return Receipt(native_id=message.native_id)
        return None

    async def take_back(self, thread: ThreadKey, native_id: str) -> None:
        self.messages = [one for one in self.messages if one.native_id != native_id]


_LOST = [refusal("transient", done=True)]


def _not_done() -> Refused:
    lost = refusal("transient")
    lost.failure = replace(lost.failure, maybe_delivered=True)
    return lost


async def test_the_first_message_is_the_answer_and_the_repeat_goes() -> None:
    async with open_delivery(Adopting()) as out:
        out.channel.failures.extend(_LOST)
        row = await out.send("The answer")
        assert out.channel.texts() == ["The answer"]
        assert (row.state, row.receipt) == ("sent", "n1")


async def test_a_post_that_never_arrived_leaves_one_answer_without_a_label() -> None:
    async with open_delivery(Adopting()) as out:
        out.channel.failures.append(_not_done())
        row = await out.send("The answer")
        assert out.channel.texts() == ["The answer"]
        assert row.state == "sent"
        assert f"post {REPEAT_LABEL}The answer" in out.channel.calls


async def test_a_part_of_several_that_may_repeat_loses_its_repeat_and_its_label() -> None:
    async with open_delivery(Adopting()) as out:
        out.channel.failures.extend([None, *_LOST])
        await out.send("a" * 40 + "b" * 40 + "c")
        assert sorted(out.channel.texts()) == ["a" * 40, "b" * 40, "c"]


@pytest.mark.parametrize("why", [InvalidInput("too many ids"), refusal("permission")])
async def test_where_no_one_can_tell_the_repeat_stays_labelled(why: Exception) -> None:
    channel = Adopting()
    async with open_delivery(channel) as out:
        channel.failures.extend(_LOST)
        channel.adoption_failures.append(why)
        row = await out.send("The answer")
        assert channel.texts() == ["The answer", REPEAT_LABEL + "The answer"]
        assert row.state == "sent"


async def test_a_look_that_has_to_wait_is_made_again() -> None:
    channel = Adopting()
    async with open_delivery(channel) as out:
        channel.failures.extend(_LOST)
        channel.adoption_failures.extend([refusal("rate_limit", retry_after_s=3.0), refusal("transient")])
        await out.send("The answer")
        assert channel.texts() == ["The answer"]


async def test_the_next_process_takes_no_earlier_answer_for_the_lost_one() -> None:
    channel = Adopting()
    async with open_delivery(channel) as out:
        await out.send("The first")
        channel.failures.extend(_LOST)
        reply = await out.reply("The second", message_id="m2")
        out.delivery.enqueue(out.row_id, reply)
        await out.clock.advance(0.5)
        later = await restarted(out)
        await later.delivery.recover()
        await later.clock.advance(60)
        assert channel.texts() == ["The first", "The second"]
        assert "n1" in channel.known
        await later.supervisor.close()


class Rooms(Adopting):
    """With previews that are messages."""

    def __init__(self) -> None:
        super().__init__()
        self.capabilities = replace(self.capabilities, streaming=True)


async def test_a_preview_in_a_room_is_on_record_before_it_is_posted() -> None:
    channel = Rooms()
    async with open_delivery(channel) as out:
        sender = out.live.sender_for(channel, channel.thread(), Origin(message_id="m1", private=False))
        await sender.send_event(TurnStarted(session_id="s", message_id="m1"))
        channel.failures.append(refusal("rate_limit", retry_after_s=60.0))
        await sender.send_event(tokens("The ans")[0])
        await out.clock.advance(1)
        (noted,) = await out.store.shown("m1")
        assert (noted.native_id, noted.final) == ("", False)


class Dying(Adopting):
    """The process that posts dies before it hears which message it is."""

    dies = True

    async def post(self, thread: ThreadKey, part: Part, *, key: str, reply_handle: str = "") -> Receipt:
        receipt = await super().post(thread, part, key=key, reply_handle=reply_handle)
        if self.dies:
            await asyncio.Event().wait()
        return receipt


QUESTION = ApprovalRequired(
    session_id="s",
    message_id="m1",
    interaction_id="int_1",
    tool_name="ls",
    reasoning="x",
    options=("A", "B"),
    timeout_s=60.0,
)


async def _ask(out: DeliveryHarness) -> EventSender:
    sender = out.live.sender_for(out.channel, out.channel.thread(), Origin(message_id="m1", reply_handle="q"))
    await sender.send_event(QUESTION)
    await out.clock.advance(10)
    return sender


async def test_a_question_whose_post_died_appears_once_in_the_end_and_is_closed() -> None:
    channel = Dying()
    async with open_delivery(channel) as out:
        await _ask(out)
        channel.dies, out.row_id = False, 0
        later = await restarted(out)
        sender = await _ask(later)
        assert [(one.native_id, one.buttons) for one in channel.messages] == [("n1", ("A", "B"))]
        assert "q" in channel.known, "the message that is answered is not taken for the question"
        resolved = ApprovalResolved(session_id="s", message_id="m1", interaction_id="int_1", choice="A")
        await sender.send_event(resolved)
        await later.clock.advance(10)
        assert channel.messages[0].text.endswith("Answered: A")
        assert channel.messages[0].buttons == ()
        await later.supervisor.close()


async def test_a_question_that_no_one_can_look_for_appears_twice_and_may_be_answered_at_either() -> None:
    channel = Dying()
    async with open_delivery(channel) as out:
        await _ask(out)
        channel.dies, out.row_id = False, 0
        channel.adoption_failures.append(InvalidInput("too many"))
        later = await restarted(out)
        await _ask(later)
        assert [one.buttons for one in channel.messages] == [("A", "B")] * 2
        assert len({one.data for one in channel.messages}) == 1
        await later.supervisor.close()
