"""Keep reminders in the store and enqueue each one once when it is due.

A turn says the reminder, like every other entry; this module only waits, and knows no channel.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace

from gateway.runtime.due_work import DueWork
from gateway.storage.codec import new_entry
from gateway.storage.ports import Store
from gateway.storage.reminders import Reminder
from pipeline.domain.clock import Clock
from pipeline.domain.errors import InvalidInput
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Author, ReminderDue
from pipeline.runtime.ports import ReminderNote
from pipeline.runtime.scope import TurnScope
from pipeline.tools.schedule import shown_time

_log = logging.getLogger(__name__)

LATE_S = 120.0
"""A reminder that is later than this, in seconds, says when it was due."""
_AT_ONCE = 50


class ReminderScheduler:
    """Implements `Reminders`. Run `run` as a supervised task. `wake` is called with a thread that has work,
    `still_allowed` says whether the bot may still write to a reminder's author."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        wake: Callable[[str], None],
        still_allowed: Callable[[ReminderDue], Awaitable[bool]],
    ) -> None:
        self._store = store
        self._clock = clock
        self._wake = wake
        self._still_allowed = still_allowed
        self._work = DueWork(
            do_due=self._hand_over_due, next_due=self._next_due, clock=clock, name="reminders"
        )

    async def add(self, note: ReminderNote, scope: TurnScope, *, limit: int) -> bool:
        author = scope.author
        reminder = Reminder(
            id=note.id,
            thread=scope.thread.encode(),
            owner=scope.owner,
            due=note.due,
            text=note.text,
            body={
                "author": author.id,
                "name": author.name,
                "private": scope.private,
                "offset_s": note.offset_s,
            },
        )
        kept = await self._store.reminders.add(reminder, limit=limit)
        self._work.wake()
        return kept

    async def of(self, scope: TurnScope) -> tuple[ReminderNote, ...]:
        return tuple(_note(reminder) for reminder in await self._store.reminders.of(scope.owner))

    async def remove(self, note_id: str, scope: TurnScope) -> bool:
        return await self._store.reminders.remove(scope.owner, note_id)

    async def run(self) -> None:
        """Enqueue due reminders, for ever, beginning with those that an earlier process left."""
        await self._work.run()

    async def _next_due(self) -> float | None:
        return await self._store.reminders.next_due()

    async def _hand_over_due(self) -> None:
        for reminder in await self._store.reminders.due(now=self._clock.now(), limit=_AT_ONCE):
            await self._hand_over(reminder)

    async def _hand_over(self, reminder: Reminder) -> None:
        """Enqueue the reminder, then remove it from the store. After a crash between the two, the key
        prevents a duplicate."""
        try:
            due = self._item(reminder)
        except (InvalidInput, KeyError, TypeError, ValueError):
            _log.exception("a reminder cannot be said and is dropped", extra={"reminder": reminder.id})
            await self._store.reminders.remove(reminder.owner, reminder.id)
            return
        if not await self._still_allowed(due):
            _log.info("a reminder is dropped: its author was shut out", extra={"thread_key": reminder.thread})
            await self._store.reminders.remove(reminder.owner, reminder.id)
            return
        key = f"reminder:{due.native_id}"
        await self._store.accept(replace(new_entry(due), dedupe_key=key))
        await self._store.reminders.remove(reminder.owner, reminder.id)
        self._wake(reminder.thread)

    def _item(self, reminder: Reminder) -> ReminderDue:
        now, text = self._clock.now(), reminder.text
        if now - reminder.due > LATE_S:
            text += f" (it was due on {shown_time(reminder.due, _offset(reminder))})"
        # With the due time, because a short id may be reused later.
        identity = f"{reminder.id}_{round(reminder.due * 1000):x}"
        return ReminderDue(
            message_id=identity,
            native_id=identity,
            thread=ThreadKey.decode(reminder.thread),
            author=Author(id=str(reminder.body["author"]), name=str(reminder.body.get("name", ""))),
            received_at=now,
            private=bool(reminder.body["private"]),
            text=text,
        )


def _note(reminder: Reminder) -> ReminderNote:
    return ReminderNote(id=reminder.id, due=reminder.due, text=reminder.text, offset_s=_offset(reminder))


def _offset(reminder: Reminder) -> int:
    return int(reminder.body.get("offset_s", 0))
