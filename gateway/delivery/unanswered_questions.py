"""Edit the message of a paused run's question on a posting channel after the question expired, or its run was
stopped.

The buttons are removed and a note is added. There is one attempt: the resumed turn reports the expiry as
well, and buttons that remain have no effect.
"""

from __future__ import annotations

import logging
from functools import partial

from adapters.channel import Failure, Outgoing, PostingChannel, Timeline
from gateway.channels.registry import ChannelRegistry
from gateway.delivery.chat_queue import ChatQueue, ChatQueues
from gateway.storage.codec import details_of, reply_of
from gateway.storage.log_records import text_of
from gateway.storage.ports import Interaction, OutboxRow, Store
from pipeline.domain.errors import StorageError
from pipeline.domain.ids import ThreadKey

_log = logging.getLogger(__name__)

TOO_LATE = "No one answered in time."
STOPPED = "The run was stopped."


class UnansweredQuestions:
    """Edits the messages of questions that have expired."""

    def __init__(
        self,
        *,
        store: Store,
        channels: ChannelRegistry,
        queues: ChatQueues,
        timeline: Timeline,
    ) -> None:
        self._store = store
        self._channels = channels
        self._queues = queues
        self._timeline = timeline

    def stopped(self, question: Interaction) -> None:
        """Mark the message of a question that a stop has closed; returns at once."""
        self.show(question, STOPPED)

    def show(self, question: Interaction, note: str = TOO_LATE) -> None:
        """Mark the question's message as closed, with a `note` that says why; returns at once."""
        thread = ThreadKey.decode(question.thread)
        adapter = self._channels.of(thread)
        if isinstance(adapter, PostingChannel) and adapter.capabilities.edit:
            queue = self._queues.queue_for(adapter, thread, private=details_of(question).private)
            queue.submit(partial(self._show, adapter, queue, question, note))

    async def _show(
        self, adapter: PostingChannel, queue: ChatQueue, question: Interaction, note: str
    ) -> None:
        try:
            row = await self._store.outbox_row(details_of(question).message_id)
            if row is not None and row.state == "sent" and row.receipt:
                await self._edit(adapter, queue, row, note)
        except StorageError:
            _log.exception("a question's message is not known")

    async def _edit(self, adapter: PostingChannel, queue: ChatQueue, row: OutboxRow, note: str) -> None:
        records = await self._store.read_log(row.thread, after=row.entry_id - 1, message_id=row.message_id)
        text = next((text_of(record) for record in records if record.id == row.entry_id), "")
        if not text:
            return
        thread = ThreadKey.decode(row.thread)
        asked = await self._timeline.questions(thread)
        # One message may hold several questions: those still open keep their buttons.
        questions = tuple(one for one in asked if one.message_id == row.message_id)
        heard = reply_of(row, row.thread, entry_id=row.entry_id, text=text).heard
        native_ids = row.receipt.split(",")
        before = adapter.render(Outgoing(text=text, heard=heard, questions=questions))
        parts = adapter.render(Outgoing(text=f"{text}\n\n{note}", heard=heard, questions=questions))
        if len(parts) != len(native_ids):
            # The new text would be split elsewhere: keep the text and only remove the buttons.
            parts = before
        if len(parts) != len(native_ids):
            return
        last = len(parts) - 1
        for index, (native_id, part) in enumerate(zip(native_ids, parts, strict=True)):
            if part.file is not None or (
                index < last and len(before) == len(parts) and part == before[index]
            ):
                continue
            edited = await queue.calls.run(partial(adapter.edit, thread, native_id, part))
            if isinstance(edited, Failure):
                _log.info("an expired question was not edited", extra={"reason": edited.message})
                return
