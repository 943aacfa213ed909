"""A workflow document is read in today's and in older forms, and every mistake is listed at its place.

Covers: pipeline/workflows/checks.py, pipeline/workflows/normalising.py, pipeline/workflows/steps.py.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from pipeline.workflows.document import Connection, WorkflowAgent, verdict_of
from pipeline.workflows.mistakes import WorkflowInvalid
from pipeline.workflows.normalising import normalised
from pipeline.workflows.reading import checked, read_workflow
from tests.pipeline.workflows.documents import agent, approval, choice, document, start, way
from tests.support.tables import each

GOOD = document(
    start(),
    agent("a", tools={"subagents": True}),
    agent("helper"),
    choice("if", ("equal", "yes")),
    approval("ok"),
    routes=[
        way("start > a"),
        way("a > helper", "subagent"),
        way("a > if"),
        way("if > ok", "condition-0"),
        way("ok > a", "reject"),
    ],
)


def mistakes(found: dict[str, Any]) -> list[str]:
    """The lines of all mistakes."""
    return [str(mistake) for mistake in checked(found)[1]]


def changed(**nodes: Any) -> dict[str, Any]:
    """The good document with the data of nodes replaced."""
    found = copy.deepcopy(GOOD)
    for node in found["nodes"]:
        node["data"] = nodes.get(node["id"], node["data"])
    return found


def test_a_good_document_has_no_mistakes_and_its_parts_as_values() -> None:
    workflow = read_workflow(json.dumps(GOOD))
    assert mistakes(GOOD) == []
    assert workflow.name == "flow"
    assert [one.id for one in workflow.subagents("a")] == ["helper"]
    assert workflow.reached == ("start", "a", "if", "ok")


def test_an_agent_reads_its_prompts_model_effort_and_tools() -> None:
    data = {
        "agentName": "Ann",
        "systemPrompt": "s",
        "userPrompt": "u",
        "model": "gpt-5",
        "reasoningEffort": "high",
        "tools": {"web_search": True, "subagents": True, "groups": ["files"]},
    }
    found = read_workflow(changed(a=data)).nodes["a"]
    assert found == WorkflowAgent(
        id="a",
        name="Ann",
        system_prompt="s",
        user_prompt="u",
        model="gpt-5",
        effort="high",
        groups=("web", "files"),
        delegates=True,
    )


def test_both_spellings_of_fields_are_read() -> None:
    nodes = [start(initial_input="x"), agent("a", system_prompt="s", reasoning_effort="low")]
    edges = [{"source": "start", "target": "a", "source_handle": "output", "target_handle": "input"}]
    workflow = read_workflow({"nodes": nodes, "edges": edges}, "own")
    assert (workflow.name, workflow.start.initial_input) == ("own", "x")
    assert workflow.connections == (Connection(source="start", target="a"),)


def test_older_forms_are_rewritten_without_a_change_of_what_was_given() -> None:
    old = document(
        start(),
        {"id": "ask", "type": "input", "data": {}},
        {"id": "if", "type": "if", "data": {"condition": "yes"}},
        agent("a"),
        {"id": "end", "type": "end"},
        routes=[
            way("start > if"),
            way("if > ask", "true"),
            way("ask > a", "approve"),
            way("a > end"),
        ],
    )
    before = copy.deepcopy(old)
    new = normalised(old)
    assert old == before
    assert normalised(new) == new
    assert new["nodes"][1]["type"] == "approval"
    assert new["nodes"][2]["data"] == {"conditions": [{"operator": "contains", "value": "yes"}]}
    assert new["connections"][1]["sourceHandle"] == "condition-0"
    assert [node["id"] for node in new["nodes"]] == ["start", "ask", "if", "a"]
    assert mistakes(old) == []


def test_where_both_forms_are_there_the_new_one_counts() -> None:
    new = [{"operator": "equal", "value": "new"}]
    fork = {"id": "if", "type": "if", "data": {"condition": "old", "conditions": new}}
    routes = [way("start > if"), way("if > a", "true"), way("if > a", "condition-0")]
    workflow = read_workflow(document(start(), fork, agent("a"), routes=routes))
    node = workflow.nodes["if"]
    assert [one.value for one in getattr(node, "conditions")] == ["new"]  # noqa: B009 - a union
    assert len(workflow.connections) == 2


@pytest.mark.parametrize(
    ("given", "decision", "note"),
    [
        ("approve", "approve", ""),
        (" Reject ", "reject", ""),
        ({"decision": "APPROVE", "note": "fine"}, "approve", "fine"),
        ({"decision": "reject", "note": 3}, "reject", ""),
    ],
)
def test_an_answer_is_one_of_two_words_with_a_note(given: object, decision: str, note: str) -> None:
    found = verdict_of(given)
    assert found is not None
    assert (found.decision, found.note) == (decision, note)


@pytest.mark.parametrize(
    "given", [None, "", "yes", "please reject this", {}, {"decision": 1}, 7, ["approve"]]
)
def test_any_other_answer_does_not_count(given: object) -> None:
    assert verdict_of(given) is None


MISTAKES: list[tuple[str, dict[str, Any], str]] = [
    ("no start", document(agent("a")), "nodes: there is no start node"),
    (
        "two starts",
        document(start(), start("s2"), agent("a"), routes=[way("start > a")]),
        "node s2: type: is a second",
    ),
    ("lonely start", document(start(), agent("a")), "node start: nothing follows the start"),
    ("no list", {"nodes": {}}, "nodes: expected a list"),
    ("odd node", {"nodes": [3]}, "node nodes[0]: expected an object"),
    ("odd connections", {"nodes": [start()], "connections": 3}, "connections: expected a list"),
    ("no id", document(start(), {"type": "agent"}, routes=[]), "node nodes[1]: id: is missing"),
    ("same id", document(start(), agent("start"), routes=[]), "node start: id: another node has this id"),
    ("type", document(start(), {"id": "x", "type": "agnet"}), "node x: type: there is no type 'agnet'"),
    (
        "field",
        changed(a={"sytemPrompt": "x"}),
        "node a: data.sytemPrompt: there is no such field; did you mean",
    ),
    ("text", changed(a={"userPrompt": 3}), "node a: data.userPrompt: expected a text"),
    ("effort", changed(a={"reasoningEffort": "huge"}), "node a: data.reasoningEffort: expected none or"),
    (
        "operator",
        changed(**{"if": {"conditions": [{"operator": "is", "value": "x"}]}}),
        "node if: data.conditions[0].operator",
    ),
    ("approver", changed(ok={"approvers": ["ann"]}), "node ok: data.approvers[0]: write channel:user"),
    ("expiry", changed(ok={"expiresSeconds": 0}), "node ok: data.expiresSeconds: must be above 0"),
    ("note", changed(ok={"prompt": "{{NOTE:a}}"}), "node ok: data.prompt: {{NOTE:a}} names no approval"),
    ("permission", changed(a={}), "node a: data.tools.subagents: must be true"),
]
"""(name, document, the beginning of the line that is expected)."""

ROUTES: list[tuple[str, dict[str, Any], str]] = [
    ("unknown target", way("a > no_one"), "target: there is no node 'no_one'"),
    ("unknown source", way("no_one > a"), "source: there is no node 'no_one'"),
    ("to the start", way("a > start"), "target: nothing leads to a start"),
    ("handle of an agent", way("a > if", "approve"), "sourceHandle: 'approve' is given, but a has: none"),
    (
        "handle of an if",
        way("if > a", "condition-1"),
        "sourceHandle: 'condition-1' is given, but if has: condition-0, false",
    ),
    ("no handle", way("ok > if"), "sourceHandle: nothing is given, but ok has: approve, reject"),
    (
        "target handle",
        {**way("ok > if", "approve"), "targetHandle": "side"},
        "targetHandle: 'side' is no handle",
    ),
    ("twice", way("start > a"), "is given more than once"),
    ("itself", way("a > a", "subagent"), "an agent cannot be its own sub-agent"),
    ("no agent", way("a > if", "subagent"), "target: if is no agent"),
    ("from no agent", way("ok > helper", "subagent"), "source: ok is no agent"),
    ("in the run", way("if > helper", "false"), "target: helper is a sub-agent, so no other connection"),
]


@each("found, line", [(found, line) for _, found, line in MISTAKES])
def test_a_mistake_is_placed_at_its_node(found: dict[str, Any], line: str) -> None:
    assert any(one.startswith(line) for one in mistakes(found)), mistakes(found)


@each("added, words", [(added, words) for _, added, words in ROUTES])
def test_a_mistake_is_placed_at_its_connection(added: dict[str, Any], words: str) -> None:
    found = mistakes({**GOOD, "connections": [*GOOD["connections"], added]})
    assert any(line.startswith("connections[") and words in line for line in found), found


def _tree(*routes: str) -> dict[str, Any]:
    names = dict.fromkeys(end.strip() for path in routes for end in path.split(">"))
    agents = [agent(name, tools={"subagents": True}) for name in names]
    main = [way("start > top"), *(way(path, "subagent") for path in routes)]
    return document(start(), *(agents if "top" in names else [agent("top"), *agents]), routes=main)


@pytest.mark.parametrize(
    ("routes", "words"),
    [
        (("b > c", "c > b"), "its sub-agents lead back to it"),
        (("b > c", "c > d", "d > b"), "its sub-agents lead back to it"),
        (("top > c", "b > c"), "it can have one parent"),
        (("top > b", "b > c", "c > d", "d > e", "e > f"), "is a sub-agent below 4 others"),
    ],
)
def test_sub_agents_have_no_circle_one_parent_and_a_most_depth(routes: tuple[str, ...], words: str) -> None:
    found = [line for line in mistakes(_tree(*routes)) if words in line]
    assert len(found) == 1, mistakes(_tree(*routes))


@pytest.mark.parametrize(
    ("node", "words"),
    [
        ({"id": "x", "type": "if", "data": {}}, "has no condition and no connection from false"),
        (approval("x"), "nothing follows an approval or a rejection"),
    ],
)
def test_a_reached_node_has_something_after_it_and_an_unreached_one_need_not(
    node: dict[str, Any], words: str
) -> None:
    reached = mistakes(document(start(), node, routes=[way("start > x")]))
    assert [words in line for line in reached] == [True]
    assert mistakes(document(start(), agent("a"), node, routes=[way("start > a")])) == []


def test_all_mistakes_come_at_once_each_with_the_names_of_its_places() -> None:
    wrong = document(
        start(),
        start("again"),
        agent("a", userPrompt=1, model=2),
        approval("ok", approvers=["x"]),
        routes=[way("start > a"), way("a > ok"), way("ok > nowhere", "maybe")],
    )
    with pytest.raises(WorkflowInvalid) as raised:
        read_workflow(wrong, "mine")
    lines = str(raised.value).splitlines()
    assert len(lines) == len(raised.value.mistakes) == 6
    assert all(line.startswith("workflow mine: ") for line in lines)
    assert {mistake.node for mistake in raised.value.mistakes} == {"again", "a", "ok", ""}


@pytest.mark.parametrize("text", ["", "[]", "nothing", '{"nodes": [], "nodes": []}', '{"nodes": 1e999}'])
def test_what_is_no_document_is_one_mistake(text: str) -> None:
    workflow, found = checked(text)
    assert workflow is None
    assert len(found) == 1
