"""Ask the author of a message, in its chat, whether a tool may be used, while the turn waits.

Each channel draws the buttons: `adapters/telegram/question_buttons.py`, `adapters/slack/question_buttons.py`,
`adapters/discord/question_buttons.py`, on the page `adapters/web/static/rows.js`. The first three carry
the data of `adapters/button_data.py`. A press is taken in `gateway/ingress/answers.py`.

The question is durable under an id derived from the action, so a turn that is resumed after a crash finds its
question, and perhaps the answer. The inbox checks and records answers; the bus reports them to `answered`.
Only the author may answer, not others in a room. An answer holds for one action in one session and chat.

Where the answer is accepted by another process, the signal that reports it may be lost, and so may the event
that shows the question: the store is looked at every second, and a question that no message is known to show
is sent once more.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from itertools import count
from typing import Final

from gateway.cluster.signals import Answered
from gateway.interactions.question_parts import part_number
from gateway.storage.codec import TOOL, details_of
from gateway.storage.copies import LOOK_S
from gateway.storage.ports import Interaction, Store
from pipeline.domain.clock import Clock
from pipeline.domain.errors import StorageError
from pipeline.domain.events import EXPIRED, ApprovalRequired, ApprovalResolved
from pipeline.domain.ids import own_person
from pipeline.runtime.approvals import ApprovalOutcome
from pipeline.runtime.scope import TurnScope

_log = logging.getLogger(__name__)

ALLOW: Final = "Allow"
DENY: Final = "Deny"
ALLOW_FOR_CONVERSATION: Final = "Allow for this conversation"

_LEAST_S = 1.0
_SHOWN_AFTER_LOOKS = 2
"""At this look a question should be visible."""
_OUTCOMES: dict[str, ApprovalOutcome] = {
    ALLOW: "allowed",
    ALLOW_FOR_CONVERSATION: "for_conversation",
    EXPIRED: "expired",
}


class ApprovalService:
    """The `Approvals` of a gateway; also notifies waiting turns of answers in the inbox.

    A question is open for `approval_s` seconds. Later answers do not count, and no answer means no. A person
    is asked at most `per_hour` times in an hour; 0 sets no limit. `send` sends an answer to the process whose
    turn waits.
    """

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        approval_s: float,
        send: Callable[[Answered], None],
        per_hour: int = 0,
        shared: bool = False,
    ) -> None:
        """`shared`: other processes accept answers and show questions."""
        self._shared = shared
        self._store = store
        self._send = send
        self._clock = clock
        self._approval_s = approval_s
        self._waiting: dict[str, asyncio.Event] = {}
        self._per_hour = per_hour
        self._threads: dict[str, str] = {}
        """By question id: the thread of each waiting turn."""

    async def ask(
        self,
        scope: TurnScope,
        *,
        action_id: str,
        action_hash: str,
        tool_name: str,
        summary: str,
        reasoning: str,
        can_last: bool = False,
    ) -> ApprovalOutcome:
        """See `Approvals.ask`."""
        body = {"node": tool_name, "summary": summary}
        question = self._question(scope, action_id, action_hash, body, can_last=can_last)
        # Before the question is visible: an answer may arrive at once.
        signal = self._waiting[question.id] = asyncio.Event()
        self._threads[question.id] = question.thread
        try:
            known = await self._store.interaction(question.id)
            if known is None:
                if not await self._has_room(scope, question.id):
                    return "too_many"
                await self._store.open_interaction(question)
            elif not _is_same(known[0], question):
                return "refused"
            else:
                question = known[0]
            choice = None if known is None else known[1]
            if choice is None:
                await self._show(scope, question, tool_name, reasoning)
                show = partial(self._show, scope, question, tool_name, reasoning)
                choice = await self._answer_to(question, signal, scope, show)
            await scope.send(
                ApprovalResolved(
                    session_id=scope.session_id,
                    message_id=scope.message_id,
                    interaction_id=question.id,
                    choice=choice,
                )
            )
            return _OUTCOMES.get(choice, "refused")
        finally:
            if self._waiting.get(question.id) is signal:
                del self._waiting[question.id], self._threads[question.id]

    def unanswered(self) -> frozenset[str]:
        """The threads whose turns wait for an answer that has not arrived."""
        return frozenset(self._threads[name] for name, signal in self._waiting.items() if not signal.is_set())

    def answered(self, interaction_id: str) -> None:
        """Resume the turn that waits for this answer, which is recorded."""
        signal = self._waiting.get(interaction_id)
        if signal is not None:
            signal.set()

    async def withdraw(self, thread: str, but: Collection[str] = ()) -> None:
        """Answer every open question of `thread` with no, except those of the messages `but`: the turn that
        asked was stopped, and a late press must not seem to have had an effect."""
        now = self._clock.now()
        for question in await self._store.pending_interactions(thread, now=now):
            if question.kind == TOOL and details_of(question).message_id not in but:
                await self._store.answer_interaction(
                    question.id, thread=thread, user=question.allowed_users[0], choice=DENY, now=now
                )
                self._send(Answered(thread=thread, interaction_id=question.id))

    async def _has_room(self, scope: TurnScope, question: str) -> bool:
        """Whether the author may be asked once more in this hour; it counts, also for the next process."""
        if not self._per_hour:
            return True
        person = scope.person or own_person(scope.thread, scope.author.id)
        asked = self._store.shield.asked
        return await asked.count(person, question, now=self._clock.now(), most=self._per_hour)

    def _question(
        self, scope: TurnScope, action_id: str, action_hash: str, body: dict[str, str], *, can_last: bool
    ) -> Interaction:
        now = self._clock.now()
        return Interaction(
            id=f"{TOOL}_{action_id}",
            thread=scope.thread.encode(),
            session_id=scope.session_id,
            kind=TOOL,
            options=(ALLOW, DENY, ALLOW_FOR_CONVERSATION) if can_last else (ALLOW, DENY),
            allowed_users=(scope.author.id,),
            action_hash=action_hash,
            created_at=now,
            expires_at=now + self._approval_s,
            body={**body, "message_id": scope.message_id},
        )

    async def _show(self, scope: TurnScope, question: Interaction, tool_name: str, reasoning: str) -> None:
        await scope.send(
            ApprovalRequired(
                session_id=scope.session_id,
                message_id=scope.message_id,
                interaction_id=question.id,
                tool_name=tool_name,
                reasoning=reasoning,
                options=question.options,
                # A question that expired meanwhile is shown too, with its result; 0 means no limit.
                timeout_s=max(_LEAST_S, question.expires_at - self._clock.now()),
                paused=False,
            )
        )

    async def _answer_to(
        self,
        question: Interaction,
        signal: asyncio.Event,
        scope: TurnScope,
        show: Callable[[], Awaitable[None]],
    ) -> str:
        # A clock that was set back must not extend the wait beyond the full time from now.
        remaining = min(self._approval_s, question.expires_at - self._clock.now())
        deadline = self._clock.timeout(max(0.0, remaining))
        try:
            async with scope.waiting(), deadline:
                await (self._looked(question, signal, scope, show) if self._shared else signal.wait())
        except TimeoutError:
            if not deadline.expired():
                raise
        # Read the store in either case: it decides whether an answer at the last moment counts.
        known = await self._store.interaction(question.id)
        choice = None if known is None else known[1]
        return EXPIRED if choice is None else choice

    async def _looked(
        self,
        question: Interaction,
        signal: asyncio.Event,
        scope: TurnScope,
        show: Callable[[], Awaitable[None]],
    ) -> None:
        """Return once there is an answer, by the signal or in the store."""
        for look in count(1):
            try:
                async with self._clock.timeout(LOOK_S):
                    await signal.wait()
            except TimeoutError:
                pass
            else:
                return
            try:
                known = await self._store.interaction(question.id)
                if known is None or known[1] is not None:
                    return
                if look == _SHOWN_AFTER_LOOKS and not await self._is_shown(question.id, scope.message_id):
                    await show()
            except StorageError as error:
                _log.warning("a question's answer is not read", extra={"reason": str(error)})

    async def _is_shown(self, question: str, message_id: str) -> bool:
        """Whether a message on the platform is on record that shows the question, or may show it. The page
        and the terminal record none; they show an event that comes twice once."""
        return any(one.part == part_number(question, 0) for one in await self._store.shown(message_id))


def _is_same(known: Interaction, asked: Interaction) -> bool:
    """Whether a question that is on record is about the same action, session, chat and person."""
    return (known.action_hash, known.session_id, known.thread, known.allowed_users) == (
        asked.action_hash,
        asked.session_id,
        asked.thread,
        asked.allowed_users,
    )
