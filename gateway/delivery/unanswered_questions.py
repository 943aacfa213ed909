"""The message of a paused run's question on a posting channel, once nobody has answered it in time.

Its buttons go, and it says so. Tried once: the turn that goes on says it as well, and buttons that stay do
nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial

from adapters.channel import Channel, Outgoing, PostingChannel, Timeline
from gateway.delivery.chat_queue import ChatQueue, ChatQueues
from gateway.delivery.platform_calls import BLOCKED_S, call_with_timeout, classify_failure
from gateway.storage.codec import reply_of
from gateway.storage.ports import Interaction, OutboxRow, Store
from pipeline.domain.clock import Clock
from pipeline.domain.errors import StorageError
from pipeline.domain.ids import ThreadKey

_log = logging.getLogger(__name__)

TOO_LATE = "Nobody answered in time."


class UnansweredQuestions:
    """Edits the messages of questions that have expired."""

    def __init__(
        self,
        *,
        store: Store,
        channels: Mapping[tuple[str, str], Channel],
        lanes: ChatQueues,
        timeline: Timeline,
        clock: Clock,
    ) -> None:
        self._store = store
        self._channels = channels
        self._lanes = lanes
        self._timeline = timeline
        self._clock = clock

    def show(self, question: Interaction) -> None:
        """Have the question's message say that its time is over; returns at once."""
        thread = ThreadKey.decode(question.thread)
        adapter = self._channels.get((thread.channel, thread.account))
        if isinstance(adapter, PostingChannel) and adapter.capabilities.edit:
            lane = self._lanes.lane(adapter, thread, private=bool(question.body.get("private", False)))
            lane.submit(partial(self._show, adapter, lane, question))

    async def _show(self, adapter: PostingChannel, lane: ChatQueue, question: Interaction) -> None:
        try:
            row = await self._store.outbox_row(str(question.body.get("message_id", "")))
            if row is not None and row.state == "sent" and row.receipt:
                await self._edit(adapter, lane, row)
        except StorageError:
            _log.exception("a question's message is not known")
        except Exception as error:  # noqa: BLE001 - the adapter knows what its own errors mean
            failure = classify_failure(adapter, error)
            if failure.kind == "rate_limit":
                lane.allowance.back_off(failure, default_s=BLOCKED_S)
            _log.info("an expired question was not edited", extra={"reason": failure.message})

    async def _edit(self, adapter: PostingChannel, lane: ChatQueue, row: OutboxRow) -> None:
        records = await self._store.read_log(row.thread, after=row.entry_id - 1, message_id=row.message_id)
        text = next((str(record.body.get("text", "")) for record in records if record.id == row.entry_id), "")
        if not text:
            return
        thread = ThreadKey.decode(row.thread)
        asked = await self._timeline.questions(thread)
        # One message may hold several questions: what is still open keeps its buttons.
        questions = tuple(one for one in asked if one.message_id == row.message_id)
        heard = reply_of(row, row.thread, entry_id=row.entry_id, text=text).heard
        standing = row.receipt.split(",")
        before = adapter.render(Outgoing(text=text, heard=heard, questions=questions))
        parts = adapter.render(Outgoing(text=f"{text}\n\n{TOO_LATE}", heard=heard, questions=questions))
        if len(parts) != len(standing):
            # It would be cut elsewhere: the words stay as they are, without their buttons.
            parts = before
        if len(parts) != len(standing):
            return
        last = len(parts) - 1
        for index, (native_id, part) in enumerate(zip(standing, parts, strict=True)):
            if part.file is not None or (
                index < last and len(before) == len(parts) and part == before[index]
            ):
                continue
            await lane.allowance.acquire()
            await call_with_timeout(adapter.edit(thread, native_id, part), self._clock)
