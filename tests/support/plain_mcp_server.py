"""A handwritten MCP server on its pipes, with tools that fail as servers do.

For tests that end a server, or are about the conversation: it starts in a twentieth of the second that one on
the official SDK takes (`mcp_server`). What the SDK sends is tested on that one.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Answer = Callable[[str, dict[str, Any]], Mapping[str, Any] | None]
"""The result for a method and its parameters; None for no answer. Raises LookupError for an unknown one."""


def reply_to(asked: dict[str, Any], answer: Answer) -> dict[str, Any] | None:
    """The answer to one request, as JSON-RPC has it."""
    reply: dict[str, Any] = {"jsonrpc": "2.0", "id": asked["id"]}
    try:
        result = answer(asked["method"], asked.get("params", {}))
    except LookupError as error:
        return {**reply, "error": {"code": -32601, "message": f"no method {error}"}}
    return None if result is None else {**reply, "result": result}


def initialized(name: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """The result of `initialize`."""
    info, version = {"name": name, "version": "1"}, params["protocolVersion"]
    return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}


def said(text: str) -> dict[str, Any]:
    """The result of a call."""
    return {"content": [{"type": "text", "text": text}]}


def serve(answer: Answer) -> None:
    """Answer what comes on this program's pipes, to the end."""
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" in asked and (reply := reply_to(asked, answer)) is not None:
            sys.stdout.write(json.dumps(reply) + "\n")
            sys.stdout.flush()


def weather(city: str) -> str:
    """The weather in a city."""
    return f"It rains in {city}."


def pid() -> str:
    """The process, and a child of it that would outlive it."""
    child = subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL)
    return f"{os.getpid()} {child.pid}"


def big(megabytes: int) -> str:
    """A result of many megabytes."""
    return "x" * (megabytes * 1_000_000)


def crash() -> str:
    """The end, in the middle of a call."""
    os.write(2, b"out of cheese\n")
    os._exit(3)


def hang() -> None:
    """No answer, ever."""
    os.write(2, b"hanging\n")


def deaf() -> None:
    """No answer to anything, and SIGTERM is ignored."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.write(2, b"hanging\n")
    while True:
        time.sleep(60)  # noqa: TID251 - it is to block everything


def blurt() -> str:
    """The key that it was given, in two places of a long text."""
    key = os.environ["KEY"]  # noqa: TID251 - a separate program
    return "word " * 957 + key + " " + "word " * 38 + key + " word" * 30_000


def complain(before: int) -> str:
    """The same as its last words."""
    words = "w" * before + os.environ["KEY"] + " word" * 100  # noqa: TID251 - as above
    os.write(2, words.encode() + b"\n")
    os._exit(3)


_TOOLS: Sequence[tuple[Callable[..., str | None], Mapping[str, str]]] = (
    *((weather, {"city": "string"}), (pid, {}), (big, {"megabytes": "integer"}), (crash, {})),
    *((hang, {}), (deaf, {}), (blurt, {}), (complain, {"before": "integer"})),
)
"""With the types of their arguments."""


def _answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "initialize":
            return initialized("weather", params)
        case "tools/list":
            return {"tools": [_listed(tool, types) for tool, types in _TOOLS]}
        case "tools/call":
            (tool,) = (tool for tool, _ in _TOOLS if tool.__name__ == params["name"])
            text = tool(**params.get("arguments", {}))
            return None if text is None else said(text)
    raise LookupError(method)


def _listed(tool: Callable[..., str | None], types: Mapping[str, str]) -> dict[str, Any]:
    properties = {name: {"type": kind} for name, kind in types.items()}
    schema = {"type": "object", "properties": properties, "required": list(types)}
    return {"name": tool.__name__, "description": tool.__doc__, "inputSchema": schema}


def entry(**more: Any) -> dict[str, Any]:
    """The server's entry in an mcp.json."""
    return {"command": sys.executable, "args": ["-m", __name__], **more}


if __name__ == "__main__":
    serve(_answer)
