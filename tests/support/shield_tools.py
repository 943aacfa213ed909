"""The files tools and some others for tests of the shield, which note their calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.domain.chat import ToolCall
from pipeline.runtime.scope import TurnScope
from pipeline.tools.tool import Tool, ToolOutput, tool_schema
from tests.support.tool_gate import call, tool

_PATH = tool_schema({"path": {"type": "string"}})
FILE_AND_TEXT = tool_schema({"path": {"type": "string"}, "text": {"type": "string"}})
_URL = tool_schema({"url": {"type": "string"}})
_TEXT = tool_schema({"text": {"type": "string"}})


class Ran:
    """The calls of tools; each returns `text`, or raises it."""

    def __init__(self, text: str | Exception = "fine") -> None:
        self.calls: list[dict[str, Any]] = []
        self.text = text

    async def __call__(self, arguments: Mapping[str, Any], _scope: TurnScope) -> ToolOutput:
        self.calls.append(dict(arguments))
        if isinstance(self.text, Exception):
            raise self.text
        return ToolOutput(text=self.text)


def files_tools(ran: Ran) -> tuple[Tool, ...]:
    """The tools; each call is noted in `ran`."""
    return (
        tool("read_file", ran, schema=_PATH, reads_only=True),
        tool("write_file", ran, schema=FILE_AND_TEXT),
        tool("delete_file", ran, schema=_PATH),
        tool("fetch_page", ran, schema=_URL),
        tool("search_web", ran, schema=_TEXT, reads_only=True),
        tool("write_note", ran, schema=_TEXT, own_only=True),
        tool("tell", ran, schema=_TEXT, action_type="message"),
    )


def write(path: str = "own/a.txt", text: str = "x", name: str = "1") -> ToolCall:
    """A call that writes a file."""
    return call("write_file", {"path": path, "text": text}, call_id=name)
