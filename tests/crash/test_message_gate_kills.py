"""Death around a message that a gate takes over or passes: one ending for each message.

Covers: pipeline/message_gate.py, pipeline/gate_check.py.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.runtime.crash_labels import Label
from tests.pipeline.nodes.documents import node, steps
from tests.support.gateway_process import GatewayProcess, slow_echo
from tests.support.web_client import WebChat

pytestmark = pytest.mark.crash

_GATE = steps(
    node("check", "condition", **{"if": "'danger' in message or message == '/help'", "then": "help"}),
    node("help", "reply", text="Please call 112."),
)
_LABELS: tuple[Label, ...] = ("turn-commit-before", "turn-commit-after")
_ENDINGS = [("danger", "Please call 112."), ("/help", "Please call 112."), ("hello", "You said: hello")]


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[GatewayProcess]:
    path = tmp_path / "gate.json"
    path.write_text(json.dumps(_GATE), encoding="utf-8")
    overrides = (*slow_echo(0.01), f'agent.gate="{path}"')
    async with GatewayProcess(tmp_path, overrides=overrides) as gateway:
        yield gateway


@pytest.mark.parametrize("label", _LABELS)
@pytest.mark.parametrize(("text", "ending"), _ENDINGS, ids=["taken over", "command taken over", "passed"])
async def test_a_message_has_one_ending_wherever_the_process_dies(
    gateway: GatewayProcess, label: Label, text: str, ending: str
) -> None:
    async with WebChat() as chat:
        await gateway.start(crash_at=f"{label}:1")
        await chat.connect(gateway.url, gateway.token)
        await chat.send_text("c1", text)
        await chat.read_to_the_end()
        assert await gateway.wait_exit() == 137
        await gateway.start()
        await chat.connect(gateway.url, gateway.token, after=0)
        await chat.send_text("c1", text)
        message_id = await chat.accepted("c1")
        assert (await chat.answer(message_id)).text == ending
        await chat.send_text("c2", "hello again")
        await chat.answer(await chat.accepted("c2"))
        lines = {line.entry_id for line in chat.seen.lines_of(message_id, "assistant")}
        assert len(lines) == 1
        assert len(chat.seen.terminals_of(message_id)) <= 1
        assert chat.seen.lines_of(message_id, "notice") == []
