"""The HTTP API over restarts: streams that are taken up again, and a workflow that is no longer configured.

Covers: adapters/api/stream.py, adapters/api/wakes.py, gateway/turns/public_runs.py, gateway/app/lifecycle.py,
gateway/agents/routes.py.
"""

from __future__ import annotations

from pathlib import Path

from adapters.api.run_ids import thread_of
from gateway.storage.ports import Store
from pipeline.llm.scripted import ScriptedLlm
from tests.pipeline.workflows.documents import agent, approval, document, start, way
from tests.support.api_client import api_overrides, document_file, open_api
from tests.support.looks import look_again
from tests.support.workflow_child import triage_model

ECHO = document(start(), agent("a"), routes=[way("start > a")])
ASKS = document(
    start(),
    agent("a"),
    approval("ok", prompt="Continue?"),
    agent("b"),
    routes=[way("start > a"), way("a > ok"), way("ok > b", "approve")],
)


async def test_a_stream_ends_with_the_gateway_and_continues_with_the_next_one(tmp_path: Path) -> None:
    overrides = api_overrides(tmp_path, document_file(tmp_path, ASKS))
    seen = []
    async with open_api(tmp_path, *overrides, llm=triage_model("one")) as api:
        run_id = await api.start("go")
        await api.until(run_id, "paused")
        stream = api.events(run_id)
        async for event in stream:
            seen.append(event)
            if event["event"] == "status":
                break
        await api.harness.gateway.stop()
        assert [event async for event in stream] == []
    async with open_api(tmp_path, *overrides, llm=triage_model("two")) as api:
        assert (
            await api.send("POST", f"/api/runs/{run_id}/answers", body={"choice": "approve"})
        ).status == 202
        rest = [event async for event in api.events(run_id, after=seen[-1]["id"])]
        logs = [event["data"] for event in (*seen, *rest) if event["event"] == "log"]
        assert logs == (await api.run(run_id))["logs"]
    assert (rest[-1]["id"], rest[-1]["data"]["answer"]) == ("end", "two")


async def test_a_waiting_run_of_a_removed_workflow_is_stopped_and_no_other_agent_answers_it(
    tmp_path: Path,
) -> None:
    slow = ScriptedLlm.echo(delay_s=600.0)
    overrides = api_overrides(tmp_path, document_file(tmp_path, ECHO))
    async with open_api(tmp_path, *overrides, llm=slow, drain_s=0.0) as api:
        run_id = await api.start("go")
        await api.until(run_id, "running")
    thread = thread_of("ci", run_id).encode()
    own = document_file(tmp_path, ECHO)
    others = [one.replace("agents.triage.", "agents.second.") for one in api_overrides(tmp_path, own)]
    llm = ScriptedLlm.echo()
    async with open_api(tmp_path, *others, llm=llm) as api:
        assert (await api.send("GET", f"/api/runs/{run_id}")).status == 404
        await _until_finished(api.harness.store, thread)
        kinds = [record.kind for record in await api.harness.store.read_log(thread)]
    assert llm.requests == []
    assert (kinds.count("error"), kinds.count("assistant")) == (1, 0)


async def _until_finished(store: Store, thread: str) -> None:
    """Wait until no entry of the thread is open."""
    while await store.open_entries(thread):
        await look_again()


async def test_the_default_agent_is_a_workflow_with_its_name(tmp_path: Path) -> None:
    own = document_file(tmp_path, ECHO)
    overrides = [one.replace("agents.triage.", "agent.") for one in api_overrides(tmp_path, own)]
    async with open_api(tmp_path, *overrides) as api:
        listed = (await api.send("GET", "/api/workflows")).body["workflows"]
        assert listed == [{"name": "default", "description": "", "nodes": 2}]
        record = await api.until(await api.start("hello", name="default"), "completed")
        assert record["answer"] == "You said: hello"
