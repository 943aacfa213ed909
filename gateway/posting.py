"""One reply on a posting channel: its parts in order, each shown once whatever happened before.

A single attempt; waiting and trying again are `delivery`'s. How a part is kept from showing twice depends
on the channel's `resolution`:

    placeholder   "…" is posted and recorded, then edited into the part: an edit may be repeated
    nonce         posted under its key, which the platform dedupes for some minutes; later it is looked for
    lookup        posted under its key, and looked for when an earlier attempt may have arrived
    none          posted, with a label when an earlier attempt may have arrived

A preview that is on the screen already takes the place of the placeholder on every channel. A file takes
nobody's place: where nothing can be looked for, one that may have arrived is labelled, as with `none`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count

from adapters.channel import OutboundReply, Outgoing, Part, PostingChannel, Receipt
from adapters.formatting.fences import closed_code
from gateway.failpoints import Failpoints
from gateway.lanes import Lane, one_call, understood
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
    born_at: float
    """When it was committed, by the monotonic clock; a reply of an earlier process by what the wall clock
    said when it was taken up."""
    questions: tuple[ApprovalRequired, ...] = ()
    said: str = ""
    """The words of an answer that did not come to its end; they stand above those that say why."""
    shown: dict[int, ShownPart] | None = None
    """By part; None before the first attempt has read it."""
    doubtful: set[int] = field(default_factory=set)
    """Parts whose post may have arrived."""
    labelled: set[int] = field(default_factory=set)
    """Parts that are said to be a possible repeat."""


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
        shown = posted.shown
        if shown is None:
            shown = posted.shown = await self._begin(adapter, posted)
        parts = self._rendered(adapter, posted)
        for index, part in enumerate(parts):
            known = shown.get(index)
            if known is None or not known.final:
                native_id = await self._show(adapter, lane, posted, index, part)
                shown[index] = ShownPart(part=index, native_id=native_id, final=True)
                if index + 1 < len(parts):
                    await self._note(posted, index)
        return Receipt(native_id=",".join(shown[index].native_id for index in range(len(parts))))

    async def _begin(self, adapter: PostingChannel, posted: Posted) -> dict[int, ShownPart]:
        """What is on the screen already: the preview, and what an earlier process has shown."""
        reply = posted.reply
        shown = {one.part: one for one in await self._store.shown(reply.key)}
        preview = await self._live.hand_over(reply.thread, reply.message_id)
        if 0 in shown and not shown[0].native_id:
            preview = preview or await self._preview_in_doubt(adapter, reply, since=shown[0].at)
            del shown[0]
        if preview and 0 not in shown:
            # The store was not able to take it while it grew. Its edit may be cut off by a kill.
            shown[0] = ShownPart(part=0, native_id=preview, final=False)
            await until_recorded(partial(self._store.note_shown, reply.key, shown[0]), self._clock)
        if posted.maybe_sent:
            # Each part is on record before the next one is posted.
            left = (index for index in count() if index not in shown or not shown[index].final)
            posted.doubtful.add(next(left))
        return shown

    async def _preview_in_doubt(self, adapter: PostingChannel, reply: OutboundReply, *, since: float) -> str:
        """The message of a preview whose process died before it could say which it is; empty for none."""
        view = adapter.open_view(
            reply.thread,
            key=f"{reply.key}:0",
            reply_handle=reply.reply_handle,
            native_id="",
            doubtful_since=since,
        )
        if view is None:
            return ""
        await one_call(view.close(), self._clock)
        return view.native_id

    def _rendered(self, adapter: PostingChannel, posted: Posted) -> tuple[Part, ...]:
        """The parts, cut in the same way at each attempt. A reply that is one message has its label inside;
        in one of several it would move the cuts, behind which words would be lost."""
        reply = posted.reply
        text = f"{closed_code(posted.said)}\n\n{reply.text}" if posted.said else reply.text
        outgoing = Outgoing(text=text, heard=reply.heard, questions=posted.questions)
        parts = adapter.render(outgoing)
        anew = 0 in posted.doubtful and 0 not in (posted.shown or {})
        if anew and adapter.capabilities.resolution == "none" and len(parts) == 1:
            labelled = adapter.render(replace(outgoing, text=REPEAT_LABEL + text))
            if len(labelled) == 1:
                posted.labelled.add(0)
                return labelled
        return parts

    async def _show(self, adapter: PostingChannel, lane: Lane, posted: Posted, index: int, part: Part) -> str:
        """The message that shows the part now."""
        if part.file is not None:
            return await self._post(adapter, lane, posted, index, part)
        known = (posted.shown or {}).get(index)
        if known is not None:
            edited = await self._edit(adapter, lane, posted, known, part)
            if edited:
                return edited
        if adapter.capabilities.resolution == "placeholder":
            placed = await self._place(adapter, lane, posted, index)
            edited = await self._edit(adapter, lane, posted, placed, part)
            if edited:
                return edited
        return await self._post(adapter, lane, posted, index, part)

    async def _place(self, adapter: PostingChannel, lane: Lane, posted: Posted, index: int) -> ShownPart:
        """A placeholder that is on record: from here on the part is an edit. A crash between the two leaves
        a placeholder behind, and never the answer twice."""
        reply = posted.reply
        placeholder = adapter.render(Outgoing(text=PLACEHOLDER))[0]
        await lane.allowance.acquire()
        self._failpoints.reach("place-before")
        post = adapter.post(
            reply.thread, placeholder, key=f"{reply.key}:{index}", reply_handle=_handle(reply, index)
        )
        receipt = await one_call(post, self._clock)
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
            edit = adapter.edit(posted.reply.thread, known.native_id, part)
            receipt = await one_call(edit, self._clock)
        except Exception as error:
            if understood(adapter, error).kind != "not_found":
                raise
            # Somebody deleted the preview: the answer becomes a message of its own.
            _log.info("a preview is gone; its answer is posted anew", extra={"row": posted.row_id})
            return ""
        self._failpoints.reach("send-after")
        return receipt.native_id

    async def _post(self, adapter: PostingChannel, lane: Lane, posted: Posted, index: int, part: Part) -> str:
        reply, key = posted.reply, f"{posted.reply.key}:{index}"
        if index in posted.doubtful:
            found = await self._found(adapter, posted, part, key)
            if found is not None:
                return found
            await self._label(adapter, lane, posted, index)
        await lane.allowance.acquire()
        await until_recorded(partial(self._store.mark_sending, posted.row_id), self._clock)
        self._failpoints.reach("send-before")
        try:
            post = adapter.post(reply.thread, part, key=key, reply_handle=_handle(reply, index))
            receipt = await one_call(post, self._clock)
        except Exception as error:
            if understood(adapter, error).maybe_delivered:
                posted.doubtful.add(index)
            raise
        self._failpoints.reach("send-after")
        return receipt.native_id

    async def _found(self, adapter: PostingChannel, posted: Posted, part: Part, key: str) -> str | None:
        """The message that an earlier attempt made, where the channel can tell."""
        resolution, age = adapter.capabilities.resolution, self._clock.monotonic() - posted.born_at
        if resolution == "nonce" and age < NONCE_WINDOW_S:
            return None
        if resolution not in ("nonce", "lookup"):
            return None
        await self._clock.sleep(_SETTLE_S)
        find = adapter.find(posted.reply.thread, part, key=key, since=posted.reply.created_at)
        found = await one_call(find, self._clock)
        return None if found is None else found.native_id

    async def _label(self, adapter: PostingChannel, lane: Lane, posted: Posted, index: int) -> None:
        """Say, where nobody can find out, that the part which follows may be a repeat."""
        if adapter.capabilities.resolution in ("nonce", "lookup") or index in posted.labelled:
            return
        label = adapter.render(Outgoing(text=REPEAT_LABEL.strip()))[0]
        await lane.allowance.acquire()
        post = adapter.post(posted.reply.thread, label, key=f"{posted.reply.key}:{index}r")
        await one_call(post, self._clock)
        posted.labelled.add(index)

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
