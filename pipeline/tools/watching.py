"""The tool group `watch`: watch something for the turn's author, shown back and asked before it counts.

What is watched is checked without a model; the host wakes one when it has changed.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from typing import Any, Final

from pipeline.domain.chat import ToolDefinition
from pipeline.domain.errors import InvalidInput
from pipeline.runtime.scope import TurnScope
from pipeline.runtime.watching import Watches, WatchNote
from pipeline.tools.repeated import MAX_TEXT_CHARS, later_text
from pipeline.tools.tool import Refused, Tool, ToolFailed, ToolOutput, tool_schema
from pipeline.tools.zones import TimeZones
from pipeline.watches.conditions import MAX_TARGET_CHARS, WatchCondition
from pipeline.watches.words import condition_of

MAX_WATCHES: Final = 50
"""Of one person on one account."""
_OTR: Final = "this conversation is off the record, and a watch would have to be kept"
_IN_ROOM: Final = "something is watched only in a private chat with you"
_IN_HEARTBEAT: Final = "a heartbeat starts no further watches"
_DEFINITION = ToolDefinition(
    name="watch_for_me",
    description="Watch a page, a feed, a file or what is remembered, and act by yourself when it changes.",
    parameters=tool_schema(
        {
            "what": {
                "type": "string",
                "description": "An address (https://…), feed and its address, file and its path (own/a.txt), "
                "memory and words, or tool and its name. How often may follow, as in every 2 hours.",
                "maxLength": MAX_TARGET_CHARS,
            },
            "text": {
                "type": "string",
                "description": "What to do or to tell when it has changed.",
                "maxLength": MAX_TEXT_CHARS,
            },
        }
    ),
)


class WatchGroup:
    """Implements ToolGroup."""

    name = "watch"
    description = "watch pages, feeds, files or memory for the user, and act when they change"

    def __init__(self, watches: Watches, zones: TimeZones) -> None:
        self._watches = watches
        self._zones = zones
        self._tool = Tool(
            definition=_DEFINITION, group=self.name, run=self._set, preview=self._preview, answers=True
        )

    async def tools(self, _scope: TurnScope) -> tuple[Tool, ...]:
        """The only tool, `watch_for_me`."""
        return (self._tool,)

    async def close(self) -> None:
        """Do nothing: the group has no resources."""

    async def _preview(self, arguments: Mapping[str, Any], scope: TurnScope) -> str:
        condition, _ = await self._read(arguments, scope)
        return f"I watch {condition.shown}."

    async def _set(self, arguments: Mapping[str, Any], scope: TurnScope) -> ToolOutput:
        condition, zone = await self._read(arguments, scope)
        text = later_text(arguments, "watch")
        note = WatchNote(id=f"watch_{secrets.token_hex(5)}", condition=condition, text=text, zone=zone)
        if not await self._watches.add(note, scope, limit=MAX_WATCHES):
            raise ToolFailed(f"there are {MAX_WATCHES} watches already; `/heartbeat delete NUMBER` ends one")
        return ToolOutput(
            text=f"I watch {condition.shown}, and then: {text}\n`/heartbeat` shows and ends what is watched."
        )

    async def _read(self, arguments: Mapping[str, Any], scope: TurnScope) -> tuple[WatchCondition, str]:
        """What is watched, and the time zone. Raises ToolFailed."""
        if scope.mode == "otr":
            raise Refused(_OTR)
        if not scope.private:
            raise Refused(_IN_ROOM)
        if scope.unattended:
            raise Refused(_IN_HEARTBEAT)
        later_text(arguments, "watch")
        now = await self._zones.now(scope)
        words = str(arguments["what"])
        try:
            # In a thread: the first reading of a time compiles patterns, and a zone is read from the disk.
            found = await asyncio.to_thread(condition_of, words, now, self._watches.intervals)
        except InvalidInput as error:
            raise ToolFailed(str(error).removeprefix("watch: ")) from None
        if found.kind == "time":
            raise ToolFailed("for times there are remind_me and repeat_for_me")
        return found, str(now.tzinfo)
