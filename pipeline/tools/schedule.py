"""The tool group `schedule`: reminders of the turn's owner. The host stores and delivers them."""

from __future__ import annotations

import asyncio
import math
import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from pipeline.domain.chat import ToolDefinition
from pipeline.domain.clock import Clock
from pipeline.runtime.ports import ReminderNote, Reminders
from pipeline.runtime.scope import TurnScope
from pipeline.schedules.shown import shown_repetition
from pipeline.tools.moments import moment_of
from pipeline.tools.repeated import MAX_TEXT_CHARS, RepeatedTool, later_text
from pipeline.tools.tool import Refused, Tool, ToolFailed, ToolOutput, tool_schema
from pipeline.tools.zones import TimeZones

MAX_REMINDERS = 50
MAX_MINUTES = 366 * 24 * 60
_NO_SUCH = "there is no such reminder; list_reminders shows those that there are"
_REMIND_ME = ToolDefinition(
    name="remind_me",
    description="Say something in this chat later, once. Give one of when, in_minutes, at. For what repeats "
    "there is repeat_for_me.",
    parameters=tool_schema(
        {"text": {"type": "string", "description": "What to remind of.", "maxLength": MAX_TEXT_CHARS}},
        {
            "when": {
                "type": "string",
                "description": "The time in the user's own words (English, German, French, Spanish), such as "
                "tomorrow at 8 am. It is read in the user's time zone.",
                "maxLength": 100,
            },
            "in_minutes": {"type": "number", "description": "How many minutes from now."},
            "at": {
                "type": "string",
                "description": "A date and time with its offset from UTC, such as 2030-05-31T18:30:00+02:00.",
                "maxLength": 40,
            },
        },
    ),
)
_LIST = ToolDefinition(
    name="list_reminders",
    description="The reminders that are still to come, with their ids.",
    parameters=tool_schema({}),
)
_CANCEL = ToolDefinition(
    name="cancel_reminder",
    description="Take a reminder back.",
    parameters=tool_schema(
        {
            "id": {
                "type": "string",
                "description": "As list_reminders shows it, or words of its text.",
                "maxLength": 40,
            }
        }
    ),
)
_SET_ZONE = ToolDefinition(
    name="set_time_zone",
    description="Keep the time zone in which the user lives.",
    parameters=tool_schema(
        {
            "zone": {
                "type": "string",
                "minLength": 1,
                "maxLength": 64,
                "description": "such as Europe/Berlin, or a city",
            }
        }
    ),
)


class ScheduleGroup:
    """Implements ToolGroup."""

    name = "schedule"
    description = "remind the user of something later, list and cancel reminders"

    def __init__(self, reminders: Reminders, clock: Clock, zones: TimeZones) -> None:
        self._reminders = reminders
        self._clock = clock
        self._zones = zones
        self._repeated = RepeatedTool(reminders, zones, group=self.name, limit=MAX_REMINDERS)
        self._tools = (
            Tool(definition=_REMIND_ME, group=self.name, run=self._remind, own_only=True, answers=True),
            Tool(definition=_LIST, group=self.name, run=self._list, reads_only=True, answers=True),
            Tool(definition=_CANCEL, group=self.name, run=self._cancel, own_only=True, answers=True),
            Tool(definition=_SET_ZONE, group=self.name, run=self._set_zone, own_only=True, answers=True),
        )

    async def tools(self, scope: TurnScope) -> tuple[Tool, ...]:
        """The five tools; where the author may run workflows, one of them can do so."""
        first, *rest = self._tools
        return (first, self._repeated.tool_for(scope), *rest)

    async def close(self) -> None:
        """Do nothing: the group has no resources."""

    async def _remind(self, arguments: Mapping[str, Any], scope: TurnScope) -> ToolOutput:
        if scope.mode == "otr":
            raise Refused("this conversation is off the record, and a reminder would have to be kept")
        text = later_text(arguments, "reminder")
        due, offset = await self._when(arguments, scope)
        note = ReminderNote(id=f"rem_{secrets.token_hex(5)}", due=due, text=text, offset_s=offset)
        if not await self._reminders.add(note, scope, limit=MAX_REMINDERS):
            raise ToolFailed(f"there are {MAX_REMINDERS} reminders already; cancel one first")
        return ToolOutput(text=f"Reminder {note.id} is set for {shown_time(due, offset)}: {text}")

    async def _when(self, arguments: Mapping[str, Any], scope: TurnScope) -> tuple[float, int]:
        """The requested time (Unix time) and its zone's offset in seconds. Raises ToolFailed."""
        given = [name for name in ("when", "in_minutes", "at") if arguments.get(name) is not None]
        now = await self._zones.now(scope)
        match given:
            case ["when"]:
                # In a thread: the first date loads a library, and parsing is slow.
                moment = await asyncio.to_thread(moment_of, str(arguments["when"]), now)
                due, offset = moment.timestamp(), _offset(moment)
            case ["in_minutes"]:
                due = now.timestamp() + _minutes(arguments["in_minutes"]) * 60
                offset = _offset(now)
            case ["at"]:
                due, offset = _moment(str(arguments["at"]), now.timestamp())
            case []:
                raise ToolFailed("say when, as in “tomorrow at 8:00” or “in 20 minutes”")
            case _:
                raise ToolFailed("give one of when, in_minutes and at")
        if due <= now.timestamp():
            raise ToolFailed(f"that time is over: it is {_iso(now.timestamp())} now")
        if due > now.timestamp() + MAX_MINUTES * 60:
            raise ToolFailed("a reminder can be at most a year ahead")
        return due, offset

    async def _set_zone(self, arguments: Mapping[str, Any], scope: TurnScope) -> ToolOutput:
        if scope.mode == "otr":
            raise Refused("this conversation is off the record, and a time zone would have to be kept")
        now = await self._zones.keep(scope, str(arguments["zone"]))
        return ToolOutput(text=f"Your time zone is {now.tzinfo} from now on: it is {now:%H:%M} there.")

    async def _list(self, _arguments: Mapping[str, Any], scope: TurnScope) -> ToolOutput:
        notes = await self._reminders.of(scope)
        offset = _offset(await self._zones.now(scope))
        lines = [f"It is {shown_time(self._clock.now(), offset)}."]
        lines += [f"- {note.id}, {_when_shown(note)}: {note.text}" for note in notes]
        return ToolOutput(text="\n".join(lines if notes else [*lines, "There are no reminders."]))

    async def _cancel(self, arguments: Mapping[str, Any], scope: TurnScope) -> ToolOutput:
        note_id = str(arguments["id"]).strip()
        if not await self._reminders.remove(note_id, scope):
            note_id = _meant(note_id, await self._reminders.of(scope))
            if not await self._reminders.remove(note_id, scope):
                raise ToolFailed(_NO_SUCH)
        return ToolOutput(text=f"Reminder {note_id} is cancelled.")


def shown_time(at: float, offset_s: int) -> str:
    """A Unix time as readable text: `Friday 2030-05-31 18:30 (UTC+02:00)`."""
    moment = datetime.fromtimestamp(at, timezone(timedelta(seconds=offset_s)))
    return moment.strftime("%A %Y-%m-%d %H:%M (%Z)")


def _when_shown(note: ReminderNote) -> str:
    if note.repetition is None:
        shown = shown_time(note.due, note.offset_s)
    else:
        shown = shown_repetition(note.repetition)
    return f"{shown}, paused" if note.paused else shown


def _meant(words: str, notes: Sequence[ReminderNote]) -> str:
    """The id of the only reminder whose text has `words`. Raises ToolFailed for none or several."""
    found = [note for note in notes if words and words.casefold() in note.text.casefold()]
    if len(found) > 1:
        raise ToolFailed(
            f"{len(found)} reminders have “{words}” in them; give an id that list_reminders shows"
        )
    if not found:
        raise ToolFailed(_NO_SUCH)
    return found[0].id


def _offset(moment: datetime) -> int:
    offset = moment.utcoffset()
    return 0 if offset is None else int(offset.total_seconds())


def _minutes(value: Any) -> float:
    minutes = float(value)
    if not math.isfinite(minutes):
        raise ToolFailed("in_minutes must be a number of minutes")
    return minutes


def _moment(text: str, now: float) -> tuple[float, int]:
    try:
        moment = datetime.fromisoformat(text.strip())
        offset = moment.utcoffset()
        if offset is not None:
            return moment.timestamp(), int(offset.total_seconds())
    except (ValueError, OverflowError):
        raise ToolFailed(f"at must be a date and time such as {_iso(now)}") from None
    raise ToolFailed(f"at needs its offset from UTC, as {_iso(now)} has; or give in_minutes")


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
