"""What counts as an answer to a workflow's approval: of one person, once, and one of two decisions.

Covers: pipeline/workflows/document.py, gateway/ingress/answers.py, adapters/api/run_service.py,
gateway/turns/public_runs.py.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from gateway.turns.run_codec import runs_of
from pipeline.llm.scripted import ScriptedLlm
from pipeline.workflows.reading import read_workflow
from pipeline.workflows.run_record import WorkflowRun, run_record
from tests.pipeline.workflows.documents import Echo, agent, approval, document, start, way
from tests.support.api_client import api_overrides, document_file, open_api
from tests.support.gate_graph import answer_to
from tests.support.harness import THREAD, GatewayHarness, open_gateway

_ASKS = document(
    start(),
    approval("ok"),
    agent("a", userPrompt="sent {{PREVIOUS_OUTPUT}}"),
    routes=[way("start > ok"), way("ok > a", "approve")],
)


def _settings(folder: Path) -> str:
    return f'agent.graph="{document_file(folder, _ASKS)}"'


async def _record(harness: GatewayHarness) -> WorkflowRun:
    ((_, records), *_) = runs_of(await harness.records()).items()
    return run_record(read_workflow(_ASKS), records)


@pytest.mark.parametrize("choice", ["maybe", "", "please reject this", "approve!", "true"])
async def test_an_answer_that_is_no_decision_is_refused_and_the_question_stays_open(
    tmp_path: Path, choice: str
) -> None:
    async with open_gateway(tmp_path / "data", _settings(tmp_path), model=Echo({})) as harness:
        await harness.channel.reply((await harness.channel.say("go")).message_id)
        (question,) = await harness.store.pending_interactions(THREAD, now=0.0)
        refused = await harness.channel.bring(answer_to(question.id, choice, name="bad"))
        assert refused.status == "refused"
        paused = await _record(harness)
        assert (paused.status, paused.current_node, paused.waiting_for_input) == ("paused", "ok", True)
        await harness.channel.bring(answer_to(question.id, "approve"))
        assert (await harness.channel.reply("m_answer")).text == "sent go"
        assert (await _record(harness)).state["ok_approval"]["decision"] == "approve"


@pytest.mark.parametrize("body", [{"choice": "maybe"}, {"choice": ""}, {"choice": 1}, {}, {"decision": "x"}])
async def test_a_program_gets_422_for_an_answer_that_is_no_decision(
    tmp_path: Path, body: dict[str, Any]
) -> None:
    settings = api_overrides(tmp_path, document_file(tmp_path, _ASKS))
    async with open_api(tmp_path / "data", *settings, llm=ScriptedLlm.echo()) as api:
        run_id = await api.start("go")
        await api.until(run_id, "paused")
        assert (await api.send("POST", f"/api/runs/{run_id}/answers", body=body)).status == 422
        still = await api.run(run_id)
    assert (still["status"], still["currentNodeId"], still["waitingForInput"]) == ("paused", "ok", True)


async def test_of_two_answers_at_the_same_time_one_counts_and_the_other_gets_409(tmp_path: Path) -> None:
    settings = api_overrides(tmp_path, document_file(tmp_path, _ASKS))
    async with open_api(tmp_path / "data", *settings, llm=ScriptedLlm.echo()) as api:
        run_id = await api.start("go")
        await api.until(run_id, "paused")
        path = f"/api/runs/{run_id}/answers"
        sent = [api.send("POST", path, body={"choice": one}) for one in ("approve", "reject")]
        answers = {one.status: one for one in await asyncio.gather(*sent)}
        assert set(answers) == {202, 409}
        done = await api.until(run_id, "completed")
        assert done["state"]["ok_approval"]["decision"] == answers[202].body["choice"]
        # A run that waits for nothing, and one that is not there.
        over = await api.send("POST", path, body={"choice": "approve"})
        assert over.status == 409
        nowhere = await api.send("POST", "/api/runs/run_ghost/answers", body={"choice": "approve"})
        assert nowhere.status == 404


async def test_a_paused_run_is_there_after_a_restart_and_continues(tmp_path: Path) -> None:
    async with open_gateway(tmp_path / "data", _settings(tmp_path), model=Echo({})) as harness:
        await harness.channel.reply((await harness.channel.say("go")).message_id)
        (question,) = await harness.store.pending_interactions(THREAD, now=0.0)
    async with open_gateway(tmp_path / "data", _settings(tmp_path), model=Echo({})) as harness:
        assert (await _record(harness)).status == "paused"
        await harness.channel.bring(answer_to(question.id, "approve"))
        assert (await harness.channel.reply("m_answer")).text == "sent go"


async def test_a_run_that_has_lost_its_node_says_so_and_is_not_continued(tmp_path: Path) -> None:
    async with open_gateway(tmp_path / "data", _settings(tmp_path), model=Echo({})) as harness:
        await harness.channel.reply((await harness.channel.say("go")).message_id)
        (question,) = await harness.store.pending_interactions(THREAD, now=0.0)
    other = document(start(), agent("z"), routes=[way("start > z")])
    (tmp_path / "own.json").write_text(json.dumps(other), "utf-8")
    model = Echo({})
    async with open_gateway(tmp_path / "data", f'agent.graph="{tmp_path}/own.json"', model=model) as harness:
        await harness.channel.bring(answer_to(question.id, "approve"))
        said = (await harness.channel.reply("m_answer")).text
    assert "changed" in said
    assert model.asked == []
