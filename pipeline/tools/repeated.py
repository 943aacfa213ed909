"""The tool that sets a repeated schedule: its time is read by rules, and shown back before it counts."""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, Literal

from pipeline.domain.chat import ToolDefinition
from pipeline.domain.errors import InvalidInput
from pipeline.runtime.ports import ReminderNote, Reminders
from pipeline.runtime.scope import TurnScope
from pipeline.schedules.repetition import Repetition
from pipeline.schedules.shown import shown_repetition, shown_times
from pipeline.schedules.words import MAX_CHARS, repetition_of
from pipeline.tools.tool import Refused, Tool, ToolFailed, ToolOutput, tool_schema
from pipeline.tools.zones import TimeZones

MAX_TEXT_CHARS: Final = 500
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_OTR = "this conversation is off the record, and a schedule would have to be kept"
_DEFINITION = ToolDefinition(
    name="repeat_for_me",
    description="Say something in this chat, or answer a request in it, again and again.",
    parameters=tool_schema(
        {
            "text": {
                "type": "string",
                "description": "What to say, or the request to answer.",
                "maxLength": MAX_TEXT_CHARS,
            },
            "when": {
                "type": "string",
                "description": "The repetition in the user's own words (English, German, French, Spanish), "
                "such as every weekday at 9, or a cron expression. It is read in the user's time zone.",
                "maxLength": MAX_CHARS,
            },
        },
        {
            "does": {
                "type": "string",
                "enum": ["say", "answer"],
                "description": "say the text as it is (the default), or answer it as a message of the user.",
            },
            "if_missed": {
                "type": "string",
                "enum": ["once", "skip"],
                "description": "After a time without a running program: once, late (the default), or skip.",
            },
        },
    ),
)


_RUNS = "say the text as it is (the default), answer it as a message of the user, or run a workflow with it."


def _with_workflows(names: tuple[str, ...]) -> ToolDefinition:
    """The tool for a chat with workflows."""
    parameters = dict(_DEFINITION.parameters)
    does = {"type": "string", "enum": ["say", "answer", "run"], "description": _RUNS}
    named = {
        "type": "string",
        "enum": list(names),
        "description": "Of run: the workflow. The text is its message.",
    }
    parameters["properties"] = {**parameters["properties"], "does": does, "workflow": named}
    return replace(_DEFINITION, parameters=parameters)


class RepeatedTool:
    """Makes the tool `repeat_for_me`. A person is asked before it is set, with the times that it means."""

    def __init__(self, reminders: Reminders, zones: TimeZones, *, group: str, limit: int) -> None:
        self._reminders = reminders
        self._zones = zones
        self._limit = limit
        self.tool = Tool(
            definition=_DEFINITION, group=group, run=self._set, preview=self._preview, answers=True
        )
        """The tool for a chat without workflows."""

    def tool_for(self, scope: TurnScope) -> Tool:
        """The tool for the chat of a turn: it can also run the workflows that the author may run there."""
        names = self._reminders.workflows(scope)
        return replace(self.tool, definition=_with_workflows(names)) if names else self.tool

    async def _preview(self, arguments: Mapping[str, Any], scope: TurnScope) -> str:
        repetition, now = await self._read(arguments, scope)
        _, workflow = self._does(arguments, scope)
        what = f"Runs the workflow {workflow}. " if workflow else ""
        return f"{what}When: {shown_repetition(repetition)}. The next times: {shown_times(repetition, now)}."

    async def _set(self, arguments: Mapping[str, Any], scope: TurnScope) -> ToolOutput:
        if scope.mode == "otr":
            raise Refused(_OTR)
        repetition, now = await self._read(arguments, scope)
        due = repetition.next_after(now)
        if due is None:
            raise ToolFailed("this time never comes")
        does, workflow = self._does(arguments, scope)
        note = ReminderNote(
            id=f"rem_{secrets.token_hex(5)}",
            due=due,
            text=later_text(arguments, "schedule"),
            repetition=repetition,
            does=does,
            workflow=workflow,
            if_missed="skip" if arguments.get("if_missed") == "skip" else "once",
        )
        if not await self._reminders.add(note, scope, limit=self._limit):
            raise ToolFailed(f"there are {self._limit} reminders already; cancel one first")
        when, times = shown_repetition(repetition), shown_times(repetition, now, 1)
        return ToolOutput(
            text=f"Schedule {note.id} is set, {when}, first on {times}: {note.text}\n"
            "`/schedules` pauses or ends it."
        )

    def _does(
        self, arguments: Mapping[str, Any], scope: TurnScope
    ) -> tuple[Literal["say", "answer", "run"], str]:
        """What is done at the time, and the workflow of a run. Raises ToolFailed."""
        if arguments.get("does") != "run":
            return ("answer" if arguments.get("does") == "answer" else "say"), ""
        names = self._reminders.workflows(scope)
        wanted = str(arguments.get("workflow", ""))
        if wanted not in names:
            raise ToolFailed(
                f"name one of the workflows of this chat: {', '.join(names) or 'there are none'}"
            )
        return "run", wanted

    async def _read(self, arguments: Mapping[str, Any], scope: TurnScope) -> tuple[Repetition, float]:
        """The repetition, and the time now. Raises ToolFailed."""
        later_text(arguments, "schedule")
        now = await self._zones.now(scope)
        try:
            # In a thread: the first reading compiles patterns, and a zone is read from the disk.
            read = await asyncio.to_thread(repetition_of, str(arguments["when"]), now)
        except InvalidInput as error:
            raise ToolFailed(str(error).removeprefix("schedule: ")) from None
        return read, now.timestamp()


def later_text(arguments: Mapping[str, Any], what: str) -> str:
    """The argument `text` on one line. Raises ToolFailed, which says that `what` has none."""
    text = " ".join(_CONTROLS.sub(" ", str(arguments["text"])).split())
    if not text:
        raise ToolFailed(f"the {what} has no text")
    return text
