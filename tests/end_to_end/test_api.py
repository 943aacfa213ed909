"""The HTTP API: another program starts a workflow, follows it, answers its question and stops it.

Covers: adapters/api/adapter.py, adapters/api/routes.py, adapters/api/run_service.py, adapters/api/stream.py,
gateway/turns/public_runs.py, gateway/app/api.py, gateway/agents/routes.py.
"""

from __future__ import annotations

from pathlib import Path

from pipeline.llm.scripted import ScriptedLlm
from tests.pipeline.workflows.documents import agent, approval, document, start, way
from tests.support.api_client import api_overrides, document_file, open_api
from tests.support.workflow_child import DRAFT, triage_model

BACK = "I want my money back"


async def test_a_program_starts_a_run_answers_its_question_and_reads_the_answer(tmp_path: Path) -> None:
    llm = triage_model("refund", DRAFT)
    async with open_api(tmp_path, *api_overrides(tmp_path), llm=llm) as api:
        begun = await api.send("POST", "/api/workflows/triage/runs", body={"input": BACK})
        assert begun.status == 202
        assert begun.headers["Location"] == f"/api/runs/{begun.body['runId']}"
        run_id = begun.body["runId"]
        paused = await api.until(run_id, "paused")
        assert (paused["currentNodeId"], paused["waitingForInput"], paused["answer"]) == (
            "review",
            True,
            None,
        )
        (question,) = paused["questions"]
        assert (question["options"], question["takesNote"]) == (["approve", "reject"], True)
        answered = await api.send(
            "POST",
            f"/api/runs/{run_id}/answers",
            body={"questionId": question["questionId"], "choice": "approve"},
        )
        assert (answered.status, answered.body) == (202, {"runId": run_id, "choice": "approve"})
        done = await api.until(run_id, "completed")
    assert (done["answer"], done["error"], done["questions"]) == (DRAFT, None, [])
    assert done["state"]["review_approval"] == {"decision": "approve", "note": ""}
    assert done["state"]["start"] == BACK


async def test_a_note_goes_with_an_answer_and_a_second_answer_is_refused(tmp_path: Path) -> None:
    llm = triage_model("refund", DRAFT, "Shorter.")
    async with open_api(tmp_path, *api_overrides(tmp_path), llm=llm) as api:
        run_id = await api.start(BACK)
        first = (await api.until(run_id, "paused"))["questions"][0]["questionId"]
        path = f"/api/runs/{run_id}/answers"
        assert (await api.send("POST", path, body={"choice": "reject", "note": "too long"})).status == 202
        again = await api.send("POST", path, body={"choice": "approve", "questionId": first})
        assert (again.status, again.body["choice"]) == (409, "reject")
        async for event in api.events(run_id):
            asked = event["data"].get("questions", [])
            if asked and asked[0]["questionId"] != first:
                break
        record = await api.run(run_id)
    assert record["state"]["review_approval"] == {"decision": "reject", "note": "too long"}
    assert "too long" in llm.requests[-1].messages[-1].content


async def test_a_stop_ends_a_working_run_and_a_waiting_one_for_good(tmp_path: Path) -> None:
    source = document(
        start(),
        approval("ok", prompt="Continue?"),
        agent("a"),
        routes=[way("start > ok"), way("ok > a", "approve")],
    )
    async with open_api(tmp_path, *api_overrides(tmp_path, document_file(tmp_path, source))) as api:
        waiting = await api.start("go")
        question = (await api.until(waiting, "paused"))["questions"][0]["questionId"]
        ended = await api.send("DELETE", f"/api/runs/{waiting}")
        assert (ended.status, ended.body) == (200, {"runId": waiting, "status": "failed"})
        late = await api.send(
            "POST", f"/api/runs/{waiting}/answers", body={"choice": "approve", "questionId": question}
        )
        assert late.status == 409
        record = await api.run(waiting)
        assert record["error"] == {"code": "stopped", "message": "The run was stopped."}
        assert record["logs"][-1]["type"] == "error"
        assert (await api.send("POST", f"/api/runs/{waiting}/stop")).body["status"] == "failed"
    slow = ScriptedLlm.echo(delay_s=600.0)
    source = document(start(), agent("a"), agent("b"), routes=[way("start > a"), way("start > b")])
    overrides = api_overrides(tmp_path, document_file(tmp_path, source, "two"))
    async with open_api(tmp_path / "second", *overrides, llm=slow) as api:
        run_id = await api.start("go")
        await api.until(run_id, "running")
        # 202 where the turn takes longer to end than a stop waits.
        assert (await api.send("POST", f"/api/runs/{run_id}/stop")).status in (200, 202)
        record = await api.until(run_id, "failed")
    assert (record["status"], record["error"]["code"]) == ("failed", "stopped")
