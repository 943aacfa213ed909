"""Playbook documents: every mistake is listed, each at its node or edge."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from pipeline.domain.errors import GraphError
from pipeline.graph_book import has_playbook_text, has_workflow_shape
from pipeline.playbooks.picture import playbook_picture
from pipeline.playbooks.reading import checked_playbook, read_playbook
from pipeline.workflows.mistakes import WorkflowInvalid
from tests.pipeline.playbooks.documents import Plain, agent, node, playbook, route, trigger, way
from tests.support.tables import each

_CHILD = playbook(trigger(), agent("c"), edges=route("start > c"))
_LEAVING = playbook(trigger(), node("transfer", "t", workflow="child.json"), edges=route("start > t"))


def _mistakes(source: Any, others: Mapping[str, Plain] | None = None) -> list[str]:
    def open_other(file: str) -> str:
        if file not in (others or {}):
            raise GraphError("there is no such file")
        return json.dumps((others or {})[file])

    return [str(mistake) for mistake in checked_playbook(source, open_other=open_other)[1]]


def _with(*nodes: Plain, path: str = "", edges: list[Plain] | None = None) -> Plain:
    return playbook(trigger(), *nodes, edges=[*route(path or f"start > {nodes[0]['id']}"), *(edges or [])])


def test_a_playbook_is_recognised_by_the_subtype_of_its_nodes() -> None:
    text = json.dumps(_CHILD)
    assert has_playbook_text(text)
    assert not has_playbook_text('{"nodes": [{"id": "subtype", "type": "start"}], "connections": []}')
    assert not has_playbook_text('{"subtype": ')
    assert has_workflow_shape('{"nodes": [{"id": "a", "type": "start"}]}')


@each(
    "source, mistake",
    [
        ("[]", "the document must be a JSON object: { … }"),
        ({"nodes": []}, "nodes: there is no trigger; add one node of a subtype such as chat-app"),
        (
            _with(node("chat-app", "two"), agent("a"), path="start > a"),
            "node two: subtype: is a second trigger beside start; keep one",
        ),
        (playbook(trigger()), "node start: nothing follows the trigger; connect it to the first step"),
        (_with(node("wiat", "w")), "node w: subtype: there is no subtype 'wiat'; there are calendar,"),
        (_with(agent("a"), agent("a")), "node a: id: another node has this id; ids must be unique"),
        (_with(agent("a"), edges=[way("a > b")]), "edges[1] (a -> b): target: there is no node 'b'"),
        (_with(agent("a"), edges=[way("a > start")]), "target: nothing leads to a trigger; remove it"),
        (
            _with(agent("a"), edges=[way("a > a", "route-0")]),
            "sourceHandle: 'route-0' is given, but a has: output",
        ),
        (
            _with(node("loop", "l"), agent("a"), edges=[way("l > a", "loop-start"), way("l > a")]),
            "sourceHandle: is missing; l has: loop-start, loop-exit",
        ),
        (_with(agent("a"), edges=[way("start > a")]), "is given more than once; remove the others"),
        (
            _with(agent("a"), agent("b"), edges=[way("a > b", into="loop-back")]),
            "targetHandle: 'loop-back' is no handle of b; write input, or none",
        ),
        (_with(agent("a", "{{Nme.result}}")), "node a: config.prompt: {{Nme.result}} names no node"),
        (_with(agent("a", systemPrompt="{{trigger}}")), "config.systemPrompt: has a place {{…}}; put values"),
        (_with(node("tool-call", "t")), "node t: config.tool: is missing"),
        (_with(node("router", "r")), "node r: config.routes: has no route; add at least one"),
        (
            _with(node("router", "r", routes=[{"label": "a"}], default="b")),
            "node r: config.default: 'b' is not the label of a route",
        ),
        (_with(node("condition", "c")), 'config.expression: is missing; write one, or "mode": "llm"'),
        (
            _with(node("condition", "c", expression="x +")),
            "config.expression: the expression 'x +' is refused",
        ),
        (_with(node("condition", "c", mode="llm")), "config.prompt: is missing; write the question"),
        (_with(node("wait", "w", amount=0)), "config.amount: must be above 0, and at most 400 days"),
        (_with(node("wait", "w", amount=1, unit="y")), "config.unit: expected s or min or h or d"),
        (_with(node("loop", "l", maxIterations=0)), "config.maxIterations: must be from 1 to 100"),
        (_with(node("loop", "l")), "node l: nothing follows its handle loop-start; connect the steps"),
        (_with(node("merge", "m", strategy="all")), "config.strategy: expected wait-all or first"),
        (_with(node("user-input", "u")), "node u: config.prompt: is missing"),
        (
            _with(node("user-input", "u", prompt="?", options=["a", "A"])),
            "config.options: must be at most 10",
        ),
        (
            _with(node("sub-workflow", "s", workflow="../x.json")),
            "config.workflow: must be a file of this folder",
        ),
        (
            _with(node("sub-workflow", "s", workflow="x.json")),
            "config.workflow: x.json: there is no such file",
        ),
        (
            playbook(trigger(), agent("a"), edges=route("start > a"), startedBy="agent"),
            "description: is needed",
        ),
    ],
)
def test_a_mistake_is_placed_and_says_what_to_do(source: Any, mistake: str) -> None:
    assert any(mistake in one for one in _mistakes(source)), _mistakes(source)


def test_all_mistakes_are_listed_at_once() -> None:
    wrong = _with(node("wait", "w"), node("router", "r"), edges=[way("w > nowhere")])
    assert len(_mistakes(wrong)) == 3
    with pytest.raises(WorkflowInvalid) as raised:
        read_playbook(wrong)
    assert str(raised.value).count("workflow playbook: ") == 3


def test_a_transfer_is_neither_in_a_loop_nor_beside_other_branches() -> None:
    transfer = node("transfer", "t", workflow="child.json")
    others = {"child.json": _CHILD}
    looped = _with(node("loop", "l"), transfer, edges=[way("l > t", "loop-start")])
    assert _mistakes(looped, others) == ["node t: is inside of a loop; lead out of the loop first"]
    beside = _with(agent("a"), agent("b"), transfer, edges=[way("start > b"), *route("a > t")])
    assert _mistakes(beside, others) == ["node t: is in a branch behind start; merge the branches first"]
    edges = [way("start > b"), *route("a > m > t"), *route("b > m")]
    merged = _with(agent("a"), agent("b"), node("merge", "m"), transfer, edges=edges)
    assert _mistakes(merged, others) == []
    first = _with(agent("a"), agent("b"), node("merge", "m", strategy="first"), transfer, edges=edges)
    assert len(_mistakes(first, others)) == 1


def test_sub_workflows_neither_lead_in_a_circle_nor_nest_too_deep() -> None:
    def calls(file: str) -> Plain:
        return _with(node("sub-workflow", "s", workflow=file))

    circle = {"a.json": calls("b.json"), "b.json": calls("a.json")}
    assert _mistakes(calls("a.json"), circle) == [
        "nodes: the sub-workflow a.json leads back to itself; remove one"
    ]
    deep = {f"{at}.json": calls(f"{at + 1}.json") for at in range(4)} | {"4.json": _CHILD}
    assert "5 levels in all; at most 4" in _mistakes(calls("0.json"), deep)[0]
    assert _mistakes(calls("1.json"), deep) == []


def test_a_sub_workflow_with_a_transfer_is_a_mistake_in_a_branch() -> None:
    sub = node("sub-workflow", "s", workflow="leaving.json")
    others = {"leaving.json": _LEAVING, "child.json": _CHILD}
    source = _with(sub, agent("b"), edges=[way("start > b")])
    assert _mistakes(source, others) == ["node s: leaving.json has a transfer, which ends all branches"]


def test_mistakes_in_other_files_are_listed_with_their_names() -> None:
    source = _with(node("sub-workflow", "s", workflow="bad.json"))
    found = _mistakes(source, {"bad.json": _with(node("wait", "w"))})
    assert found == [
        "node s: config.workflow: bad.json: node w: config.amount: must be above 0, and at most 400 days"
    ]


def test_a_label_that_several_nodes_have_cannot_be_named() -> None:
    source = _with(agent("a"), agent("b"), agent("c", "{{Same.result}}"), edges=route("a > b > c"))
    for one in source["nodes"][1:3]:
        one["label"] = "Same"
    assert _mistakes(source) == [
        "node c: config.prompt: {{Same.result}} names several nodes; use the id of one"
    ]


def test_a_picture_shows_the_nodes_and_the_edges() -> None:
    edges = [way("c > a", "condition-true"), way("l > b", "loop-start"), way("b > l", into="loop-back")]
    nodes = (node("condition", "c", expression="trigger == 'x'"), agent("a"), node("loop", "l"), agent("b"))
    drawn = playbook_picture(read_playbook(_with(*nodes, edges=[*edges, way("a > l")])))
    assert drawn.startswith("flowchart TD\n")
    assert "-.->" in drawn
    assert "true" in drawn


@pytest.mark.parametrize(
    "text", ["", "{", "null", '{"nodes": 1}', '{"nodes": [1, {"id": 1, "subtype": []}]}']
)
def test_a_broken_document_is_refused_in_words(text: str) -> None:
    playbook_, mistakes = checked_playbook(text)
    assert playbook_ is None
    assert mistakes
