"""Replies on their way from the commit to the outbox of their account."""

from __future__ import annotations

import logging

import pytest

from adapters.channel import OutboundReply
from gateway.app.signals import ReadyReplies
from gateway.cluster.in_process import InProcessBus
from gateway.storage.ports import OutboxState
from pipeline.domain.ids import AccountKey, ThreadKey

_HERE: AccountKey = ("telegram", "main")


def _reply(account: AccountKey = _HERE) -> OutboundReply:
    thread = ThreadKey(channel=account[0], account=account[1], chat="1")
    return OutboundReply(
        key="k", thread=thread, message_id="m1", entry_id=4, role="assistant", text="hi", created_at=1.0
    )


class _Outbox:
    """A bus with the replies of one account, and what is sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, OutboundReply, OutboxState]] = []
        self.bus = InProcessBus()
        self.replies = ReadyReplies(self.bus, self._send)
        self.bus.on_outbox(_HERE, self.replies.ready)

    def _send(self, row_id: int, reply: OutboundReply, *, state: OutboxState) -> None:
        self.sent.append((row_id, reply, state))


def test_a_reply_of_an_account_of_this_process_is_sent_at_once_with_what_was_committed() -> None:
    outbox, reply = _Outbox(), _reply()
    outbox.replies.publish(7, reply, state="sending")
    outbox.replies.publish(8, reply, state="ready")
    assert outbox.sent == [(7, reply, "sending"), (8, reply, "ready")]


def test_a_repeated_signal_sends_nothing_twice() -> None:
    outbox = _Outbox()
    outbox.replies.publish(7, _reply(), state="ready")
    outbox.bus.outbox(_HERE, 7)
    outbox.bus.outbox(_HERE, 8)
    assert [row for row, _, _ in outbox.sent] == [7]


def test_a_reply_whose_channel_does_not_run_stays_in_the_store_and_the_log_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    outbox = _Outbox()
    with caplog.at_level(logging.WARNING):
        outbox.replies.publish(7, _reply(("slack", "main")), state="ready")
    outbox.bus.outbox(_HERE, 7)
    assert outbox.sent == []
    assert [record.message for record in caplog.records] == ["reply kept: its channel is not running"]
