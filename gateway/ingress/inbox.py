"""Authorise, dedupe and enqueue inbound items in one atomic step, before the channel acks them."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace
from typing import Protocol

from adapters.channel import Acceptance
from gateway.access.policy import AccessPolicy, Allowed, Denied
from gateway.access.sender_rate_limit import WINDOW_S, RateLimit, Reservation
from gateway.cluster.bus import Bus
from gateway.cluster.signals import Control, Interrupt, Withdrawn
from gateway.ingress.answers import Answers, Gates
from gateway.ingress.reactions import Reactions
from gateway.ingress.refusal_notices import AGAIN_S, Refusals, Say
from gateway.ingress.stops import Stops, WaitingTurns
from gateway.interactions.answer_matching import may_answer, may_be_words
from gateway.interactions.message_edits import ended_by
from gateway.interactions.word_questions import WordQuestions
from gateway.runtime.crash_labels import CrashLabels
from gateway.runtime.metrics import Telemetry
from gateway.storage.codec import begun_entry, new_entry
from gateway.storage.health import StoreHealth
from gateway.storage.ports import Accepted, InboxEntry, Interaction, Store
from pipeline.domain.clock import Clock
from pipeline.domain.errors import StorageError
from pipeline.domain.ids import AccountKey
from pipeline.domain.messages import (
    ApprovalReply,
    BargeIn,
    Inbound,
    InboundMessage,
    Reaction,
    SessionCommand,
    Withdrawal,
)
from pipeline.redaction.redactor import Redactor

_log = logging.getLogger(__name__)

_Enqueued = InboundMessage | SessionCommand | BargeIn

_COUNTED = frozenset({"retry", "run", "history", "export"})
"""Commands that cost as much as a message, and count as one."""
_EXTRA_FOR_COMMANDS = 20
_QUEUE_FULL = "Too many of your messages are still waiting. Send this one again when some are answered."
_QUEUE_FULL_AGAIN_S = 60.0
"""Shorter than for other refusals: without a notice the author takes the message for accepted."""


class TurnQueue(Protocol):
    """What the inbox calls in the worker of the same process. All else is sent over the bus."""

    def may_begin(self) -> bool:
        """Whether a message that is accepted now, as the first of its thread, starts its turn at once."""
        ...

    def begin(self, entry: InboxEntry) -> None:
        """Start the turn of an entry whose first attempt `accept` has counted."""
        ...


class Inbox:
    """Accepts inbound items from every channel.

    `posting` names the accounts, as (channel, account), whose refusals `say` posts in the chat. The other
    channels show the acceptance's reason themselves, as every channel does for a pressed button.
    `owner_of` names the process that runs a thread's turns, as the bus addresses it.
    `on_unaddressed` is called with room messages that were not meant for the bot, `on_taken` with new
    messages that are meant for it, `on_ended` with each deleted one and the newest version of an edited one,
    `on_stopped` with each question of a paused run that a stop has closed.
    Messages that one of the `gates` sees are queued also if they answer a question or are beyond the
    `quota`, within `beyond`.
    """

    def __init__(
        self,
        *,
        store: Store,
        access: AccessPolicy,
        turns: TurnQueue,
        bus: Bus,
        owner_of: Callable[[str], str],
        clock: Clock,
        telemetry: Telemetry,
        crash_labels: CrashLabels,
        max_queue_per_thread: int,
        posting: Collection[AccountKey] = (),
        say: Say | None = None,
        quota: RateLimit | None = None,
        waiting: WaitingTurns | None = None,
        on_unaddressed: Callable[[InboundMessage], None] | None = None,
        on_taken: Callable[[InboundMessage], None] | None = None,
        redactor: Redactor | None = None,
        gates: Gates | None = None,
        beyond: RateLimit | None = None,
        on_ended: Callable[[InboundMessage | Withdrawal], Awaitable[None]] | None = None,
        words: WordQuestions | None = None,
        on_stopped: Callable[[Interaction], None] | None = None,
    ) -> None:
        self._on_ended = on_ended
        self._gates, self._beyond = gates, beyond
        self._redactor = redactor or Redactor()
        self._store = store
        self._access = access
        self._turns = turns
        self._bus = bus
        self._owner_of = owner_of
        self._clock = clock
        self._telemetry = telemetry
        self._crash_labels = crash_labels
        self._max_queue = max_queue_per_thread
        self._posting = frozenset(posting)
        self._refusals = None if say is None else Refusals(say, clock)
        self._quota = quota
        self._waiting = waiting
        self._on_unaddressed = on_unaddressed
        self._on_taken = on_taken
        self.answers = Answers(
            store=store,
            bus=bus,
            owner_of=owner_of,
            clock=clock,
            telemetry=telemetry,
            crash_labels=crash_labels,
            gates=gates,
            words=words,
            on_stopped=on_stopped,
        )
        """Takes answers to open questions."""
        self._stops = Stops(store, clock, waiting, self.answers.end_questions, self._control, crash_labels)
        answer = self.answers.pressed
        self._reactions = Reactions(store=store, clock=clock, telemetry=telemetry, answer=answer)
        self.health = StoreHealth(store, clock)
        """Updated after every message that was stored or could not be stored."""
        self._closed = False

    def close(self) -> None:
        """Accept nothing more: channels do not ack what arrives from now on."""
        self._closed = True

    async def accept(self, item: Inbound) -> Acceptance:
        """Accept or refuse `item`. `accepted` and `duplicate` mean that it is durable.

        Raises StorageError when nothing could be written; then the channel must not ack.
        """
        if self._closed:
            raise StorageError("the gateway is shutting down; send it again in a moment")
        if isinstance(item, Withdrawal):
            # Needs no authorisation: it only ends earlier entries, and only the author or a moderator can
            # delete a message.
            await self._end(item)
            return Acceptance(status="accepted", message_id=item.message_id)
        verdict = await self._access.authorise(item)
        if isinstance(verdict, Denied):
            return self._denied(item, verdict)
        if isinstance(item, ApprovalReply):
            # Chosen or in words: the operator's secrets are in neither.
            given = replace(item, choice=self._redactor.configured(item.choice))
            replied = await self.answers.replied(given)
            return replied if isinstance(replied, Acceptance) else await self._enqueue(replied)
        if isinstance(item, Reaction):
            return await self._reactions.accept(item)
        if isinstance(item, InboundMessage):
            item = self._judged(item, verdict)
        if isinstance(item, InboundMessage):
            options = may_answer(item, shows_choices=not self._posts(item))
            if options or await self._may_be_words(item):
                answered = await self.answers.worded(self._without_secrets(item), options=options)
                if isinstance(answered, Acceptance):
                    return answered
                item = answered
        return await self._enqueue(item)

    def _judged(self, item: InboundMessage, verdict: Allowed) -> InboundMessage:
        """The message with what the access policy found out about it."""
        if verdict.may_decline and self._on_unaddressed is not None:
            self._on_unaddressed(item)
        if (item.if_named, item.may_decline) == (verdict.if_named, verdict.may_decline):
            return item
        return replace(item, if_named=verdict.if_named, may_decline=verdict.may_decline)

    async def _may_be_words(self, item: InboundMessage) -> bool:
        """Whether the message may answer a question that takes any words."""
        words, thread = self.answers.words, item.thread.encode()
        # Most messages are in a chat that is known to have none.
        return thread not in words.without and may_be_words(item) and await words.may_be_open(thread)

    async def _enqueue(self, item: _Enqueued) -> Acceptance:
        thread = item.thread.encode()
        unaddressed = isinstance(item, InboundMessage) and (item.if_named or item.may_decline)
        # Commands may exceed the limit, or a full queue could not be stopped. Messages that may not be for
        # the bot use at most half of the queue.
        limit = self._max_queue + (0 if isinstance(item, InboundMessage) else _EXTRA_FOR_COMMANDS)
        if unaddressed:
            limit = max(1, limit // 2)
        accepted, reservation = await self._take_in(item, limit)
        if accepted.full:
            self._telemetry.refused(item.thread.channel)
            if unaddressed:
                return self._refused(item, "")
            if self._quota is not None and reservation.wait_s:
                words = self._quota.words(reservation)
                return self._refused(item, words, again_after_s=WINDOW_S, about="quota")
            return self._refused(item, _QUEUE_FULL, again_after_s=_QUEUE_FULL_AGAIN_S)
        try:
            if isinstance(item, SessionCommand):
                # Also for a redelivery: the first delivery may have got no further than the inbox.
                await self._stops.stop(item, accepted)
            elif isinstance(item, BargeIn):
                self._control(Interrupt(thread=thread, seq=accepted.seq, at=item.received_at))
            elif item.edited:
                await self._end(item, accepted.seq, again=accepted.duplicate)
        finally:
            if not accepted.begun:
                self._bus.wake(thread)
        return self._taken(item, accepted, shown=not unaddressed)

    def _taken(self, item: _Enqueued, accepted: Accepted, *, shown: bool) -> Acceptance:
        """Count the item, and with `shown` report a new message as taken."""
        if accepted.duplicate:
            self._telemetry.duplicate(item.thread.channel)
            return Acceptance(status="duplicate", message_id=accepted.message_id)
        self._telemetry.accepted(item.thread.channel, self._clock.now() - item.received_at)
        if shown and self._on_taken is not None and isinstance(item, InboundMessage):
            self._on_taken(item)
        return Acceptance(status="accepted", message_id=accepted.message_id)

    def _without_secrets(self, item: InboundMessage) -> InboundMessage:
        """The item without the operator's secrets: a person may have pasted one."""
        text, quoted, passed_on = item.text, item.quoted, item.passed_on
        text = text and self._redactor.configured(text)
        quoted = quoted and self._redactor.configured(quoted)
        passed_on = passed_on and self._redactor.configured(passed_on)
        if (text, quoted, passed_on) == (item.text, item.quoted, item.passed_on):
            return item
        return replace(item, text=text, quoted=quoted, passed_on=passed_on)

    async def _take_in(self, item: _Enqueued, limit: int) -> tuple[Accepted, Reservation]:
        # A command and an edit first end earlier turns; their own turn is read from the store afterwards.
        if not isinstance(item, InboundMessage):
            counts = isinstance(item, SessionCommand) and item.name in _COUNTED
            if isinstance(item, SessionCommand) and item.name == "run":
                item = replace(item, argument=self._redactor.configured(item.argument))
            if self._quota is None or not counts or isinstance(item, BargeIn):
                return await self._enqueue_item(item, limit, begin=False), Reservation()
            others = await self._quota.others(item) if self._quota.shared else ()
            with self._quota.reserve(item, others) as reservation:
                return await self._enqueue_within(reservation, item, limit, begin=False), reservation
        kept, begin = self._without_secrets(item), not item.edited
        if self._quota is None or item.answers or item.may_decline:
            return await self._enqueue_item(kept, limit, begin=begin), Reservation()
        others = await self._quota.others(item) if self._quota.shared else ()
        with self._quota.reserve(item, others) as reservation:
            if not (reservation.wait_s and self._beyond is not None and self._is_seen(kept)):
                return await self._enqueue_within(reservation, kept, limit, begin=begin), reservation
            # Refused unless a gate takes it over; at most as many as are answered.
            refused = replace(kept, refusal=self._quota.words(reservation))
            with self._beyond.reserve(refused) as further:
                accepted = await self._enqueue_within(further, refused, max(1, limit // 2), begin=begin)
        return accepted, reservation

    async def _enqueue_within(
        self, reservation: Reservation, item: InboundMessage | SessionCommand, limit: int, *, begin: bool
    ) -> Accepted:
        """Queue a message if its author need not wait, and count it if it was accepted."""
        # With a limit of 0 the store accepts nothing new, but still recognises duplicates.
        accepted = await self._enqueue_item(item, 0 if reservation.wait_s else limit, begin=begin)
        reservation.used = not (accepted.duplicate or accepted.full)
        return accepted

    async def _enqueue_item(self, item: _Enqueued, limit: int, *, begin: bool) -> Accepted:
        entry = new_entry(item)
        self._crash_labels.reach("inbox-commit-before")
        begin = begin and self._turns.may_begin()
        try:
            accepted = await self._store.accept(entry, limit=limit, begin=begin)
        except StorageError:
            self.health.note(writable=False)
            raise
        self.health.note(writable=True)
        self._crash_labels.reach("inbox-commit-after")
        if accepted.begun:
            self._turns.begin(begun_entry(entry, item, accepted))
        return accepted

    def _denied(self, item: Inbound, verdict: Denied) -> Acceptance:
        if not verdict.chatter:
            _log.warning("refused", extra={"thread_key": item.thread.encode(), "reason": verdict.reason})
            self._telemetry.refused(item.thread.channel)
        elif self._on_unaddressed is not None and isinstance(item, InboundMessage):
            self._on_unaddressed(item)
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
            self._refusals.post(item, words, again_after_s=again_after_s, about=about)
        return Acceptance(status="refused", message_id=item.message_id, reason=words, over=over)

    def _posts(self, item: Inbound) -> bool:
        return item.thread.account_key in self._posting

    async def _end(self, item: InboundMessage | Withdrawal, before: int = 0, *, again: bool = False) -> None:
        """End the turns of a message that was deleted, or whose edit has the inbox number `before`."""
        thread = item.thread.encode()
        ended = await ended_by(self._store, item, before=before or None)
        for entry in ended:
            self._control(Withdrawn(thread=thread, seq=entry.seq))
        if ended and self._waiting is not None:
            gone = {entry.seq for entry in ended}
            others = [one.message_id for one in await self._store.open_entries(thread) if one.seq not in gone]
            await self._waiting.withdraw(thread, others)
        if self._on_ended is not None and not again:
            await self._on_ended(item)

    def _is_seen(self, item: InboundMessage) -> bool:
        has_words = bool(item.text.strip() or item.passed_on.strip() or item.voice is not None)
        return has_words and self._gates is not None and self._gates.sees(item)

    def _control(self, control: Control) -> None:
        self._bus.control(self._owner_of(control.thread), control)
