"""Which edges are taken after a node: precedence, failures, conditions, routes, mappings.

Covers: pipeline/graph/execution/edge_selection.py, pipeline/graph/execution/routing.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.domain.errors import GraphError
from pipeline.graph.definition.decisions import NodeResult, State
from pipeline.graph.definition.spec import (
    END,
    Always,
    Condition,
    EdgeSpec,
    NodeSpec,
    OnFailure,
    OnSuccess,
    RetryPolicy,
    Route,
    When,
    append,
)
from tests.pipeline.graph.runs import built, fails, raises, ran, sees, writes
from tests.pipeline.graph.written import edge_of
from tests.support.tables import each

YES, NO = When("True"), When("False")
BROKEN = NodeSpec[Any](run=fails("it broke"), retry=RetryPolicy(max_attempts=1))


async def taken(*conditions: Condition, node: Any = None, state: dict[str, Any] | None = None) -> list[str]:
    """The targets of a's edges, b and c and so on, that are taken."""
    edges = [edge_of(f"a>{target}", when) for target, when in zip("bcdef", conditions, strict=False)]
    run = await ran(built(*edges, nodes={"a": node or writes(x=1)}), state)
    return [target for source, target in run.heard.traversed if source == "a"]


@each(
    "conditions, expected",
    [
        ((Always(),), "b"),
        ((Always(), Always()), "bc"),
        ((OnSuccess(), OnSuccess()), "bc"),
        ((OnFailure(), OnSuccess()), "c"),
        ((Always(), OnSuccess()), "c"),
        ((Always(), NO), "b"),
        ((Always(), YES), "c"),
        ((YES, YES), "b"),
        ((NO, YES, YES), "c"),
        ((NO, OnSuccess(), Always()), "c"),
        ((OnSuccess(), YES), "cb"),
        ((OnSuccess(), YES, YES, OnSuccess()), "cbe"),
        ((OnFailure(), NO), ""),
    ],
)
async def test_after_success(conditions: tuple[Condition, ...], expected: str) -> None:
    assert await taken(*conditions) == list(expected)


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ((OnFailure(),), "b"),
        ((OnFailure(), OnFailure()), "bc"),
        ((Always(), OnFailure()), "c"),
        ((Always(),), "b"),
        ((Always(), OnSuccess(), YES), "b"),
        ((OnSuccess(), YES), ""),
    ],
)
async def test_after_failure(conditions: tuple[Condition, ...], expected: str) -> None:
    assert await taken(*conditions, node=BROKEN) == list(expected)


async def test_a_failure_without_an_edge_fails_the_run() -> None:
    outcome = (await ran(built(edge_of("a>b", OnSuccess()), nodes={"a": BROKEN}))).outcome
    assert (outcome.status, outcome.quality) == ("failed", "failed")
    assert outcome.error is not None
    assert (outcome.error.node, outcome.error.code, outcome.error.message) == ("a", "node_error", "it broke")


@pytest.mark.parametrize("when", [OnFailure(), Always()])
async def test_an_edge_that_rescues_a_failure_leaves_a_degraded_run(when: Condition) -> None:
    outcome = (
        await ran(built(edge_of("a>b", when), edge_of("a>c", OnSuccess()), nodes={"a": BROKEN}))
    ).outcome
    assert (outcome.status, outcome.quality) == ("completed", "degraded")
    assert [failure.node for failure in outcome.failures] == ["a"]
    assert outcome.error is None


async def test_the_node_behind_a_failure_sees_it_and_no_one_after() -> None:
    seen: list[dict[str, Any]] = []
    edges = (edge_of("a>b", OnFailure(), mapping={"y": "x"}), "b>c")
    await ran(built(*edges, nodes={"a": BROKEN, "b": sees(seen), "c": sees(seen)}), {"x": 1})
    failure = {"node": "a", "code": "node_error", "message": "it broke", "attempts": 1}
    assert seen == [{"x": 1, "y": 1, "failure": failure}, {"x": 1}]


async def test_the_update_of_a_failed_node_is_dropped() -> None:
    async def node(_state: State, _context: Any) -> NodeResult:
        return NodeResult(update={"x": 2}, error="no", permanent=True)

    assert (await ran(built("a>b", nodes={"a": node}), {"x": 1})).outcome.state == {"x": 1}


async def test_all_attempts_come_before_the_edge_for_failures() -> None:
    run = await ran(
        built(edge_of("a>b", OnFailure()), edge_of("a>c", OnSuccess()), nodes={"a": fails(times=2)})
    )
    assert run.outcome.path == ("a", "c")
    assert run.outcome.retries == 2


# -- conditions -----------------------------------------------------------------------------------


async def test_the_output_comes_before_the_state_in_an_expression() -> None:
    assert await taken(When("x == 1"), Always(), state={"x": 0}) == ["b"]
    assert await taken(When("y == 7"), Always(), state={"y": 7}) == ["b"]
    assert await taken(When("output['x'] == 1 and memory['y'] == 7"), Always(), state={"y": 7}) == ["b"]


async def test_a_name_that_is_not_there_is_false_without_a_word() -> None:
    run = await ran(built(edge_of("a>b", When("ghost == 1")), "a>c"))
    assert run.outcome.path == ("a", "c")
    assert run.heard.problems == []


async def test_a_condition_that_cannot_be_evaluated_is_false_and_an_event() -> None:
    run = await ran(built(edge_of("a>b", When("x < 'a'")), "a>c", nodes={"a": writes(x=1)}))
    assert run.outcome.path == ("a", "c")
    assert [(event.source, event.target) for event in run.heard.problems] == [("a", "b")]
    assert len(run.outcome.nodes["a"].edge_errors) == 1
    assert run.outcome.nodes["a"].edge_errors[0].startswith("b: ")
    assert run.outcome.quality == "clean"


async def test_a_condition_may_be_a_function_of_the_state_and_its_error_is_false() -> None:
    assert await taken(When(lambda state: state["x"] == 1), Always()) == ["b"]
    run = await ran(built(edge_of("a>b", When(lambda state: state["ghost"])), "a>c"))
    assert run.outcome.path == ("a", "c")
    assert run.heard.problems[0].problem == "KeyError: 'ghost'"


async def test_no_condition_behind_the_first_match_is_evaluated() -> None:
    asked: list[State] = []

    def notes(state: State) -> bool:
        asked.append(state)
        return True

    assert await taken(YES, When(notes)) == ["b"]
    assert asked == []


# -- routes ---------------------------------------------------------------------------------------


def routed(choose: Any, *targets: str) -> EdgeSpec:
    return EdgeSpec(source="a", when=Route(choose, targets))


async def test_a_route_names_the_way_with_the_update_in_its_sight() -> None:
    graph = built(routed(lambda state: state["x"], "b", END), nodes={"a": writes(x="b")})
    assert (await ran(graph)).outcome.path == ("a", "b")


async def test_a_route_to_an_undeclared_target_fails_closed() -> None:
    outcome = (await ran(built(routed(lambda _: "b", END), "c>b", entry_points={"c": "c"}))).outcome
    assert outcome.path == ("a",)
    with pytest.raises(GraphError, match="the route after a chose b, not one of its targets"):
        outcome.raise_for_failure()


@pytest.mark.parametrize("choice", [(), []])
async def test_a_route_that_chooses_nothing_fails_its_node(choice: Any) -> None:
    outcome = (await ran(built(routed(lambda _: choice, END)))).outcome
    assert outcome.error is not None
    assert outcome.error.message == "the route after a chose nothing"


@pytest.mark.parametrize("choose", [lambda state: state["ghost"], lambda _: None])
async def test_a_route_that_raises_fails_its_node_and_not_the_engine(choose: Any) -> None:
    run = await ran(built(routed(choose, END)))
    assert (run.outcome.status, run.outcome.path) == ("failed", ("a",))
    assert run.outcome.error is not None
    assert run.outcome.error.node == "a"


async def test_a_target_that_a_route_names_twice_is_one() -> None:
    run = await ran(built(routed(lambda _: ("b", "b"), "b")))
    assert (run.outcome.path, run.heard.joined) == (("a", "b"), [])


async def test_a_failed_node_has_no_route() -> None:
    outcome = (await ran(built(routed(lambda _: "b", "b"), nodes={"a": BROKEN}))).outcome
    assert (outcome.status, outcome.path) == ("failed", ("a",))


# -- mappings and targets -------------------------------------------------------------------------


async def test_a_mapping_gives_other_names_for_one_visit() -> None:
    seen: list[dict[str, Any]] = []
    edges = (edge_of("a>b", mapping={"question": "x", "user": "name", "none": "ghost"}), "b>c")
    graph = built(*edges, nodes={"a": writes(x=1), "b": sees(seen), "c": sees(seen)})
    outcome = (await ran(graph, {"name": "Ann"})).outcome
    assert seen == [{"x": 1, "name": "Ann", "question": 1, "user": "Ann"}, {"x": 1, "name": "Ann"}]
    assert outcome.state == {"x": 1, "name": "Ann"}


async def test_a_mapping_hides_the_state_under_the_same_name() -> None:
    seen: list[dict[str, Any]] = []
    await ran(built(edge_of("a>b", mapping={"x": "y"}), nodes={"a": writes(y=2), "b": sees(seen)}), {"x": 1})
    assert seen == [{"x": 2, "y": 2}]


async def test_the_conditions_of_a_node_see_what_was_mapped_for_it() -> None:
    graph = built(
        edge_of("a>b", mapping={"z": "x"}), edge_of("b>c", When("z == 1")), "b>d", nodes={"a": writes(x=1)}
    )
    assert (await ran(graph)).outcome.path == ("a", "b", "c")


async def test_the_same_target_twice_is_one_target_with_both_mappings() -> None:
    seen: list[dict[str, Any]] = []
    edges = (edge_of("a>b", YES, mapping={"y": "x"}), edge_of("a>b", OnSuccess(), mapping={"z": "x"}))
    run = await ran(built(*edges, nodes={"a": writes(x=1), "b": sees(seen)}))
    assert run.outcome.path == ("a", "b")
    assert seen == [{"x": 1, "y": 1, "z": 1}]


async def test_an_exception_is_a_failure_as_good_as_a_failed_result() -> None:
    node = NodeSpec[Any](run=raises(lambda: ValueError("boom")), retry=RetryPolicy(max_attempts=2))
    run = await ran(built(edge_of("a>b", OnFailure()), nodes={"a": node}))
    assert run.outcome.path == ("a", "b")
    assert run.outcome.retries == 1
    assert isinstance(run.outcome.failures[0].exception, ValueError)


async def test_a_mapping_takes_what_the_source_has_just_written_before_what_is_in_the_state() -> None:
    seen: list[dict[str, Any]] = []
    nodes = {"a": writes(log=["new"]), "b": sees(seen)}
    graph = built(edge_of("a>b", mapping={"latest": "log"}), nodes=nodes, channels={"log": append})
    await ran(graph, {"log": ["old"]})
    assert seen == [{"log": ("old", "new"), "latest": ("new",)}]


async def test_an_error_that_says_it_is_permanent_is_reported_as_such_and_not_tried_again() -> None:
    outcome = (await ran(built(nodes={"a": raises(lambda: GraphError("never"))}))).outcome
    assert outcome.error is not None
    assert (outcome.error.code, outcome.error.attempts, outcome.error.permanent) == ("graph", 1, True)
