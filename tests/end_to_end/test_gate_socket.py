"""A run that asks a person, over the documented socket: a client that comes late can still answer."""

from __future__ import annotations

from pathlib import Path

from tests.support.gate_graph import OPTIONS, PROMPT, Ledger, gate_graph
from tests.support.gateway_process import free_port
from tests.support.harness import GatewayHarness, open_gateway
from tests.support.web_client import Frame, WebChat


async def _connect(chat: WebChat, harness: GatewayHarness, data: Path) -> list[Frame]:
    """The questions that the gateway names before `ready`."""
    token = (data / "web-token").read_text(encoding="ascii").strip()
    history = await chat.connect(harness.gateway.url, token)
    return [frame["event"] for frame in history if frame["type"] == "event"]


async def test_a_question_is_named_at_every_connection_until_it_is_answered(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    web = ("channels.web.enabled=true", f"server.port={free_port()}")
    async with WebChat() as chat:
        async with open_gateway(tmp_path, *web, graph=gate_graph(ledger)) as harness:
            assert await _connect(chat, harness, tmp_path) == []
            await chat.send_text("t1", "pay")
            message_id = await chat.accepted("t1")
            await chat.answer(message_id)
            named = await _connect(chat, harness, tmp_path)
        async with open_gateway(tmp_path, *web, graph=gate_graph(ledger)) as harness:
            # The first process is gone, and with it everything that only its events knew.
            assert await _connect(chat, harness, tmp_path) == named
            (question,) = named
            assert (question["type"], question["message_id"]) == ("approval_required", message_id)
            assert (question["reasoning"], question["options"]) == (PROMPT, list(OPTIONS))
            await chat.send_approval("a1", question["interaction_id"], "approve")
            answer = await chat.answer(await chat.accepted("a1"))
            assert answer.text == "pay: approve by owner, after 0 lines"
            assert await _connect(chat, harness, tmp_path) == []
            await chat.send_approval("a2", question["interaction_id"], "deny")
            refused = await chat.wait_for(lambda frame: frame["type"] == "problem")
            assert (refused["code"], refused["client_id"]) == ("refused", "a2")
    assert ledger.lines() == ["prepare", "ask", "act approve"]
