"""Edited and deleted messages: which unfinished turns they end, and which answer an edit's own takes over."""

from __future__ import annotations

import logging
from collections import OrderedDict

from gateway.storage.ports import InboxEntry, SentPart, Store
from pipeline.domain.clock import Clock
from pipeline.domain.messages import InboundMessage, Withdrawal

_log = logging.getLogger(__name__)

_MOST_ANSWERS = 2_000
"""Answers that an edit may still take over; those given longest ago are forgotten first."""
_LOOKS = 20
_LOOK_S = 0.25
"""An answer that is on its way is waited for: so often, and for so long each time."""


class Edits:
    """What the gateway remembers of answers, so that an edited message's new one takes their place.

    It lives in memory: behind a restart, an edit gets an answer of its own.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._rows: OrderedDict[tuple[str, str], int] = OrderedDict()

    def answered(self, entry: InboxEntry, row_id: int) -> None:
        """The reply to `entry` is on record as that outbox row."""
        place = str(entry.body.get("place", ""))
        if not place:
            return
        self._rows[entry.thread, place] = row_id
        self._rows.move_to_end((entry.thread, place))
        while len(self._rows) > _MOST_ANSWERS:
            self._rows.popitem(last=False)

    async def take_over(self, entry: InboxEntry) -> None:
        """Let the reply to the edited message `entry` be shown where that to the message before is shown.

        Waits until the earlier one is sent, for some seconds at most. Raises StorageError.
        """
        row_id = self._rows.get((entry.thread, str(entry.body.get("place", ""))))
        if row_id is None or not entry.body.get("edited") or await self._store.shown(entry.message_id):
            return
        for _ in range(_LOOKS):
            row = await self._store.outbox_row(row_id)
            if row is None or row.state not in ("ready", "sending"):
                break
            await self._clock.sleep(_LOOK_S)
        else:
            _log.info("an edit is answered on its own: the answer before is not sent", extra={"row": row_id})
            return
        if row is None or row.state != "sent" or not row.receipt:
            return
        for part, native_id in enumerate(row.receipt.split(",")):
            shown = SentPart(part=part, native_id=native_id, final=False, at=self._clock.now())
            await self._store.record_sent_part(entry.message_id, shown)


async def ended_by(
    store: Store, item: InboundMessage | Withdrawal, *, before: int | None
) -> list[InboxEntry]:
    """The unfinished messages that an edit or a deletion ends, marked as cancelled: earlier versions of the
    same message, with a smaller seq than `before` where that is given."""
    thread = item.thread.encode()
    if not item.place:
        return []
    found = [
        entry
        for entry in await store.open_entries(thread)
        if entry.kind == "message"
        and entry.body.get("place") == item.place
        and (before is None or entry.seq < before)
    ]
    for entry in found:
        await store.cancel_open(thread, from_seq=entry.seq, up_to_seq=entry.seq)
    return found
