"""A handwritten MCP server; one of its tools has an invalid argument schema."""

from __future__ import annotations

from typing import Any

from tests.support.plain_mcp_server import initialized, said, serve

GOOD = {"name": "fine", "inputSchema": {"type": "object", "properties": {}}}
ODD = {"name": "strange", "inputSchema": "anything"}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """The result for a request."""
    match method:
        case "initialize":
            return initialized("odd", params)
        case "tools/list":
            return {"tools": [ODD, GOOD]}
        case "tools/call":
            return said("done")
    raise LookupError(method)


if __name__ == "__main__":
    serve(answer)
