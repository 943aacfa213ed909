"""Replies on a channel that shows what is on record: they count as sent with the commit of their turn."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

import pytest

from adapters.channel import OutboundReply
from gateway.channels.registry import ChannelRegistry
from gateway.delivery.chat_queue import ChatQueues
from gateway.delivery.recorded_replies import RecordedReplies
from gateway.runtime.crash_labels import CrashLabels
from gateway.runtime.metrics import Telemetry
from gateway.runtime.tasks import Supervisor
from pipeline.domain.clock import ManualClock
from pipeline.domain.ids import ThreadKey
from tests.support.channel import MemoryChannel

_THREAD = ThreadKey(channel="console", account="local", chat="c1")
_REPLY = OutboundReply(
    key="m1", thread=_THREAD, message_id="m1", entry_id=4, role="assistant", text="hi", created_at=1.0
)


class _RecordChannel(MemoryChannel):
    """Its people read what is on record; `shown` is what was shown sooner."""

    def __init__(self) -> None:
        super().__init__()
        self.shown: list[str] = []
        self.fails = False

    def show_recorded(self, reply: OutboundReply) -> None:
        if self.fails:
            raise RuntimeError("no socket")
        self.shown.append(reply.text)


@dataclass
class _Replies:
    channel: MemoryChannel
    queues: ChatQueues
    telemetry: Telemetry
    replies: RecordedReplies

    def counted(self) -> bool:
        """Whether a reply that is recorded now counts as sent."""
        return self.replies.count_as_sent(self.channel, _THREAD)


def _made(channel: MemoryChannel) -> _Replies:
    clock = ManualClock()
    queues, telemetry = ChatQueues(clock, Supervisor()), Telemetry(clock)
    replies = RecordedReplies(ChannelRegistry([channel]), queues, telemetry, CrashLabels())
    return _Replies(channel, queues, telemetry, replies)


@pytest.fixture
def channel() -> _RecordChannel:
    return _RecordChannel()


async def test_a_reply_is_shown_after_what_its_turn_still_sends(channel: _RecordChannel) -> None:
    made = _made(channel)
    made.replies.show_soon(_REPLY)
    channel.shown.append("the end of the turn")
    await asyncio.sleep(0)
    assert channel.shown == ["the end of the turn", "hi"]
    assert b'parlour_deliveries_total{result="sent"} 1.0' in made.telemetry.exposition()


async def test_a_channel_that_cannot_show_it_now_is_named_in_the_log(
    channel: _RecordChannel, caplog: pytest.LogCaptureFixture
) -> None:
    channel.fails = True
    made = _made(channel)
    with caplog.at_level(logging.ERROR):
        made.replies.show_soon(_REPLY)
        await asyncio.sleep(0)
    assert [record.message for record in caplog.records] == ["a recorded reply is not shown yet"]
    assert "hi" not in caplog.text


async def test_a_reply_does_not_count_as_sent_while_an_earlier_one_waits(channel: _RecordChannel) -> None:
    made, may_end = _made(channel), asyncio.Event()
    assert made.counted()

    async def earlier() -> None:
        await may_end.wait()

    made.queues.queue_for(channel, _THREAD, private=True).submit(earlier)
    assert not made.counted()
    may_end.set()
    while not made.counted():  # noqa: ASYNC110 - the queue has no event for its end
        await asyncio.sleep(0)


async def test_another_channels_reply_does_not_count_as_sent() -> None:
    assert not _made(MemoryChannel()).counted()
