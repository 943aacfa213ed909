"""The door: authorise, dedupe and enqueue in one atomic step, and only then let the channel ack."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Protocol

from adapters.channel import Acceptance
from gateway.access.policy import AccessPolicy, Denied
from gateway.access.rate_limit import WINDOW_S, RateLimit, Reservation
from gateway.ingress.refusal_notices import AGAIN_S, Refusals, Say
from gateway.interactions.answer_matching import match_button, match_speech, match_text, may_answer
from gateway.interactions.message_edits import ended_by
from gateway.runtime.failpoints import Failpoints
from gateway.runtime.metrics import Telemetry
from gateway.storage.codec import GATE, new_entry, resume_entry, resume_entry_once
from gateway.storage.health import StoreHealth
from gateway.storage.ports import Accepted, AnswerStatus, Interaction, NewEntry, Store
from pipeline.domain.clock import Clock
from pipeline.domain.errors import StorageError
from pipeline.domain.messages import ApprovalReply, Inbound, InboundMessage, SessionCommand, Withdrawal
from pipeline.redaction.redactor import Redactor

_log = logging.getLogger(__name__)

_ROOM_FOR_COMMANDS = 20
_NOT_OPEN = "This question is no longer open."
_QUEUE_FULL = "Too many of your messages are still waiting. Send this one again when some are answered."
_QUEUE_FULL_AGAIN_S = 60.0
"""Sooner than other refusals are said again: whoever does not hear of it takes the message for accepted."""
_ANSWER_REFUSED: dict[AnswerStatus, str] = {
    "unknown": "There is no such question in this chat.",
    "already_answered": "This question has already been answered.",
    "expired": "This question has expired; nothing was done.",
    "not_allowed": "This question is for somebody else.",
    "invalid_choice": "That is not one of the offered answers.",
}
_OVER: frozenset[AnswerStatus] = frozenset({"unknown", "already_answered", "expired"})


class TurnQueue(Protocol):
    """What the inbox asks of the worker."""

    def wake(self, thread: str) -> None:
        """There may be something to do in `thread`."""
        ...

    def stop_before(self, thread: str, seq: int, cancelled: int) -> None:
        """Stop the running turn of `thread` if its entry came before `seq`, and each that comes before it."""
        ...

    def withdraw(self, thread: str, seq: int) -> None:
        """Stop the turn of one entry of `thread`, or end it without a word if it has not begun."""
        ...

    def interrupt(self, thread: str, seq: int, at: float) -> None:
        """Stop the running turn of `thread` if its entry came before `seq` and it began before the Unix time
        `at`, and nothing else."""
        ...


class WaitingTurns(Protocol):
    """The turns that wait in the middle of their work for somebody's answer."""

    def answered(self, interaction_id: str) -> None:
        """The answer to the question is on record."""
        ...

    async def withdraw(self, thread: str, but: Collection[str] = ()) -> None:
        """The turns that ask in `thread` were stopped, but for those of the messages `but`: nobody can allow
        them anything any more."""
        ...


class Inbox:
    """Accepts inbound items from every channel.

    `posting` names the accounts, as (channel, account), whose refusals `say` posts in the chat; the other
    channels show the acceptance's reason themselves, as every channel does for a pressed button. `overhear`
    is given what was said in a room and not to the bot.
    """

    def __init__(
        self,
        *,
        store: Store,
        access: AccessPolicy,
        turns: TurnQueue,
        clock: Clock,
        telemetry: Telemetry,
        failpoints: Failpoints,
        max_queue_per_thread: int,
        posting: Collection[tuple[str, str]] = (),
        say: Say | None = None,
        quota: RateLimit | None = None,
        waiting: WaitingTurns | None = None,
        overhear: Callable[[InboundMessage], None] | None = None,
        redactor: Redactor | None = None,
    ) -> None:
        self._redactor = redactor or Redactor()
        self._store = store
        self._access = access
        self._turns = turns
        self._clock = clock
        self._telemetry = telemetry
        self._failpoints = failpoints
        self._max_queue = max_queue_per_thread
        self._posting = frozenset(posting)
        self._refusals = None if say is None else Refusals(say, clock)
        self._quota = quota
        self._waiting = waiting
        self._overhear = overhear
        self.health = StoreHealth(store, clock)
        """Told of every message that was stored or could not be."""
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
        if isinstance(item, Withdrawal):
            # Nothing of it is let in: it only ends what was, and only its author or a moderator can delete.
            await self._end(item)
            return Acceptance(status="accepted", message_id=item.message_id)
        verdict = await self._access.authorise(item)
        if isinstance(verdict, Denied):
            return self._denied(item, verdict)
        if isinstance(item, ApprovalReply):
            return await self._answer(item)
        if isinstance(item, InboundMessage) and item.if_named != verdict.if_named:
            item = replace(item, if_named=verdict.if_named)
        if isinstance(item, InboundMessage) and may_answer(item) and (self._posts(item) or item.speech):
            answered = await self._worded_answer(item)
            if answered is not None:
                return answered
        return await self._enqueue(item)

    async def _enqueue(self, item: InboundMessage | SessionCommand) -> Acceptance:
        thread = item.thread.encode()
        overheard = isinstance(item, InboundMessage) and item.if_named
        # Commands may use the room above the limit, or a full queue could not be stopped; what may not be for
        # the bot leaves half of it to what is.
        limit = self._max_queue + (_ROOM_FOR_COMMANDS if isinstance(item, SessionCommand) else 0)
        if overheard:
            limit = max(1, limit // 2)
        accepted, place = await self._take_in(item, limit)
        if accepted.full:
            self._telemetry.refused(item.thread.channel)
            if overheard:
                return self._refused(item, "")
            if self._quota is not None and place.wait_s:
                words = self._quota.words(place)
                return self._refused(item, words, again_after_s=WINDOW_S, about="quota")
            return self._refused(item, _QUEUE_FULL, again_after_s=_QUEUE_FULL_AGAIN_S)
        try:
            if isinstance(item, SessionCommand) and item.name == "stop":
                # Also for a redelivery: the first delivery may have got no further than the inbox.
                await self._stop(item, accepted.seq)
            elif isinstance(item, InboundMessage) and item.edited:
                await self._end(item, before=accepted.seq)
        finally:
            self._turns.wake(thread)
        if accepted.duplicate:
            self._telemetry.duplicate(item.thread.channel)
            return Acceptance(status="duplicate", message_id=accepted.message_id)
        self._telemetry.accepted(item.thread.channel, self._clock.now() - item.received_at)
        return Acceptance(status="accepted", message_id=accepted.message_id)

    def _without_secrets(self, item: InboundMessage | SessionCommand) -> InboundMessage | SessionCommand:
        """The item without the secrets of whoever runs the bot: a person may have pasted one."""
        if not isinstance(item, InboundMessage):
            return item
        written = (item.text, item.quoted, item.passed_on)
        safe = tuple(map(self._redactor.configured, written))
        if safe == written:
            return item
        text, quoted, passed_on = safe
        return replace(item, text=text, quoted=quoted, passed_on=passed_on)

    async def _take_in(
        self, item: InboundMessage | SessionCommand, limit: int
    ) -> tuple[Accepted, Reservation]:
        entry = new_entry(self._without_secrets(item))
        if self._quota is None or isinstance(item, SessionCommand):
            return await self._offer(entry, limit), Reservation()
        with self._quota.place(item) as place:
            # With no room at all the store takes nothing new, and still knows what it has taken before.
            accepted = await self._offer(entry, 0 if place.wait_s else limit)
            place.used = not (accepted.duplicate or accepted.full)
        return accepted, place

    async def _offer(self, entry: NewEntry, limit: int) -> Accepted:
        self._failpoints.reach("inbox-commit-before")
        try:
            accepted = await self._store.accept(entry, limit=limit)
        except StorageError:
            self.health.note(writable=False)
            raise
        self.health.note(writable=True)
        self._failpoints.reach("inbox-commit-after")
        return accepted

    def _denied(self, item: Inbound, verdict: Denied) -> Acceptance:
        if not verdict.chatter:
            _log.warning("refused", extra={"thread_key": item.thread.encode(), "reason": verdict.reason})
            self._telemetry.refused(item.thread.channel)
        elif self._overhear is not None and isinstance(item, InboundMessage):
            self._overhear(item)
        return self._refused(item, verdict.words)

    def _refused(
        self,
        item: Inbound,
        words: str,
        *,
        again_after_s: float = AGAIN_S,
        about: str = "",
        over: bool = False,
    ) -> Acceptance:
        if words and self._refusals is not None and self._posts(item) and not isinstance(item, ApprovalReply):
            self._refusals.tell(item, words, again_after_s=again_after_s, about=about)
        return Acceptance(status="refused", message_id=item.message_id, reason=words, over=over)

    def _posts(self, item: Inbound) -> bool:
        return (item.thread.channel, item.thread.account) in self._posting

    async def _answer(self, item: ApprovalReply) -> Acceptance:
        """An answer goes straight to the pending interaction: most would wait behind the turn that waits
        for them. One to a paused run, which has let go of its thread, also becomes an entry, in the same
        step. It is single use, so a redelivery needs no key of its own."""
        questions = await self._questions(item)
        answer = item if item.option is None else match_button(item, questions)
        if not isinstance(answer, ApprovalReply):
            words = _NOT_OPEN if answer == "unknown" else _ANSWER_REFUSED[answer]
            return self._refused(item, words, over=answer in _OVER)
        asked = next((one for one in questions if one.id == answer.interaction_id and one.kind == GATE), None)
        entry = None
        if asked is not None:
            entry = resume_entry_once(answer, asked)
        status = await self._give(answer, entry, finished=False)
        if status != "accepted":
            return self._refused(item, _ANSWER_REFUSED[status], over=status in _OVER)
        return Acceptance(status="accepted", message_id=item.message_id)

    async def _worded_answer(self, item: InboundMessage) -> Acceptance | None:
        """The message taken as an answer; None when it is none. It stands in the inbox under its own key in
        the same step, so that its redelivery is known when the question is no longer open. Words are typed
        where a channel shows no buttons of its own, and spoken everywhere; a turn that waits in the middle
        of its work is not answered by what might be misheard."""
        questions = await self._questions(item)
        if item.speech is None:
            answer = match_text(item, questions)
        else:
            answer = match_speech(item, item.text, [one for one in questions if one.kind == GATE])
        if answer is None:
            return None
        asked = next(one for one in questions if one.id == answer.interaction_id)
        gate = asked.kind == GATE
        entry = resume_entry(answer, asked) if gate else new_entry(answer)
        if await self._give(answer, entry, finished=not gate) != "accepted":
            # Somebody was faster, or this is a redelivery: the inbox finds out which.
            return None
        self._telemetry.accepted(item.thread.channel, self._clock.now() - item.received_at)
        return Acceptance(status="accepted", message_id=item.message_id)

    async def _questions(self, item: Inbound) -> tuple[Interaction, ...]:
        """What waits for a person in the item's own thread."""
        return await self._store.pending_interactions(item.thread.encode(), now=self._clock.now())

    async def _give(self, answer: ApprovalReply, entry: NewEntry | None, *, finished: bool) -> AnswerStatus:
        thread = answer.thread.encode()
        self._failpoints.reach("inbox-commit-before")
        status = await self._store.answer_interaction(
            answer.interaction_id,
            thread=thread,
            user=answer.author.id,
            choice=answer.choice,
            now=self._clock.now(),
            entry=entry,
            finished=finished,
        )
        self._failpoints.reach("inbox-commit-after")
        if status == "accepted" and entry is not None and not finished:
            self._turns.wake(thread)
        elif status == "accepted" and self._waiting is not None:
            self._waiting.answered(answer.interaction_id)
        return status

    async def _end(self, item: InboundMessage | Withdrawal, *, before: int | None = None) -> None:
        """End the turns of a message that was deleted, or whose edit stands in the inbox under `before`."""
        thread = item.thread.encode()
        ended = await ended_by(self._store, item, before=before)
        for entry in ended:
            self._turns.withdraw(thread, entry.seq)
        if ended and self._waiting is not None:
            gone = {entry.seq for entry in ended}
            others = [one.message_id for one in await self._store.open_entries(thread) if one.seq not in gone]
            await self._waiting.withdraw(thread, others)

    async def _stop(self, command: SessionCommand, seq: int) -> None:
        """The priority path: a stop does not wait in the queue behind what it is to stop. Whoever only speaks
        over an answer takes back nothing that they said before."""
        thread = command.thread.encode()
        if command.quiet:
            self._turns.interrupt(thread, seq, command.received_at)
            return
        cancelled = await self._store.cancel_open(thread, up_to_seq=seq - 1)
        self._turns.stop_before(thread, seq, cancelled)
        if self._waiting is not None:
            # A stop that is delivered again finds turns that came after it.
            later = [entry.message_id for entry in await self._store.open_entries(thread) if entry.seq > seq]
            await self._waiting.withdraw(thread, later)
