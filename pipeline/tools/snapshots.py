"""Port for the copies of files that are kept before a tool changes them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

from pipeline.graph.definition.frozen_json import thaw
from pipeline.runtime.scope import TurnScope
from pipeline.tools.action import Action
from pipeline.tools.folders import Place
from pipeline.tools.origins import Origins
from pipeline.tools.protection import resolved, strings
from pipeline.tools.tool import Tool


class Snapshots(Protocol):
    """Keeps the content of files before they are changed, so that a change can be taken back."""

    def keeping(
        self, places: Sequence[Place], *, action: str, tool: str, scope: TurnScope, foreign: bool
    ) -> AbstractAsyncContextManager[None]:
        """Keep the content of the files on entry, and record on exit what has become of them. `action` is the
        id of the action, and `foreign` whether a file has or gets foreign text. Raises ToolFailed on entry if
        a file cannot be kept, and StorageError."""
        ...


class WorkspaceSnapshots:
    """Keeps the files that an action changes in the workspace `root`."""

    def __init__(self, snapshots: Snapshots, root: Path, origins: Origins) -> None:
        self._snapshots = snapshots
        self._origins = origins
        self._root = Path(os.path.realpath(root))

    @asynccontextmanager
    async def around(self, action: Action, scope: TurnScope) -> AsyncIterator[None]:
        """Keep the files while the action runs; see `Snapshots.keeping`."""
        payload = thaw(action.payload)
        places = await asyncio.to_thread(changed_places, action.tool, payload, scope, self._root)
        if not places:
            yield
            return
        foreign = bool(scope.foreign) or not action.tool.built_in
        foreign = foreign or await asyncio.to_thread(
            self._origins.is_foreign, action.tool, payload, scope.owner
        )
        async with self._snapshots.keeping(
            places, action=action.id, tool=action.tool.name, scope=scope, foreign=foreign
        ):
            yield


def changed_places(tool: Tool, payload: Mapping[str, Any], scope: TurnScope, root: Path) -> tuple[Place, ...]:
    """The files that a call would change. For tools of others, those are the existing files below the
    workspace `root` that its arguments name. Accesses the disk: call it in a thread. Raises ToolFailed."""
    if tool.changes is not None:
        return tool.changes(payload, scope)
    if tool.built_in or tool.reads_only:
        return ()
    found = (resolved(root, value) for _key, value in strings("", payload))
    inside = dict.fromkeys(path for path in found if path is not None and root in path.parents)
    return tuple(Place(root, path.relative_to(root).parts) for path in inside if path.is_file())
