"""One reply on a posting channel: its parts in order, each shown once whatever happened before.

A single attempt; waiting and trying again are `delivery`'s. How a part is kept from showing twice depends
on the channel's `resolution`:

    placeholder   "…" is posted and recorded, then edited into the part: an edit may be repeated
    nonce         posted under its key, which the platform dedupes for some minutes; later it is looked for
    lookup        posted under its key, and looked for when an earlier attempt may have arrived
    none          posted, with a label when an earlier attempt may have arrived

A preview that is on the screen already takes the place of the placeholder on every channel.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial

from adapters.channel import OutboundReply, Outgoing, Part, PostingChannel, Receipt
from gateway.failpoints import Failpoints
from gateway.lanes import Lane
from gateway.live import LiveReplies
from gateway.storage.ports import ShownPart, Store
from pipeline.domain.clock import Clock
from pipeline.domain.errors import AlreadyDone, StorageError
from pipeline.domain.events import ApprovalRequired

_log = logging.getLogger(__name__)

REPEAT_LABEL = "(This may be a repeat.)\n"
PLACEHOLDER = "…"
NONCE_WINDOW_S = 120.0
"""For how long a platform is trusted to remember a nonce; Discord promises "a few minutes"."""
_STORE_BACKOFF_S = 2.0
_SETTLE_S = 2.0
"""How long a post of a process that died may still be under way before it is looked for."""


@dataclass(slots=True, kw_only=True)
class Posted:
    """One reply's way out, over all its attempts in this process."""

    row_id: int
    reply: OutboundReply
    maybe_sent: bool
    """An earlier attempt may have arrived."""
    questions: tuple[ApprovalRequired, ...] = ()
    shown: dict[int, ShownPart] | None = None
    """By part; None before the first attempt has read it."""
    doubtful: set[int] = field(default_factory=set)
    """Parts whose post in this process had an unknown outcome."""


class Posting:
    """Shows replies on posting channels."""

    def __init__(self, *, store: Store, live: LiveReplies, clock: Clock, failpoints: Failpoints) -> None:
        self._store = store
        self._live = live
        self._clock = clock
        self._failpoints = failpoints

    async def attempt(self, adapter: PostingChannel, lane: Lane, posted: Posted) -> Receipt:
        """Show what of the reply is not shown yet. Raises whatever the adapter raised; calling again goes
        on where it stopped."""
        reply = posted.reply
        if posted.shown is None:
            preview = await self._live.hand_over(reply.thread, reply.message_id)
            posted.shown = {one.part: one for one in await self._store.shown(reply.key)}
            if preview and 0 not in posted.shown:
                posted.shown[0] = ShownPart(part=0, native_id=preview, final=False)
        text = reply.text
        if posted.maybe_sent and adapter.capabilities.resolution == "none":
            text = REPEAT_LABEL + text
        outgoing = Outgoing(text=text, role=reply.role, heard=reply.heard, questions=posted.questions)
        parts = adapter.render(outgoing)
        for index, part in enumerate(parts):
            known = posted.shown.get(index)
            if known is None or not known.final:
                native_id = await self._show(adapter, lane, posted, index, part)
                posted.shown[index] = ShownPart(part=index, native_id=native_id, final=True)
                if index + 1 < len(parts):
                    await self._note(posted, index)
        return Receipt(native_id=",".join(posted.shown[index].native_id for index in range(len(parts))))

    async def _show(self, adapter: PostingChannel, lane: Lane, posted: Posted, index: int, part: Part) -> str:
        """The message that shows the part now."""
        known = (posted.shown or {}).get(index)
        if known is None and part.file is None and adapter.capabilities.resolution == "placeholder":
            known = await self._place(adapter, lane, posted, index)
        if known is not None and part.file is None:
            edited = await self._edit(adapter, lane, posted, known, part)
            if edited:
                return edited
        return await self._post(adapter, lane, posted, index, part)

    async def _place(self, adapter: PostingChannel, lane: Lane, posted: Posted, index: int) -> ShownPart:
        """A placeholder that is on record: from here on the part is an edit. A crash between the two leaves
        a placeholder behind, and never the answer twice."""
        reply = posted.reply
        placeholder = adapter.render(Outgoing(text=PLACEHOLDER, unfinished=True))[0]
        await lane.allowance.acquire()
        self._failpoints.reach("place-before")
        receipt = await adapter.post(
            reply.thread, placeholder, key=f"{reply.key}:{index}", reply_handle=_handle(reply, index)
        )
        self._failpoints.reach("place-after")
        known = ShownPart(part=index, native_id=receipt.native_id, final=False)
        if posted.shown is not None:
            posted.shown[index] = known
        await self._note(posted, index)
        return known

    async def _edit(
        self, adapter: PostingChannel, lane: Lane, posted: Posted, known: ShownPart, part: Part
    ) -> str:
        """The message, now with the part; empty when it is gone."""
        await lane.allowance.acquire()
        self._failpoints.reach("send-before")
        try:
            receipt = await adapter.edit(posted.reply.thread, known.native_id, part)
        except Exception as error:
            if adapter.classify(error).kind != "not_found":
                raise
            # Somebody deleted the preview: the answer becomes a message of its own.
            _log.info("a preview is gone; its answer is posted anew", extra={"row": posted.row_id})
            return ""
        self._failpoints.reach("send-after")
        return receipt.native_id

    async def _post(self, adapter: PostingChannel, lane: Lane, posted: Posted, index: int, part: Part) -> str:
        reply, key = posted.reply, f"{posted.reply.key}:{index}"
        if posted.maybe_sent or index in posted.doubtful:
            found = await self._found(adapter, posted, part, key)
            if found is not None:
                return found
        await lane.allowance.acquire()
        await until_recorded(partial(self._store.mark_sending, posted.row_id), self._clock)
        self._failpoints.reach("send-before")
        try:
            receipt = await adapter.post(reply.thread, part, key=key, reply_handle=_handle(reply, index))
        except Exception as error:
            if adapter.classify(error).maybe_delivered:
                posted.doubtful.add(index)
            raise
        self._failpoints.reach("send-after")
        return receipt.native_id

    async def _found(self, adapter: PostingChannel, posted: Posted, part: Part, key: str) -> str | None:
        """The message that an earlier attempt made, where the channel can tell."""
        resolution, age = adapter.capabilities.resolution, self._clock.now() - posted.reply.created_at
        if resolution == "nonce" and age < NONCE_WINDOW_S:
            return None
        if resolution not in ("nonce", "lookup"):
            return None
        await self._clock.sleep(_SETTLE_S)
        found = await adapter.find(posted.reply.thread, part, key=key, since=posted.reply.created_at)
        return None if found is None else found.native_id

    async def _note(self, posted: Posted, index: int) -> None:
        if posted.shown is not None:
            note = partial(self._store.note_shown, posted.reply.key, posted.shown[index])
            await until_recorded(note, self._clock)


async def until_recorded(write: Callable[[], Awaitable[None]], clock: Clock) -> None:
    """Write until the store takes it: sending again because of a store that is full for a minute would show
    the reply twice."""
    while True:
        try:
            await write()
        except AlreadyDone:
            return
        except StorageError:
            _log.exception("delivery waits for the store")
            await clock.sleep(_STORE_BACKOFF_S)
        else:
            return


def _handle(reply: OutboundReply, index: int) -> str:
    """Only the first part points at the message that it answers."""
    return reply.reply_handle if index == 0 else ""
