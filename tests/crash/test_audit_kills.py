"""Death at each label of audit and gate: executed actions are on record and run once, the chain is whole."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from gateway.runtime.crash_labels import LABELS
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
_GATE = [label for label in LABELS if label.startswith("effect-")]
_KINDS: tuple[Kind, ...] = ("remind", "file", "sum")
# The first effect of a file is the question to a person, and the second is the action.
_DEATHS: list[tuple[Kind, str]] = [
    *((kind, f"{label}:1") for kind in _KINDS for label in _AUDIT),
    *(("file", f"{label}:2") for label in _GATE),
    ("file", "change-begun:1"),
]
_NOT_DONE = ("effect-begun-after:2", "change-begun:1")


@pytest.mark.parametrize(("kind", "crash_at"), _DEATHS)
async def test_an_executed_action_is_on_record_and_is_done_once(
    tmp_path: Path, kind: Kind, crash_at: str
) -> None:
    async with FakeOpenAiServer(brain=think) as model:
        settings = tool_settings(model.api_base, tmp_path)
        async with GatewayProcess(tmp_path, overrides=settings) as gateway, WebChat() as chat:
            await gateway.start(crash_at=crash_at)
            await chat.connect(gateway.url, gateway.token)
            await chat.send_text("c1", wish(kind, _NAME))
            await _allow_all(chat)
            assert await gateway.wait_exit() == _CRASHED
            before = _types(gateway.store_path)
            if crash_at == "audit-decided-before:1":
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
            done = 0 if kind == "sum" or crash_at in _NOT_DONE else 1
            assert executions(gateway.folder, gateway.store_path).total() == done
            # Behind the effect's record nothing but the record of the result is left to be lost.
            unknown = crash_at in _NOT_DONE or (crash_at == "audit-done-before:1" and kind != "sum")
            assert said == "unknown" if unknown else said in ("done", "unknown")
            assert ended
            assert ended[-1] == ("action_unknown" if said == "unknown" else "action_executed")
            report = await _report(gateway.store_path)
            assert (report.records > 2, report.damage) == (True, ())


async def _allow_all(chat: WebChat, *, to_the_end: bool = False) -> None:
    """Allow what is asked, until the socket is closed or, `to_the_end`, the answer is there."""
    allowed: set[str] = set()
    try:
        while not (to_the_end and any(one.role == "assistant" for one in chat.seen.lines)):
            # Also those that came before `ready`: a resumed turn may ask before the client is connected.
            for question in set(chat.seen.questions) - allowed:
                allowed.add(question)
                await chat.send_approval(f"yes-{question}", question, "Allow")
            await chat.receive()
    except Disconnected:
        pass


def _types(store: Path) -> list[str]:
    with closing(sqlite3.connect(store)) as db:
        return [json.loads(line)["type"] for (line,) in db.execute("SELECT line FROM audit ORDER BY n")]


async def _report(store: Path) -> AuditReport:
    async with beside(store, SqliteAudit) as book:
        return await check_audit(book)
