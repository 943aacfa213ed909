"""Questions of paused runs that nobody answers in time: the run is resumed then and takes its course.

What the run does, and what the person is told, is a turn's, like every other entry's. This module waits,
and enqueues that turn once.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from gateway.runtime.due_work import DueWork
from gateway.storage.codec import GATE, NEVER, resume_entry_once
from gateway.storage.ports import Interaction, Store
from pipeline.domain.clock import Clock
from pipeline.domain.errors import InvalidInput
from pipeline.domain.events import EXPIRED
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import ApprovalReply, Author, button_handle

_log = logging.getLogger(__name__)

_AT_ONCE = 50


class ExpiryDesk:
    """Hands expired questions to the inbox. `run` is for a supervised task, `asked` tells of new questions.

    `wake` tells the worker of a thread with something to do, `may_hear` says whether the person asked may
    still be spoken to, and `show` has the question's message say that its time is over.
    """

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        wake: Callable[[str], None],
        may_hear: Callable[[ApprovalReply], Awaitable[bool]],
        show: Callable[[Interaction], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._wake = wake
        self._may_hear = may_hear
        self._show = show
        self._work = DueWork(
            do_due=self._hand_over_due, next_due=self._next_due, clock=clock, name="questions"
        )

    def asked(self) -> None:
        """A question is on record that may expire before the others."""
        self._work.wake()

    async def run(self) -> None:
        """Hand over what expires, for ever; first what expired while no process was there."""
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
        """Into the inbox first, closed then: whatever happens between, the entry's key is known."""
        try:
            expiry = self._expiry(question)
        except (InvalidInput, KeyError, IndexError):
            _log.exception(
                "an expired question cannot be read and is closed", extra={"question": question.id}
            )
            await self._store.expiries.close(question.id, at=self._clock.now())
            return
        if await self._may_hear(expiry):
            await self._store.accept(resume_entry_once(expiry, question))
            self._wake(question.thread)
        else:
            _log.info("a run stays paused: its author was shut out", extra={"thread_key": question.thread})
        await self._store.expiries.close(question.id, at=self._clock.now())
        self._show(question)

    def _expiry(self, question: Interaction) -> ApprovalReply:
        body = question.body
        identity = f"expired_{button_handle(question.id)}"
        return ApprovalReply(
            message_id=identity,
            native_id=identity,
            thread=ThreadKey.decode(question.thread),
            author=Author(id=question.allowed_users[0], name=str(body.get("name", ""))),
            received_at=self._clock.now(),
            interaction_id=question.id,
            choice=EXPIRED,
            # A question of an earlier version does not say; less is shown and done where others read along.
            private=bool(body.get("private", False)),
            expired=True,
            asked=str(body.get("prompt", "")),
        )
