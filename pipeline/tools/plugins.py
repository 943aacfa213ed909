"""The tool groups of installed plug-ins (entry points `parlour.tools`), each as the group `plugins:NAME`."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any, Final

from pipeline.plugins import Plugin, installed
from pipeline.runtime.scope import TurnScope
from pipeline.tools.tool import Tool, ToolGroup

PLUGINS: Final = "plugins"


class PluginGroup:
    """A plug-in's ToolGroup under a name that no other group has."""

    def __init__(self, name: str, inner: ToolGroup) -> None:
        self.name = f"{PLUGINS}:{name}"
        self.description = inner.description
        self._inner = inner

    async def tools(self, scope: TurnScope) -> tuple[Tool, ...]:
        """See `ToolGroup`."""
        return tuple([replace(tool, group=self.name) for tool in await self._inner.tools(scope)])

    async def close(self) -> None:
        """See `ToolGroup`."""
        await self._inner.close()


@functools.cache
def tool_plugins() -> tuple[Plugin, ...]:
    """The installed plug-ins; the value of each is a PluginGroup. Loads them on the first call."""
    return installed("parlour.tools", _checked)


def _checked(name: str, value: Any) -> PluginGroup:
    """Raises TypeError for what is neither a ToolGroup nor a function that returns one."""
    group = value if hasattr(value, "tools") and not isinstance(value, type) else value()
    if not isinstance(getattr(group, "description", None), str) or not group.description:
        raise TypeError(f"the description of {type(group).__name__} is not a text")
    for method in ("tools", "close"):
        if not callable(getattr(group, method, None)):
            raise TypeError(f"{type(group).__name__} has no method {method}")
    return PluginGroup(name, group)
