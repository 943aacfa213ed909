"""Look-ups and edits that the platform refuses: the reply is shown all the same, and labelled in doubt."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adapters.channel import Failure, FailureKind, Resolution
from gateway.delivery.poster import NONCE_WINDOW_S, REPEAT_LABEL
from gateway.storage.ports import SentPart
from tests.gateway.delivery_harness import open_delivery
from tests.support.posting_channel import MemoryPosts, Refused, refusal
from tests.support.tables import each

_LABELLED = REPEAT_LABEL + "The answer"


@pytest.mark.parametrize("kind", ["permission", "not_found", "invalid", "unknown"])
async def test_a_look_up_that_is_refused_does_not_end_the_reply(kind: FailureKind) -> None:
    async with open_delivery(MemoryPosts(resolution="lookup")) as out:
        out.channel.failures.append(_unknown_and_not_done())
        out.channel.lookup_failures.append(refusal(kind))
        row = await out.send("The answer")
        assert (row.state, out.channel.texts()) == ("sent", [_LABELLED])


@pytest.mark.parametrize("done", [True, False])
async def test_a_reply_whose_nonce_is_forgotten_and_whose_look_up_is_refused_is_posted_labelled(
    done: bool,
) -> None:
    async with open_delivery(MemoryPosts(resolution="nonce")) as out:
        out.channel.failures.append(
            _waiting(refusal("transient", done=True) if done else _unknown_and_not_done())
        )
        out.channel.lookup_failures.append(refusal("permission"))
        row = await out.send("The answer")
        assert row.state == "sent"
        assert out.channel.texts() == [_LABELLED]


async def test_every_part_that_no_one_can_look_for_is_labelled_and_no_word_is_lost() -> None:
    async with open_delivery(MemoryPosts(resolution="lookup")) as out:
        out.channel.failures.extend([None, refusal("transient", done=True)])
        out.channel.lookup_failures.append(refusal("permission"))
        await out.send("a" * 40 + "b" * 40 + "c")
        assert out.channel.texts() == ["a" * 40, "b" * 40, REPEAT_LABEL.strip(), "b" * 40, "c"]


async def test_a_file_that_no_one_can_look_for_is_sent_again_labelled() -> None:
    async with open_delivery(MemoryPosts(resolution="lookup")) as out:
        out.channel.failures.extend([None, refusal("transient", done=True)])
        out.channel.lookup_failures.append(refusal("permission"))
        assert (await out.send("x" * 1_000)).state == "sent"
        assert [message.file_name for message in out.channel.messages] == ["", "answer.md", "", "answer.md"]
        assert out.channel.texts()[2] == REPEAT_LABEL.strip()


async def test_a_look_up_that_fails_on_the_way_is_made_again_and_no_reply_repeats() -> None:
    async with open_delivery(MemoryPosts(resolution="lookup")) as out:
        out.channel.failures.append(refusal("transient", done=True))
        out.channel.lookup_failures.extend([refusal("rate_limit", retry_after_s=1.0)] * 30)
        out.channel.lookup_failures.extend([refusal("transient")] * 5)
        await out.send("The answer")
        assert out.channel.texts() == ["The answer"]


async def test_a_look_up_that_never_works_again_does_not_hold_the_reply_for_ever() -> None:
    async with open_delivery(MemoryPosts(resolution="lookup")) as out:
        out.channel.failures.append(refusal("transient", done=True))
        out.channel.lookup_failures.extend([refusal("transient")] * 1_000)
        row = await out.send("The answer")
        assert (row.state, out.channel.texts()) == ("sent", ["The answer", _LABELLED])


async def test_a_preview_in_doubt_whose_look_up_is_refused_does_not_end_the_reply() -> None:
    async with open_delivery(MemoryPosts(resolution="lookup")) as out:
        await out.store.record_sent_part(
            await out.lease(), "m1", SentPart(part=0, native_id="", final=False, at=1.0)
        )
        out.channel.lookup_failures.extend([refusal("permission")] * 2)
        row = await out.send("The answer")
        assert (row.state, out.channel.texts()) == ("sent", [_LABELLED])


@each("kind", ["permission", "invalid", "unknown"])
@each("resolution", ["placeholder", "nonce", "lookup", "none"])
async def test_a_preview_that_may_not_be_edited_stays_and_the_answer_is_posted(
    resolution: Resolution, kind: FailureKind
) -> None:
    async with open_delivery(MemoryPosts(resolution=resolution)) as out:
        await out.begin("The ans")
        out.channel.messages[0].key = "the preview's own"
        out.channel.failures.append(refusal(kind))
        row = await out.send("The answer")
        assert (row.state, out.channel.texts()) == ("sent", ["The ans", "The answer"])


async def test_an_edit_that_may_be_done_and_is_then_refused_is_followed_by_a_labelled_answer() -> None:
    async with open_delivery(MemoryPosts(resolution="lookup")) as out:
        await out.begin("The ans")
        out.channel.failures.extend([refusal("transient", done=True), refusal("permission")])
        row = await out.send("The answer")
        assert (row.state, out.channel.texts()) == ("sent", ["The answer", _LABELLED])


def _unknown_and_not_done() -> Refused:
    """A failure that leaves open whether it was done; it was not."""
    return Refused(Failure(kind="transient", message="no answer", maybe_delivered=True))


def _waiting(refused: Refused) -> Refused:
    """With a wait for longer than a nonce is remembered."""
    refused.failure = replace(refused.failure, retry_after_s=NONCE_WINDOW_S + 1)
    return refused
