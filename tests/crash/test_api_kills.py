"""A gateway that is killed while a program uses its API: a key starts one run, and a stream continues.

Covers: adapters/api/run_service.py, adapters/api/stream.py, gateway/turns/public_runs.py.
"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.support.api_child import INPUT, KEY
from tests.support.api_client import api_overrides, open_api
from tests.support.forked_children import run_child
from tests.support.workflow_child import DRAFT, triage_model

pytestmark = pytest.mark.crash

_CRASHED = 137


async def _die(folder: Path, crash_at: str) -> None:
    code = await run_child("tests.support.api_child", str(folder), crash_at, log=folder / "child.log")
    assert code in (_CRASHED, -signal.SIGKILL)


@pytest.mark.parametrize(
    "crash_at",
    ["inbox-commit-before:1", "inbox-commit-after:1", "turn-commit-before:1", "inbox-commit-after:2"],
)
async def test_a_repeated_request_finds_its_run_over_a_kill_and_it_ends_once(
    tmp_path: Path, crash_at: str
) -> None:
    await _die(tmp_path, crash_at)
    async with open_api(tmp_path, *api_overrides(tmp_path), llm=triage_model("refund", DRAFT)) as api:
        run_id = await api.start(INPUT, key=KEY)
        known = tmp_path / "run"
        if known.exists():
            assert run_id == known.read_text("utf-8")
        if not crash_at.startswith("inbox-commit-after:2"):
            record = await api.until(run_id, "paused")
            body = {"choice": "approve", "questionId": record["questions"][0]["questionId"]}
            assert (await api.send("POST", f"/api/runs/{run_id}/answers", body=body)).status == 202
        record = await api.until(run_id, "completed")
        assert record["answer"] == DRAFT
        kinds = [entry["type"] for entry in record["logs"]]
        assert [kinds.count(one) for one in ("start_prompt", "wait_input", "input_received")] == [1, 1, 1]
        assert len(await api.harness.store.threads_of("api", "main", limit=10)) == 1


async def test_a_stream_is_taken_up_after_a_kill_without_a_gap_or_a_repetition(tmp_path: Path) -> None:
    await _die(tmp_path, "inbox-commit-after:2")
    run_id = (tmp_path / "run").read_text("utf-8")
    async with open_api(tmp_path, *api_overrides(tmp_path), llm=triage_model(DRAFT)) as api:
        await api.until(run_id, "completed")
        whole = [event async for event in api.events(run_id)]
        logs = [event for event in whole if event["event"] == "log"]
        assert [event["id"] for event in logs] == [str(number) for number in range(1, len(logs) + 1)]
        assert [event["data"] for event in logs] == (await api.run(run_id))["logs"]
        assert (whole[-1]["event"], whole[-1]["id"]) == ("status", "end")
        for seen in range(len(logs) + 1):
            rest = [event async for event in api.events(run_id, after=str(seen))]
            assert rest == [*logs[seen:], whole[-1]]
        headers = {"Accept": "text/event-stream"}
        over = await api.send("GET", f"/api/runs/{run_id}", headers={**headers, "Last-Event-ID": "end"})
        assert over.status == 204
        wrong = await api.send("GET", f"/api/runs/{run_id}", headers={**headers, "Last-Event-ID": "x"})
        assert wrong.status == 422
