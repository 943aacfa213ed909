"""What is not known on the way out: a store that does not answer, calls without an end, kills in between."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

import pytest

from adapters.channel import Part, Receipt, Resolution
from gateway.delivery.origin import Origin
from gateway.delivery.platform_calls import LONGEST_CALL_S
from gateway.delivery.poster import REPEAT_LABEL
from gateway.storage.memory import MemoryStore
from gateway.storage.ports import Lease, SentPart
from pipeline.domain.errors import StorageError
from pipeline.domain.events import TurnStarted
from pipeline.domain.ids import ThreadKey
from tests.gateway.delivery_harness import open_delivery, restarted, tokens
from tests.support.posting_channel import MemoryPosts, Refused, refusal

RESOLUTIONS: tuple[Resolution, ...] = ("placeholder", "nonce", "lookup", "none")


class FullDisk(MemoryStore):
    """Fails as many calls of each name as `failing` says."""

    def __init__(self) -> None:
        super().__init__()
        self.failing: Counter[str] = Counter()

    async def shown(self, key: str) -> tuple[SentPart, ...]:
        self._fail("shown")
        return await super().shown(key)

    async def record_sent_part(self, lease: Lease, key: str, part: SentPart) -> None:
        self._fail("record_sent_part")
        await super().record_sent_part(lease, key, part)

    def _fail(self, what: str) -> None:
        if self.failing[what] > 0:
            self.failing[what] -= 1
            raise StorageError("the disk is full")


class Leaky(MemoryPosts):
    """The first posts never end, or end in a cancellation that no one asked for, having done their work."""

    def __init__(self, *, hang: bool) -> None:
        super().__init__(resolution="nonce")
        self.hang = hang
        self.left = 1

    async def post(self, thread: ThreadKey, part: Part, *, key: str, reply_handle: str = "") -> Receipt:
        receipt = await super().post(thread, part, key=key, reply_handle=reply_handle)
        if self.left:
            self.left -= 1
            if self.hang:
                await asyncio.Event().wait()
            raise asyncio.CancelledError
        return receipt


async def test_a_store_that_cannot_be_read_for_a_while_keeps_the_order_and_loses_no_reply() -> None:
    store = FullDisk()
    async with open_delivery(MemoryPosts(resolution="nonce"), store) as out:
        store.failing["shown"] = 2
        first = await out.reply("one")
        first_row = out.row_id
        second = await out.reply("two", message_id="m2")
        out.delivery.enqueue(first_row, first)
        out.delivery.enqueue(out.row_id, second)
        await out.clock.advance(60)
        assert out.channel.texts() == ["one", "two"]
        assert (await out.row()).state == "sent"


@pytest.mark.parametrize("resolution", RESOLUTIONS)
async def test_a_preview_that_could_not_be_put_on_record_does_not_show_the_answer_twice(
    resolution: Resolution,
) -> None:
    store = FullDisk()
    async with open_delivery(MemoryPosts(resolution=resolution), store) as out:
        store.failing["record_sent_part"] = 1
        await out.begin("The ans")
        out.channel.failures.append(refusal("transient", done=True))
        reply = await out.reply("The answer")
        out.delivery.enqueue(out.row_id, reply)
        await out.clock.advance(0.5)
        assert out.channel.texts() == ["The answer"]
        later = await restarted(out)
        await later.delivery.recover()
        await later.clock.advance(60)
        assert out.channel.texts() == ["The answer"]
        assert (await later.row()).state == "sent"
        await later.supervisor.close()


async def test_a_deleted_preview_and_a_kill_do_not_show_the_answer_twice() -> None:
    async with open_delivery() as out:
        await out.begin("The ans")
        out.channel.messages[0].native_id = "deleted"
        # The edit finds nothing; what follows is done, one call after the other, and never confirmed.
        out.channel.failures.extend([None, refusal("transient", done=True)])
        reply = await out.reply("The answer")
        out.delivery.enqueue(out.row_id, reply)
        await out.clock.advance(0.5)
        later = await restarted(out)
        await later.delivery.recover()
        await later.clock.advance(60)
        assert out.channel.texts().count("The answer") == 1
        await later.supervisor.close()


@pytest.mark.parametrize("hang", [True, False])
async def test_a_call_that_does_not_end_as_calls_do_holds_nothing_up_for_ever(hang: bool) -> None:
    async with open_delivery(Leaky(hang=hang)) as out:
        first = await out.reply("one")
        first_row = out.row_id
        second = await out.reply("two", message_id="m2")
        out.delivery.enqueue(first_row, first)
        out.delivery.enqueue(out.row_id, second)
        await out.clock.advance(LONGEST_CALL_S + 10)
        assert out.channel.texts() == ["one", "two"]
        assert [(await _state(out.store, row)) for row in (first_row, out.row_id)] == ["sent", "sent"]


async def _state(store: MemoryStore, row_id: int) -> str:
    row = await store.outbox_row(row_id)
    return "" if row is None else row.state


_LONG = "a" * 40 + "b" * 40 + "c" * 40 + "d" * 30
_ROUGH = [refusal("transient", done=True), refusal("transient")]


@pytest.mark.parametrize(
    ("failures", "texts"),
    [
        # The second part may have arrived: only that one is shown again, and the cuts stay where they were.
        (
            [None, *_ROUGH],
            ["a" * 40, "b" * 40, REPEAT_LABEL.strip(), "b" * 40, "c" * 40, "d" * 30],
        ),
        ([refusal("transient")], ["a" * 40, "b" * 40, "c" * 40, "d" * 30]),
    ],
)
async def test_a_part_in_doubt_is_labelled_and_no_word_of_the_others_is_lost(
    failures: Sequence[Refused | None], texts: list[str]
) -> None:
    async with open_delivery(MemoryPosts(resolution="none")) as out:
        out.channel.failures.extend(failures)
        assert (await out.send(_LONG)).state == "sent"
        assert out.channel.texts() == texts


async def test_the_next_process_labels_the_part_in_doubt_and_shows_all_that_follow() -> None:
    async with open_delivery(MemoryPosts(resolution="none")) as out:
        out.channel.failures.extend([None, None, refusal("transient", done=True)])
        reply = await out.reply(_LONG + "e" * 45)
        out.delivery.enqueue(out.row_id, reply)
        await out.clock.advance(0.5)
        later = await restarted(out)
        await later.delivery.recover()
        await later.clock.advance(60)
        shown = out.channel.texts()
        assert shown[3] == REPEAT_LABEL.strip()
        assert "".join(shown[:2] + shown[4:]) == _LONG + "e" * 45
        await later.supervisor.close()


async def test_a_file_that_may_be_there_already_is_labelled_where_no_one_can_tell() -> None:
    async with open_delivery() as out:
        # The placeholder, its edit, and the file that follows.
        out.channel.failures.extend([None, None, refusal("transient", done=True)])
        await out.send("x" * 1_000)
        assert [message.file_name for message in out.channel.messages] == ["", "answer.md", "", "answer.md"]
        assert out.channel.texts()[2] == REPEAT_LABEL.strip()


class Killed(MemoryPosts):
    """The process dies when the preview has been posted and its message is not yet on record."""

    def __init__(self) -> None:
        super().__init__(resolution="lookup")
        self.posted = asyncio.Event()

    async def post(self, thread: ThreadKey, part: Part, *, key: str, reply_handle: str = "") -> Receipt:
        receipt = await super().post(thread, part, key=key, reply_handle=reply_handle)
        if not self.posted.is_set():
            self.posted.set()
            await asyncio.Event().wait()
        return receipt


@pytest.mark.parametrize("previewed_again", [True, False])
async def test_a_preview_that_was_posted_and_not_recorded_is_found_and_becomes_the_answer(
    previewed_again: bool,
) -> None:
    channel = Killed()
    async with open_delivery(channel) as out:
        sender = out.live.sender_for(channel, channel.thread(), Origin(message_id="m1"))
        await sender.send_event(TurnStarted(session_id="s", message_id="m1"))
        await sender.send_event(tokens("The whole answer")[0])
        await out.clock.advance(1)
        assert channel.posted.is_set()
        (noted,) = await out.store.shown("m1")
        assert (noted.native_id, noted.final) == ("", False)
        out.row_id = 0
        later = await restarted(out)
        if previewed_again:
            sender = later.live.sender_for(channel, channel.thread(), Origin(message_id="m1"))
            await sender.send_event(TurnStarted(session_id="s", message_id="m1"))
            await sender.send_event(tokens("The whole")[0])
            await later.clock.advance(1)
            assert channel.texts() == ["The whole"]
        row = await later.send("The whole answer.")
        assert channel.texts() == ["The whole answer."]
        assert (row.state, row.receipt) == ("sent", "n1")
        await later.supervisor.close()


async def test_a_preview_that_was_never_posted_is_not_waited_for() -> None:
    async with open_delivery(MemoryPosts(resolution="lookup")) as out:
        await out.store.record_sent_part(
            await out.lease(), "m1", SentPart(part=0, native_id="", final=False, at=1.0)
        )
        row = await out.send("The answer")
        assert out.channel.texts() == ["The answer"]
        assert row.state == "sent"
        assert await out.store.shown("m1") == ()
