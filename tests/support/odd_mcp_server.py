"""A handwritten MCP server; one of its tools has an invalid argument schema."""

from __future__ import annotations

import json
import sys
from typing import Any

from aiohttp import web

GOOD = {"name": "fine", "inputSchema": {"type": "object", "properties": {}}}
ODD = {"name": "strange", "inputSchema": "anything"}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            info = {"name": "odd", "version": "1"}
            version = params["protocolVersion"]
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            return {"tools": [ODD, GOOD]}
        case "tools/call":
            return {"content": [{"type": "text", "text": "done"}]}
    raise LookupError(method)


def reply_to(asked: dict[str, Any]) -> dict[str, Any]:
    """The answer to one request, as JSON-RPC has it."""
    reply: dict[str, Any] = {"jsonrpc": "2.0", "id": asked["id"]}
    try:
        reply["result"] = answer(asked["method"], asked.get("params", {}))
    except LookupError as error:
        reply["error"] = {"code": -32601, "message": f"no method {error}"}
    return reply


async def over_http(request: web.Request) -> web.Response:
    """The same server over HTTP."""
    if request.method != "POST":
        return web.Response(status=405)
    asked = await request.json()
    return web.json_response(reply_to(asked)) if "id" in asked else web.Response(status=202)


def main() -> None:
    """Serve on this program's pipes."""
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" in asked:
            sys.stdout.write(json.dumps(reply_to(asked)) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
