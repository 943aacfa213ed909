"""A model that performs random acts on files and notes, and what a workspace holds.

The acts follow from the number of the message alone, so a gateway that was killed finds the model as it was.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.openai_server import Behaviour

ACTS = 25
"""Acts of one message. Fewer than the shield allows in a minute, which a restart forgets."""
_AT_ONCE = 9
_PATHS = (
    "list.txt",
    "plans/june.md",
    "plans/2027/may.md",
    "deep/er/still/x.txt",
    "old/kept.txt",
    "old/b.txt",
)
_TITLES = ("tea", "bread and salt")

POLICY = """
[[verify]]
name = "write-files"
action_types = ["write_file"]
tier = 1
[[verify]]
name = "delete-files"
action_types = ["delete_file"]
tier = 1
[[verify]]
name = "delete-notes"
action_types = ["delete_note"]
tier = 1
"""
"""No act is asked about: a person's answers are tested elsewhere."""


def message(number: int) -> str:
    """The message that makes the model perform its acts."""
    return f"acts {number}"


def think(body: Mapping[str, Any]) -> Behaviour:
    """What the model does with one request: load the groups, act, several times in one answer, and end."""
    messages = body["messages"]
    asked = max(at for at, message in enumerate(messages) if message["role"] == "user")
    word, _, number = messages[asked]["content"].partition(" ")
    if word != "acts":
        return Behaviour(chunks=(f"{sum(message['role'] == 'user' for message in messages)} messages",))
    done = sum(message["role"] == "tool" for message in messages[asked:]) - 1
    if done < 0:
        return Behaviour(chunks=(), calls=(("load_tools", '{"groups": ["files", "notes"]}'),), calls_in=0)
    calls = _acts(int(number))[done : done + _AT_ONCE]
    return Behaviour(chunks=() if calls else ("Done.",), calls=calls, calls_in=0)


def _acts(number: int) -> tuple[tuple[str, str], ...]:
    dice = random.Random(number)
    acts: list[tuple[str, str]] = []
    while len(acts) < ACTS:
        text = f"We had bread on day {number} of week {len(acts)}. " * dice.randrange(1, 9)
        path = {"path": f"own/{dice.choice(_PATHS)}"}
        title = {"title": dice.choice(_TITLES)}
        tool, arguments = dice.choice(
            (
                ("write_file", path | {"text": text}),
                ("write_file", path | {"text": text}),
                ("append_file", path | {"text": text}),
                ("delete_file", path),
                ("write_note", title | {"text": text}),
                ("delete_note", title),
            )
        )
        acts.append((tool, json.dumps(arguments)))
    return tuple(acts)


def prepare(files: Path) -> None:
    """Put files into a person's folder `files` before the first act, with permissions of several kinds."""
    for name, mode in (("list.txt", 0o640), ("old/kept.txt", 0o444), ("operators.bin", 0o755)):
        path = files / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"from before: " + name.encode())
        path.chmod(mode)
    (files / "empty").mkdir(mode=0o750)


def tree(root: Path) -> dict[str, tuple[bytes | None, int]]:
    """All below `root`, by path: the bytes of files, and all permission bits."""
    return {
        str(path.relative_to(root)): (path.read_bytes() if path.is_file() else None, path.stat().st_mode)
        for path in root.rglob("*")
    }
