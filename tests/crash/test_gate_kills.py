"""A process that dies between a question, its answer and the end of the resumed run."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.turns.run_codec import runs_of
from tests.support.forked_children import run_child
from tests.support.gate_graph import Ledger, answer_to, gate_graph
from tests.support.harness import THREAD, open_gateway

pytestmark = pytest.mark.crash

_CRASHED = 137
_REPLY = "pay: approve by owner, after 0 lines"


async def _die(folder: Path, crash_at: str) -> None:
    code = await run_child("tests.support.gate_child", str(folder), crash_at, log=folder / "child.log")
    assert code == _CRASHED


async def test_a_death_before_the_question_is_committed_asks_it_once(tmp_path: Path) -> None:
    await _die(tmp_path, "turn-commit-before:1")
    ledger = Ledger(tmp_path / "ledger")
    assert ledger.lines() == ["prepare", "ask"]
    async with open_gateway(tmp_path / "data", graph=gate_graph(ledger)) as harness:
        await harness.channel.until(lambda: harness.channel.sent)
        (question,) = await harness.store.pending_interactions(THREAD, now=0.0)
        await harness.channel.bring(answer_to(question.id, "approve"))
        assert (await harness.channel.reply("m_answer")).text == _REPLY
    # The steps before the question are written with it, so they may have run again.
    assert ledger.lines()[-1] == "act approve"
    assert ledger.lines().count("act approve") == 1


async def test_a_death_between_the_answer_and_the_commit_resumes_the_run_once(tmp_path: Path) -> None:
    await _die(tmp_path, "turn-commit-before:2")
    ledger = Ledger(tmp_path / "ledger")
    async with open_gateway(tmp_path / "data", graph=gate_graph(ledger)) as harness:
        assert (await harness.channel.reply("m_answer")).text == _REPLY
        ((_, records),) = runs_of(await harness.records()).items()
        done = [record for record in records if record is not None]
        assert [record["do"] for record in done].count("answer") == 1
        gate = next(record["gate"]["id"] for record in done if record["do"] == "step" and "gate" in record)
        refused = await harness.channel.bring(answer_to(gate, "deny", name="late"))
        assert refused.reason == "This question has already been answered."
        assert len(await harness.records("assistant")) == 2
    # Its step had not been committed, so it ran again; what stood before the question did not.
    assert ledger.lines() == ["prepare", "ask", "act approve", "act approve"]


async def test_a_death_after_the_commit_resumes_nothing(tmp_path: Path) -> None:
    await _die(tmp_path, "turn-commit-after:2")
    ledger = Ledger(tmp_path / "ledger")
    async with open_gateway(tmp_path / "data", graph=gate_graph(ledger)) as harness:
        assert (await harness.channel.reply("m_answer")).text == _REPLY
    assert ledger.lines() == ["prepare", "ask", "act approve"]


async def test_an_answer_that_was_accepted_resumes_the_run_after_a_death(tmp_path: Path) -> None:
    await _die(tmp_path, "inbox-commit-after:2")
    ledger = Ledger(tmp_path / "ledger")
    async with open_gateway(tmp_path / "data", graph=gate_graph(ledger)) as harness:
        assert (await harness.channel.reply("m_answer")).text == _REPLY
    assert ledger.lines() == ["prepare", "ask", "act approve"]


async def test_an_answer_that_was_not_accepted_can_be_given_again(tmp_path: Path) -> None:
    await _die(tmp_path, "inbox-commit-before:2")
    ledger = Ledger(tmp_path / "ledger")
    async with open_gateway(tmp_path / "data", graph=gate_graph(ledger)) as harness:
        (question,) = await harness.store.pending_interactions(THREAD, now=0.0)
        assert (await harness.channel.bring(answer_to(question.id, "approve"))).status == "accepted"
        assert (await harness.channel.reply("m_answer")).text == _REPLY
    assert ledger.lines() == ["prepare", "ask", "act approve"]
