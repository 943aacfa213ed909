"""Take in people's reactions to the bot's messages: feedback on answers, and answers to approval questions.

Not here: who may react at all (`access.policy`), and what an adapter takes for a reaction.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from adapters.channel import Acceptance
from gateway.interactions.approvals import ALLOW, DENY
from gateway.interactions.question_parts import shows_question
from gateway.runtime.metrics import Telemetry
from gateway.storage.codec import TOOL
from gateway.storage.feedback import Feedback, ShownReply
from gateway.storage.log_records import run_of
from gateway.storage.ports import Interaction, Record, Store
from pipeline.domain.bounded_dict import BoundedDict
from pipeline.domain.clock import Clock
from pipeline.domain.ids import identity_key
from pipeline.domain.messages import ApprovalReply, Reaction, button_handle
from pipeline.domain.rates import SlidingWindow

PER_MINUTE = 30
"""Reactions of one person that are looked up; further ones have no effect."""
_MINUTE_S = 60.0
_MOST_PEOPLE = 2_000
_CHOICES: Final = {"yes": ALLOW, "no": DENY}


class Reactions:
    """Takes in reactions that the access policy has allowed. `answer` records an answer to a question."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        telemetry: Telemetry,
        answer: Callable[[ApprovalReply], Awaitable[Acceptance]],
    ) -> None:
        self._store = store
        self._clock = clock
        self._telemetry = telemetry
        self._answer = answer
        self._recent = BoundedDict[str, SlidingWindow](_MOST_PEOPLE)

    async def accept(self, item: Reaction) -> Acceptance:
        """Store the reaction, or take it as an answer; one that means nothing has no effect. Raises
        StorageError."""
        taken = Acceptance(status="accepted", message_id=item.message_id)
        if not self._has_room(item):
            return taken
        if item.mark == "up" or item.mark == "down":
            await self._feedback(item)
        elif item.on and not item.answered:
            await self._answered(item, _CHOICES[item.mark])
        return taken

    def _has_room(self, item: Reaction) -> bool:
        now, place = self._clock.monotonic(), item.thread
        person = identity_key(place.channel, place.account, item.author.id)
        times = self._recent.get_or_add(person, lambda: SlidingWindow(PER_MINUTE, _MINUTE_S))
        if times.wait_s(now) > 0:
            return False
        times.add(now)
        return True

    async def _feedback(self, item: Reaction) -> None:
        shown = await self._shown(item)
        if shown is None or shown.role != "assistant" or shown.off_record or not shown.author:
            return
        if item.private and shown.author != item.author.id:
            return
        records = await self._store.read_log(shown.thread, message_id=shown.message_id)
        given = Feedback(
            message_id=shown.message_id,
            thread=shown.thread,
            channel=item.thread.channel,
            account=item.thread.account,
            user=item.author.id,
            name=item.author.name,
            value="up" if item.mark == "up" else "down",
            run_id=run_of(records),
            agent=_agent_of(records),
            at=item.received_at,
        )
        book = self._store.feedback
        if await (book.give(given) if item.on else book.take_back(given)):
            self._telemetry.feedback(given.value if item.on else "removed")

    async def _shown(self, item: Reaction) -> ShownReply | None:
        """The answer that has the reaction, in the chat of the reaction."""
        if not item.answered:
            return await self._store.feedback.reply_shown_by(item.thread.encode(), item.target)
        shown = await self._store.feedback.reply_to(item.target)
        return shown if shown is not None and shown.thread == item.thread.encode() else None

    async def _answered(self, item: Reaction, choice: str) -> None:
        """Take the reaction as a press on the question's button; the same checks decide about it."""
        part = await self._store.feedback.part_shown_by(item.thread.encode(), item.target)
        if part is None:
            return
        questions = await self._store.pending_interactions(part.thread, now=self._clock.now())
        asked = next((one for one in questions if _is_asked(one, part.part, choice)), None)
        if asked is None:
            return
        await self._answer(
            ApprovalReply(
                message_id=item.message_id,
                native_id=item.native_id,
                thread=item.thread.decode(part.thread),
                author=item.author,
                received_at=item.received_at,
                interaction_id=button_handle(asked.id),
                choice="",
                option=asked.options.index(choice),
                private=item.private,
            )
        )


def _is_asked(question: Interaction, part: int, choice: str) -> bool:
    return question.kind == TOOL and choice in question.options and shows_question(question.id, part)


def _agent_of(records: Iterable[Record]) -> str:
    return next((str(one.body.get("agent", "")) for one in records if one.kind == "user"), "")
