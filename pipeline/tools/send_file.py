"""The tool `send_file`: send a file of the turn's owner, or a shared one, with the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from pipeline.domain.chat import ToolDefinition
from pipeline.runtime.scope import TurnScope
from pipeline.tools.confine import read_bytes
from pipeline.tools.folders import Place
from pipeline.tools.tool import Tool, ToolFailed, ToolFile, ToolOutput, tool_schema

_CAPTION = {"type": "string", "maxLength": 500, "description": "a line shown with it"}


class SentFiles:
    """Reads files to send. `path` resolves a path for an owner, as for the other tools of the group; files
    larger than `most_bytes` are refused."""

    def __init__(self, path: Callable[[str, str], Place], most_bytes: int) -> None:
        self._path = path
        self._most_bytes = most_bytes

    def tool(self, path_schema: Mapping[str, Any]) -> Tool:
        """The tool. It needs no approval: only the chat that may read the file gets it."""
        return Tool(
            definition=ToolDefinition(
                name="send_file",
                description="Send a file, such as own/list.txt, to the person with your answer.",
                parameters=tool_schema({"path": path_schema}, {"caption": _CAPTION}),
            ),
            group="files",
            run=self._run,
            reads_only=True,
            answers=True,
        )

    async def _run(self, arguments: Mapping[str, Any], scope: TurnScope) -> ToolOutput:
        given = arguments["path"]
        try:
            data = await asyncio.to_thread(self._read, given, scope.owner)
        except ToolFailed as failure:
            raise type(failure)(f"{given}: {failure}") from None
        file = ToolFile(data=data, name=given, caption=arguments.get("caption", ""))
        return ToolOutput(text=f"Here is {given}.", files=(file,))

    def _read(self, given: str, owner: str) -> bytes:
        return read_bytes(self._path(given, owner), most_bytes=self._most_bytes)
