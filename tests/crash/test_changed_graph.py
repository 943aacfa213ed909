"""Death during a document's action, and a changed document at the next start: nothing is done twice.

Covers: pipeline/service.py.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.gateway_process import SCRIPTED, GatewayProcess
from tests.support.store_file import integrity, stored_messages
from tests.support.web_client import WebChat

pytestmark = pytest.mark.crash

_CRASHED = 137
_REMIND = {"tool": "remind_me", "group": "schedule", "arguments": {"text": "tea", "in_minutes": 60}}


def _write(path: Path, version: str) -> None:
    """A document that sets a reminder and replies."""
    nodes = [
        {"id": "remind", "run": "tool", "with": _REMIND},
        {"id": "say", "run": "reply", "with": {"text": "It is set."}},
    ]
    edges = [{"source": "remind", "target": "say"}]
    document = {"name": "tea", "version": version, "entry": "remind", "nodes": nodes, "edges": edges}
    path.write_text(json.dumps(document), encoding="utf-8")


@pytest.mark.parametrize(("place", "done"), [("effect-begun-after:1", 0), ("effect-done-after:1", 1)])
async def test_an_action_is_not_repeated_where_the_document_was_changed_after_a_death(
    tmp_path: Path, place: str, done: int
) -> None:
    document = tmp_path / "tea.json"
    _write(document, "1")
    settings = (*SCRIPTED, f'agent.graph="{document}"')
    async with GatewayProcess(tmp_path, overrides=settings) as gateway, WebChat() as chat:
        await gateway.start(crash_at=place)
        await chat.connect(gateway.url, gateway.token)
        await chat.send_text("c1", "remind me")
        message_id = await chat.accepted("c1")
        assert await gateway.wait_exit() == _CRASHED

        _write(document, "2")
        await gateway.start()
        await chat.connect(gateway.url, gateway.token)
        while not (
            lines := [*chat.seen.lines_of(message_id, "error"), *chat.seen.lines_of(message_id, "assistant")]
        ):
            await chat.receive()
        # On a busy machine one write has both the action's end and the whole turn; it is answered then.
        answered = done and lines[0].role == "assistant"
        if answered:
            assert lines[0].text == "It is set."
        else:
            assert lines[0].code == "graph_changed"
            assert "had already begun an action" in lines[0].text
        assert await gateway.stop() == 0
    assert integrity(gateway.store_path) == "ok"
    assert stored_messages(gateway.store_path)[message_id].outcome == ("answered" if answered else "error")
    with closing(sqlite3.connect(gateway.store_path)) as db:
        assert db.execute("SELECT count(*) FROM jobs").fetchone()[0] == done
