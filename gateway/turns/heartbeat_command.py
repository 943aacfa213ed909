"""Run the command /heartbeat: show the heartbeat and what is watched, turn it on or off, end a watch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from gateway.storage.heartbeats import outcome_words
from gateway.turns.journal import StoreJournal
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Author, SessionCommand
from pipeline.runtime.scope import TurnScope, ignore_event
from pipeline.runtime.watching import Heartbeats, HeartbeatShown, WatchNote
from pipeline.tools.shown import quoted
from pipeline.watches.conditions import shown_interval

_NONE: Final = "There are no heartbeats here: the operator has not turned them on."
_HOW: Final = "Say `/heartbeat`, or `/heartbeat on`, `off`, `here`, or `delete` with a number."
_ON: Final = "Heartbeats are on: I act when something that is watched changes."
_OFF: Final = "Heartbeats are off: nothing is watched, and you do not hear later of what changes meanwhile."
_HERE: Final = "The results of heartbeats come to this chat from now on."
_ONLY_PRIVATE: Final = "What heartbeats tell comes only to a private chat."
_DELETED: Final = "I do not watch {what} any more."
_IN_DOCUMENT: Final = "This is a line of HEARTBEAT.md, and ends when the line goes."
_NO_SUCH: Final = "There is no number {word}. `/heartbeat` shows what is watched."
_STATUS: Final = "Heartbeats are {state}. The results go to {to}.{document}"
_DOCUMENT: Final = " HEARTBEAT.md is yours; its open tasks are looked at every {every}."
_NOTHING: Final = "Nothing is watched. Ask for it, as in “watch https://example.org and tell me what is new”."
_LINE: Final = "{number}. {what}: {text}{note}"
_CYCLE: Final = "- {at}: {ended}{sent}{problem}"
_EVENT: Final = "- {at}: {name}{reason}"
_EVENTS: Final[Mapping[str, str]] = {
    "scheduler_started": "the checks began",
    "scheduler_check": "looked at what is watched",
    "heartbeat_skipped": "no heartbeat was needed",
    "heartbeat_triggered": "a heartbeat began",
    "heartbeat_completed": "a heartbeat ended",
    "heartbeat_error": "something failed",
    "heartbeat_already_running": "a heartbeat was at work, so the next one waits",
}
"""The names of `HeartbeatLog` in words."""
_TEXT_CHARS: Final = 120
_MOST_LAST: Final = 5
_CHANGES: Final = ("on", "off", "here", "delete")


class HeartbeatCommand:
    """Runs the command in all threads. Each person sees only what is their own. `heartbeats` is None where
    they are off; times are shown in `zone`."""

    def __init__(self, heartbeats: Heartbeats | None, zone: str) -> None:
        self._heartbeats = heartbeats
        self._zone = zone

    @property
    def is_possible(self) -> bool:
        """Whether there are heartbeats."""
        return self._heartbeats is not None

    async def run(self, command: SessionCommand, journal: StoreJournal) -> None:
        """Show or change the author's heartbeats. Raises StorageError."""
        await journal.commit_notice(await self._words(command, _scope(command, journal)))

    async def _words(self, command: SessionCommand, scope: TurnScope) -> str:
        words = command.argument.casefold().split()
        shown = None if self._heartbeats is None else await self._heartbeats.shown(scope)
        if self._heartbeats is None or shown is None:
            return _NONE
        if not words:
            return self._shown(shown, scope)
        if words[0] not in _CHANGES or len(words) != (2 if words[0] == "delete" else 1):
            return _HOW
        if words[0] == "delete":
            return await self._deleted(self._heartbeats, words[1], shown.watches, scope)
        if words[0] == "here":
            if not scope.private:
                return _ONLY_PRIVATE
            await self._heartbeats.send_here(scope)
            return _HERE
        await self._heartbeats.turn(scope, on=words[0] == "on")
        return _ON if words[0] == "on" else _OFF

    async def _deleted(
        self, heartbeats: Heartbeats, number: str, watches: Sequence[WatchNote], scope: TurnScope
    ) -> str:
        if not (number.isascii() and number.isdigit() and 1 <= int(number) <= len(watches)):
            return _NO_SUCH.format(word=quoted(number)[1:-1][:20])
        watch = watches[int(number) - 1]
        if watch.from_document:
            return _IN_DOCUMENT
        await heartbeats.remove(watch.id, scope)
        return _DELETED.format(what=watch.condition.shown)

    def _shown(self, shown: HeartbeatShown, scope: TurnScope) -> str:
        to = "this chat" if shown.to == scope.thread.encode() else ThreadKey.decode(shown.to).channel
        document = _DOCUMENT.format(every=shown_interval(shown.every_s)) if shown.has_document else ""
        parts = [_STATUS.format(state="on" if shown.is_on else "off", to=to, document=document)]
        lines = [_watch_line(number, one) for number, one in enumerate(shown.watches, 1)]
        parts.append("\n".join(lines) or _NOTHING)
        if shown.problems:
            parts.append("\n".join(("HEARTBEAT.md cannot be read in full:", *_dashed(shown.problems))))
        if shown.last:
            newest = [self._cycle(one) for one in shown.last[-_MOST_LAST:]]
            parts.append("\n".join(("The last heartbeats:", *newest)))
        if shown.events:
            newest = [
                _EVENT.format(
                    at=self._at(at), name=_EVENTS.get(name, name), reason=f" ({reason})" if reason else ""
                )
                for at, name, reason in shown.events
            ]
            parts.append("\n".join(("The last events:", *newest)))
        return "\n\n".join(parts)

    def _cycle(self, one: Mapping[str, Any]) -> str:
        problem = str(one.get("problem", ""))
        return _CYCLE.format(
            at=self._at(float(one["at"])),
            ended=outcome_words(str(one["status"]), int(one.get("cycles", 0))),
            sent=", with news" if one.get("sent") else "",
            problem=f" ({problem})" if problem else "",
        )

    def _at(self, at: float) -> str:
        return f"{datetime.fromtimestamp(at, ZoneInfo(self._zone)):%Y-%m-%d %H:%M}"


def _watch_line(number: int, watch: WatchNote) -> str:
    what = watch.condition.shown
    text = quoted(watch.text)[1:-1].replace("`", "")
    text = text if len(text) <= _TEXT_CHARS else text[: _TEXT_CHARS - 1] + "…"
    note = " (fails)" if watch.failing else ""
    return _LINE.format(number=number, what=what[0].upper() + what[1:], text=text, note=note)


def _dashed(lines: Sequence[str]) -> list[str]:
    return [f"- {line}" for line in lines]


def _scope(command: SessionCommand, journal: StoreJournal) -> TurnScope:
    return TurnScope(
        session_id=journal.session_id,
        message_id=command.message_id,
        thread=command.thread,
        author=Author(id=command.author.id, name=command.author.name),
        private=command.private,
        send=ignore_event,
    )
