"""Build what becomes of questions that no one answers: they expire, and their messages say so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from gateway.access.policy import AccessPolicy
from gateway.app.components import Foundation
from gateway.delivery.unanswered_questions import STOPPED, TOO_LATE, UnansweredQuestions
from gateway.interactions.question_expiry import QuestionExpiry
from gateway.interactions.word_questions import WordQuestions
from gateway.storage.copies import LOOK_S
from gateway.storage.ports import Interaction
from pipeline.domain.ids import ThreadKey

OnClosed = Callable[[Interaction], None]

_NOTES: Final = {"expired questions": TOO_LATE, "stopped questions": STOPPED}
"""The names under which the bus reports closed questions, and what their messages then say."""


def build_questions(
    base: Foundation, access: AccessPolicy
) -> tuple[UnansweredQuestions, QuestionExpiry, OnClosed]:
    """What edits the messages of questions without an answer, what enqueues those that expire, and what shows
    that a run was stopped which had asked one."""
    unanswered = build_unanswered(base)
    expired, stopped = show_closed(base, unanswered)
    return unanswered, build_expiries(base, access, expired), stopped


def build_unanswered(base: Foundation) -> UnansweredQuestions:
    """What edits the messages of such questions."""
    return UnansweredQuestions(
        store=base.store,
        channels=base.channels,
        queues=base.queues,
        timeline=base.timeline,
    )


def build_expiries(base: Foundation, access: AccessPolicy, show: OnClosed) -> QuestionExpiry:
    """What enqueues expired questions. `show` changes the message of one."""
    shared = base.settings.cluster.shared
    return QuestionExpiry(
        store=base.store,
        clock=base.clock,
        wake=base.bus.wake,
        still_allowed=access.still_allows,
        show=show,
        words=WordQuestions(base.store, base.clock, shared=shared),
        poll_s=LOOK_S if shared else None,
    )


def show_closed(base: Foundation, unanswered: UnansweredQuestions) -> tuple[OnClosed, OnClosed]:
    """What shows at its message that a question has expired, and that its run was stopped: the process that
    sends from the account does."""
    if not base.settings.cluster.shared:
        return unanswered.show, unanswered.stopped

    def on_changed(book: str, key: str) -> None:
        if book in _NOTES:
            base.tasks.background.spawn(show(key, _NOTES[book]), name="closed question")

    async def show(question: str, note: str) -> None:
        known = await base.store.interaction(question)
        if known is not None and ThreadKey.decode(known[0].thread).account_key in base.accounts.held:
            unanswered.show(known[0], note)

    base.bus.on_changed(on_changed)
    expired, stopped = _NOTES
    return (
        lambda question: base.bus.changed(expired, question.id),
        lambda question: base.bus.changed(stopped, question.id),
    )
