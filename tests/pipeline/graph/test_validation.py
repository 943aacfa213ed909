"""Every mistake that a graph can have is told in a line that names its element; right graphs have none."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, cast

import pytest

from pipeline.graph.decisions import NodeResult, State
from pipeline.graph.elements import (
    END,
    Always,
    Condition,
    EdgeSpec,
    FailurePolicy,
    FanOut,
    Limits,
    LlmDecide,
    OnFailure,
    OnSuccess,
    Route,
    When,
)
from pipeline.graph.reducers import append
from pipeline.graph.retry import RetryPolicy
from pipeline.graph.spec import GraphSpec
from pipeline.graph.structure import GraphStructure, NodeSpec
from pipeline.graph.validation import fan_out_problem, graph_problems

Graph = GraphStructure[None, State]
NAN = float("nan")


async def _node(_state: State, _context: None) -> NodeResult:
    return NodeResult()


def _spec(**fields: Any) -> NodeSpec[None, State]:
    return NodeSpec(run=_node, **fields)


def _edge(ways: str, when: Condition | None = None, **fields: Any) -> EdgeSpec:
    """`a>b` is the edge from a to b; `b>` ends the run."""
    source, target = ways.split(">")
    return EdgeSpec(source=source, target=target or END, when=when or Always(), **fields)


def _graph(*edges: EdgeSpec | str, others: str = "", **fields: Any) -> Graph:
    """A graph of the edges' nodes and `others`, entered at a; `specs` says more about some of its nodes."""
    built = tuple(_edge(edge) if isinstance(edge, str) else edge for edge in edges)
    names = dict.fromkeys(
        ["a", *(name for edge in built for name in (edge.source, *edge.targets())), *others]
    )
    nodes = {name: _node for name in names if name not in (END, "")} | fields.pop("specs", {})
    return GraphStructure(**{"name": "g", "entry": "a", "nodes": nodes, "edges": built} | fields)


def _one(graph: Graph) -> str:
    problems = graph_problems(graph)
    assert len(problems) == 1, problems
    return problems[0]


# References


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        (_graph(entry="x"), "entry x: no such node"),
        (_graph(entry_points={"again": "x"}), "entry point again -> x: no such node"),
        (_graph(terminals=("a", "x")), "terminal x: no such node"),
        (_graph(pause_nodes=("x",)), "pause node x: no such node"),
        (_graph(specs={"a": _spec(reviser="x")}), "node a: reviser x: no such node"),
        (_graph(specs={"a": _spec(goes_to=("x", END))}), "node a: goes_to x: no such node"),
        (
            _graph(
                nodes={"a": _node},
                edges=(EdgeSpec(source="a", when=Route(lambda _: "x", ("x", END))),),
            ),
            "edge a -> x: no such node",
        ),
        (_graph(nodes={"a": _node}, edges=(_edge("a>x"),)), "edge a -> x: no such node"),
        (_graph(nodes={"a": _node}, edges=(_edge("x>a"),)), "edge from x: no such node"),
        (
            _graph("a>", nodes={"a": _node}, edges=(_edge("a>"), _edge("end>a"))),
            "edge from end: nothing comes after",
        ),
        (_graph(edges=(EdgeSpec(source="a"),)), "edge from a: no target"),
    ],
)
def test_an_unknown_reference_is_named(graph: Graph, words: str) -> None:
    assert words in "\n".join(graph_problems(graph))


def test_several_mistakes_are_told_at_once() -> None:
    graph = _graph(
        "a>", entry_points={"again": "x"}, limits=Limits(max_steps=0), specs={"a": _spec(timeout_s=0)}
    )
    assert len(graph_problems(graph)) == 3


# Duplicates and names


@pytest.mark.parametrize(
    ("graph", "line"),
    [
        (_graph("a>b", "a>b"), "edge a -> b: declared more than once; remove the others"),
        (_graph("a>b", "a>b", "a>b"), "edge a -> b: declared more than once; remove the others"),
        (
            _graph(_edge("a>b", When("x")), _edge("a>b", When("x"), mapping={"k": "l"})),
            "edge a -> b: declared more than once; remove the others",
        ),
        (_graph("a>b", terminals=("b", "b")), "terminal b: declared more than once; remove the others"),
        (_graph("a>b", pause_nodes=("a", "a")), "pause node a: declared more than once; remove the others"),
        (
            _graph(specs={"a": _spec(reads=("k", "k"))}),
            "node a: read k: declared more than once; remove the others",
        ),
        (
            _graph(specs={"a": _spec(writes=("k", "k"))}),
            "node a: write k: declared more than once; remove the others",
        ),
    ],
)
def test_a_duplicate_is_named_once(graph: Graph, line: str) -> None:
    assert _one(graph) == line


def test_the_same_target_under_two_conditions_is_no_duplicate() -> None:
    assert (
        graph_problems(_graph(_edge("a>b", When("x")), _edge("a>b", When("y")), _edge("a>b", OnFailure())))
        == []
    )


@pytest.mark.parametrize("name", ["", "a/b", "a.b", "a#1", "a:b", "a b", "a\tb", "a\n"])
def test_a_node_id_without_a_clean_label_is_refused(name: str) -> None:
    assert _one(_graph(entry=name, nodes={name: _node}, edges=())).startswith(
        f'node "{name}": an id is not empty'
    )


@pytest.mark.parametrize("name", ["a-b", "a_b", "größe", "a2"])
def test_ordinary_names_are_fine(name: str) -> None:
    assert graph_problems(_graph(entry=name, nodes={name: _node}, edges=())) == []


@pytest.mark.parametrize("key", ["answers", "failure", "fanout"])
def test_the_engines_own_keys_are_refused_as_channels_and_writes(key: str) -> None:
    assert _one(_graph(channels={key: append})) == (
        f"channel {key}: the engine owns this key of the state; use another"
    )
    assert _one(_graph(specs={"a": _spec(writes=(key,))})).startswith(f"node a: write {key}: the engine owns")
    assert graph_problems(_graph(specs={"a": _spec(reads=(key,))})) == []


# Nodes and bounds


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        (NodeSpec[None](), "node a: give exactly one of run and subgraph"),
        (_spec(subgraph=_graph()), "node a: give exactly one of run and subgraph"),
        (_spec(writes=("k",), nullable=("l",)), "node a: nullable l is not in writes; add it there"),
        (_spec(nullable=("l",)), "node a: nullable l is not in writes; add it there"),
        (_spec(timeout_s=0), "node a: timeout_s must be above 0, or None for no deadline"),
        (_spec(timeout_s=NAN), "node a: timeout_s must be above 0, or None for no deadline"),
        (_spec(max_visits=-1), "node a: max_visits must be 0 (no limit) or more"),
        (
            _spec(retry=RetryPolicy(max_attempts=0)),
            "node a: retry.max_attempts must be 1 or more, as it counts the first attempt",
        ),
        (_spec(retry=RetryPolicy(delay_s=-1)), "node a: retry.delay_s must be 0 or more"),
        (_spec(retry=RetryPolicy(max_delay_s=-1)), "node a: retry.max_delay_s must be 0 or more"),
        (_spec(retry=RetryPolicy(factor=0.5)), "node a: retry.factor must be 1 or more"),
        (_spec(retry=RetryPolicy(jitter=1.1)), "node a: retry.jitter must be from 0 to 1"),
        (_spec(retry=RetryPolicy(jitter=-0.1)), "node a: retry.jitter must be from 0 to 1"),
        (
            NodeSpec[None](subgraph=_graph(), event_loop=True),
            "node a: a subgraph is never retried as a whole; remove event_loop",
        ),
        (
            _spec(reviser="a"),
            "node a: it cannot be its own reviser; name another node, or return Continue",
        ),
        (
            _spec(fan_out=FanOut(branch_timeout_s=0)),
            "node a: fan_out.branch_timeout_s must be above 0, or None for no deadline",
        ),
    ],
)
def test_a_wrong_declaration_of_a_node_is_named(spec: NodeSpec[None, State], line: str) -> None:
    assert _one(_graph("a>", specs={"a": spec})) == line


def test_the_smallest_bounds_are_fine() -> None:
    retry = RetryPolicy(max_attempts=1, delay_s=0, max_delay_s=0, factor=1, jitter=0)
    spec = _spec(timeout_s=0.001, retry=retry, fan_out=FanOut(branch_timeout_s=None))
    limits = Limits(max_steps=1, max_consecutive=1, max_seconds=0.001)
    assert graph_problems(_graph(specs={"a": spec}, limits=limits)) == []


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
            "graph: fan_out.on_failure: panic is unknown; use fail_all, continue_others or wait_all",
        ),
        (
            {"fan_out": FanOut(on_conflict=cast("Any", "panic"))},
            "graph: fan_out.on_conflict: panic is unknown; use last_wins, first_wins or error",
        ),
        ({"conversation": "loud"}, "conversation: loud is unknown; use continuous or isolated"),
    ],
)
def test_a_wrong_bound_or_policy_of_the_graph_is_named(fields: dict[str, Any], line: str) -> None:
    assert _one(_graph(**fields)) == line


def test_a_terminal_has_nothing_behind_it() -> None:
    assert _one(_graph("a>b", "b>a", terminals=("b",))) == (
        "terminal b: it ends the run, so its edges are never taken; remove them"
    )
    assert _one(_graph("a>b", terminals=("b",), pause_nodes=("b",))) == (
        "terminal b: it is a pause node too, but nothing comes after it; choose one"
    )


# Edges


def test_an_expression_that_does_not_parse_names_its_edge() -> None:
    assert _one(_graph(_edge("a>b", When("len(x)")))).startswith("edge a -> b: ")
    assert graph_problems(_graph(_edge("a>b", When("x > 1 and y in ['k']")))) == []
    assert graph_problems(_graph(_edge("a>b", When(lambda state: state == {})))) == []


@pytest.mark.parametrize("text", ["", "  "])
def test_an_empty_expression_is_an_error(text: str) -> None:
    assert _one(_graph(_edge("a>b", When(text)))) == (
        "edge a -> b: the expression is empty; write a condition, or use Always"
    )


@pytest.mark.parametrize(("fallbacks", "right"), [((), False), ("b", True), ("bc", False)])
def test_exactly_one_edge_for_the_decider_is_the_fallback(fallbacks: str, right: bool) -> None:
    edges = [_edge(f"a>{target}", LlmDecide(target), fallback=target in fallbacks) for target in "bc"]
    problems = graph_problems(_graph(*edges))
    line = f"node a: exactly one of its LlmDecide edges must have fallback=True, not {len(fallbacks)}"
    assert problems == ([] if right else [line])


def test_only_edges_for_the_decider_have_a_fallback() -> None:
    assert _one(_graph(_edge("a>b", fallback=True))) == (
        "edge a -> b: fallback is for LlmDecide edges only; remove it"
    )


def test_the_decider_needs_a_description() -> None:
    assert _one(_graph(_edge("a>b", LlmDecide(" "), fallback=True))).startswith(
        "edge a -> b: the description is empty"
    )


def _route(*targets: str, target: str = "") -> EdgeSpec:
    return EdgeSpec(source="a", target=target, when=Route(lambda _: END, targets))


@pytest.mark.parametrize(
    ("edges", "line"),
    [
        ((_route(),), "edge from a: a route needs at least one target"),
        ((_route(END, END),), "edge from a: route target end: declared more than once; remove the others"),
        ((_route(END, ""),), "edge from a: a route's target is empty; name a node or END"),
        ((_route(END, target=END),), "edge a -> end: a route names its targets itself; leave target out"),
        (
            (_route(END), _edge("a>")),
            "node a: a route must be its only edge; let the function choose among all targets",
        ),
    ],
)
def test_a_wrong_route_is_named(edges: tuple[EdgeSpec, ...], line: str) -> None:
    assert line in graph_problems(_graph(*edges))


# Ways


def test_a_node_is_reached_by_edges_jumps_revisions_and_entry_points() -> None:
    graph = _graph(
        "a>b",
        others="cde",
        specs={"a": _spec(goes_to=("c",)), "b": _spec(reviser="d")},
        entry_points={"again": "e"},
    )
    assert graph_problems(graph) == []


def test_a_node_that_only_unreachable_nodes_lead_to_is_unreachable_too() -> None:
    problems = graph_problems(_graph("a>", "b>c", "c>b"))
    assert [line.split(";")[0] for line in problems] == [
        "node b: cannot be reached",
        "node c: cannot be reached",
    ]


def test_a_jump_that_is_not_declared_reaches_nothing() -> None:
    assert _one(_graph("a>", others="b", specs={"a": _spec(goes_to=None)})).startswith(
        "node b: cannot be reached"
    )


def test_an_unknown_entry_does_not_make_every_node_unreachable() -> None:
    assert _one(_graph("a>b", entry="x")).startswith("entry x: no such node")


def test_without_terminals_each_way_in_needs_a_way_to_the_end() -> None:
    assert _one(_graph("a>b", "b>a")) == (
        "entry a: no way leads to an end; add an edge to END or declare a terminal"
    )
    assert _one(_graph("a>", "b>b", entry_points={"again": "b"})).startswith(
        "entry point again -> b: no way leads"
    )


@pytest.mark.parametrize(
    ("edges", "ends"),
    [
        ((_edge("a>a", When("x")),), True),
        ((_edge("a>a", OnSuccess()),), True),
        ((_edge("a>a", When("x")), _edge("a>a", OnFailure())), True),
        ((_edge("a>a", OnSuccess()), _edge("a>a", OnFailure())), False),
        ((_edge("a>a", LlmDecide("x"), fallback=True), _edge("a>a", OnFailure())), False),
        ((_edge("a>a", When("x")), _edge("a>a")), False),
        ((_route("a"),), False),
        ((_route("a", END),), True),
    ],
)
def test_a_node_whose_edges_may_all_stay_untaken_is_an_end(edges: tuple[EdgeSpec, ...], ends: bool) -> None:
    assert (graph_problems(_graph(*edges)) == []) is ends


def test_declared_terminals_are_the_only_good_ends() -> None:
    assert graph_problems(_graph(_edge("a>b", When("x")), "a>", terminals=("b",))) == []
    graph = _graph("a>b", "c>", terminals=("b",), entry_points={"again": "c"})
    assert _one(graph) == "entry point again -> c: no way leads to a terminal; add an edge to one"


# Fan-outs


@pytest.mark.parametrize(
    "edges",
    [
        ("a>b", "a>c", "b>j", "c>j"),
        ("a>b", "a>j", "b>j"),
        ("a>b", "a>c", "b>", "c>"),
        ("a>b", "a>"),
        ("a>b", "a>c", "b>d", "b>e", "d>f", "e>f", "f>j", "c>j"),
        ("a>b", "a>c", "b>j", "c>j", _edge("j>a", When("x")), "j>"),
        (_edge("a>b", When("x")), _edge("a>c", When("y")), "b>j", "b>", "c>b"),
        ("a>b", "a>c", "b>a", "c>a", _edge("a>d", OnFailure())),
    ],
)
def test_branches_that_meet_at_their_join_are_fine(edges: tuple[EdgeSpec | str, ...]) -> None:
    assert graph_problems(_graph(*edges)) == []


def test_branches_that_meet_before_their_join_are_ambiguous() -> None:
    assert _one(_graph("a>b", "a>c", "b>x", _edge("c>x", When("k")), "c>j", "x>j", "j>")) == (
        "fan-out at a: branches b and c meet at x before the join j; "
        "give each its own nodes up to the join, or let every way of both lead to x"
    )


def test_branches_that_may_both_end_and_meet_are_ambiguous() -> None:
    graph = _graph("a>b", "a>c", "b>x", _edge("b>", When("k")), "c>x")
    assert _one(graph).startswith("fan-out at a: branches b and c meet at x before the end; ")


def test_a_branch_may_not_lead_back_to_the_fan_out() -> None:
    graph = _graph("a>b", "a>c", _edge("b>a", OnFailure()), _edge("b>j", OnSuccess()), "c>j")
    assert _one(graph) == (
        "fan-out at a: branch b leads back to a before the join j; go back only behind the join"
    )


def test_a_loop_over_a_fan_out_needs_a_declared_way_to_the_end() -> None:
    graph = _graph("a>b", "a>c", "b>j", "c>j", _edge("j>a", When("x")))
    assert _one(graph) == (
        "fan-out at a: branch b leads back to a before the end; "
        "let the branches join first, and give the way behind the join an edge to END"
    )


@pytest.mark.parametrize("kind", [OnSuccess(), OnFailure()])
def test_edges_of_the_same_outcome_fan_out(kind: Condition) -> None:
    graph = _graph(_edge("a>b", kind), _edge("a>c", kind), "b>x", _edge("b>", When("k")), "c>x")
    assert _one(graph).startswith("fan-out at a: branches b and c meet at x")


@pytest.mark.parametrize("chosen", [When("k"), LlmDecide("it is late")])
def test_a_chosen_edge_fans_out_together_with_those_on_success(chosen: Condition) -> None:
    decided = _edge("a>b", chosen, fallback=isinstance(chosen, LlmDecide))
    graph = _graph(decided, _edge("a>c", OnSuccess()), "b>x", _edge("b>", When("k")), "c>x")
    assert _one(graph).startswith("fan-out at a: branches b and c meet at x")


@pytest.mark.parametrize(
    "others",
    [
        (_edge("a>b", OnSuccess()), _edge("a>c", OnFailure())),
        (_edge("a>b", When("k")), _edge("a>c", When("l"))),
        (_edge("a>b", When("k")), _edge("a>c")),
        (_edge("a>b", LlmDecide("k"), fallback=True), _edge("a>c", LlmDecide("l"))),
        (_edge("a>b", When("k")), _edge("a>b", OnSuccess()), _edge("a>c")),
    ],
)
def test_edges_that_exclude_each_other_never_fan_out(others: tuple[EdgeSpec, ...]) -> None:
    assert graph_problems(_graph(*others, "b>x", _edge("b>", When("k")), "c>x")) == []


def test_a_route_is_judged_only_by_what_it_chose() -> None:
    graph = _graph(_route("b", "c", END), "b>x", _edge("b>", When("k")), "c>x")
    assert graph_problems(graph) == []
    assert fan_out_problem(graph, "a", ("b", "c")).startswith("fan-out at a: branches b and c meet at x")
    assert fan_out_problem(graph, "a", ("b",)) == ""
    assert fan_out_problem(graph, "a", ("b", "b")) == ""
    assert fan_out_problem(graph, "a", ("c", END)) == ""


def _writers(b: str, c: str, **fields: Any) -> Graph:
    specs = {"b2": _spec(writes=tuple(b)), "c": _spec(writes=tuple(c)), "j": _spec(writes=("k", "l"))}
    return _graph("a>b", "a>c", "b>b2", "b2>j", "c>j", specs=specs, **fields)


def test_two_branches_may_not_write_one_key_when_conflicts_are_errors() -> None:
    policy = FanOut(on_conflict="error")
    assert _one(_writers("k", "kl", fan_out=policy)) == (
        "fan-out at a: branches b and c both write k; "
        "give the key a channel, or choose last_wins or first_wins for on_conflict"
    )
    assert graph_problems(_writers("k", "l", fan_out=policy)) == []
    assert graph_problems(_writers("k", "kl", fan_out=policy, channels={"k": append})) == []
    assert graph_problems(_writers("k", "kl")) == []


def test_a_nodes_own_policy_decides_about_its_branches() -> None:
    graph = _writers("k", "k")
    strict = replace(graph, nodes={**graph.nodes, "a": _spec(fan_out=FanOut(on_conflict="error"))})
    assert "both write k" in _one(strict)
    lenient = replace(
        graph, fan_out=FanOut(on_conflict="error"), nodes={**graph.nodes, "a": _spec(fan_out=FanOut())}
    )
    assert graph_problems(lenient) == []


# Subgraphs


def test_a_subgraphs_problems_are_told_with_the_way_to_it() -> None:
    inner = replace(_graph("a>x", terminals=("x", "x")), name="inner")
    middle = replace(_graph(specs={"a": NodeSpec[None](subgraph=inner)}), name="middle")
    assert _one(_graph(specs={"a": NodeSpec[None](subgraph=middle)})) == (
        "node a, subgraph middle: node a, subgraph inner: "
        "terminal x: declared more than once; remove the others"
    )


def test_a_graph_cannot_contain_itself() -> None:
    nodes: dict[str, Any] = {}
    graph = _graph(nodes=nodes, edges=())
    nodes["a"] = NodeSpec[None](subgraph=_graph(specs={"a": NodeSpec[None](subgraph=graph)}))
    assert _one(graph) == (
        "node a, subgraph g: node a, subgraph g: "
        "a graph cannot contain itself; jump back with an edge instead"
    )


def test_one_graph_may_be_two_nodes() -> None:
    inner = NodeSpec[None](subgraph=_graph())
    assert graph_problems(_graph("a>b", specs={"a": inner, "b": inner})) == []


# The whole


def test_a_graph_of_three_hundred_nodes_is_checked_at_once() -> None:
    # A hundred diamonds in a row, each with a condition, a declared jump and writers.
    specs: dict[str, NodeSpec[None, State]] = {}
    edges: list[EdgeSpec] = []
    for number in range(100):
        fork, left, right, after = f"f{number}", f"l{number}", f"r{number}", f"f{number + 1}"
        specs |= {fork: _spec(goes_to=(fork,)), left: _spec(writes=("k",)), right: _spec(writes=("m",))}
        edges += [_edge(f"{fork}>{left}", OnSuccess()), _edge(f"{fork}>{right}", When("k > 1"))]
        edges += [_edge(f"{left}>{after}"), _edge(f"{right}>{after}")]
    specs["f100"] = _spec()
    began = time.process_time()
    GraphSpec(
        name="g",
        entry="f0",
        nodes=specs,
        edges=tuple(edges),
        fan_out=FanOut(on_conflict="error"),
        terminals=("f100",),
    )
    assert time.process_time() - began < 0.1
