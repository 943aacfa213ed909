"""Playbooks that use others: sub-workflows give their results back, and transfers leave everything."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.pipeline.playbooks.documents import PlaybookTest, agent, node, playbook, route, trigger

_CHILD = playbook(trigger(), agent("c", "child of {{trigger}}"), edges=route("start > c"), name="child")


async def test_a_sub_workflow_gives_its_result_and_its_caller_continues() -> None:
    nodes = [trigger(), node("sub-workflow", "sub", workflow="child.json", input="<{{trigger}}>")]
    book = playbook(*nodes, agent("b", "after {{sub.result}}"), edges=route("start > sub > b"))
    run = PlaybookTest(book, others={"child.json": json.dumps(_CHILD)})
    record = await run.begin()
    assert run.asked == ["child of <hello>", "after child of <hello>"]
    assert (record.status, run.said) == ("completed", "after child of <hello>")
    assert record.outputs["child.json/c"]["result"] == "child of <hello>"


@pytest.mark.parametrize("last", ["agent", "tool-call", "router", "condition", "user-input", "merge"])
async def test_a_sub_workflow_returns_whatever_its_last_node_is(last: str) -> None:
    configs: dict[str, dict[str, Any]] = {
        "router": {"routes": [{"label": "one"}], "default": "one"},
        "condition": {"expression": "trigger == 'x'"},
        "user-input": {"prompt": "Well?"},
        "tool-call": {"tool": "none"},
        "agent": {"prompt": "x"},
    }
    child = playbook(trigger(), node(last, "last", **configs.get(last, {})), edges=route("start > last"))
    nodes = [trigger(), node("sub-workflow", "sub", workflow="c.json"), agent("b", "after")]
    run = PlaybookTest(playbook(*nodes, edges=route("start > sub > b")), others={"c.json": json.dumps(child)})
    record = await run.begin()
    if last == "user-input":
        record = await run.answer("well")
    # The tool is not there: a failure propagates.
    assert record.status == ("failed" if last == "tool-call" else "completed")
    assert ("after" in run.asked) == (last != "tool-call")


async def test_two_sub_workflows_of_the_same_file_run_beside_each_other() -> None:
    nodes = [trigger(), node("sub-workflow", "one", workflow="c.json", input="1")]
    nodes += [node("sub-workflow", "two", workflow="c.json", input="2"), node("merge", "m")]
    edges = [*route("start > one > m"), *route("start > two > m")]
    run = PlaybookTest(playbook(*nodes, edges=edges), others={"c.json": json.dumps(_CHILD)})
    record = await run.begin()
    assert (record.status, run.said) == ("completed", "one:\nchild of 1\n\ntwo:\nchild of 2")


async def test_a_transfer_ends_everything_and_begins_the_other_playbook() -> None:
    nodes = [trigger(), agent("a"), node("transfer", "go", workflow="child.json", input="{{a.result}}!")]
    run = PlaybookTest(
        playbook(*nodes, edges=route("start > a > go")), others={"child.json": json.dumps(_CHILD)}
    )
    record = await run.begin()
    assert (record.status, run.said) == ("completed", "child of a!")
    assert record.plain()["lastCompletedWorkflow"] == {"workflow": "book", "transferredTo": "child"}


async def test_a_transfer_from_a_sub_workflow_clears_the_stack() -> None:
    child = playbook(trigger(), node("transfer", "go", workflow="child.json"), edges=route("start > go"))
    nodes = [trigger(), node("sub-workflow", "sub", workflow="c.json"), agent("never")]
    run = PlaybookTest(
        playbook(*nodes, edges=route("start > sub > never")),
        others={"c.json": json.dumps(child), "child.json": json.dumps(_CHILD)},
    )
    record = await run.begin()
    assert (record.status, run.asked) == ("completed", ["child of hello"])
