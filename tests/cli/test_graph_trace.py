"""`parlour graph trace`: what a run did, from the store's file, beside a running gateway or after it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.cli.main import main
from gateway.turns.run_codec import runs_of
from pipeline.domain.chat import ToolCall
from pipeline.domain.errors import ModelUnavailable
from pipeline.graph.definition.decisions import End, Goto, NodeResult, State
from pipeline.graph.definition.elements import END, EdgeSpec
from pipeline.graph.definition.spec import GraphSpec, NodeSpec
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from pipeline.runtime.context import RunContext
from tests.pipeline.workflows.documents import agent, start, way
from tests.pipeline.workflows.documents import document as workflow
from tests.support.harness import GatewayHarness, open_gateway


def _trace(data: Path, *arguments: str) -> int:
    return main(["graph", "trace", *arguments, "--set", f'data.dir="{data}"'])


async def _runs(harness: GatewayHarness) -> list[str]:
    return list(runs_of(await harness.records()))


async def test_an_answered_run_is_drawn_to_its_end_while_the_gateway_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with open_gateway(tmp_path) as harness:
        await harness.channel.reply((await harness.channel.say("hi")).message_id)
        (run,) = await _runs(harness)
        assert await asyncio.to_thread(_trace, tmp_path, run) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"%% run {run} of graph conversation (")
    assert lines[0].endswith(", completed")
    assert lines[1].startswith("%% thread console:local:c1, message ")
    assert [line.split()[2] for line in lines[2:4]] == ["intake", "agent"]
    assert "flowchart TD" in lines
    assert any("-->" in line and "1" in line for line in lines)
    assert any(line.strip().startswith("linkStyle") for line in lines)


async def test_tools_their_outcome_and_the_tokens_of_each_model_call_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load = ToolCall(id="l", name="load_tools", arguments='{"groups": ["system"]}')
    unknown = ToolCall(id="u", name="no_such_tool", arguments="{}")
    script = [
        replace(ScriptedAnswer.calling(load), prompt_tokens=700),
        replace(ScriptedAnswer.calling(unknown), prompt_tokens=800),
        replace(ScriptedAnswer.of("It is noon."), prompt_tokens=900),
    ]
    async with open_gateway(tmp_path, llm=ScriptedLlm(script)) as harness:
        await harness.channel.reply((await harness.channel.say("what time is it?")).message_id)
        (run,) = await _runs(harness)
    assert _trace(tmp_path, run) == 0
    steps = [line for line in capsys.readouterr().out.splitlines() if line.startswith("%%   ")]
    agents = [line for line in steps if line.split()[2] == "agent"]
    assert len(agents) == 3
    assert all(f"  {asked} + " in line for asked, line in zip((700, 800, 900), agents, strict=True))
    acts = [line for line in steps if line.split()[2] == "act"]
    assert ["load_tools: done" in acts[0], "no_such_tool: failed" in acts[1]] == [True, True]


async def test_the_newest_runs_are_listed_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with open_gateway(tmp_path) as harness:
        for text in ("one", "two"):
            await harness.channel.reply((await harness.channel.say(text)).message_id)
        first, second = await _runs(harness)
    assert _trace(tmp_path) == 0
    assert [line.split()[3] for line in capsys.readouterr().out.splitlines()] == [second, first]


async def test_a_failed_run_says_where_and_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    llm = ScriptedLlm([ScriptedAnswer(error=ModelUnavailable("It is\naway."))])
    async with open_gateway(tmp_path, llm=llm) as harness:
        await harness.channel.terminal((await harness.channel.say("hi")).message_id)
        (run,) = await _runs(harness)
    assert _trace(tmp_path, run) == 0
    printed = capsys.readouterr().out
    assert ", failed: error\n" in printed
    assert "agent  failed (model_unavailable: It is away.)" in printed
    assert "class n_agent failed" in printed


async def test_a_run_of_a_graph_that_is_not_shipped_is_drawn_with_its_document(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def says(_state: State, context: RunContext) -> NodeResult:
        return NodeResult(update={"agent": {"answer": f"You said: {context.text}"}})

    graph = GraphSpec[RunContext](
        name="own", entry="a", nodes={"a": says, "agent": says}, edges=(EdgeSpec(source="a", target="agent"),)
    )
    async with open_gateway(tmp_path, graph=graph) as harness:
        await harness.channel.reply((await harness.channel.say("hi")).message_id)
        (run,) = await _runs(harness)
    assert _trace(tmp_path, run) == 2
    assert "--graph FILE" in capsys.readouterr().err
    document = tmp_path / "own.json"
    document.write_text(
        json.dumps(
            {
                "name": "own",
                "entry": "a",
                "nodes": [{"id": "a"}, {"id": "agent"}],
                "edges": [{"source": "a", "target": "agent"}],
            }
        )
    )
    assert _trace(tmp_path, run, "--graph", str(document)) == 0
    assert "flowchart TD" in capsys.readouterr().out


def test_a_run_that_is_not_there_is_refused_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def once() -> None:
        async with open_gateway(tmp_path):
            pass

    asyncio.run(once())
    assert _trace(tmp_path, "run_ghost") == 2
    assert "run_ghost: there is no such run" in capsys.readouterr().err
    assert _trace(tmp_path) == 0
    assert "there is no run on record yet" in capsys.readouterr().err


def test_a_folder_without_a_store_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _trace(tmp_path / "empty", "run_1") == 1
    assert "there is no store yet" in capsys.readouterr().err
    assert not (tmp_path / "empty").exists()


async def test_a_run_of_one_step_is_listed_and_a_snapshot_is_not_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def often(state: State, context: RunContext) -> NodeResult:
        count = state.get("count", 0) + 1
        again = count < (40 if context.text == "often" else 1)
        update = {"count": count, "agent": {"answer": context.text}}
        return NodeResult(update=update, decision=Goto("other") if again else End())

    async def other(_state: State, _context: RunContext) -> NodeResult:
        return NodeResult(decision=Goto("often"))

    graph = GraphSpec[RunContext](
        name="own",
        entry="often",
        nodes={
            "often": NodeSpec(run=often, goes_to=("other", END)),
            "other": NodeSpec(run=other, goes_to=("often",)),
        },
        edges=(),
    )
    async with open_gateway(tmp_path, graph=graph) as harness:
        for text in ("once", "often"):
            await harness.channel.reply((await harness.channel.say(text)).message_id)
        runs = await _runs(harness)
        assert max(map(len, runs_of(await harness.records()).values())) > 64
    assert _trace(tmp_path) == 0
    assert [line.split()[3] for line in capsys.readouterr().out.splitlines()] == list(reversed(runs))


async def test_a_run_of_a_saved_workflow_is_drawn_with_the_version_that_ran(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = workflow(start(), agent("a"), routes=[way("start > a")])
    second = workflow(start(), agent("b"), routes=[way("start > b")])
    async with open_gateway(tmp_path) as harness:
        saved = harness.store.page.workflows
        assert await saved.save("letters", json.dumps(first), base=0, runs=True, at=1.0) == 1
    async with open_gateway(tmp_path, 'agent.graph="saved:letters"') as harness:
        await harness.channel.reply((await harness.channel.say("hi")).message_id)
        (run,) = await _runs(harness)
        saved = harness.store.page.workflows
        assert await saved.save("letters", json.dumps(second), base=1, runs=True, at=2.0) == 2
    assert _trace(tmp_path, run) == 0
    drawn = capsys.readouterr().out
    assert "n_a" in drawn
    assert "has changed since" not in drawn
    assert _trace(tmp_path, run, "--graph", "saved:letters@2") == 0
    assert "has changed since" in capsys.readouterr().out
    assert _trace(tmp_path, run, "--graph", "saved:ghost") == 2
    assert "no such workflow is saved" in capsys.readouterr().err
