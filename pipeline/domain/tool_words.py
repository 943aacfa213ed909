"""Readable names of tools for people, as opposed to the names that the model uses."""

from __future__ import annotations

_FROM_SERVER = "mcp__"


def tool_words(name: str) -> str:
    """`write file` for `write_file`, `fine (weather)` for the tool `mcp__weather__fine` of a server."""
    if name.startswith(_FROM_SERVER):
        server, _, tool = name.removeprefix(_FROM_SERVER).partition("__")
        if server and tool:
            return f"{_spaced(tool)} ({_spaced(server)})"
    return _spaced(name)


def using(name: str) -> str:
    """The progress line of a tool that defines none."""
    return f"Using “{tool_words(name)}”"


def _spaced(name: str) -> str:
    return " ".join(name.replace("_", " ").split()) or name
