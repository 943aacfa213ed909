"""The two tools that every turn has from the start: `load_tools` and `load_skills`.

They belong to the gate: they have no effect outside, need no approval and are not actions.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.domain.chat import ToolCall, ToolDefinition
from pipeline.domain.clock import Clock
from pipeline.runtime.ports import SkillBook, SkillSummary, ToolResult
from pipeline.runtime.scope import TurnScope
from pipeline.tools.arguments import BadArguments, parsed_arguments
from pipeline.tools.registry import ToolRegistry
from pipeline.tools.tool import Tool, ToolFailed, ToolGroup, tool_schema

_log = logging.getLogger(__name__)

LOAD_TOOLS = "load_tools"
LOAD_SKILLS = "load_skills"
_MOST_AT_ONCE = 10


class Loading:
    """`load_tools` and `load_skills`. A group that does not answer within `timeout_s` is not loaded."""

    def __init__(self, registry: ToolRegistry, skills: SkillBook, *, clock: Clock, timeout_s: float) -> None:
        self._registry = registry
        self._skills = skills
        self._clock = clock
        self._timeout_s = timeout_s
        self._loaders: tuple[ToolDefinition, ...] = ()
        self._made_for: tuple[tuple[ToolGroup, ...], tuple[SkillSummary, ...]] | None = None
        """The groups and skills of `_loaders`: mostly they are the same for the next turn."""

    def definitions(self, scope: TurnScope) -> tuple[ToolDefinition, ...]:
        """The loaders that have something to load."""
        found = (self._registry.groups(scope), self._skills.summaries())
        if found != self._made_for:
            self._loaders, self._made_for = _loaders(*found), found
        return self._loaders

    async def load(self, call: ToolCall, scope: TurnScope) -> ToolResult:
        """Execute a call of a loader. Arguments that are not JSON count as empty."""
        try:
            arguments = parsed_arguments(call.arguments)
        except BadArguments:
            arguments = {}
        if call.name == LOAD_TOOLS:
            return await self._load_tools(arguments, scope)
        return self._load_skills(arguments)

    async def list_again(self, groups: Sequence[str], scope: TurnScope) -> None:
        """List those of `groups` that an earlier process loaded. A group that cannot be listed is left out; a
        call of one of its tools gives the reason."""
        for name in self._registry.unlisted(groups, scope):
            listed = await self._listed(name, scope)
            if isinstance(listed, str):
                _log.warning("a loaded tool group is missing", extra={"group": name, "reason": listed})

    async def _listed(self, name: str, scope: TurnScope) -> tuple[Tool, ...] | str:
        """The group's tools, or the reason why they are not available, as text for the model."""
        try:
            async with self._clock.timeout(self._timeout_s):
                return await self._registry.load(name, scope)
        except ToolFailed as failure:
            return str(failure)
        except TimeoutError:
            return f"it did not answer within {self._timeout_s:g} seconds"
        except Exception:  # noqa: BLE001 - the other groups are loaded all the same
            _log.exception("a tool group could not be loaded", extra={"group": name})
            return "it failed"

    async def _load_tools(self, arguments: Mapping[str, Any], scope: TurnScope) -> ToolResult:
        """Load every named group that is available; the result explains the others."""
        lines: list[str] = []
        loaded: list[str] = []
        for name in _names(arguments, "groups"):
            listed = await self._listed(name, scope)
            if isinstance(listed, str):
                lines.append(f"{name}: not loaded, {listed}")
            else:
                loaded.append(name)
                lines.append(f"{name}: loaded {', '.join(tool.name for tool in listed) or 'no tools'}")
                if unusable := self._registry.unusable(name):
                    lines.append(f"{name}: not usable: {_some(unusable)}")
        return _result(lines, "groups", groups=tuple(loaded))

    def _load_skills(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Load every named skill that exists; the result explains the others."""
        lines: list[str] = []
        loaded: list[str] = []
        for name in _names(arguments, "skills"):
            if self._skills.body(name) is None:
                known = ", ".join(skill.name for skill in self._skills.summaries()) or "none"
                lines.append(f"{name}: there is no such skill; there are: {known}")
            else:
                loaded.append(name)
                lines.append(f"{name}: loaded, its instructions are in the system prompt")
        return _result(lines, "skills", skills=tuple(loaded))


def _loaders(groups: Sequence[ToolGroup], skills: Sequence[SkillSummary]) -> tuple[ToolDefinition, ...]:
    found: list[ToolDefinition] = []
    if groups:
        listed = "; ".join(f"{group.name}: {group.description}" for group in groups)
        found.append(
            _definition(
                LOAD_TOOLS,
                f"Load groups of tools before you use them. Groups: {listed}",
                "groups",
                [group.name for group in groups],
            )
        )
    if skills:
        listed = "; ".join(f"{skill.name}: {skill.description}" for skill in skills)
        found.append(
            _definition(
                LOAD_SKILLS,
                f"Load instructions for a task. Skills: {listed}",
                "skills",
                [skill.name for skill in skills],
            )
        )
    return tuple(found)


def _some(named: Sequence[str]) -> str:
    """The first names of a list whose length a server chooses."""
    more = f", and {len(named) - _MOST_AT_ONCE} more" if len(named) > _MOST_AT_ONCE else ""
    return ", ".join(named[:_MOST_AT_ONCE]) + more


def _definition(name: str, description: str, key: str, choices: list[str]) -> ToolDefinition:
    names = {"type": "array", "items": {"type": "string", "enum": choices}, "minItems": 1}
    return ToolDefinition(name=name, description=description, parameters=tool_schema({key: names}))


def _names(arguments: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """The names asked for. Small models write one name, or a list, under the key or its singular."""
    given = arguments.get(key, arguments.get(key[:-1], ()))
    names = [given] if isinstance(given, str) else given if isinstance(given, list | tuple) else []
    return tuple(dict.fromkeys(name for name in names if isinstance(name, str)))[:_MOST_AT_ONCE]


def _result(
    lines: list[str], key: str, *, groups: tuple[str, ...] = (), skills: tuple[str, ...] = ()
) -> ToolResult:
    if not lines:
        lines = [f'Name what to load: {{"{key}": ["…"]}}']
    return ToolResult(
        content="\n".join(lines),
        success=bool(groups or skills),
        summary="; ".join(lines),
        groups=groups,
        skills=skills,
    )
