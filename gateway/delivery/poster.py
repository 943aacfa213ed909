"""Post one reply on a posting channel: its parts in order, each of them once.

This module makes a single attempt; `outbox` waits and retries. How a part is kept from showing twice depends
on the channel's `resolution`:

    placeholder   "…" is posted and recorded, then edited into the part: an edit may be repeated
    nonce         posted under its key, which the platform dedupes for some minutes; later it is looked for
    lookup        posted under its key, and looked for when an earlier attempt may have arrived
    none          posted, with a label when an earlier attempt may have arrived

On every channel a visible preview serves as the placeholder. A file cannot replace a message: on a channel
without look-ups, a file that may have arrived is labelled, as with `none`. A part whose look-up the platform
refuses is labelled too: it is unknown whether it arrived, and a repeat is better than a lost reply. A preview
whose edit the platform refuses stays as it is, and the part is posted. The files of a reply are parts after
those of its text.
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
from gateway.delivery.platform_calls import SETTLE_S, call_with_timeout, classify_failure, retry_until_stored
from gateway.delivery.preview import LiveReplies
from gateway.delivery.reply_files import ReplyFiles
from gateway.runtime.crash_labels import CrashLabels
from gateway.storage.leases import AccountLeases
from gateway.storage.ports import NO_LEASE, Lease, SentPart, Store
from pipeline.domain.clock import Clock
from pipeline.domain.events import ApprovalRequired
from pipeline.domain.ids import ThreadKey

_log = logging.getLogger(__name__)

REPEAT_LABEL = "(This may be a repeat.)\n"
PLACEHOLDER = "…"
UNSHOWABLE = "The answer is there, but it could not be prepared for being shown here."
NONCE_WINDOW_S = 120.0
"""How long we assume that a platform remembers a nonce; Discord promises "a few minutes"."""
_LATE_EDIT_S = 5.0
"""After this time an interrupted edit has arrived or is lost; then the answer is edited in once more."""
_MOST_FAILED_LOOKUPS = 10
"""After this many failed look-ups for one reply it is posted with a label. The look-up is still made before
each attempt, because it works again once an outage is over."""
_PASSING_KINDS = frozenset({"transient", "auth"})
_REFUSED_EDITS = frozenset({"permission", "invalid", "unknown"})
_REFUSED_FILES = frozenset({"permission", "invalid"})
"""The platform takes texts in this chat, but not this file."""


@dataclass(slots=True, kw_only=True)
class ReplyDelivery:
    """The state of one reply's delivery, over all attempts in this process."""

    row_id: int
    reply: OutboundReply
    maybe_sent: bool
    """An earlier attempt may have arrived."""
    born_at: float
    """Monotonic time of the commit; for a reply of an earlier process computed from its wall-clock age."""
    lease: Lease = NO_LEASE
    """The account's, under which the row is written."""
    marked: bool = False
    """Its row is in state sending although nothing was posted yet."""
    questions: tuple[ApprovalRequired, ...] = ()
    said: str = ""
    """The text of an unfinished answer; it is shown above the error that explains why."""
    shown: dict[int, SentPart] | None = None
    """By part; None before the first attempt has read it."""
    doubtful: set[int] = field(default_factory=set)
    """Parts whose post may have arrived."""
    untraceable: set[int] = field(default_factory=set)
    """Parts that may have arrived and cannot be looked up."""
    labelled: dict[int, str] = field(default_factory=dict)
    """By part, the id of the separate message before it that holds the repeat label."""
    edited: set[int] = field(default_factory=set)
    """Parts with an edit that may have been carried out."""
    posted: list[str] = field(default_factory=list)
    """The ids of the messages that this process posted for it."""
    failed_lookups: int = 0
    unsettled: bool = False
    """The preview's last edit was interrupted; it may still arrive and overwrite the answer."""


class Posting:
    """Posts replies on posting channels."""

    def __init__(
        self,
        *,
        store: Store,
        files: ReplyFiles,
        live: LiveReplies,
        clock: Clock,
        crash_labels: CrashLabels,
        leases: AccountLeases,
    ) -> None:
        self._leases = leases
        self._store, self._files = store, files
        self._live, self._clock = live, clock
        self._crash_labels = crash_labels

    def has_preview(self, thread: ThreadKey, message_id: str) -> bool:
        """Whether the answer to the message has a preview, which becomes the answer by an edit."""
        return self._live.has_preview(thread, message_id)

    async def attempt(self, adapter: PostingChannel, queue: ChatQueue, delivery: ReplyDelivery) -> Receipt:
        """Show the parts of the reply that are not shown yet. Raises what the adapter raised; the next call
        continues where this one stopped."""
        shown = delivery.shown
        if shown is None:
            shown = delivery.shown = await self._begin(adapter, delivery)
        parts = self._rendered(adapter, delivery)
        number = len(parts) + len(delivery.reply.files)
        for index in range(number):
            known = shown.get(index)
            if known is None or not known.final:
                if index < len(parts):
                    native_id = await self._show(adapter, queue, delivery, index, parts[index])
                else:
                    native_id = await self._show_file(adapter, queue, delivery, index, index - len(parts))
                shown[index] = SentPart(part=index, native_id=native_id, final=True)
                if index + 1 < number:
                    await self._note(delivery, index)
        return Receipt(native_id=",".join(shown[index].native_id for index in range(number)))

    async def _begin(self, adapter: PostingChannel, delivery: ReplyDelivery) -> dict[int, SentPart]:
        """The parts that are visible already: the preview, and those that an earlier process posted."""
        reply = delivery.reply
        shown = {one.part: one for one in await self._store.shown(reply.key)}
        taken = await self._live.hand_over(reply.thread, reply.message_id)
        preview, delivery.unsettled = taken.native_id, taken.unsettled
        # A process that stood still may carry out an edit of its preview when it continues.
        delivery.unsettled |= self._leases.shared and 0 in shown and not preview
        if 0 in shown and not shown[0].native_id:
            preview = preview or await self._preview_in_doubt(adapter, delivery, since=shown[0].at)
            del shown[0]
        if preview and 0 not in shown:
            # The store failed to record it earlier. It is needed if a kill interrupts the edit.
            shown[0] = SentPart(part=0, native_id=preview, final=False)
            await retry_until_stored(
                partial(self._store.record_sent_part, delivery.lease, reply.key, shown[0]), self._clock
            )
        if delivery.maybe_sent:
            # Each part is on record before the next one is delivery.
            left = (index for index in count() if index not in shown or not shown[index].final)
            delivery.doubtful.add(next(left))
        return shown

    async def _preview_in_doubt(
        self, adapter: PostingChannel, delivery: ReplyDelivery, *, since: float
    ) -> str:
        """Look up the preview of a process that died before it recorded the message id; empty for none. If
        the look-up is refused, the first part stays uncertain."""
        reply = delivery.reply
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
            if not self._is_uncertain(delivery, classify_failure(adapter, error)):
                raise
            delivery.doubtful.add(0)
        return view.native_id

    def _rendered(
        self, adapter: PostingChannel, delivery: ReplyDelivery, *, label: str = ""
    ) -> tuple[Part, ...]:
        """The parts after `label`, split in the same way at each attempt."""
        reply = delivery.reply
        text = f"{closed_code(delivery.said)}\n\n{reply.text}" if delivery.said else reply.text
        outgoing = Outgoing(text=label + text, heard=reply.heard, questions=delivery.questions)
        return _parts_of(adapter, outgoing)

    async def _show(
        self, adapter: PostingChannel, queue: ChatQueue, delivery: ReplyDelivery, index: int, part: Part
    ) -> str:
        """Show the part; the id of its message."""
        if part.file is not None:
            return await self._post(adapter, queue, delivery, index, part)
        known = (delivery.shown or {}).get(index)
        if known is not None:
            edited = await self._edit(adapter, queue, delivery, known, part)
            if edited:
                return edited
        if adapter.capabilities.resolution == "placeholder" and index not in delivery.untraceable:
            placed = await self._place(adapter, queue, delivery, index)
            edited = await self._edit(adapter, queue, delivery, placed, part)
            if edited:
                return edited
        return await self._post(adapter, queue, delivery, index, part)

    async def _show_file(
        self, adapter: PostingChannel, queue: ChatQueue, delivery: ReplyDelivery, index: int, number: int
    ) -> str:
        """Show file `number` of the reply, or say in words why not; the id of its message."""
        reply = delivery.reply
        file = reply.files[number]
        part = await self._files.part(adapter, reply, file)
        if part.file is None:
            return await self._show(adapter, queue, delivery, index, part)
        try:
            return await self._post(adapter, queue, delivery, index, part)
        except Exception as error:
            failure = classify_failure(adapter, error)
            if failure.kind not in _REFUSED_FILES or failure.maybe_delivered:
                raise
            _log.info("a file is refused", extra={"row": delivery.row_id, "reason": failure.message})
        return await self._show(adapter, queue, delivery, index, self._files.refused(adapter, reply, file))

    async def _place(
        self, adapter: PostingChannel, queue: ChatQueue, delivery: ReplyDelivery, index: int
    ) -> SentPart:
        """Post and record a placeholder, which is then edited into the part. A crash between the two leaves a
        stray placeholder, but never shows the answer twice."""
        reply = delivery.reply
        placeholder = adapter.render(Outgoing(text=PLACEHOLDER))[0]
        await queue.limiter.acquire()
        self._crash_labels.reach("place-before")
        self._leases.check(reply.thread.account_key)
        post = adapter.post(
            reply.thread, placeholder, key=f"{reply.key}:{index}", reply_handle=_handle(reply, index)
        )
        receipt = await call_with_timeout(post, self._clock)
        self._crash_labels.reach("place-after")
        known = SentPart(part=index, native_id=receipt.native_id, final=False)
        if delivery.shown is not None:
            delivery.shown[index] = known
        await self._note(delivery, index)
        return known

    async def _edit(
        self, adapter: PostingChannel, queue: ChatQueue, delivery: ReplyDelivery, known: SentPart, part: Part
    ) -> str:
        """Edit the part into a message; its id, empty if the message is gone or cannot be edited."""
        await queue.limiter.acquire()
        self._crash_labels.reach("send-before")
        self._leases.check(delivery.reply.thread.account_key)
        try:
            edit = adapter.edit(delivery.reply.thread, known.native_id, part)
            receipt = await call_with_timeout(edit, self._clock)
        except Exception as error:
            failure = classify_failure(adapter, error)
            if failure.maybe_delivered:
                delivery.edited.add(known.part)
                raise
            if failure.kind in _REFUSED_EDITS and known.part in delivery.edited:
                delivery.doubtful.add(known.part)
                delivery.untraceable.add(known.part)
            elif failure.kind != "not_found" and failure.kind not in _REFUSED_EDITS:
                raise
            # The preview was deleted, or its edit is forbidden: the answer becomes a separate message.
            _log.info("a preview cannot become its answer, which is posted", extra={"row": delivery.row_id})
            return ""
        self._crash_labels.reach("send-after")
        if known.part == 0 and delivery.unsettled and not delivery.reply.asks:
            # Not for a question: people may have answered it, and the edit would bring the buttons back.
            again = partial(self._edit_again, adapter, queue, delivery.reply, receipt.native_id, part)
            due = self._clock.monotonic() + _LATE_EDIT_S
            queue.schedule_preview(f"again {delivery.reply.key}", again, not_before=due)
        return receipt.native_id

    async def _edit_again(
        self, adapter: PostingChannel, queue: ChatQueue, reply: OutboundReply, native_id: str, part: Part
    ) -> None:
        """Edit the answer in again, in case the platform carried out an old preview edit after it."""
        # The queue counted this call. If it fails, the answer is most likely shown already.
        edited = await queue.calls.run(partial(adapter.edit, reply.thread, native_id, part), counted=False)
        if isinstance(edited, Failure):
            _log.info("an answer was not edited again", extra={"reason": edited.message})

    async def _post(
        self, adapter: PostingChannel, queue: ChatQueue, delivery: ReplyDelivery, index: int, part: Part
    ) -> str:
        reply, key, bare = delivery.reply, f"{delivery.reply.key}:{index}", part
        in_doubt = index in delivery.doubtful
        if in_doubt:
            found = await self._found(adapter, delivery, index, part)
            if found:
                return found
            if index in delivery.untraceable:
                part = await self._labelled(adapter, queue, delivery, index, part)
        await queue.limiter.acquire()
        if not delivery.marked:
            await retry_until_stored(
                partial(self._store.mark_sending, delivery.lease, delivery.row_id), self._clock
            )
        delivery.marked = False
        self._crash_labels.reach("send-before")
        self._leases.check(reply.thread.account_key)
        try:
            post = adapter.post(reply.thread, part, key=key, reply_handle=_handle(reply, index))
            receipt = await call_with_timeout(post, self._clock)
        except Exception as error:
            if classify_failure(adapter, error).maybe_delivered:
                delivery.doubtful.add(index)
            raise
        delivery.posted.append(receipt.native_id)
        self._crash_labels.reach("send-after")
        if not in_doubt:
            return receipt.native_id
        others = {one.native_id for one in await self._store.shown(reply.key)}
        others |= {reply.reply_handle, *(one.native_id for one in (delivery.shown or {}).values())}
        return await remove_duplicate(
            adapter,
            queue,
            self._store,
            thread=reply.thread,
            part=bare,
            repeat=receipt.native_id,
            labels=[delivery.labelled[index]] if index in delivery.labelled else [],
            known=others,
        )

    async def _found(self, adapter: PostingChannel, delivery: ReplyDelivery, index: int, part: Part) -> str:
        """The id of the message that an earlier attempt posted; empty for none. A part that the channel
        cannot look up is added to `untraceable`."""
        resolution, age = adapter.capabilities.resolution, self._clock.monotonic() - delivery.born_at
        if resolution == "nonce" and age < NONCE_WINDOW_S:
            return ""
        if resolution not in ("nonce", "lookup"):
            delivery.untraceable.add(index)
            return ""
        await self._clock.sleep(SETTLE_S)
        key = f"{delivery.reply.key}:{index}"
        try:
            find = adapter.find(delivery.reply.thread, part, key=key, since=delivery.reply.created_at)
            found = await call_with_timeout(find, self._clock)
        except Exception as error:
            if not self._is_uncertain(delivery, classify_failure(adapter, error)):
                raise
            delivery.untraceable.add(index)
            return ""
        if index not in delivery.edited:
            delivery.untraceable.discard(index)
        return "" if found is None else found.native_id

    def _is_uncertain(self, delivery: ReplyDelivery, failure: Failure) -> bool:
        """Whether a failed look-up is final, so that the part is untraceable; False if it should be repeated.
        A failed look-up never means that the reply itself cannot be sent."""
        if failure.kind == "rate_limit":
            return False
        delivery.failed_lookups += failure.kind in _PASSING_KINDS
        if failure.kind in _PASSING_KINDS and delivery.failed_lookups < _MOST_FAILED_LOOKUPS:
            return False
        extra = {"row": delivery.row_id, "reason": failure.message}
        _log.warning("whether a reply arrived is unknown; it is posted and says so", extra=extra)
        return True

    async def _labelled(
        self, adapter: PostingChannel, queue: ChatQueue, delivery: ReplyDelivery, index: int, part: Part
    ) -> Part:
        """The part to post, marked as a possible repeat. If the reply is one message, the label goes inside.
        With several it would move the splits and lose text, so a separate message before it has the label."""
        if index == 0 and len(self._rendered(adapter, delivery)) == 1:
            inside = self._rendered(adapter, delivery, label=REPEAT_LABEL)
            if len(inside) == 1:
                return inside[0]
        if index not in delivery.labelled:
            label = adapter.render(Outgoing(text=REPEAT_LABEL.strip()))[0]
            await queue.limiter.acquire()
            post = adapter.post(delivery.reply.thread, label, key=f"{delivery.reply.key}:{index}r")
            delivery.labelled[index] = (await call_with_timeout(post, self._clock)).native_id
        return part

    async def _note(self, delivery: ReplyDelivery, index: int) -> None:
        if delivery.shown is not None:
            note = partial(
                self._store.record_sent_part, delivery.lease, delivery.reply.key, delivery.shown[index]
            )
            await retry_until_stored(note, self._clock)


def _parts_of(adapter: PostingChannel, outgoing: Outgoing) -> tuple[Part, ...]:
    """The parts of `outgoing`, or a fixed notice if the adapter cannot render it. A retry would fail again
    and block the replies after it."""
    try:
        return adapter.render(outgoing)
    except Exception:  # noqa: BLE001 - an adapter's fault must not hold up the chat
        _log.exception("a reply could not be rendered")
        return adapter.render(Outgoing(text=UNSHOWABLE, questions=outgoing.questions))


def _handle(reply: OutboundReply, index: int) -> str:
    """The reply handle of a part: only the first part refers to the message that it answers."""
    return reply.reply_handle if index == 0 else ""
