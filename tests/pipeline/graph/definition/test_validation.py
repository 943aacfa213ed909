"""Every mistake that a graph can have is reported in a line that names its element."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from pipeline.graph.definition.decisions import State
from pipeline.graph.definition.elements import (
    END,
    EdgeSpec,
    FailurePolicy,
    FanOut,
    Limits,
    LlmDecide,
    OnFailure,
    Route,
    When,
)
from pipeline.graph.definition.reducers import append
from pipeline.graph.definition.retry import RetryPolicy
from pipeline.graph.definition.structure import NodeSpec
from pipeline.graph.definition.validation import graph_problems
from tests.pipeline.graph.written import Graph, edge_of, graph_of, idle, only_problem, route_of, spec_of
from tests.support.tables import each

NAN = float("nan")


# References


@each(
    "graph, words",
    [
        (graph_of(entry="x"), "entry x: no such node"),
        (graph_of(entry_points={"again": "x"}), "entry point again -> x: no such node"),
        (graph_of(terminals=("a", "x")), "terminal x: no such node"),
        (graph_of(pause_nodes=("x",)), "pause node x: no such node"),
        (graph_of(specs={"a": spec_of(reviser="x")}), "node a: reviser x: no such node"),
        (graph_of(specs={"a": spec_of(goes_to=("x", END))}), "node a: goes_to x: no such node"),
        (
            graph_of(
                nodes={"a": idle},
                edges=(EdgeSpec(source="a", when=Route(lambda _: "x", ("x", END))),),
            ),
            "edge a -> x: no such node",
        ),
        (graph_of(nodes={"a": idle}, edges=(edge_of("a>x"),)), "edge a -> x: no such node"),
        (graph_of(nodes={"a": idle}, edges=(edge_of("x>a"),)), "edge from x: no such node"),
        (
            graph_of("a>", nodes={"a": idle}, edges=(edge_of("a>"), edge_of("end>a"))),
            "edge from end: nothing comes after",
        ),
        (graph_of(edges=(EdgeSpec(source="a"),)), "edge from a: no target"),
    ],
)
def test_an_unknown_reference_is_named(graph: Graph, words: str) -> None:
    assert words in "\n".join(graph_problems(graph))


def test_several_mistakes_are_reported_at_once() -> None:
    graph = graph_of(
        "a>", entry_points={"again": "x"}, limits=Limits(max_steps=0), specs={"a": spec_of(timeout_s=0)}
    )
    assert len(graph_problems(graph)) == 3


# Duplicates and names


@each(
    "graph, line",
    [
        (graph_of("a>b", "a>b"), "edge a -> b: declared more than once; remove the others"),
        (graph_of("a>b", "a>b", "a>b"), "edge a -> b: declared more than once; remove the others"),
        (
            graph_of(edge_of("a>b", When("x")), edge_of("a>b", When("x"), mapping={"k": "l"})),
            "edge a -> b: declared more than once; remove the others",
        ),
        (graph_of("a>b", terminals=("b", "b")), "terminal b: declared more than once; remove the others"),
        (graph_of("a>b", pause_nodes=("a", "a")), "pause node a: declared more than once; remove the others"),
        (
            graph_of(specs={"a": spec_of(reads=("k", "k"))}),
            "node a: read k: declared more than once; remove the others",
        ),
        (
            graph_of(specs={"a": spec_of(writes=("k", "k"))}),
            "node a: write k: declared more than once; remove the others",
        ),
        (
            graph_of(specs={"a": spec_of(writes=("k",), nullable=("k", "k"))}),
            "node a: nullable k: declared more than once; remove the others",
        ),
        (
            graph_of(specs={"a": spec_of(goes_to=(END, END))}),
            "node a: goes_to end: declared more than once; remove the others",
        ),
    ],
)
def test_a_duplicate_is_named_once(graph: Graph, line: str) -> None:
    assert only_problem(graph) == line


def test_the_same_target_under_two_conditions_is_no_duplicate() -> None:
    assert (
        graph_problems(
            graph_of(edge_of("a>b", When("x")), edge_of("a>b", When("y")), edge_of("a>b", OnFailure()))
        )
        == []
    )


@pytest.mark.parametrize("name", ["", "a/b", "a.b", "a#1", "a:b", "a b", "a\tb", "a\n"])
def test_a_node_id_without_a_clean_label_is_refused(name: str) -> None:
    assert only_problem(graph_of(entry=name, nodes={name: idle}, edges=())).startswith(
        f'node "{name}": an id is not empty'
    )


@pytest.mark.parametrize("name", ["a-b", "a_b", "größe", "a2"])
def test_ordinary_names_are_fine(name: str) -> None:
    assert graph_problems(graph_of(entry=name, nodes={name: idle}, edges=())) == []


@pytest.mark.parametrize("key", ["answers", "failure", "fanout"])
def test_the_engines_own_keys_are_refused_as_channels_and_writes(key: str) -> None:
    assert only_problem(graph_of(channels={key: append})) == (
        f"channel {key}: the engine owns this key of the state; use another"
    )
    assert only_problem(graph_of(specs={"a": spec_of(writes=(key,))})).startswith(
        f"node a: write {key}: the engine owns"
    )
    assert graph_problems(graph_of(specs={"a": spec_of(reads=(key,))})) == []


# Nodes and bounds


@each(
    "spec, line",
    [
        (NodeSpec[None](), "node a: give exactly one of run and subgraph"),
        (spec_of(subgraph=graph_of()), "node a: give exactly one of run and subgraph"),
        (spec_of(writes=("k",), nullable=("l",)), "node a: nullable l is not in writes; add it there"),
        (spec_of(nullable=("l",)), "node a: nullable l is not in writes; add it there"),
        (spec_of(timeout_s=0), "node a: timeout_s must be above 0, or None for no deadline"),
        (spec_of(timeout_s=NAN), "node a: timeout_s must be above 0, or None for no deadline"),
        (spec_of(max_visits=-1), "node a: max_visits must be 0 (no limit) or more"),
        (
            spec_of(retry=RetryPolicy(max_attempts=0)),
            "node a: retry.max_attempts must be 1 or more, as it counts the first attempt",
        ),
        (spec_of(retry=RetryPolicy(delay_s=-1)), "node a: retry.delay_s must be 0 or more"),
        (spec_of(retry=RetryPolicy(max_delay_s=-1)), "node a: retry.max_delay_s must be 0 or more"),
        (spec_of(retry=RetryPolicy(factor=0.5)), "node a: retry.factor must be 1 or more"),
        (spec_of(retry=RetryPolicy(jitter=1.1)), "node a: retry.jitter must be from 0 to 1"),
        (spec_of(retry=RetryPolicy(jitter=-0.1)), "node a: retry.jitter must be from 0 to 1"),
        (
            NodeSpec[None](subgraph=graph_of(), event_loop=True),
            "node a: a subgraph is never retried as a whole; remove event_loop",
        ),
        (
            spec_of(reviser="a"),
            "node a: it cannot be its own reviser; name another node, or return Continue",
        ),
        (
            spec_of(fan_out=FanOut(branch_timeout_s=0)),
            "node a: fan_out.branch_timeout_s must be above 0, or None for no deadline",
        ),
    ],
)
def test_a_wrong_declaration_of_a_node_is_named(spec: NodeSpec[None, State], line: str) -> None:
    assert only_problem(graph_of("a>", specs={"a": spec})) == line


def test_the_smallest_bounds_are_fine() -> None:
    retry = RetryPolicy(max_attempts=1, delay_s=0, max_delay_s=0, factor=1, jitter=0)
    spec = spec_of(timeout_s=0.001, retry=retry, fan_out=FanOut(branch_timeout_s=None))
    limits = Limits(max_steps=1, max_consecutive=1, max_seconds=0.001)
    assert graph_problems(graph_of(specs={"a": spec}, limits=limits)) == []


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"limits": Limits(max_steps=0)}, "limits: max_steps must be 1 or more"),
        ({"limits": Limits(max_consecutive=0)}, "limits: max_consecutive must be 1 or more"),
        ({"limits": Limits(max_seconds=0)}, "limits: max_seconds must be above 0, or None for no deadline"),
        (
            {"fan_out": FanOut(branch_timeout_s=-1)},
            "graph: fan_out.branch_timeout_s must be above 0, or None for no deadline",
        ),
        (
            {"fan_out": FanOut(on_failure=cast("FailurePolicy", "panic"))},
            (
                "graph: fan_out.on_failure: panic is unknown; "
                "use fail_all, continue_others, wait_all or fail_at_end"
            ),
        ),
        (
            {"fan_out": FanOut(on_conflict=cast("Any", "panic"))},
            "graph: fan_out.on_conflict: panic is unknown; use last_wins, first_wins or error",
        ),
        ({"conversation": "loud"}, "conversation: loud is unknown; use continuous or isolated"),
    ],
)
def test_a_wrong_bound_or_policy_of_the_graph_is_named(fields: dict[str, Any], line: str) -> None:
    assert only_problem(graph_of(**fields)) == line


def test_a_terminal_has_nothing_behind_it() -> None:
    assert only_problem(graph_of("a>b", "b>a", terminals=("b",))) == (
        "terminal b: it ends the run, so its edges are never taken; remove them"
    )
    assert only_problem(graph_of("a>b", terminals=("b",), pause_nodes=("b",))) == (
        "terminal b: it is a pause node too, but nothing comes after it; choose one"
    )


# Edges


def test_an_expression_that_does_not_parse_names_its_edge() -> None:
    assert only_problem(graph_of(edge_of("a>b", When("len(x)")))).startswith("edge a -> b: ")
    assert graph_problems(graph_of(edge_of("a>b", When("x > 1 and y in ['k']")))) == []
    assert graph_problems(graph_of(edge_of("a>b", When(lambda state: state == {})))) == []


@pytest.mark.parametrize("text", ["", "  "])
def test_an_empty_expression_is_an_error(text: str) -> None:
    assert only_problem(graph_of(edge_of("a>b", When(text)))) == (
        "edge a -> b: the expression is empty; write a condition, or use Always"
    )


@pytest.mark.parametrize(("fallbacks", "right"), [((), False), ("b", True), ("bc", False)])
def test_exactly_one_edge_for_the_decider_is_the_fallback(fallbacks: str, right: bool) -> None:
    edges = [edge_of(f"a>{target}", LlmDecide(target), fallback=target in fallbacks) for target in "bc"]
    problems = graph_problems(graph_of(*edges))
    line = f"node a: exactly one of its LlmDecide edges must have fallback=True, not {len(fallbacks)}"
    assert problems == ([] if right else [line])


def test_only_edges_for_the_decider_have_a_fallback() -> None:
    assert only_problem(graph_of(edge_of("a>b", fallback=True))) == (
        "edge a -> b: fallback is for LlmDecide edges only; remove it"
    )


def test_the_decider_needs_a_description() -> None:
    assert only_problem(graph_of(edge_of("a>b", LlmDecide(" "), fallback=True))).startswith(
        "edge a -> b: the description is empty"
    )


@pytest.mark.parametrize(
    ("edges", "line"),
    [
        ((route_of(),), "edge from a: a route needs at least one target"),
        ((route_of(END, END),), "edge from a: route target end: declared more than once; remove the others"),
        ((route_of(END, ""),), "edge from a: a route's target is empty; name a node or END"),
        ((route_of(END, target=END),), "edge a -> end: a route names its targets itself; leave target out"),
        (
            (route_of(END), edge_of("a>")),
            "node a: a route must be its only edge; let the function choose among all targets",
        ),
    ],
)
def test_a_wrong_route_is_named(edges: tuple[EdgeSpec, ...], line: str) -> None:
    assert line in graph_problems(graph_of(*edges))


# Subgraphs


def test_a_subgraphs_problems_are_reported_with_the_way_to_it() -> None:
    inner = replace(graph_of("a>x", terminals=("x", "x")), name="inner")
    middle = replace(graph_of(specs={"a": NodeSpec[None](subgraph=inner)}), name="middle")
    assert only_problem(graph_of(specs={"a": NodeSpec[None](subgraph=middle)})) == (
        "node a, subgraph middle: node a, subgraph inner: "
        "terminal x: declared more than once; remove the others"
    )


def test_a_graph_cannot_contain_itself() -> None:
    nodes: dict[str, Any] = {}
    graph = graph_of(nodes=nodes, edges=())
    nodes["a"] = NodeSpec[None](subgraph=graph_of(specs={"a": NodeSpec[None](subgraph=graph)}))
    assert only_problem(graph) == (
        "node a, subgraph g: node a, subgraph g: "
        "a graph cannot contain itself; jump back with an edge instead"
    )


def test_one_graph_may_be_two_nodes() -> None:
    inner = NodeSpec[None](subgraph=graph_of())
    assert graph_problems(graph_of("a>b", specs={"a": inner, "b": inner})) == []
