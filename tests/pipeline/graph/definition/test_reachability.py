"""Paths that lead nowhere, and fan-outs whose branches do not join well, are reported at the build."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from pipeline.graph.definition.decisions import State
from pipeline.graph.definition.elements import (
    END,
    Condition,
    EdgeSpec,
    FanOut,
    LlmDecide,
    OnFailure,
    OnSuccess,
    When,
)
from pipeline.graph.definition.reducers import append
from pipeline.graph.definition.spec import GraphSpec
from pipeline.graph.definition.structure import NodeSpec
from pipeline.graph.definition.validation import fan_out_problem, graph_problems
from tests.pipeline.graph.written import Graph, edge_of, graph_of, idle, only_problem, route_of, spec_of

# Paths


def test_a_node_is_reached_by_edges_jumps_revisions_and_entry_points() -> None:
    graph = graph_of(
        "a>b",
        others="cde",
        specs={"a": spec_of(goes_to=("c",)), "b": spec_of(reviser="d")},
        entry_points={"again": "e"},
    )
    assert graph_problems(graph) == []


def test_a_node_that_only_unreachable_nodes_lead_to_is_unreachable_too() -> None:
    problems = graph_problems(graph_of("a>", "b>c", "c>b"))
    assert [line.split(";")[0] for line in problems] == [
        "node b: cannot be reached",
        "node c: cannot be reached",
    ]


def test_a_jump_that_is_not_declared_reaches_nothing() -> None:
    assert only_problem(graph_of("a>", others="b", specs={"a": spec_of(goes_to=None)})).startswith(
        "node b: cannot be reached"
    )


def test_an_unknown_entry_does_not_make_every_node_unreachable() -> None:
    assert only_problem(graph_of("a>b", entry="x")).startswith("entry x: no such node")


def test_without_terminals_each_way_in_needs_a_way_to_the_end() -> None:
    assert only_problem(graph_of("a>b", "b>a")) == (
        "entry a: no way leads to an end; add an edge to END or declare a terminal"
    )
    assert only_problem(graph_of("a>", "b>b", entry_points={"again": "b"})).startswith(
        "entry point again -> b: no way leads"
    )


@pytest.mark.parametrize(
    ("edges", "ends"),
    [
        ((edge_of("a>a", When("x")),), True),
        ((edge_of("a>a", OnSuccess()),), True),
        ((edge_of("a>a", When("x")), edge_of("a>a", OnFailure())), True),
        ((edge_of("a>a", OnSuccess()), edge_of("a>a", OnFailure())), False),
        ((edge_of("a>a", LlmDecide("x"), fallback=True), edge_of("a>a", OnFailure())), False),
        ((edge_of("a>a", When("x")), edge_of("a>a")), False),
        ((route_of("a"),), False),
        ((route_of("a", END),), True),
    ],
)
def test_a_node_whose_edges_may_all_stay_untaken_is_an_end(edges: tuple[EdgeSpec, ...], ends: bool) -> None:
    assert (graph_problems(graph_of(*edges)) == []) is ends


def test_declared_terminals_are_the_only_good_ends() -> None:
    assert graph_problems(graph_of(edge_of("a>b", When("x")), "a>", terminals=("b",))) == []
    graph = graph_of("a>b", "c>", terminals=("b",), entry_points={"again": "c"})
    assert only_problem(graph) == "entry point again -> c: no way leads to a terminal; add an edge to one"


# Fan-outs


@pytest.mark.parametrize(
    "edges",
    [
        ("a>b", "a>c", "b>j", "c>j"),
        ("a>b", "a>j", "b>j"),
        ("a>b", "a>c", "b>", "c>"),
        ("a>b", "a>"),
        ("a>b", "a>c", "b>d", "b>e", "d>f", "e>f", "f>j", "c>j"),
        ("a>b", "a>c", "b>j", "c>j", edge_of("j>a", When("x")), "j>"),
        (edge_of("a>b", When("x")), edge_of("a>c", When("y")), "b>j", "b>", "c>b"),
        ("a>b", "a>c", "b>a", "c>a", edge_of("a>d", OnFailure())),
    ],
)
def test_branches_that_meet_at_their_join_are_fine(edges: tuple[EdgeSpec | str, ...]) -> None:
    assert graph_problems(graph_of(*edges)) == []


def test_branches_that_meet_before_their_join_are_ambiguous() -> None:
    assert only_problem(graph_of("a>b", "a>c", "b>x", edge_of("c>x", When("k")), "c>j", "x>j", "j>")) == (
        "fan-out at a: branches b and c meet at x before the join j; "
        "give each its own nodes up to the join, or let every way of both lead to x"
    )


def test_branches_that_may_both_end_and_meet_are_ambiguous() -> None:
    graph = graph_of("a>b", "a>c", "b>x", edge_of("b>", When("k")), "c>x")
    assert only_problem(graph).startswith("fan-out at a: branches b and c meet at x before the end; ")


def test_a_branch_may_not_lead_back_to_the_fan_out() -> None:
    graph = graph_of("a>b", "a>c", edge_of("b>a", OnFailure()), edge_of("b>j", OnSuccess()), "c>j")
    assert only_problem(graph) == (
        "fan-out at a: branch b leads back to a before the join j; go back only behind the join"
    )


def test_a_loop_over_a_fan_out_needs_a_way_to_the_end() -> None:
    graph = graph_of("a>b", "a>c", "b>j", "c>j", "j>a", entry_points={"out": "k"}, others="k")
    assert (
        "fan-out at a: branch b leads back to a before the end; "
        "let the branches join first, and give the way behind the join an edge to END"
    ) in graph_problems(graph)


@pytest.mark.parametrize("kind", [OnSuccess(), OnFailure()])
def test_edges_of_the_same_outcome_fan_out(kind: Condition) -> None:
    graph = graph_of(edge_of("a>b", kind), edge_of("a>c", kind), "b>x", edge_of("b>", When("k")), "c>x")
    assert only_problem(graph).startswith("fan-out at a: branches b and c meet at x")


@pytest.mark.parametrize("chosen", [When("k"), LlmDecide("it is late")])
def test_a_chosen_edge_fans_out_together_with_those_on_success(chosen: Condition) -> None:
    decided = edge_of("a>b", chosen, fallback=isinstance(chosen, LlmDecide))
    graph = graph_of(decided, edge_of("a>c", OnSuccess()), "b>x", edge_of("b>", When("k")), "c>x")
    assert only_problem(graph).startswith("fan-out at a: branches b and c meet at x")


@pytest.mark.parametrize(
    "others",
    [
        (edge_of("a>b", OnSuccess()), edge_of("a>c", OnFailure())),
        (edge_of("a>b", When("k")), edge_of("a>c", When("l"))),
        (edge_of("a>b", When("k")), edge_of("a>c")),
        (edge_of("a>b", LlmDecide("k"), fallback=True), edge_of("a>c", LlmDecide("l"))),
        (edge_of("a>b", When("k")), edge_of("a>b", OnSuccess()), edge_of("a>c")),
    ],
)
def test_edges_that_exclude_each_other_never_fan_out(others: tuple[EdgeSpec, ...]) -> None:
    assert graph_problems(graph_of(*others, "b>x", edge_of("b>", When("k")), "c>x")) == []


def test_a_route_is_judged_only_by_what_it_chose() -> None:
    graph = graph_of(route_of("b", "c", END), "b>x", edge_of("b>", When("k")), "c>x")
    assert graph_problems(graph) == []
    assert fan_out_problem(graph, "a", ("b", "c")).startswith("fan-out at a: branches b and c meet at x")
    assert fan_out_problem(graph, "a", ("b",)) == ""
    assert fan_out_problem(graph, "a", ("b", "b")) == ""
    assert fan_out_problem(graph, "a", ("c", END)) == ""


def _writers(b: str, c: str, **fields: Any) -> Graph:
    specs = {"b2": spec_of(writes=tuple(b)), "c": spec_of(writes=tuple(c)), "j": spec_of(writes=("k", "l"))}
    return graph_of("a>b", "a>c", "b>b2", "b2>j", "c>j", specs=specs, **fields)


def test_two_branches_may_not_write_one_key_when_conflicts_are_errors() -> None:
    policy = FanOut(on_conflict="error")
    assert only_problem(_writers("k", "kl", fan_out=policy)) == (
        "fan-out at a: branches b and c both write k; "
        "give the key a channel, or choose last_wins or first_wins for on_conflict"
    )
    assert graph_problems(_writers("k", "l", fan_out=policy)) == []
    assert graph_problems(_writers("k", "kl", fan_out=policy, channels={"k": append})) == []
    assert graph_problems(_writers("k", "kl")) == []


def test_a_nodes_own_policy_decides_about_its_branches() -> None:
    graph = _writers("k", "k")
    strict = replace(graph, nodes={**graph.nodes, "a": spec_of(fan_out=FanOut(on_conflict="error"))})
    assert "both write k" in only_problem(strict)
    lenient = replace(
        graph, fan_out=FanOut(on_conflict="error"), nodes={**graph.nodes, "a": spec_of(fan_out=FanOut())}
    )
    assert graph_problems(lenient) == []


# The whole


def test_a_graph_of_three_hundred_nodes_is_checked_at_once() -> None:
    # A hundred diamonds in a row, each with a condition, a declared jump and writers.
    specs: dict[str, NodeSpec[None, State]] = {}
    edges: list[EdgeSpec] = []
    for number in range(100):
        fork, left, right, after = f"f{number}", f"l{number}", f"r{number}", f"f{number + 1}"
        specs |= {fork: spec_of(goes_to=(fork,)), left: spec_of(writes=("k",)), right: spec_of(writes=("m",))}
        edges += [edge_of(f"{fork}>{left}", OnSuccess()), edge_of(f"{fork}>{right}", When("k > 1"))]
        edges += [edge_of(f"{left}>{after}"), edge_of(f"{right}>{after}")]
    specs["f100"] = spec_of()
    began = time.process_time()
    GraphSpec(
        name="g",
        entry="f0",
        nodes=specs,
        edges=tuple(edges),
        fan_out=FanOut(on_conflict="error"),
        terminals=("f100",),
    )
    assert time.process_time() - began < 5  # an explosion, not a slow machine


def test_a_loop_back_on_a_condition_alone_still_lets_the_branches_before_it_join() -> None:
    graph = GraphSpec[None](
        name="g",
        entry="a",
        nodes=dict.fromkeys(("a", "b", "c", "judge"), idle),
        edges=(
            EdgeSpec(source="a", target="b", when=OnSuccess()),
            EdgeSpec(source="a", target="c", when=OnSuccess()),
            EdgeSpec(source="b", target="judge"),
            EdgeSpec(source="c", target="judge"),
            EdgeSpec(source="judge", target="a", when=When("score < 3")),
        ),
    )
    assert graph.joins.of(("b", "c")) == "judge"


def test_a_node_with_nothing_but_a_way_for_failures_ends_the_run_when_it_succeeds() -> None:
    graph = GraphSpec[None](
        name="g",
        entry="a",
        nodes={"a": idle, "rescue": idle},
        edges=(
            EdgeSpec(source="a", target="rescue", when=OnFailure()),
            EdgeSpec(source="rescue", target="a"),
        ),
    )
    assert set(graph.successors["a"]) == {"rescue", END}
