"""The group `system`: the time, arithmetic, and facts about this program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.domain.chat import ToolDefinition
from pipeline.domain.clock import Clock
from pipeline.runtime.scope import TurnScope
from pipeline.tools.arithmetic import calculated
from pipeline.tools.registry import FixedGroup
from pipeline.tools.tool import Run, Tool, ToolOutput, tool_schema
from pipeline.tools.zones import TimeZones

_ZONE = {
    "type": "string",
    "maxLength": 64,
    "description": "such as Europe/Berlin; the user's own when absent",
}
_SUM = {"type": "string", "minLength": 1, "maxLength": 200, "description": "such as 2 * (3 + 4)"}


def system_group(clock: Clock, zones: TimeZones, *, version: str) -> FixedGroup:
    """The group; the process's running time is counted from this call."""
    began = clock.monotonic()

    async def current_time(arguments: Mapping[str, Any], scope: TurnScope) -> ToolOutput:
        now = await zones.now(scope, arguments.get("zone") or "")
        return ToolOutput(text=f"{now:%A, %Y-%m-%d %H:%M:%S} {now.tzname()} (UTC{now:%z}, {now.tzinfo})")

    async def calculate(arguments: Mapping[str, Any], _scope: TurnScope) -> ToolOutput:
        expression = arguments["expression"]
        return ToolOutput(text=f"{expression} = {calculated(expression)}")

    async def about(_arguments: Mapping[str, Any], _scope: TurnScope) -> ToolOutput:
        seconds = int(clock.monotonic() - began)
        return ToolOutput(text=f"Parlour {version}, running for {_duration(seconds)}.")

    return FixedGroup(
        name="system",
        description="the date and time, sums, and what this program is",
        fixed=(
            _tool("current_time", "The date and time now.", tool_schema({}, {"zone": _ZONE}), current_time),
            _tool("calculate", "Work out a sum.", tool_schema({"expression": _SUM}), calculate),
            _tool("about", "This program's version, and how long it runs.", tool_schema({}), about),
        ),
    )


def _tool(name: str, description: str, parameters: dict[str, Any], run: Run) -> Tool:
    definition = ToolDefinition(name=name, description=description, parameters=parameters)
    return Tool(definition=definition, group="system", run=run, reads_only=True, own_words=True, answers=True)


def _duration(seconds: int) -> str:
    hours, rest = divmod(seconds, 3_600)
    minutes, left = divmod(rest, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {left} s"
