"""Take button presses, and typed or spoken words, as answers to open questions.

An answer to a paused run becomes an inbox entry in the step that records it; one that a running turn waits
for is passed on to that turn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, Protocol

from adapters.channel import Acceptance
from gateway.cluster.bus import Bus
from gateway.cluster.signals import Answered
from gateway.interactions.answer_matching import (
    lacks_words,
    match_button,
    match_speech,
    match_text,
    match_words,
    may_be_words,
)
from gateway.interactions.word_questions import WordQuestions
from gateway.runtime.crash_labels import CrashLabels
from gateway.runtime.metrics import Telemetry
from gateway.storage.codec import COMMAND, GATE, answer_entry, new_entry, resume_entry
from gateway.storage.ports import AnswerStatus, Interaction, NewEntry, Store
from pipeline.domain.clock import Clock
from pipeline.domain.messages import ApprovalReply, Inbound, InboundMessage

_NOT_OPEN = "This question is no longer open."
_WITH_WORDS = "Write {choice}: and the new text behind it, as a message."
_ANSWER_REFUSED: Final[dict[AnswerStatus, str]] = {
    "unknown": "There is no such question in this chat.",
    "already_answered": "This question has already been answered.",
    "expired": "This question has expired; nothing was done.",
    "not_allowed": "This question is for somebody else.",
    "invalid_choice": "That is not one of the offered answers.",
}
_OVER: Final[frozenset[AnswerStatus]] = frozenset({"unknown", "already_answered", "expired"})


class Gates(Protocol):
    """The gates that see messages before anything else decides about them."""

    def sees(self, message: InboundMessage) -> bool: ...

    async def passes_gate(self, message: InboundMessage) -> bool:
        """Whether a message may count now as the answer that a running turn waits for."""
        ...


class Answers:
    """The answers of all channels. Messages that one of the `gates` sees are queued also if they answer a
    question. `on_stopped` is called with each question that a stop has closed."""

    def __init__(
        self,
        *,
        store: Store,
        bus: Bus,
        owner_of: Callable[[str], str],
        clock: Clock,
        telemetry: Telemetry,
        crash_labels: CrashLabels,
        gates: Gates | None,
        words: WordQuestions | None = None,
        on_stopped: Callable[[Interaction], None] | None = None,
    ) -> None:
        self._on_stopped = on_stopped
        self._store = store
        self._bus = bus
        self._owner_of = owner_of
        self._clock = clock
        self._telemetry = telemetry
        self._crash_labels = crash_labels
        self._gates = gates
        self.words = words or WordQuestions(store, clock)
        """The threads in which any words may be an answer."""

    async def pressed(self, item: ApprovalReply) -> Acceptance:
        """Record an answer on the pending interaction directly: in the queue most answers would wait for the
        turn that waits for them. An answer to a paused run, which holds no thread, also becomes an entry in
        the same step. An interaction is single use, so a redelivery needs no key."""
        questions = await self._questions(item)
        answer = item if item.option is None else match_button(item, questions)
        if not isinstance(answer, ApprovalReply):
            words = _NOT_OPEN if answer == "unknown" else _ANSWER_REFUSED[answer]
            return _refused(item, words, over=answer in _OVER)
        asked = next((one for one in questions if one.id == answer.interaction_id), None)
        if asked is not None and lacks_words(asked, answer.choice, answer.note):
            return _refused(item, _WITH_WORDS.format(choice=answer.choice), over=False)
        entry = None if asked is None else answer_entry(answer, asked)
        status = await self._give(answer, entry, finished=False)
        if status != "accepted":
            return _refused(item, _ANSWER_REFUSED[status], over=status in _OVER)
        return Acceptance(status="accepted", message_id=item.message_id)

    async def replied(self, item: ApprovalReply) -> Acceptance | InboundMessage:
        """Like `pressed`, for an answer that may be in the person's own words: where a gate sees these, the
        message to be queued, which answers once the gate has passed it."""
        if item.option is not None or self._gates is None:
            return await self.pressed(item)
        asked = next((one for one in await self._questions(item) if one.id == item.interaction_id), None)
        if asked is None or asked.asks != "words":
            return await self.pressed(item)
        message = InboundMessage(
            message_id=item.message_id,
            native_id=item.native_id,
            thread=item.thread,
            author=item.author,
            received_at=item.received_at,
            text=item.choice,
            private=item.private,
            answers=True,
        )
        return message if self._gates.sees(message) else await self.pressed(item)

    async def worded(self, item: InboundMessage, *, options: bool) -> Acceptance | InboundMessage:
        """Take the message as an answer, or return it to be queued when it is none, or when a gate decides
        first. `options`: whether the words of an option count. The same step stores it in the inbox under its
        own key, so that a redelivery is recognised after the question has closed. Typed answers are for
        channels without buttons, spoken ones for all channels. Speech does not answer a turn that waits
        during its run, since the transcript may be wrong."""
        # A word that is also a value of a menu is a message: typed, the command has the value behind it.
        questions = [one for one in await self._questions(item) if one.kind != COMMAND]
        if item.speech is None:
            answer = match_text(item, questions) if options else None
            if answer is None and may_be_words(item):
                answer = match_words(item, questions)
        else:
            answer = match_speech(item, item.text, [one for one in questions if one.kind == GATE])
        if answer is None:
            return item
        asked = next(one for one in questions if one.id == answer.interaction_id)
        gate = asked.kind == GATE
        if self._gates is not None and self._gates.sees(item):
            if gate:
                return replace(item, answers=True)
            # The turn that waits for the answer holds the thread, so the message cannot wait in its queue.
            if not await self._gates.passes_gate(item):
                return item
        entry = resume_entry(answer, asked) if gate else new_entry(answer)
        if await self._give(answer, entry, finished=not gate) != "accepted":
            # Another answer came first, or this is a redelivery: the inbox decides which.
            return item
        self._telemetry.accepted(item.thread.channel, self._clock.now() - item.received_at)
        return Acceptance(status="accepted", message_id=item.message_id)

    async def end_questions(self, thread: str, before: float) -> int:
        """Close the questions and waits of paused runs that were recorded until then, as a stop ends them.
        How many."""
        pending = await self._store.pending_interactions(thread, now=self._clock.now())
        ended = [one for one in pending if one.kind == GATE and one.created_at <= before]
        closed = [one for one in ended if await self._store.expiries.close(one.id, at=self._clock.now())]
        for one in closed:
            if self._on_stopped is not None:
                self._on_stopped(one)
        return len(closed)

    async def _questions(self, item: Inbound) -> tuple[Interaction, ...]:
        """The questions that wait for a person in the item's thread."""
        return await self._store.pending_interactions(item.thread.encode(), now=self._clock.now())

    async def _give(self, answer: ApprovalReply, entry: NewEntry | None, *, finished: bool) -> AnswerStatus:
        thread = answer.thread.encode()
        self._crash_labels.reach("inbox-commit-before")
        status = await self._store.answer_interaction(
            answer.interaction_id,
            thread=thread,
            user=answer.author.id,
            choice=answer.choice,
            now=self._clock.now(),
            entry=entry,
            finished=finished,
        )
        self._crash_labels.reach("inbox-commit-after")
        if status == "accepted" and entry is not None and not finished:
            self._bus.wake(thread)
        elif status == "accepted":
            done = Answered(thread=thread, interaction_id=answer.interaction_id)
            self._bus.control(self._owner_of(thread), done)
        return status


def _refused(item: ApprovalReply, words: str, *, over: bool) -> Acceptance:
    return Acceptance(status="refused", message_id=item.message_id, reason=words, over=over)
