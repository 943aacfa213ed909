"""The tool group `schedule`: reminders of the turn's owner. Keeping and saying them is the host's."""

from __future__ import annotations

import math
import re
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from pipeline.domain.chat import ToolDefinition
from pipeline.domain.clock import Clock
from pipeline.runtime.ports import ReminderNote, Reminders
from pipeline.runtime.scope import TurnScope
from pipeline.tools.tool import Refused, Tool, ToolFailed, ToolOutput, tool_schema

MAX_REMINDERS = 50
MAX_TEXT_CHARS = 500
MAX_MINUTES = 366 * 24 * 60
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_REMIND_ME = ToolDefinition(
    name="remind_me",
    description="Say something in this chat later. Give in_minutes, or at: one of the two.",
    parameters=tool_schema(
        {"text": {"type": "string", "description": "What to remind of.", "maxLength": MAX_TEXT_CHARS}},
        {
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
        {"id": {"type": "string", "description": "As list_reminders shows it.", "maxLength": 40}}
    ),
)


class ScheduleGroup:
    """Implements ToolGroup."""

    name = "schedule"
    description = "remind the user of something later, list and cancel reminders"

    def __init__(self, reminders: Reminders, clock: Clock) -> None:
        self._reminders = reminders
        self._clock = clock
        self._tools = (
            Tool(definition=_REMIND_ME, group=self.name, run=self._remind, own_only=True),
            Tool(definition=_LIST, group=self.name, run=self._list, reads_only=True),
            Tool(definition=_CANCEL, group=self.name, run=self._cancel, own_only=True),
        )

    async def tools(self, _scope: TurnScope) -> tuple[Tool, ...]:
        """The same three for everybody."""
        return self._tools

    async def close(self) -> None:
        """It holds nothing."""

    async def _remind(self, arguments: Mapping[str, Any], scope: TurnScope) -> ToolOutput:
        if scope.mode == "otr":
            raise Refused("this conversation is off the record, and a reminder would have to be kept")
        text = " ".join(_CONTROLS.sub(" ", str(arguments["text"])).split())
        if not text:
            raise ToolFailed("the reminder has no text")
        now = self._clock.now()
        due, offset = _when(arguments, now)
        note = ReminderNote(id=f"rem_{secrets.token_hex(5)}", due=due, text=text, offset_s=offset)
        if not await self._reminders.add(note, scope, limit=MAX_REMINDERS):
            raise ToolFailed(f"there are {MAX_REMINDERS} reminders already; cancel one first")
        return ToolOutput(text=f"Reminder {note.id} is set for {shown_time(due, offset)}: {text}")

    async def _list(self, _arguments: Mapping[str, Any], scope: TurnScope) -> ToolOutput:
        notes = await self._reminders.of(scope)
        lines = [f"It is {shown_time(self._clock.now(), notes[0].offset_s if notes else 0)}."]
        lines += [f"- {note.id}, {shown_time(note.due, note.offset_s)}: {note.text}" for note in notes]
        return ToolOutput(text="\n".join(lines if notes else [*lines, "There are no reminders."]))

    async def _cancel(self, arguments: Mapping[str, Any], scope: TurnScope) -> ToolOutput:
        note_id = str(arguments["id"]).strip()
        if not await self._reminders.remove(note_id, scope):
            raise ToolFailed("there is no such reminder; list_reminders shows those that there are")
        return ToolOutput(text=f"Reminder {note_id} is cancelled.")


def shown_time(at: float, offset_s: int) -> str:
    """A Unix time for people and models: `Friday 2030-05-31 18:30 (UTC+02:00)`."""
    moment = datetime.fromtimestamp(at, timezone(timedelta(seconds=offset_s)))
    return moment.strftime("%A %Y-%m-%d %H:%M (%Z)")


def _when(arguments: Mapping[str, Any], now: float) -> tuple[float, int]:
    """The time asked for, as Unix time, and its zone's offset. Raises ToolFailed in words."""
    minutes, at = arguments.get("in_minutes"), arguments.get("at")
    if (minutes is None) == (at is None):
        raise ToolFailed("give either in_minutes or at")
    due, offset = (now + _minutes(minutes) * 60, 0) if at is None else _moment(str(at), now)
    if due <= now:
        raise ToolFailed(f"that time is over: it is {_iso(now)} now")
    if due > now + MAX_MINUTES * 60:
        raise ToolFailed("a reminder can be at most a year ahead")
    return due, offset


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
