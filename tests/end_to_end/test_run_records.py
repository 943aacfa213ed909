"""The records of a run in a whole gateway: few bytes, and never the reason why nothing is answered."""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from gateway.turns.run_codec import runs_of
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.channel import types_of
from tests.support.harness import open_gateway

_OLD = {"run": "run_0", "node": "intake", "update": {"intake": {"messages_kept": 0}}, "next": "agent"}


async def _cut_off_while_the_model_thinks(folder: Path) -> str:
    """A message whose first node is on record and whose process has ended; its id."""
    llm = ScriptedLlm([ScriptedAnswer(chunks=("never",), gate=asyncio.Event())])
    async with open_gateway(folder, llm=llm, drain_s=0) as harness:
        accepted = await harness.channel.say("hi")
        await harness.channel.until(lambda: llm.requests)
    return accepted.message_id


def _rewrite_step(folder: Path, body: str) -> None:
    with closing(sqlite3.connect(folder / "parlour.sqlite3")) as db:
        assert db.execute("UPDATE log SET body = ? WHERE kind = 'step'", (body,)).rowcount == 1
        db.commit()


@pytest.mark.parametrize(
    "body", [json.dumps(_OLD), '{"node":', json.dumps({"x": 1})], ids=["old", "damaged", "strange"]
)
async def test_a_run_that_cannot_be_read_begins_again_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, body: str
) -> None:
    message_id = await _cut_off_while_the_model_thinks(tmp_path)
    _rewrite_step(tmp_path, body)
    async with open_gateway(tmp_path) as harness:
        assert (await harness.channel.reply(message_id)).text == "You said: hi"
        started = [name for name in types_of(harness.channel.events_of(message_id)) if name == "node_started"]
        assert len(started) == 2
    assert "a run cannot be resumed" in [record.getMessage() for record in caplog.records]


async def test_a_run_of_another_graph_begins_again_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    message_id = await _cut_off_while_the_model_thinks(tmp_path)
    with closing(sqlite3.connect(tmp_path / "parlour.sqlite3")) as db:
        db.execute("UPDATE log SET body = json_set(body, '$.graph', 'talk/0') WHERE kind = 'step'")
        db.commit()
    async with open_gateway(tmp_path) as harness:
        assert (await harness.channel.reply(message_id)).text == "You said: hi"
        runs = runs_of(await harness.records())
    (warning,) = [record for record in caplog.records if record.getMessage() == "a run cannot be resumed"]
    assert vars(warning)["code"] == "graph_changed"
    assert [len(records) for records in runs.values()] == [1, 3]


async def test_the_whole_run_is_on_record_once_the_message_is_answered(tmp_path: Path) -> None:
    async with open_gateway(tmp_path) as harness:
        await harness.channel.reply((await harness.channel.say("hi")).message_id)
        ((run_id, records),) = runs_of(await harness.records()).items()
    steps = [record for record in records if record is not None]
    assert run_id == steps[0]["head"]["run"]
    assert [(step["do"], step.get("node")) for step in steps] == [
        ("step", "intake"),
        ("step", "agent"),
        ("end", None),
    ]


async def test_a_resumed_run_ends_in_the_commit_as_well(tmp_path: Path) -> None:
    message_id = await _cut_off_while_the_model_thinks(tmp_path)
    async with open_gateway(tmp_path) as harness:
        await harness.channel.reply(message_id)
        (assistant,) = await harness.records("assistant")
    assert [step["node"] for step in assistant.body["steps"]] == ["agent"]
    assert len(json.dumps(assistant.body)) < 100
