"""An MCP server of one tool, which adds a line to a file: how often it was called can be counted on the disk.

`python line_server.py FILE` serves on its pipes. Written without the SDK, so that it is up at once: a
kill run starts it again and again.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

_TOOL = {
    "name": "keep_line",
    "description": "Keep a line.",
    "inputSchema": {"type": "object", "properties": {"line": {"type": "string"}}, "required": ["line"]},
}


def entry(path: Path) -> dict[str, Any]:
    """The server's entry in an mcp.json."""
    return {"command": sys.executable, "args": ["-S", "-E", str(Path(__file__)), str(path)]}


def main(path: str) -> None:
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    for text in sys.stdin:
        request = json.loads(text)
        if "id" not in request:
            continue
        match request["method"]:
            case "initialize":
                result: dict[str, Any] = {
                    "protocolVersion": request["params"]["protocolVersion"],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "lines", "version": "1"},
                }
            case "tools/list":
                result = {"tools": [_TOOL]}
            case "tools/call":
                # In one write: whole, or not at all.
                os.write(file, (request["params"]["arguments"]["line"] + "\n").encode())
                result = {"content": [{"type": "text", "text": "The line is kept."}]}
            case _:
                _say({"id": request["id"], "error": {"code": -32601, "message": "there is no such method"}})
                continue
        _say({"id": request["id"], "result": result})


def _say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
