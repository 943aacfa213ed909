"""Find the unfinished turns that an edit or deletion ends, and the answer that an edit's answer replaces."""

from __future__ import annotations

import logging

from gateway.storage.ports import InboxEntry, Lease, SentPart, Store
from pipeline.domain.bounded_dict import BoundedDict
from pipeline.domain.clock import Clock
from pipeline.domain.messages import InboundMessage, Withdrawal

_log = logging.getLogger(__name__)

_MOST_ANSWERS = 2_000
"""Answers that an edit may still replace; the oldest are forgotten first."""
_POLLS = 20
_POLL_S = 0.25
"""An answer that is still being sent is looked for `_POLLS` times, every `_POLL_S` seconds."""


class Edits:
    """Remembers answers, so that the answer to an edited message replaces the earlier one.

    It is in memory only: after a restart, an edit gets a separate answer.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._rows = BoundedDict[tuple[str, str], int](_MOST_ANSWERS)

    def answered(self, entry: InboxEntry, row_id: int) -> None:
        """Record that the reply to `entry` is the outbox row `row_id`."""
        place = _place(entry)
        if place:
            self._rows[entry.thread, place] = row_id

    async def take_over(self, lease: Lease, entry: InboxEntry) -> None:
        """Show the reply to the edited message `entry` in place of the reply to its earlier version.

        `lease` is the thread's. Waits some seconds at most until the earlier reply is sent. Raises
        StorageError.
        """
        row_id = self._rows.get((entry.thread, _place(entry)))
        edited = isinstance(entry.item, InboundMessage) and entry.item.edited
        if row_id is None or not edited or await self._store.shown(entry.message_id):
            return
        for _ in range(_POLLS):
            row = await self._store.outbox_row(row_id)
            if row is None or row.state not in ("ready", "sending"):
                break
            await self._clock.sleep(_POLL_S)
        else:
            _log.info("an edit is answered on its own: the answer before is not sent", extra={"row": row_id})
            return
        if row is None or row.state != "sent" or not row.receipt:
            return
        for part, native_id in enumerate(row.receipt.split(",")):
            shown = SentPart(part=part, native_id=native_id, final=False, at=self._clock.now())
            await self._store.record_sent_part(lease, entry.message_id, shown)


async def ended_by(
    store: Store, item: InboundMessage | Withdrawal, *, before: int | None
) -> list[InboxEntry]:
    """Mark as cancelled, and return, the unfinished entries that an edit or a deletion ends: earlier versions
    of the same message, with a smaller seq than `before` if that is given."""
    thread = item.thread.encode()
    if not item.place:
        return []
    found = [
        entry
        for entry in await store.open_entries(thread)
        if _place(entry) == item.place and (before is None or entry.seq < before)
    ]
    for entry in found:
        await store.cancel_open(thread, from_seq=entry.seq, up_to_seq=entry.seq)
    return found


def _place(entry: InboxEntry) -> str:
    return entry.item.place if isinstance(entry.item, InboundMessage) else ""
