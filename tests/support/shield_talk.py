"""A scripted model that calls one tool in a turn, and the answers of a person who is asked about it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from gateway.storage.ports import Interaction
from pipeline.domain.chat import ToolCall
from pipeline.domain.events import ApprovalRequired
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import ApprovalReply, Author, button_handle
from pipeline.llm.scripted import ScriptedAnswer
from tests.support.harness import THREAD, GatewayHarness


def calls(name: str, **arguments: Any) -> ScriptedAnswer:
    """An answer that calls one tool."""
    return ScriptedAnswer.calling(ToolCall(id=name, name=name, arguments=json.dumps(arguments)))


def turn(group: str, name: str, **arguments: Any) -> list[ScriptedAnswer]:
    """The answers of a turn that loads a group and calls one tool of it."""
    return [calls("load_tools", groups=[group]), calls(name, **arguments), ScriptedAnswer.of("Done.")]


def writes(text: str, path: str = "list.txt") -> list[ScriptedAnswer]:
    """The answers of a turn that writes a file."""
    return turn("files", "write_file", path=path, text=text)


def asked(harness: GatewayHarness) -> list[ApprovalRequired]:
    """The questions so far."""
    return [one for one in harness.channel.events if isinstance(one, ApprovalRequired)]


async def question(harness: GatewayHarness, number: int = 1) -> Interaction:
    """The open question, once so many were asked."""
    await harness.channel.until(lambda: len(asked(harness)) >= number)
    (pending,) = await harness.store.pending_interactions(THREAD, now=0.0)
    return pending


def press(to: Interaction, option: int, name: str = "p", **given: Any) -> ApprovalReply:
    """The owner's press of an option; `given` replaces any part."""
    pressed = ApprovalReply(
        message_id=f"m_{name}",
        native_id=name,
        thread=ThreadKey.decode(to.thread),
        author=Author(id="owner"),
        received_at=1_700_000_000.0,
        interaction_id=button_handle(to.id),
        choice="",
        option=option,
    )
    return replace(pressed, **given)


async def say(harness: GatewayHarness, text: str) -> str:
    """The answer to a message."""
    said = await harness.channel.say(text)
    return (await harness.channel.reply(said.message_id)).text


def own_files(data: Path) -> list[str]:
    """The texts of all people's files."""
    return sorted(path.read_text() for path in data.glob("workspace/people/*/files/*.txt"))
