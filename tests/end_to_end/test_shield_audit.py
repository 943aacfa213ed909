"""In a running gateway, an action whose decision cannot be written to the audit does not run.

Covers: gateway/shield/audit_trail.py, pipeline/tools/gate.py.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from pipeline.domain.events import ResponseComplete, ShieldVerdict, TurnStarted
from pipeline.llm.scripted import ScriptedLlm
from tests.support.harness import GatewayHarness, open_gateway
from tests.support.shield_talk import asked, own_files, press, question, turn, writes


def _alter(data: Path, statement: str) -> None:
    """Change the store beside the running gateway."""
    with closing(sqlite3.connect(data / "parlour.sqlite3")) as db, db:
        db.execute(statement)


def _refuse(data: Path, event: str) -> None:
    """From now on, a record of that type gets the error of a full disk."""
    matches = f'CAST(NEW.line AS TEXT) LIKE \'%"type":"{event}"%\''
    refuses = "SELECT RAISE(ABORT, 'database or disk is full')"
    _alter(data, f"CREATE TRIGGER full BEFORE INSERT ON audit WHEN {matches} BEGIN {refuses}; END")


def _overwrite(data: Path, text: str) -> None:
    (file,) = data.glob("workspace/people/*/files/list.txt")
    file.write_text(text)


async def _begun(harness: GatewayHarness, times: int) -> None:
    """Return when the turn was begun so often."""
    await harness.channel.until(
        lambda: sum(isinstance(one, TurnStarted) for one in harness.channel.events) >= times
    )


async def _ends(harness: GatewayHarness) -> list[str]:
    rows = await harness.store.shield.audit.newest(limit=99)
    return [kind for row in rows if (kind := json.loads(row.line)["type"]).startswith("action_")]


@pytest.mark.parametrize("event", ["action_proposed", "action_evaluated"])
async def test_without_a_record_of_the_decision_no_one_is_asked_and_nothing_runs(
    tmp_path: Path, event: str
) -> None:
    llm = ScriptedLlm(writes("hello"))
    async with open_gateway(tmp_path, llm=llm) as harness:
        _refuse(tmp_path, event)
        said = await harness.channel.say("write")
        await _begun(harness, 2)
        assert any(isinstance(one, ShieldVerdict) for one in harness.channel.events)
        assert (asked(harness), own_files(tmp_path), harness.channel.sent) == ([], [], [])
        assert await _ends(harness) == []
        _alter(tmp_path, "DROP TRIGGER full")
        await harness.channel.bring(press(await question(harness), 0))
        await harness.channel.reply(said.message_id)
        assert own_files(tmp_path) == ["hello"]
        assert (await _ends(harness))[-2:] == ["action_answered", "action_executed"]


async def test_without_a_record_of_the_decision_the_model_is_shown_nothing(tmp_path: Path) -> None:
    (tmp_path / "workspace" / "files").mkdir(parents=True)
    (tmp_path / "workspace" / "files" / "menu.txt").write_text("soup")
    llm = ScriptedLlm(turn("files", "read_file", path="shared/menu.txt"))
    async with open_gateway(tmp_path, llm=llm) as harness:
        _refuse(tmp_path, "action_evaluated")
        said = await harness.channel.say("read")
        await _begun(harness, 2)
        assert len(llm.requests) == 2
        _alter(tmp_path, "DROP TRIGGER full")
        await harness.channel.reply(said.message_id)
    assert "soup" in llm.requests[2].messages[-1].content


async def test_an_answer_without_a_record_has_no_effect_and_is_not_asked_for_again(tmp_path: Path) -> None:
    async with open_gateway(tmp_path, llm=ScriptedLlm(writes("hello"))) as harness:
        said = await harness.channel.say("write")
        waiting = await question(harness)
        _refuse(tmp_path, "action_answered")
        await harness.channel.bring(press(waiting, 0))
        await _begun(harness, 2)
        assert (own_files(tmp_path), harness.channel.sent) == ([], [])
        _alter(tmp_path, "DROP TRIGGER full")
        await harness.channel.reply(said.message_id)
        assert (own_files(tmp_path), len(asked(harness))) == (["hello"], 1)


async def test_a_deed_without_a_record_is_not_reported_before_it_has_one_and_done_once(
    tmp_path: Path,
) -> None:
    llm = ScriptedLlm(writes("hello"))
    async with open_gateway(tmp_path, llm=llm) as harness:
        said = await harness.channel.say("write")
        _refuse(tmp_path, "action_executed")
        await harness.channel.bring(press(await question(harness), 0))
        await _begun(harness, 3)
        assert own_files(tmp_path) == ["hello"]
        assert (len(llm.requests), harness.channel.sent) == (2, [])
        # A second execution would be seen by what it writes.
        _overwrite(tmp_path, "changed by the person")
        _alter(tmp_path, "DROP TRIGGER full")
        await harness.channel.reply(said.message_id)
        done = harness.channel.events_of(said.message_id)[-1]
        assert isinstance(done, ResponseComplete)
        assert "is written" in llm.requests[2].messages[-1].content
        assert own_files(tmp_path) == ["changed by the person"]
        assert (await _ends(harness))[-1] == "action_executed"
