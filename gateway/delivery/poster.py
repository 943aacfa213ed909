"""One reply on a posting channel: its parts in order, each shown once whatever happened before.

A single attempt; waiting and trying again are `delivery`'s. How a part is kept from showing twice depends
on the channel's `resolution`:

    placeholder   "…" is posted and recorded, then edited into the part: an edit may be repeated
    nonce         posted under its key, which the platform dedupes for some minutes; later it is looked for
    lookup        posted under its key, and looked for when an earlier attempt may have arrived
    none          posted, with a label when an earlier attempt may have arrived

A preview that is on the screen already takes the place of the placeholder on every channel. A file takes
nobody's place: where nothing can be looked for, one that may have arrived is labelled, as with `none`. So is
a part whose look-up the platform refuses: nobody knows whether it arrived, and a repeat is better than none.
A preview whose edit the platform refuses stays as it is, and the part is posted.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from functools import partial
from itertools import count

from adapters.channel import Failure, OutboundReply, Outgoing, Part, PostingChannel, Receipt
from adapters.formatting.fences import closed_code
from gateway.delivery.chat_queue import ChatQueue
from gateway.delivery.duplicate_posts import remove_duplicate
from gateway.delivery.platform_calls import call_with_timeout, classify_failure, retry_until_stored
from gateway.delivery.preview import LiveReplies
from gateway.runtime.failpoints import Failpoints
from gateway.storage.ports import SentPart, Store
from pipeline.domain.clock import Clock
from pipeline.domain.events import ApprovalRequired

_log = logging.getLogger(__name__)

REPEAT_LABEL = "(This may be a repeat.)\n"
PLACEHOLDER = "…"
UNSHOWABLE = "The answer is there, but it could not be prepared for being shown here."
NONCE_WINDOW_S = 120.0
"""For how long a platform is trusted to remember a nonce; Discord promises "a few minutes"."""
_SETTLE_S = 2.0
"""How long a post of a process that died may still be under way before it is looked for."""
_LATE_EDIT_S = 5.0
"""By then an edit that was cut short has arrived or is lost: the answer is put over it once more."""
_MOST_FAILED_LOOKUPS = 10
"""Look-ups of one reply that fail on the way. It is posted after that, labelled. The look-up is still made
before each attempt: once an outage is over, it answers."""
_PASSING_KINDS = frozenset({"transient", "auth"})
_REFUSED_EDITS = frozenset({"permission", "invalid", "unknown"})


@dataclass(slots=True, kw_only=True)
class ReplyDelivery:
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
    shown: dict[int, SentPart] | None = None
    """By part; None before the first attempt has read it."""
    doubtful: set[int] = field(default_factory=set)
    """Parts whose post may have arrived."""
    untraceable: set[int] = field(default_factory=set)
    """Parts in doubt of which nobody can tell whether they arrived."""
    labelled: dict[int, str] = field(default_factory=dict)
    """By part, the message of its own before it that says that it may be a repeat."""
    edited: set[int] = field(default_factory=set)
    """Parts with an edit that may have been carried out."""
    failed_lookups: int = 0
    unsettled: bool = False
    """The preview's last edit was cut short and may still arrive, over the answer."""


class Posting:
    """Shows replies on posting channels."""

    def __init__(self, *, store: Store, live: LiveReplies, clock: Clock, failpoints: Failpoints) -> None:
        self._store = store
        self._live = live
        self._clock = clock
        self._failpoints = failpoints

    async def attempt(self, adapter: PostingChannel, lane: ChatQueue, posted: ReplyDelivery) -> Receipt:
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
                shown[index] = SentPart(part=index, native_id=native_id, final=True)
                if index + 1 < len(parts):
                    await self._note(posted, index)
        return Receipt(native_id=",".join(shown[index].native_id for index in range(len(parts))))

    async def _begin(self, adapter: PostingChannel, posted: ReplyDelivery) -> dict[int, SentPart]:
        """What is on the screen already: the preview, and what an earlier process has shown."""
        reply = posted.reply
        shown = {one.part: one for one in await self._store.shown(reply.key)}
        taken = await self._live.hand_over(reply.thread, reply.message_id)
        preview, posted.unsettled = taken.native_id, taken.unsettled
        if 0 in shown and not shown[0].native_id:
            preview = preview or await self._preview_in_doubt(adapter, posted, since=shown[0].at)
            del shown[0]
        if preview and 0 not in shown:
            # The store was not able to take it while it grew. Its edit may be cut off by a kill.
            shown[0] = SentPart(part=0, native_id=preview, final=False)
            await retry_until_stored(partial(self._store.record_sent_part, reply.key, shown[0]), self._clock)
        if posted.maybe_sent:
            # Each part is on record before the next one is posted.
            left = (index for index in count() if index not in shown or not shown[index].final)
            posted.doubtful.add(next(left))
        return shown

    async def _preview_in_doubt(self, adapter: PostingChannel, posted: ReplyDelivery, *, since: float) -> str:
        """The message of a preview whose process died before it could say which it is; empty for none. A
        look-up that is refused leaves the first part in doubt."""
        reply = posted.reply
        view = adapter.open_view(
            reply.thread,
            key=f"{reply.key}:0",
            reply_handle=reply.reply_handle,
            native_id="",
            doubtful_since=since,
        )
        if view is None:
            return ""
        try:
            await call_with_timeout(view.close(), self._clock)
        except Exception as error:
            if not self._cannot_be_told(posted, classify_failure(adapter, error)):
                raise
            posted.doubtful.add(0)
        return view.native_id

    def _rendered(
        self, adapter: PostingChannel, posted: ReplyDelivery, *, label: str = ""
    ) -> tuple[Part, ...]:
        """The parts, cut in the same way at each attempt, behind `label`."""
        reply = posted.reply
        text = f"{closed_code(posted.said)}\n\n{reply.text}" if posted.said else reply.text
        outgoing = Outgoing(text=label + text, heard=reply.heard, questions=posted.questions)
        return _parts_of(adapter, outgoing)

    async def _show(
        self, adapter: PostingChannel, lane: ChatQueue, posted: ReplyDelivery, index: int, part: Part
    ) -> str:
        """The message that shows the part now."""
        if part.file is not None:
            return await self._post(adapter, lane, posted, index, part)
        known = (posted.shown or {}).get(index)
        if known is not None:
            edited = await self._edit(adapter, lane, posted, known, part)
            if edited:
                return edited
        if adapter.capabilities.resolution == "placeholder" and index not in posted.untraceable:
            placed = await self._place(adapter, lane, posted, index)
            edited = await self._edit(adapter, lane, posted, placed, part)
            if edited:
                return edited
        return await self._post(adapter, lane, posted, index, part)

    async def _place(
        self, adapter: PostingChannel, lane: ChatQueue, posted: ReplyDelivery, index: int
    ) -> SentPart:
        """A placeholder that is on record: from here on the part is an edit. A crash between the two leaves
        a placeholder behind, and never the answer twice."""
        reply = posted.reply
        placeholder = adapter.render(Outgoing(text=PLACEHOLDER))[0]
        await lane.allowance.acquire()
        self._failpoints.reach("place-before")
        post = adapter.post(
            reply.thread, placeholder, key=f"{reply.key}:{index}", reply_handle=_handle(reply, index)
        )
        receipt = await call_with_timeout(post, self._clock)
        self._failpoints.reach("place-after")
        known = SentPart(part=index, native_id=receipt.native_id, final=False)
        if posted.shown is not None:
            posted.shown[index] = known
        await self._note(posted, index)
        return known

    async def _edit(
        self, adapter: PostingChannel, lane: ChatQueue, posted: ReplyDelivery, known: SentPart, part: Part
    ) -> str:
        """The message, now with the part; empty when it is gone."""
        await lane.allowance.acquire()
        self._failpoints.reach("send-before")
        try:
            edit = adapter.edit(posted.reply.thread, known.native_id, part)
            receipt = await call_with_timeout(edit, self._clock)
        except Exception as error:
            failure = classify_failure(adapter, error)
            if failure.maybe_delivered:
                posted.edited.add(known.part)
                raise
            if failure.kind in _REFUSED_EDITS and known.part in posted.edited:
                posted.doubtful.add(known.part)
                posted.untraceable.add(known.part)
            elif failure.kind != "not_found" and failure.kind not in _REFUSED_EDITS:
                raise
            # Somebody deleted the preview, or forbids its edit: the answer becomes a message of its own.
            _log.info("a preview cannot become its answer, which is posted", extra={"row": posted.row_id})
            return ""
        self._failpoints.reach("send-after")
        if known.part == 0 and posted.unsettled and not posted.reply.asks:
            # Not where people may have answered: that would bring the buttons back.
            again = partial(self._edit_again, adapter, posted.reply, receipt.native_id, part)
            due = self._clock.monotonic() + _LATE_EDIT_S
            lane.offer(f"again {posted.reply.key}", again, not_before=due)
        return receipt.native_id

    async def _edit_again(
        self, adapter: PostingChannel, reply: OutboundReply, native_id: str, part: Part
    ) -> None:
        """The answer over a preview's edit that the platform may have carried out after it."""
        try:
            await call_with_timeout(adapter.edit(reply.thread, native_id, part), self._clock)
        except Exception as error:  # noqa: BLE001 - the answer is most likely shown already
            _log.info(
                "an answer was not edited again", extra={"reason": classify_failure(adapter, error).message}
            )

    async def _post(
        self, adapter: PostingChannel, lane: ChatQueue, posted: ReplyDelivery, index: int, part: Part
    ) -> str:
        reply, key, bare = posted.reply, f"{posted.reply.key}:{index}", part
        in_doubt = index in posted.doubtful
        if in_doubt:
            found = await self._found(adapter, posted, index, part)
            if found:
                return found
            if index in posted.untraceable:
                part = await self._labelled(adapter, lane, posted, index, part)
        await lane.allowance.acquire()
        await retry_until_stored(partial(self._store.mark_sending, posted.row_id), self._clock)
        self._failpoints.reach("send-before")
        try:
            post = adapter.post(reply.thread, part, key=key, reply_handle=_handle(reply, index))
            receipt = await call_with_timeout(post, self._clock)
        except Exception as error:
            if classify_failure(adapter, error).maybe_delivered:
                posted.doubtful.add(index)
            raise
        self._failpoints.reach("send-after")
        if not in_doubt:
            return receipt.native_id
        others = {one.native_id for one in await self._store.shown(reply.key)}
        others |= {reply.reply_handle, *(one.native_id for one in (posted.shown or {}).values())}
        return await remove_duplicate(
            adapter,
            lane,
            self._store,
            self._clock,
            thread=reply.thread,
            part=bare,
            repeat=receipt.native_id,
            labels=[posted.labelled[index]] if index in posted.labelled else [],
            known=others,
        )

    async def _found(self, adapter: PostingChannel, posted: ReplyDelivery, index: int, part: Part) -> str:
        """The message that an earlier attempt made; empty when there is none. A part of which the channel
        cannot tell is noted as untraceable."""
        resolution, age = adapter.capabilities.resolution, self._clock.monotonic() - posted.born_at
        if resolution == "nonce" and age < NONCE_WINDOW_S:
            return ""
        if resolution not in ("nonce", "lookup"):
            posted.untraceable.add(index)
            return ""
        await self._clock.sleep(_SETTLE_S)
        key = f"{posted.reply.key}:{index}"
        try:
            find = adapter.find(posted.reply.thread, part, key=key, since=posted.reply.created_at)
            found = await call_with_timeout(find, self._clock)
        except Exception as error:
            if not self._cannot_be_told(posted, classify_failure(adapter, error)):
                raise
            posted.untraceable.add(index)
            return ""
        if index not in posted.edited:
            posted.untraceable.discard(index)
        return "" if found is None else found.native_id

    def _cannot_be_told(self, posted: ReplyDelivery, failure: Failure) -> bool:
        """Whether a failed look-up means that nobody can tell, rather than that it has to be made again. It
        never says that the reply itself cannot be sent."""
        if failure.kind == "rate_limit":
            return False
        posted.failed_lookups += failure.kind in _PASSING_KINDS
        if failure.kind in _PASSING_KINDS and posted.failed_lookups < _MOST_FAILED_LOOKUPS:
            return False
        extra = {"row": posted.row_id, "reason": failure.message}
        _log.warning("nobody can tell whether a reply arrived; it is posted and says so", extra=extra)
        return True

    async def _labelled(
        self, adapter: PostingChannel, lane: ChatQueue, posted: ReplyDelivery, index: int, part: Part
    ) -> Part:
        """The part to post, said to be a possible repeat: inside of it where the reply is one message. In one
        of several that would move the cuts and lose words behind them: there a message before it says so."""
        if len(self._rendered(adapter, posted)) == 1:
            inside = self._rendered(adapter, posted, label=REPEAT_LABEL)
            if len(inside) == 1:
                return inside[0]
        if index not in posted.labelled:
            label = adapter.render(Outgoing(text=REPEAT_LABEL.strip()))[0]
            await lane.allowance.acquire()
            post = adapter.post(posted.reply.thread, label, key=f"{posted.reply.key}:{index}r")
            posted.labelled[index] = (await call_with_timeout(post, self._clock)).native_id
        return part

    async def _note(self, posted: ReplyDelivery, index: int) -> None:
        if posted.shown is not None:
            note = partial(self._store.record_sent_part, posted.reply.key, posted.shown[index])
            await retry_until_stored(note, self._clock)


def _parts_of(adapter: PostingChannel, outgoing: Outgoing) -> tuple[Part, ...]:
    """The parts of `outgoing`; of one line that says so, where the adapter cannot render it. Trying again
    would fail again, and keep those behind it waiting."""
    try:
        return adapter.render(outgoing)
    except Exception:  # noqa: BLE001 - an adapter's fault must not hold up the chat
        _log.exception("a reply could not be rendered")
        return adapter.render(Outgoing(text=UNSHOWABLE, questions=outgoing.questions))


def _handle(reply: OutboundReply, index: int) -> str:
    """Only the first part points at the message that it answers."""
    return reply.reply_handle if index == 0 else ""
