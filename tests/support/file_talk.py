"""A model that sends the file that a message names: `send chart.png` from the shared files.

The model keeps nothing: what it says follows from the request alone, so a gateway that was killed finds it as
it was.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.domain.chat import ToolCall
from pipeline.llm.scripted import ScriptedAnswer
from tests.support.openai_server import Behaviour

SAID = "Here it is."


def file_settings(api_base: str) -> tuple[str, ...]:
    """Settings of a gateway with that model."""
    return (
        'llm.model="openai_compatible/fake"',
        f"llm.api_base={api_base}",
        'voice.transcriber="scripted:hello"',
        'agent.completion="implicit"',
        'log.level="warning"',
    )


def share(data: Path, name: str, content: bytes) -> None:
    """Put a file into the shared files of a gateway with that data folder."""
    folder = data / "workspace" / "files"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)


def think_of_files(body: Mapping[str, Any]) -> Behaviour:
    """Load the group, send the file, and say so; any other message is repeated."""
    messages = body["messages"]
    asked = max(at for at, message in enumerate(messages) if message["role"] == "user")
    words = messages[asked]["content"]
    if not words.startswith("send "):
        return Behaviour(chunks=("You said: ", words))
    results = sum(message["role"] == "tool" for message in messages[asked:])
    if results == 0:
        return Behaviour(chunks=(), calls=(("load_tools", json.dumps({"groups": ["files"]})),))
    if results == 1:
        given = {"path": f"shared/{words.removeprefix('send ')}", "caption": "As wished"}
        return Behaviour(chunks=(), calls=(("send_file", json.dumps(given)),))
    return Behaviour(chunks=(SAID,))


def sending(*names: str) -> list[ScriptedAnswer]:
    """The answers of a scripted model that sends shared files."""
    load = ToolCall(id="l", name="load_tools", arguments=json.dumps({"groups": ["files"]}))
    calls = [
        ToolCall(
            id=f"c{number}",
            name="send_file",
            arguments=json.dumps({"path": f"shared/{name}", "caption": f"Caption {number}"}),
        )
        for number, name in enumerate(names)
    ]
    asked = [ScriptedAnswer.calling(call) for call in calls]
    return [ScriptedAnswer.calling(load), *asked, ScriptedAnswer.of(SAID)]
