"""Resume a paused run whose question was not answered in time.

A turn runs it and notifies the person, like every other entry; this module waits and enqueues that turn once.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from gateway.interactions.word_questions import WordQuestions
from gateway.runtime.due_work import DueWork
from gateway.storage.codec import GATE, NEVER, details_of, resume_entry_once
from gateway.storage.ports import Interaction, Store
from pipeline.domain.clock import Clock
from pipeline.domain.errors import InvalidInput
from pipeline.domain.events import EXPIRED
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import ApprovalReply, Author, button_handle

_log = logging.getLogger(__name__)

_AT_ONCE = 50


class QuestionExpiry:
    """Enqueues expired questions. Run `run` as a supervised task; call `asked` after every new question.

    `wake` is called with a thread that has work, `still_allowed` says whether the bot may still write to the
    person who was asked, and `show` updates the question's message to say that it has expired.
    """

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        wake: Callable[[str], None],
        still_allowed: Callable[[ApprovalReply], Awaitable[bool]],
        show: Callable[[Interaction], None],
        words: WordQuestions,
        poll_s: float | None = None,
    ) -> None:
        """`poll_s` is the longest time, in seconds, until another process's question is seen."""
        self.words = words
        """The threads in which any words may be an answer."""
        self._store = store
        self._clock = clock
        self._wake = wake
        self._still_allowed = still_allowed
        self._show = show
        self._work = DueWork(
            do_due=self._hand_over_due, next_due=self._next_due, clock=clock, name="questions", poll_s=poll_s
        )

    def asked(self, thread: str) -> None:
        """Note that a question was recorded in the thread, and check the next expiry again."""
        self.words.asked(thread)
        self._work.wake()

    async def run(self) -> None:
        """Enqueue expired questions, for ever, beginning with those that expired while no process ran."""
        await self._work.run()

    async def _next_due(self) -> float | None:
        soonest = await self._store.expiries.next_due(GATE)
        return None if soonest is None or soonest >= NEVER else soonest

    async def _hand_over_due(self) -> None:
        for interaction_id in await self._store.expiries.due(GATE, now=self._clock.now(), limit=_AT_ONCE):
            known = await self._store.interaction(interaction_id)
            if known is not None and known[1] is None:
                await self._hand_over(known[0])

    async def _hand_over(self, question: Interaction) -> None:
        """Enqueue the entry, then close the question. After a crash between the two, the entry's key prevents
        a duplicate."""
        try:
            expiry = self._expiry(question)
        except (InvalidInput, KeyError, IndexError):
            _log.exception(
                "an expired question cannot be read and is closed", extra={"question": question.id}
            )
            await self._store.expiries.close(question.id, at=self._clock.now())
            return
        if await self._still_allowed(expiry):
            await self._store.accept(resume_entry_once(expiry, question))
            self._wake(question.thread)
        else:
            _log.info("a run stays paused: its author was shut out", extra={"thread_key": question.thread})
        await self._store.expiries.close(question.id, at=self._clock.now())
        if question.options:
            self._show(question)

    def _expiry(self, question: Interaction) -> ApprovalReply:
        details = details_of(question)
        identity = f"expired_{button_handle(question.id)}"
        return ApprovalReply(
            message_id=identity,
            native_id=identity,
            thread=ThreadKey.decode(question.thread),
            author=Author(id=question.allowed_users[0], name=details.name),
            received_at=self._clock.now(),
            interaction_id=question.id,
            choice=EXPIRED,
            private=details.private,
            expired=True,
            asked=details.prompt,
        )
