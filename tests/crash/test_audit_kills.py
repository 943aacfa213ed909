"""Death at each label of the audit: executed actions are on record, none runs twice, the chain is whole."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from gateway.runtime.failpoints import LABELS
from gateway.storage.audit import AuditReport
from gateway.storage.audit_check import check_audit
from gateway.storage.sqlite.audit import SqliteAudit
from gateway.storage.sqlite.offline import beside
from tests.support.gateway_process import GatewayProcess
from tests.support.openai_server import FakeOpenAiServer
from tests.support.store_file import integrity
from tests.support.tool_talk import Kind, executions, outcome, think, tool_settings, wish
from tests.support.web_client import Disconnected, WebChat

pytestmark = pytest.mark.crash

_CRASHED = 137
_NAME = "n1"
_AUDIT = [label for label in LABELS if label.startswith("audit-")]
_KINDS: tuple[Kind, ...] = ("remind", "file", "sum")


@pytest.mark.parametrize("label", _AUDIT)
@pytest.mark.parametrize("kind", _KINDS)
async def test_an_executed_action_is_on_record_and_is_done_once(
    tmp_path: Path, kind: Kind, label: str
) -> None:
    async with FakeOpenAiServer(brain=think) as model:
        settings = tool_settings(model.api_base, tmp_path)
        async with GatewayProcess(tmp_path, overrides=settings) as gateway, WebChat() as chat:
            await gateway.start(crash_at=f"{label}:1")
            await chat.connect(gateway.url, gateway.token)
            await chat.send_text("c1", wish(kind, _NAME))
            await _allow_all(chat)
            assert await gateway.wait_exit() == _CRASHED
            before = _types(gateway.store_path)
            if label == "audit-decided-before":
                assert before == []
            else:
                assert before[:2] == ["action_proposed", "action_evaluated"]

            await gateway.start()
            await chat.connect(gateway.url, gateway.token)
            await chat.send_text("c1", wish(kind, _NAME))
            await _allow_all(chat, to_the_end=True)
            answer = await chat.answer(chat.seen.accepted["c1"])
            assert await gateway.stop() == 0
            assert integrity(gateway.store_path) == "ok"

            said = outcome(kind, _NAME, answer.text)
            ended = [
                one for one in _types(gateway.store_path) if one in ("action_executed", "action_unknown")
            ]
            assert executions(gateway.folder, gateway.store_path).total() == (0 if kind == "sum" else 1)
            # Behind the effect's record nothing but the record of the result is left to be lost.
            assert (
                said == "unknown"
                if label == "audit-done-before" and kind != "sum"
                else said in ("done", "unknown")
            )
            assert ended
            assert ended[-1] == ("action_unknown" if said == "unknown" else "action_executed")
            report = await _report(gateway.store_path)
            assert (report.records > 2, report.damage) == (True, ())


async def _allow_all(chat: WebChat, *, to_the_end: bool = False) -> None:
    """Allow what is asked, until the socket is closed or, `to_the_end`, the answer is there."""
    asked: set[str] = set()
    try:
        while not (to_the_end and any(one.role == "assistant" for one in chat.seen.lines)):
            frame = await chat.receive()
            if frame["type"] != "event" or frame["event"]["type"] != "approval_required":
                continue
            if (question := frame["event"]["interaction_id"]) not in asked:
                asked.add(question)
                await chat.send_approval(f"yes-{question}", question, "Allow")
    except Disconnected:
        pass


def _types(store: Path) -> list[str]:
    with closing(sqlite3.connect(store)) as db:
        return [json.loads(line)["type"] for (line,) in db.execute("SELECT line FROM audit ORDER BY n")]


async def _report(store: Path) -> AuditReport:
    async with beside(store, SqliteAudit) as book:
        return await check_audit(book)
