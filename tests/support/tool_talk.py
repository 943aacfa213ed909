"""A model that calls the tool a message names, and a count of the calls, read from the disk.

The model keeps nothing: what it says follows from the request alone, so a gateway that was killed finds it as
it was. Its answer quotes the tool's result.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

from tests.support.line_server import entry
from tests.support.openai_server import Behaviour

Kind = Literal["sum", "remind", "file", "line"]
"""A tool that only reads; one that may not be done twice; one that a person is asked for as well; and one of
an MCP server's, which a person is asked for too."""
ASKED: tuple[Kind, ...] = ("file", "line")

UNKNOWN = "it is unknown whether it was done"
_DONE: Mapping[Kind, str] = {
    "sum": "6 * 7 = 42",
    "remind": "is set for",
    "file": "is written",
    "line": "The line is kept.",
}
_GROUPS: Mapping[Kind, str] = {"sum": "system", "remind": "schedule", "file": "files", "line": "mcp:lines"}


def wish(kind: Kind, name: str) -> str:
    """The message that makes the model call the tool once, with `name`."""
    return f"{kind} {name}"


def think(body: Mapping[str, Any]) -> Behaviour:
    """What the model does with one request: load the group, call the tool, quote its result."""
    messages = body["messages"]
    asked = max(at for at, message in enumerate(messages) if message["role"] == "user")
    kind, name = messages[asked]["content"].split()
    results = [message["content"] for message in messages[asked:] if message["role"] == "tool"]
    match len(results):
        case 0:
            return _call("load_tools", groups=[_GROUPS[kind]])
        case 1:
            return _calling(kind, name, body)
        case _:
            return Behaviour(chunks=(f"{name}: ", results[-1]))


def outcome(kind: Kind, name: str, answer: str) -> str:
    """The outcome of the wish according to an answer: `done`, `unknown`, or else the whole answer."""
    if not answer.startswith(f"{name}: "):
        return answer
    if UNKNOWN in answer:
        return "unknown"
    return "done" if _DONE[kind] in answer else answer


def tool_settings(api_base: str, folder: Path) -> tuple[str, ...]:
    """Settings of a gateway with that model and those tools; their lines are kept in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    servers = folder / "mcp.json"
    servers.write_text(json.dumps({"mcpServers": {"lines": entry(folder / "lines.txt")}}), encoding="utf-8")
    return (
        'llm.model="openai_compatible/fake"',
        f"llm.api_base={api_base}",
        'voice.transcriber="scripted:hello"',
        'agent.completion="implicit"',
        f"tools.mcp_file={servers}",
        'log.level="warning"',
        # A kill may hit a message more often than the limit for poison messages.
        "turn.max_attempts=20",
        "shield.approvals_per_hour=0",
    )


def executions(folder: Path, store: Path) -> Counter[str]:
    """How often the tools that change something were done, by name; with the gateway gone. A file that was
    written twice counts once: only that it is there can be seen."""
    lines = folder / "lines.txt"
    kept = lines.read_text(encoding="utf-8").split() if lines.exists() else []
    written = [path.name for path in store.parent.glob("workspace/people/*/files/*")]
    with closing(sqlite3.connect(store)) as db:
        return Counter(
            [
                *kept,
                *written,
                *(text for (text,) in db.execute("SELECT json_extract(body, '$.text') FROM jobs")),
            ]
        )


def questions(store: Path) -> list[tuple[str, str | None]]:
    """(message_id, choice) of each question that was asked, oldest first; with the gateway gone."""
    with closing(sqlite3.connect(store)) as db:
        rows = db.execute("SELECT body, choice FROM interactions ORDER BY n").fetchall()
    return [(json.loads(body)["message_id"], choice) for body, choice in rows]


def _calling(kind: str, name: str, body: Mapping[str, Any]) -> Behaviour:
    match kind:
        case "sum":
            return _call("calculate", expression="6 * 7")
        case "remind":
            return _call("remind_me", text=name, in_minutes=600)
        case "file":
            return _call("write_file", path=f"own/{name}", text=name)
        case _:
            offered = [tool["function"]["name"] for tool in body["tools"]]
            return _call(next(tool for tool in offered if "keep_line" in tool), line=name)


def _call(tool: str, **arguments: Any) -> Behaviour:
    return Behaviour(chunks=(), calls=((tool, json.dumps(arguments)),))
