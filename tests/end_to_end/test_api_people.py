"""Named approvers over the HTTP API, and what a run of the API may touch of other people.

Covers: adapters/api/run_service.py, adapters/api/record.py, gateway/turns/public_runs.py.
"""

from __future__ import annotations

from pathlib import Path

from tests.pipeline.workflows.documents import agent, approval, document, start, way
from tests.support.api_client import api_overrides, document_file, open_api
from tests.support.workflow_child import triage_model

ASKS_BOSS = document(
    start(),
    agent("a"),
    approval("ok", prompt="Good?", approvers=["api:boss"]),
    agent("b"),
    routes=[way("start > a"), way("a > ok"), way("ok > b", "approve")],
)


async def test_a_named_approver_answers_and_sees_the_question_alone(tmp_path: Path) -> None:
    overrides = api_overrides(tmp_path, document_file(tmp_path, ASKS_BOSS))
    async with open_api(tmp_path, *overrides, llm=triage_model("draft", "done")) as api:
        run_id = await api.start("a secret matter")
        # The owner sees that it waits, but not as a question of theirs.
        assert (await api.until(run_id, "paused"))["questions"] == []
        path = f"/api/runs/{run_id}/answers"
        mine = await api.send("POST", path, body={"choice": "approve"})
        assert mine.status == 409
        assert (await api.send("POST", path, token="other", body={"choice": "approve"})).status == 404
        seen = await api.send("GET", f"/api/runs/{run_id}", token="boss")
        assert sorted(seen.body) == ["questions", "runId", "status", "waitingForInput", "workflow"]
        assert "secret matter" not in seen.text
        (question,) = seen.body["questions"]
        assert question["text"] == "Good?\n\ndraft"
        stopping = await api.send("DELETE", f"/api/runs/{run_id}", token="boss")
        assert stopping.status == 403
        body = {"questionId": question["questionId"], "choice": "approve", "note": "go"}
        assert (await api.send("POST", path, token="boss", body=body)).status == 202
        record = await api.until(run_id, "completed")
        assert (record["answer"], record["state"]["ok_approval"]["note"]) == ("done", "go")
        # No question of theirs is open any more.
        assert (await api.send("GET", f"/api/runs/{run_id}", token="boss")).status == 404
        assert (await api.send("POST", path, token="boss", body=body)).status == 404


async def test_what_answers_cannot_say_is_refused(tmp_path: Path) -> None:
    nodes = (start(), approval("one", prompt="One?"), approval("two", prompt="Two?"), agent("a"))
    routes = [way("start > one"), way("start > two"), way("one > a", "approve"), way("two > a", "approve")]
    source = document(*nodes, routes=routes)
    async with open_api(tmp_path, *api_overrides(tmp_path, document_file(tmp_path, source))) as api:
        run_id = await api.start("go")
        record = await api.until(run_id, "paused")
        path = f"/api/runs/{run_id}/answers"
        for body in (
            {"choice": "approve"},
            {"choice": "maybe", "questionId": record["questions"][0]["questionId"]},
            {"choice": 1, "questionId": record["questions"][0]["questionId"]},
            {"questionId": record["questions"][0]["questionId"]},
        ):
            assert (await api.send("POST", path, body=body)).status == 422
        unknown = await api.send("POST", path, body={"choice": "approve", "questionId": "gate_x"})
        assert unknown.status == 404
        for question in record["questions"]:
            body = {"choice": "reject", "questionId": question["questionId"]}
            assert (await api.send("POST", path, body=body)).status == 202
        await api.until(run_id, "completed")


async def test_runs_of_one_token_are_strangers_to_each_other_and_the_owner_of_the_page(
    tmp_path: Path,
) -> None:
    source = document(start(), agent("a"), routes=[way("start > a")])
    overrides = api_overrides(tmp_path, document_file(tmp_path, source))
    async with open_api(tmp_path, *overrides, llm=triage_model("one", "two")) as api:
        for text in ("first", "second"):
            await api.until(await api.start(text), "completed")
        messages = [one.content for one in api.harness.llm.requests[1].messages]
        assert not [text for text in messages if "first" in text or "one" in text.split()]
        threads = await api.harness.store.threads_of("api", "main", limit=10)
        assert len(threads) == 2
        assert {thread.split(":")[2] for thread in threads} == {"ci"}
