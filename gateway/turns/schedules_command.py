"""Run the command /schedules: list what comes later in a chat, pause, continue or delete it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gateway.turns.journal import StoreJournal
from pipeline.domain.messages import Author, SessionCommand
from pipeline.runtime.ports import ReminderNote, Reminders
from pipeline.runtime.scope import TurnScope, ignore_event
from pipeline.schedules.shown import shown_repetition
from pipeline.tools.schedule import shown_time
from pipeline.tools.shown import quoted

_NOTHING = "Nothing is set for later here. Ask for it, as in “remind me every weekday at 9 to stretch”."
_LISTED = (
    "This comes later in this chat:\n\n{lines}\n\n"
    "`/schedules pause NUMBER` pauses one, `resume` continues it, and `delete` ends it."
)
_LINE = "{number}. {when}: {text}{paused}"
_ANSWERED = "I answer “{text}”"
_RUN = "I run `{workflow}` with “{text}”"
_PAUSED = " (paused)"
_NO_SUCH = "There is no number {word}. `/schedules` shows what is set."
_HOW = "Say `/schedules`, or `/schedules pause`, `resume` or `delete` with a number."
_DONE: Final = {
    "pause": "Paused: {what}.",
    "resume": "Continued: {what}.",
    "delete": "Deleted: {what}.",
}
_OVER = "The time of this is over: {what}. Delete it, or ask for a new one."
_SHOWN_CHARS = 120


class SchedulesCommand:
    """Runs the command in all threads. Each person sees only what is their own."""

    def __init__(self, reminders: Reminders) -> None:
        self._reminders = reminders

    async def run(self, command: SessionCommand, journal: StoreJournal) -> None:
        """List the author's reminders and schedules, or change one. Raises StorageError."""
        scope = _scope(command, journal)
        notes = await self._reminders.of(scope)
        words = command.argument.casefold().split()
        if not words:
            await journal.commit_notice(_listed(notes))
        elif len(words) == 2 and words[0] in _DONE:
            await journal.commit_notice(await self._changed(words[0], words[1], notes, scope))
        else:
            await journal.commit_notice(_HOW)

    async def _changed(self, verb: str, number: str, notes: Sequence[ReminderNote], scope: TurnScope) -> str:
        if not (number.isascii() and number.isdigit() and 1 <= int(number) <= len(notes)):
            return _NO_SUCH.format(word=quoted(number)[1:-1][:20])
        note = notes[int(number) - 1]
        what = f"{_when(note)}: {_text(note)}"
        if verb == "delete":
            await self._reminders.remove(note.id, scope)
        elif not await self._reminders.pause(note.id, scope, paused=verb == "pause"):
            return _OVER.format(what=what)
        return _DONE[verb].format(what=what)


def _listed(notes: Sequence[ReminderNote]) -> str:
    if not notes:
        return _NOTHING
    lines = [
        _LINE.format(number=at, when=_when(note), text=_text(note), paused=_PAUSED if note.paused else "")
        for at, note in enumerate(notes, 1)
    ]
    return _LISTED.format(lines="\n".join(lines))


def _when(note: ReminderNote) -> str:
    if note.repetition is None:
        return shown_time(note.due, note.offset_s)
    words = shown_repetition(note.repetition)
    return words[0].upper() + words[1:]


def _text(note: ReminderNote) -> str:
    text = quoted(note.text)[1:-1].replace("`", "")
    text = text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 1] + "…"
    if note.does == "run":
        return _RUN.format(workflow=note.workflow, text=text)
    return _ANSWERED.format(text=text) if note.does == "answer" else text


def _scope(command: SessionCommand, journal: StoreJournal) -> TurnScope:
    return TurnScope(
        session_id=journal.session_id,
        message_id=command.message_id,
        thread=command.thread,
        author=Author(id=command.author.id, name=command.author.name),
        private=command.private,
        send=ignore_event,
    )
