"""The tools by group, and which of them a turn may load. Not here: whether a call is allowed."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence

from pipeline.domain.frozen import dataclass
from pipeline.runtime.scope import TurnScope
from pipeline.tools.tool import PartialGroup, Tool, ToolFailed, ToolGroup

_log = logging.getLogger(__name__)

_NOT_FOR_SUB_AGENTS = ("agents", "notes", "schedule")
"""Groups of tools that no sub-agent has."""
_RESERVED = ("load_tools", "load_skills")
"""Names of the gate's own tools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedGroup:
    """A group with a fixed set of tools."""

    name: str
    description: str
    fixed: tuple[Tool, ...]

    async def tools(self, _scope: TurnScope) -> tuple[Tool, ...]:
        return self.fixed

    async def close(self) -> None:
        """Do nothing: the group has no resources."""


class ToolRegistry:
    """The groups, in order: of two tools with one name, the earlier group's is used.

    `enabled` names the groups that may be used, where `mcp` means every `mcp:<server>`; None means all.
    """

    def __init__(self, groups: Sequence[ToolGroup], *, enabled: Collection[str] | None = None) -> None:
        self._groups = {group.name: group for group in groups}
        self._enabled = enabled
        self._enabled_groups = tuple(group for name, group in self._groups.items() if self._is_enabled(name))
        self._tools: dict[str, tuple[Tool, ...]] = {}
        self._taken: dict[str, tuple[str, ...]] = {}
        """By group, the tools that are not used because an earlier tool has their name."""
        for group in groups:
            if isinstance(group, FixedGroup):
                self._tools[group.name] = self._own_names(group.name, group.fixed)

    def groups(self, scope: TurnScope) -> tuple[ToolGroup, ...]:
        """The groups that the turn may load, in order."""
        if scope.groups is None and scope.depth == 0:
            return self._enabled_groups
        return tuple(group for name, group in self._groups.items() if self._may(name, scope))

    async def load(self, name: str, scope: TurnScope) -> tuple[Tool, ...]:
        """List a group's current tools. Raises ToolFailed if the group does not exist or is turned off, if
        the turn may not load it, or if its server does not answer."""
        if name not in self._groups:
            raise ToolFailed(f"there is no tool group {name}; there are: {self._names(scope)}")
        if not self._may(name, scope):
            raise ToolFailed(f"the tool group {name} is turned off here; there are: {self._names(scope)}")
        listed = await self._groups[name].tools(scope)
        self._tools[name] = self._own_names(name, listed)
        return self._tools[name]

    def loaded(self, names: Iterable[str], scope: TurnScope) -> tuple[Tool, ...]:
        """The tools of the named groups, as last listed; for sub-agents, of all groups they were given."""
        wanted = names if scope.depth == 0 else scope.groups or ()
        tools: dict[str, Tool] = {}
        for name in wanted:
            if self._may(name, scope):
                for tool in self._tools.get(name, ()):
                    tools.setdefault(tool.name, tool)
        return tuple(tools.values())

    def unusable(self, name: str) -> tuple[str, ...]:
        """The unusable tools of a loaded group: the name of each, with the reason."""
        group: object = self._groups.get(name)
        faulty = group.unusable if isinstance(group, PartialGroup) else ()
        return (*faulty, *self._taken.get(name, ()))

    def unlisted(self, names: Iterable[str], scope: TurnScope) -> tuple[str, ...]:
        """Those of the named groups that the turn may load and that this process has not listed yet."""
        wanted = names if scope.depth == 0 else scope.groups or ()
        return tuple(name for name in wanted if name not in self._tools and self._may(name, scope))

    async def find(self, tool_name: str, names: Iterable[str], scope: TurnScope) -> Tool | None:
        """The tool with that name in the named groups, or None. A group that an earlier process loaded is
        listed again. Raises ToolFailed where that fails."""
        wanted = tuple(names) if scope.depth == 0 else scope.groups or ()
        found = _named(tool_name, self.loaded(wanted, scope))
        if found is not None:
            return found
        for name in self.unlisted(wanted, scope):
            found = _named(tool_name, await self.load(name, scope))
            if found is not None:
                return found
        return None

    def home_of(self, tool_name: str, scope: TurnScope) -> str:
        """The group that the turn could load for that tool, if the group's tools are known; else empty."""
        for name, tools in self._tools.items():
            if self._may(name, scope) and _named(tool_name, tools) is not None:
                return name
        return ""

    def reads_only(self, tool_name: str) -> bool:
        """Whether the listed tools of that name are known to change nothing; False if none is listed."""
        named = [tool for tools in self._tools.values() if (tool := _named(tool_name, tools)) is not None]
        return bool(named) and all(tool.reads_only and tool.built_in for tool in named)

    async def close(self) -> None:
        """Close every group, even if closing one raises."""
        for group in self._groups.values():
            try:
                await group.close()
            except Exception:  # noqa: BLE001 - the other groups have to be closed too
                _log.exception("a tool group did not close", extra={"group": group.name})

    def _may(self, name: str, scope: TurnScope) -> bool:
        if not self._is_enabled(name):
            return False
        if scope.depth and name in _NOT_FOR_SUB_AGENTS:
            return False
        return name in self._groups and (scope.groups is None or name in scope.groups)

    def _is_enabled(self, name: str) -> bool:
        return self._enabled is None or name.partition(":")[0] in self._enabled

    def _names(self, scope: TurnScope) -> str:
        return ", ".join(group.name for group in self.groups(scope)) or "none"

    def _own_names(self, group: str, listed: Sequence[Tool]) -> tuple[Tool, ...]:
        """`listed` without duplicate names and names of an earlier group."""
        taken = set(_RESERVED)
        for name in self._groups:
            if name == group:
                break
            taken |= {tool.name for tool in self._tools.get(name, ())}
        kept: dict[str, Tool] = {}
        second: list[str] = []
        for tool in listed:
            if tool.name in taken or tool.name in kept:
                _log.warning("a tool's name is taken", extra={"tool": tool.name, "group": group})
                second.append(f"{tool.name} (another tool has this name)")
            else:
                kept[tool.name] = tool
        self._taken[group] = tuple(second)
        return tuple(kept.values())


def _named(name: str, tools: Iterable[Tool]) -> Tool | None:
    return next((tool for tool in tools if tool.name == name), None)
