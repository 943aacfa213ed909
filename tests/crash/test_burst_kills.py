"""Death around the moment at which a message joins a turn: both messages have one answer.

Covers: gateway/turns/arrivals.py, gateway/storage/sqlite/bursts.py.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.runtime.crash_labels import Label
from tests.support.gateway_process import SCRIPTED, GatewayProcess
from tests.support.store_file import integrity
from tests.support.web_client import Frame, WebChat

pytestmark = pytest.mark.crash

_LABELS: tuple[Label, ...] = ("join-before", "join-after", "turn-commit-before", "turn-commit-after")


def _agent_begins(frame: Frame) -> bool:
    """Whether the frame shows that the node of the agent begins."""
    event = frame.get("event", {})
    return (event.get("type"), event.get("node")) == ("node_started", "agent")


@pytest.mark.parametrize("label", _LABELS)
async def test_a_burst_has_one_answer_wherever_the_process_dies(tmp_path: Path, label: Label) -> None:
    script = tmp_path / "script.json"
    # The first answer begins so late that the second message always joins the turn: before the model is
    # called, and that call answers both, or during the call, and the next one does. The words are the same.
    script.write_text(json.dumps([{"text": "Both.", "delay_s": 50}, "Both."]), encoding="utf-8")
    model = f'llm.model="scripted:file={script}"'
    overrides = (model, SCRIPTED[1], "turn.bursts=merge", "turn.burst_s=60")
    async with GatewayProcess(tmp_path, overrides=overrides) as gateway, WebChat() as chat:
        await gateway.start(crash_at=f"{label}:1")
        # With the steps of the graph, which show that the agent is about to call the model.
        chat.more = {"nodes": True}
        await chat.connect(gateway.url, gateway.token)
        await chat.send_text("c1", "one")
        await chat.accepted("c1")
        await chat.wait_for(_agent_begins)
        await chat.send_text("c2", "two")
        await chat.read_to_the_end()
        assert await gateway.wait_exit() == 137

        script.write_text(json.dumps(["Both.", "Three."]), encoding="utf-8")
        await gateway.start()
        await chat.connect(gateway.url, gateway.token, after=0)
        await chat.send_text("c1", "one")
        await chat.send_text("c2", "two")
        first, second = await chat.accepted("c1"), await chat.accepted("c2")
        answer = await chat.answer(first)
        await chat.send_text("c3", "/help")
        await chat.wait_for(lambda frame: frame.get("role") == "notice")

        assert answer.text == "Both."
        assert len({line.entry_id for line in chat.seen.lines_of(first, "assistant")}) == 1
        assert chat.seen.lines_of(second, "assistant") == []
        assert [line.text for line in chat.seen.lines_of(second, "user")][-1:] == ["two"]
    assert integrity(gateway.store_path) == "ok"
