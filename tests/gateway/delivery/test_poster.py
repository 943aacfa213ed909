"""Replies on a posting channel: shown once, in order, whatever the platform does."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.channel import Outgoing, Part, Resolution
from adapters.formatting.fences import closed_code
from gateway.delivery.outbox import MAX_AGE_S, MAX_ATTEMPTS
from gateway.delivery.poster import REPEAT_LABEL, UNSHOWABLE
from tests.gateway.delivery_harness import open_delivery, restarted
from tests.support.posting_channel import MemoryPosts, refusal

RESOLUTIONS: tuple[Resolution, ...] = ("placeholder", "nonce", "lookup", "none")


@pytest.mark.parametrize("resolution", RESOLUTIONS)
async def test_a_reply_is_shown_once_and_its_receipt_is_on_record(resolution: Resolution) -> None:
    async with open_delivery(MemoryPosts(resolution=resolution)) as out:
        row = await out.send("The answer", reply_handle="to-1")
        assert out.channel.texts() == ["The answer"]
        assert (row.state, row.receipt) == ("sent", "n1")
        assert out.channel.messages[0].reply_handle == "to-1"
        assert await out.store.shown("m1") == ()


async def test_a_placeholder_is_on_record_before_the_answer_takes_its_place() -> None:
    async with open_delivery() as out:
        await out.send("The answer")
        assert out.channel.calls == ["post …", "edit The answer"]


async def test_a_placeholder_offers_nothing_to_stop_as_its_turn_is_over() -> None:
    async with open_delivery() as out:
        out.channel.failures.extend([None, refusal("rate_limit", retry_after_s=30.0)])
        reply = await out.reply("The answer")
        out.delivery.enqueue(out.row_id, reply)
        await out.clock.advance(1)
        assert (out.channel.texts(), out.channel.messages[0].buttons) == (["…"], ())


@pytest.mark.parametrize("resolution", RESOLUTIONS)
async def test_a_long_reply_is_shown_in_parts_and_only_the_first_points_at_the_message(
    resolution: Resolution,
) -> None:
    async with open_delivery(MemoryPosts(resolution=resolution)) as out:
        row = await out.send("a" * 40 + "b" * 40 + "c", reply_handle="to-1")
        assert out.channel.texts() == ["a" * 40, "b" * 40, "c"]
        assert [message.reply_handle for message in out.channel.messages] == ["to-1", "", ""]
        assert row.receipt == "n1,n2,n3"


class _FailingRenderer(MemoryPosts):
    """A channel whose renderer has a fault that some words bring out."""

    def render(self, outgoing: Outgoing) -> tuple[Part, ...]:
        if "fault" in outgoing.text:
            raise RecursionError("too deep")
        return super().render(outgoing)


async def test_a_reply_that_cannot_be_rendered_is_set_aside_in_words_and_holds_no_one_up() -> None:
    async with open_delivery(_FailingRenderer()) as out:
        row = await out.send("This has a fault.")
        assert row.state == "sent"
        assert "".join(out.channel.texts()) == UNSHOWABLE


async def test_too_many_parts_end_in_a_file() -> None:
    async with open_delivery() as out:
        await out.send("x" * 1_000)
        first, file = out.channel.messages
        assert (first.text, file.file_name) == ("x" * 40, "answer.md")


@pytest.mark.parametrize(
    ("resolution", "texts"),
    [
        # A placeholder that no one knows of stays behind; the answer itself is there once.
        ("placeholder", ["…", "The answer"]),
        ("nonce", ["The answer"]),
        ("lookup", ["The answer"]),
        ("none", ["The answer", REPEAT_LABEL + "The answer"]),
    ],
)
async def test_a_post_that_was_done_and_not_confirmed_is_resolved_as_the_channel_can(
    resolution: Resolution, texts: list[str]
) -> None:
    async with open_delivery(MemoryPosts(resolution=resolution)) as out:
        out.channel.failures.append(refusal("transient", done=True))
        row = await out.send("The answer")
        assert out.channel.texts() == texts
        assert row.state == "sent"


async def test_an_edit_that_was_done_and_not_confirmed_is_simply_done_again() -> None:
    async with open_delivery() as out:
        out.channel.failures.extend([None, refusal("transient", done=True)])
        await out.send("The answer")
        assert out.channel.texts() == ["The answer"]
        assert out.channel.calls == ["post …", "edit The answer", "edit The answer"]


async def test_the_next_process_continues_with_the_placeholder_and_the_parts_that_are_done() -> None:
    async with open_delivery() as out:
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
    async with open_delivery(MemoryPosts(resolution="nonce")) as out:
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
    async with open_delivery(MemoryPosts(resolution="nonce")) as out:
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
    async with open_delivery(MemoryPosts(resolution="nonce")) as out:
        out.channel.failures.append(refusal(kind))
        assert (await out.send("one")).state == "failed"
        assert (await out.send("two", message_id="m2")).state == "sent"
        assert out.channel.texts() == ["two"]


async def test_a_token_that_is_refused_keeps_the_reply_until_somebody_mended_it() -> None:
    async with open_delivery(MemoryPosts(resolution="nonce")) as out:
        out.channel.failures.extend([refusal("auth")] * 2 * MAX_ATTEMPTS)
        reply = await out.reply("one")
        out.delivery.enqueue(out.row_id, reply)
        await out.clock.advance(MAX_AGE_S / 2)
        assert (await out.row()).state == "sent"


async def test_a_token_that_is_refused_is_not_tried_at_every_second() -> None:
    async with open_delivery(MemoryPosts(resolution="nonce")) as out:
        out.channel.failures.extend([refusal("auth")] * 10_000)
        reply = await out.reply("one")
        out.delivery.enqueue(out.row_id, reply)
        await out.clock.advance(3_600)
        assert len(out.channel.calls) <= 3_600 / 15 + 5
        # The time between is spent switched off: a day of attempts says nothing more.
        later = await restarted(out, after_s=MAX_AGE_S - 4_200)
        await later.delivery.recover()
        await later.clock.advance(300)
        assert (await later.row()).state != "failed"
        await later.clock.advance(600)
        assert (await later.row()).state == "failed"
        await later.supervisor.close()


async def test_calls_that_were_limited_before_a_restart_do_not_use_its_attempts_up() -> None:
    async with open_delivery(MemoryPosts(resolution="nonce")) as out:
        out.channel.failures.extend([refusal("rate_limit", retry_after_s=30.0)] * 2 * MAX_ATTEMPTS)
        reply = await out.reply("one")
        out.delivery.enqueue(out.row_id, reply)
        await out.clock.advance(30.5 * 1.5 * MAX_ATTEMPTS)
        later = await restarted(out)
        await later.delivery.recover()
        out.channel.failures.clear()
        out.channel.failures.append(refusal("transient"))
        await later.clock.advance(600)
        assert (await later.row()).state == "sent"
        await later.supervisor.close()


async def test_a_wall_clock_that_jumps_ahead_does_not_make_a_new_reply_too_old() -> None:
    async with open_delivery(MemoryPosts(resolution="nonce")) as out:
        reply = await out.reply("one")
        out.clock.step_wall(30 * MAX_AGE_S)
        out.channel.failures.append(refusal("transient"))
        out.delivery.enqueue(out.row_id, reply)
        await out.clock.advance(60)
        assert (await out.row()).state == "sent"


async def test_a_wall_clock_that_jumps_back_does_not_make_a_nonce_last_longer() -> None:
    async with open_delivery(MemoryPosts(resolution="nonce")) as out:
        out.channel.failures.append(refusal("transient", done=True, retry_after_s=300.0))
        reply = await out.reply("one")
        out.delivery.enqueue(out.row_id, reply)
        await out.clock.advance(1)
        out.clock.step_wall(-3_600)
        await out.clock.advance(400)
        assert "find 0" in out.channel.calls
        assert out.channel.texts() == ["one"]


async def test_replies_to_one_chat_arrive_in_order_though_the_first_has_to_wait() -> None:
    async with open_delivery(MemoryPosts(resolution="nonce")) as out:
        out.channel.failures.append(refusal("rate_limit", retry_after_s=60.0))
        first = await out.reply("one")
        out.delivery.enqueue(out.row_id, first)
        await out.clock.advance(1)
        second = await out.reply("two", message_id="m2")
        out.delivery.enqueue(out.row_id, second)
        await out.clock.advance(100)
        assert out.channel.texts() == ["one", "two"]


async def test_a_notice_that_the_platform_did_not_take_is_said_again() -> None:
    async with open_delivery(MemoryPosts(resolution="nonce")) as out:
        out.channel.failures.extend([refusal("rate_limit", retry_after_s=30.0), refusal("transient")])
        out.delivery.say(out.channel.thread(), "Your code is 1234.", private=True)
        await out.clock.advance(40)
        assert out.channel.texts() == ["Your code is 1234."]


async def test_a_notice_is_said_once_and_its_failure_stops_nothing() -> None:
    async with open_delivery(MemoryPosts(resolution="nonce")) as out:
        out.channel.failures.append(refusal("permission"))
        out.delivery.say(out.channel.thread(), "Not allowed.", private=True)
        await out.clock.advance(100)
        assert out.channel.texts() == []
        out.delivery.say(out.channel.thread(), "Not allowed.", private=True)
        await out.clock.advance(1)
        assert out.channel.texts() == ["Not allowed."]


async def test_a_reply_of_the_day_before_yesterday_is_not_sent_out_of_the_blue() -> None:
    async with open_delivery(MemoryPosts(resolution="nonce")) as out:
        await out.reply("The answer")
        later = await restarted(out)
        await later.clock.advance(25 * 3600)
        assert await later.delivery.recover() == 1
        await later.clock.advance(60)
        row = await later.row()
        assert (out.channel.texts(), row.state) == ([], "failed")
        assert "older than a day" in row.error
        await later.supervisor.close()


@pytest.mark.parametrize(
    ("said", "closed"),
    [
        ("half an", "half an"),
        ("see:\n```py\nx = 1", "see:\n```py\nx = 1\n```"),
        ("```\nx\n```\nso", "```\nx\n```\nso"),
        ("~~~~\n```\n~~~", "~~~~\n```\n~~~\n~~~~"),
        ("``` `\n", "``` `\n\n```"),
        ("", ""),
    ],
)
def test_words_that_broke_off_in_code_do_not_take_what_follows_with_them(said: str, closed: str) -> None:
    assert closed_code(said) == closed
