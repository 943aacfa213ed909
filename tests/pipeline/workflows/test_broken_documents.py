"""200 documents with one to five planted mistakes: each is listed; what passes the check runs (hypothesis).

Covers: pipeline/workflows/checks.py.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.workflows.compiling import compiled, labels_of
from pipeline.workflows.normalising import normalised
from pipeline.workflows.reading import checked, read_workflow
from tests.pipeline.workflows.documents import Run, agent, approval, choice, document, start, way
from tests.support.tables import each

Plain = dict[str, Any]
Plant = Callable[[Plain, random.Random], tuple[str, str]]
"""Adds a mistake to a document: returns the place and the words of its line."""


def random_document(dice: random.Random, most: int = 8) -> Plain:
    """A document without mistakes: any nodes, routes in any direction, a tree of sub-agents."""
    count = dice.randint(2, most)
    nodes: list[Plain] = [start("n0")]
    routes: list[Plain] = []
    for at in range(1, count):
        kind = dice.choice(("agent", "agent", "if", "approval"))
        name = f"n{at}"
        if kind == "agent":
            nodes.append(agent(name, userPrompt=dice.choice(("", "x", "{{PREVIOUS_OUTPUT}}!", "yes"))))
        elif kind == "if":
            words = [(dice.choice(("equal", "contains")), dice.choice(("yes", "x", ""))) for _ in range(2)]
            nodes.append(choice(name, *words))
        else:
            nodes.append(approval(name))
    for node in nodes:
        for handle in _handles(node):
            targets = dice.sample(nodes[1:], k=min(len(nodes) - 1, dice.choice((0, 1, 1, 2))))
            if not targets and (node["type"] != "agent") and handle in ("", "approve", "false"):
                targets = [dice.choice(nodes[1:])]
            routes += [way(f"{node['id']} > {target['id']}", handle) for target in targets]
    for at in range(dice.choice((0, 0, 2))):
        parent = dice.choice([node for node in nodes if node["type"] == "agent"] or [None])
        if parent is not None:
            parent["data"]["tools"] = {"subagents": True}
            nodes.append(agent(f"s{at}"))
            routes.append(way(f"{parent['id']} > s{at}", "subagent"))
    return document(*nodes, routes=routes)


def _handles(node: Plain) -> tuple[str, ...]:
    match node["type"]:
        case "if":
            return ("condition-0", "condition-1", "false")
        case "approval":
            return ("approve", "reject")
        case _:
            return ("",)


def _node(found: Plain, dice: random.Random, *kinds: str) -> Plain | None:
    fitting = [node for node in found["nodes"] if not kinds or node["type"] in kinds]
    return dice.choice(fitting) if fitting else None


def no_start(found: Plain, _dice: random.Random) -> tuple[str, str]:
    found["nodes"][0]["type"] = "agent"
    return "nodes", "there is no start node"


def second_start(found: Plain, _dice: random.Random) -> tuple[str, str]:
    found["nodes"].append(start("another"))
    return "node another", "is a second start"


def unknown_type(found: Plain, _dice: random.Random) -> tuple[str, str]:
    found["nodes"].append({"id": "odd", "type": "robot"})
    return "node odd", "there is no type 'robot'"


def same_id(found: Plain, dice: random.Random) -> tuple[str, str]:
    node = dice.choice(found["nodes"])
    found["nodes"].append(agent(node["id"]))
    return f"node {node['id']}", "another node has this id"


def unknown_field(found: Plain, dice: random.Random) -> tuple[str, str]:
    node = dice.choice(found["nodes"])
    node["data"] = {**node["data"], "colour_of_night": 1}
    return f"node {node['id']}: data.colour_of_night", "there is no such field"


def wrong_type(found: Plain, dice: random.Random) -> tuple[str, str]:
    node = _node(found, dice, "agent")
    if node is None:
        return unknown_field(found, dice)
    node["data"] = {**node["data"], "userPrompt": dice.choice((1, True, [], {}, None))}
    return f"node {node['id']}: data.userPrompt", "expected a text"


def lost_target(found: Plain, dice: random.Random) -> tuple[str, str]:
    at = dice.randrange(len(found["connections"]))
    found["connections"][at]["target"] = "gone"
    return f"connections[{at}]", "there is no node 'gone'"


def lost_source(found: Plain, dice: random.Random) -> tuple[str, str]:
    at = len(found["connections"])
    found["connections"].append(way(f"gone > {dice.choice(found['nodes'][1:])['id']}"))
    return f"connections[{at}]", "there is no node 'gone'"


def odd_handle(found: Plain, dice: random.Random) -> tuple[str, str]:
    at = dice.randrange(len(found["connections"]))
    found["connections"][at]["sourceHandle"] = "elsewhere"
    return f"connections[{at}]", "'elsewhere' is given, but"


def twice(found: Plain, dice: random.Random) -> tuple[str, str]:
    at = len(found["connections"])
    found["connections"].append(dict(dice.choice(found["connections"])))
    return f"connections[{at}]", "is given more than once"


def into_start(found: Plain, _dice: random.Random) -> tuple[str, str]:
    found["nodes"].append(agent("last"))
    at = len(found["connections"])
    found["connections"].append(way(f"last > {found['nodes'][0]['id']}"))
    return f"connections[{at}]", "nothing leads to a start"


def own_subagent(found: Plain, _dice: random.Random) -> tuple[str, str]:
    found["nodes"].append(agent("loop", tools={"subagents": True}))
    at = len(found["connections"])
    found["connections"].append(way("loop > loop", "subagent"))
    return f"connections[{at}]", "cannot be its own sub-agent"


def circle_of_subagents(found: Plain, _dice: random.Random) -> tuple[str, str]:
    found["nodes"] += [agent("c1", tools={"subagents": True}), agent("c2", tools={"subagents": True})]
    found["connections"] += [way("c1 > c2", "subagent"), way("c2 > c1", "subagent")]
    return "node c", "its sub-agents lead back to it"


def without_permission(found: Plain, _dice: random.Random) -> tuple[str, str]:
    found["nodes"] += [agent("boss"), agent("aide")]
    found["connections"].append(way("boss > aide", "subagent"))
    return "node boss: data.tools.subagents", "must be true"


def subagent_in_the_run(found: Plain, _dice: random.Random) -> tuple[str, str]:
    found["nodes"] += [agent("head", tools={"subagents": True}), agent("hand"), agent("end")]
    at = len(found["connections"])
    found["connections"] += [way("head > hand", "subagent"), way("hand > end")]
    return f"connections[{at}]", "hand is a sub-agent, so no other connection"


def two_parents(found: Plain, _dice: random.Random) -> tuple[str, str]:
    found["nodes"] += [agent(name, tools={"subagents": True}) for name in ("p1", "p2")] + [agent("child")]
    at = len(found["connections"])
    found["connections"] += [way("p1 > child", "subagent"), way("p2 > child", "subagent")]
    return f"connections[{at + 1}]", "it can have one parent"


def too_deep(found: Plain, _dice: random.Random) -> tuple[str, str]:
    names = [f"d{at}" for at in range(6)]
    found["nodes"] += [agent(name, tools={"subagents": True}) for name in names]
    found["connections"] += [way(f"{one} > {other}", "subagent") for one, other in pairwise(names)]
    return "node d5", "is a sub-agent below 4 others"


def lost_note(found: Plain, _dice: random.Random) -> tuple[str, str]:
    found["nodes"].append(agent("quoting", userPrompt="They said {{NOTE:no one}}"))
    return "node quoting: data.userPrompt", "{{NOTE:no one}} names no approval"


def odd_approver(found: Plain, _dice: random.Random) -> tuple[str, str]:
    found["nodes"].append(approval("asking", approvers=["telegram:1", "ada"]))
    return "node asking: data.approvers[1]", "write channel:user or channel:account:user"


def no_time(found: Plain, dice: random.Random) -> tuple[str, str]:
    found["nodes"].append(approval("hasty", expiresSeconds=dice.choice((0, -1))))
    return "node hasty: data.expiresSeconds", "must be above 0"


def odd_operator(found: Plain, _dice: random.Random) -> tuple[str, str]:
    found["nodes"].append(choice("fork", ("equal", "x"), ("resembles", "y")))
    return "node fork: data.conditions[1].operator", "resembles"


PLANTS: tuple[tuple[Plant, ...], ...] = (
    (lost_target, odd_handle, twice),
    (unknown_field,),
    (wrong_type,),
    (same_id,),
    (no_start, second_start, into_start),
    (unknown_type,),
    (lost_source,),
    (own_subagent,),
    (circle_of_subagents,),
    (without_permission,),
    (subagent_in_the_run,),
    (two_parents,),
    (too_deep,),
    (lost_note,),
    (odd_approver,),
    (no_time,),
    (odd_operator,),
)
"""Those of one line change the same part, so a document has one of them. The first lines change parts, the
others add some: in this order, none hides another."""


@each("number", range(200))
def test_every_planted_mistake_of_a_broken_document_is_listed(number: int) -> None:
    dice = random.Random(number)
    found = random_document(dice)
    lines_of_plants = sorted(dice.sample(range(len(PLANTS)), k=1 + number % 5))
    if number < len(PLANTS):
        lines_of_plants = [number]  # Each kind alone at least once.
    expected = [dice.choice(PLANTS[line])(found, dice) for line in lines_of_plants]
    workflow, mistakes = checked(found)
    lines = [str(mistake) for mistake in mistakes]
    assert workflow is None
    for place, words in expected:
        assert any(line.startswith(place) and words in line for line in lines), (place, words, lines)


@given(st.integers(0, 10**9))
@settings(max_examples=60, deadline=None)
def test_what_passes_the_check_compiles_and_a_rewritten_document_is_the_same(seed: int) -> None:
    found = random_document(random.Random(seed))
    before = copy.deepcopy(found)
    workflow, mistakes = checked(found)
    assert (found, mistakes) == (before, ())
    assert workflow is not None
    assert compiled(workflow).signature == compiled(read_workflow(normalised(found))).signature


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.integers(0, 10**9), _JSON)
@settings(max_examples=100, deadline=None)
def test_a_document_with_anything_in_place_of_a_part_is_read_or_its_mistakes_are_listed(
    seed: int, value: Any
) -> None:
    dice = random.Random(seed)
    found = random_document(dice, 4)
    part = dice.choice((found, *found["nodes"], *found["connections"]))
    part[dice.choice(sorted(part))] = value
    workflow, mistakes = checked(found)
    assert (workflow is None) == bool(mistakes)
    if workflow is not None:
        compiled(workflow)


@given(st.integers(0, 10**9))
@settings(max_examples=12, deadline=None)
async def test_a_random_document_runs_to_an_end_with_random_answers(seed: int) -> None:
    dice = random.Random(seed)
    run = Run(random_document(dice, 5))
    record = await run.begin()
    for _ in range(30):
        if record.status != "paused":
            break
        gate = dice.choice(run.outcome.gates)
        record = await run.answer(gate.node, dice.choice(("approve", "reject")))
    assert record.status in ("completed", "failed", "paused")
    assert record.status == run.outcome.status
    if record.status == "failed":
        assert run.outcome.stop_reason == "max_steps"


@given(st.lists(st.text("ab ./#:_2", min_size=1, max_size=4), min_size=1, max_size=8, unique=True))
@settings(max_examples=60, deadline=None)
def test_any_ids_become_names_of_the_graph_one_for_each(ids: list[str]) -> None:
    names = [*ids, "end", "intake", "result", "result_2", "declined"]
    found = document(
        start(), *map(agent, names), routes=[{"source": "start", "target": name} for name in names]
    )
    workflow, mistakes = checked(found)
    assert mistakes == ()
    assert workflow is not None
    labels = labels_of(workflow)
    assert len(set(labels.values())) == len(names) + 1
    assert set(labels.values()) <= set(compiled(workflow).nodes)
