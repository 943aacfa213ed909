"""The door: authorise, dedupe and enqueue in one atomic step, and only then let the channel ack."""

from __future__ import annotations

import logging
from typing import Protocol

from adapters.channel import Acceptance
from gateway.access import AccessPolicy, Denied
from gateway.failpoints import Failpoints
from gateway.storage.ports import AnswerStatus, NewEntry, Store
from gateway.telemetry import Telemetry
from gateway.wire import ASKED_IN, GATE, kind_of, to_body
from pipeline.domain.clock import Clock
from pipeline.domain.errors import StorageError
from pipeline.domain.messages import ApprovalReply, Inbound, SessionCommand

_log = logging.getLogger(__name__)

_ROOM_FOR_COMMANDS = 20
_NOT_ALLOWED = "You are not allowed to use this bot."
_QUEUE_FULL = "Too many of your messages are still waiting. Send this one again when some are answered."
_ANSWER_REFUSED: dict[AnswerStatus, str] = {
    "unknown": "There is no such question in this chat.",
    "already_answered": "This question has already been answered.",
    "expired": "This question has expired; nothing was done.",
    "not_allowed": "This question is for somebody else.",
    "invalid_choice": "That is not one of the offered answers.",
}


class Turns(Protocol):
    """What the inbox asks of the worker."""

    def wake(self, thread: str) -> None:
        """There may be something to do in `thread`."""
        ...

    def stop_before(self, thread: str, seq: int, cancelled: int) -> None:
        """Stop the running turn of `thread` if its entry came before `seq`."""
        ...


class Inbox:
    """Accepts inbound items from every channel."""

    def __init__(
        self,
        *,
        store: Store,
        access: AccessPolicy,
        turns: Turns,
        clock: Clock,
        telemetry: Telemetry,
        failpoints: Failpoints,
        max_queue_per_thread: int,
    ) -> None:
        self._store = store
        self._access = access
        self._turns = turns
        self._clock = clock
        self._telemetry = telemetry
        self._failpoints = failpoints
        self._max_queue = max_queue_per_thread
        self._closed = False

    def close(self) -> None:
        """Accept nothing more: every channel keeps what arrives from now on un-acked."""
        self._closed = True

    async def accept(self, item: Inbound) -> Acceptance:
        """Take `item` in. `accepted` and `duplicate` mean that it is durable.

        Raises StorageError when nothing could be written: the channel must not ack then.
        """
        if self._closed:
            raise StorageError("the gateway is shutting down; send it again in a moment")
        verdict = self._access.authorise(item)
        if isinstance(verdict, Denied):
            _log.warning("refused", extra={"thread_key": item.thread.encode(), "reason": verdict.reason})
            self._telemetry.refused(item.thread.channel)
            return Acceptance(status="refused", message_id=item.message_id, reason=_NOT_ALLOWED)
        if isinstance(item, ApprovalReply):
            return await self._answer(item)
        thread = item.thread.encode()
        # Commands may use the room above the limit, or a full queue could not be stopped.
        limit = self._max_queue + (_ROOM_FOR_COMMANDS if isinstance(item, SessionCommand) else 0)
        entry = NewEntry(
            dedupe_key=f"{item.thread.channel}:{item.thread.account}:{item.native_id}",
            thread=thread,
            message_id=item.message_id,
            kind=kind_of(item),
            body=to_body(item),
            received_at=item.received_at,
        )
        self._failpoints.reach("inbox-commit-before")
        accepted = await self._store.accept(entry, limit=limit)
        self._failpoints.reach("inbox-commit-after")
        if accepted.full:
            self._telemetry.refused(item.thread.channel)
            return Acceptance(status="refused", message_id=item.message_id, reason=_QUEUE_FULL)
        try:
            if isinstance(item, SessionCommand) and item.name == "stop":
                # Also for a redelivery: the first delivery may have got no further than the inbox.
                await self._stop(thread, accepted.seq)
        finally:
            self._turns.wake(thread)
        if accepted.duplicate:
            self._telemetry.duplicate(item.thread.channel)
            return Acceptance(status="duplicate", message_id=accepted.message_id)
        self._telemetry.accepted(item.thread.channel, self._clock.now() - item.received_at)
        return Acceptance(status="accepted", message_id=accepted.message_id)

    async def _answer(self, item: ApprovalReply) -> Acceptance:
        """An answer goes straight to the pending interaction: most would wait behind the turn that waits
        for them. One to a paused run, which has let go of its thread, also becomes an entry, in the same
        step. It is single use, so a redelivery needs no key of its own."""
        thread, now = item.thread.encode(), self._clock.now()
        entry = await self._going_on(item, thread, now)
        self._failpoints.reach("inbox-commit-before")
        status = await self._store.answer_interaction(
            item.interaction_id,
            thread=thread,
            user=item.author.id,
            choice=item.choice,
            now=now,
            entry=entry,
        )
        self._failpoints.reach("inbox-commit-after")
        if status != "accepted":
            words = _ANSWER_REFUSED[status]
            return Acceptance(status="refused", message_id=item.message_id, reason=words)
        if entry is not None:
            self._turns.wake(thread)
        return Acceptance(status="accepted", message_id=item.message_id)

    async def _going_on(self, item: ApprovalReply, thread: str, now: float) -> NewEntry | None:
        """The turn that the answer leads to, if a paused run waits for it."""
        pending = await self._store.pending_interactions(thread, now=now)
        asked = next((one for one in pending if one.id == item.interaction_id and one.kind == GATE), None)
        if asked is None:
            return None
        return NewEntry(
            dedupe_key=f"{GATE}:{asked.id}",
            thread=thread,
            message_id=item.message_id,
            kind=kind_of(item),
            body={**to_body(item), ASKED_IN: asked.body[ASKED_IN]},
            received_at=item.received_at,
        )

    async def _stop(self, thread: str, seq: int) -> None:
        """The priority path: a stop does not wait in the queue behind what it is to stop."""
        cancelled = await self._store.cancel_open(thread, up_to_seq=seq - 1)
        self._turns.stop_before(thread, seq, cancelled)
