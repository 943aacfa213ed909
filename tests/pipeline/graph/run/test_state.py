"""The state of a run: what nodes see and may write, channels, and what is noted about each node.

Covers: pipeline/graph/execution/node_visit.py.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pipeline.domain.clock import ManualClock
from pipeline.graph.definition.decisions import Continue, Goto, Next, NodeResult, State
from pipeline.graph.definition.spec import (
    Limits,
    NodeSpec,
    OnFailure,
    RetryPolicy,
    When,
    append,
    custom,
    first,
    last,
    merge,
)
from pipeline.graph.execution.executor import Executor
from pipeline.graph.run.outcome import RunOutcome
from tests.pipeline.graph.runs import after, built, counts, fails, ran, sees, writes
from tests.pipeline.graph.written import edge_of


async def alone(node: Any, state: dict[str, Any] | None = None, **fields: Any) -> RunOutcome:
    """The outcome of a graph of this node."""
    return (await ran(built(nodes={"a": node}, **fields), state)).outcome


def problem(outcome: RunOutcome) -> tuple[str, str]:
    assert outcome.error is not None
    assert outcome.error.attempts == 1
    return outcome.error.code, outcome.error.message


# -- what a node sees -----------------------------------------------------------------------------


async def test_a_node_can_change_neither_the_state_nor_what_it_was_given() -> None:
    start = {"items": [{"n": 1}]}
    refused: list[type[Exception]] = []

    async def meddles(state: Any, _context: Any) -> NodeResult:
        for mapping in (state, state["items"][0]):
            try:
                mapping["n"] = 2
            except TypeError as error:
                refused.append(type(error))
        try:
            state["items"].append(1)
        except AttributeError as error:
            refused.append(type(error))
        return NodeResult()

    outcome = await alone(meddles, start)
    assert len(refused) == 3
    assert start == {"items": [{"n": 1}]}
    assert outcome.state == {"items": ({"n": 1},)}


async def test_an_update_that_was_returned_can_not_be_changed_afterwards() -> None:
    items = [1]

    async def second(_state: State, _context: Any) -> NodeResult:
        items.append(2)
        return NodeResult()

    outcome = (await ran(built("a>b", nodes={"a": writes(items=items), "b": second}))).outcome
    assert outcome.state == {"items": (1,)}


async def test_a_node_reads_only_what_it_declares() -> None:
    seen: list[dict[str, Any]] = []
    await alone(NodeSpec(run=sees(seen), reads=("x",)), {"x": 1, "y": 2})
    assert seen == [{"x": 1}]


async def test_a_node_that_declares_to_read_nothing_sees_nothing() -> None:
    seen: list[dict[str, Any]] = []
    await alone(NodeSpec(run=sees(seen), reads=()), {"x": 1})
    assert seen == [{}]


@pytest.mark.parametrize("read", [lambda state: state["y"], lambda state: state.get("y")])
async def test_reading_what_was_not_declared_fails_in_words_and_is_not_tried_again(read: Any) -> None:
    async def reads(state: State, _context: Any) -> NodeResult:
        return NodeResult(update={"x": read(state)})

    outcome = await alone(NodeSpec(run=reads, reads=("x",)), {"x": 1, "y": 2})
    assert problem(outcome) == ("undeclared_read", "node a reads y, not declared in reads")


async def test_a_mapped_name_may_be_read_without_a_declaration() -> None:
    seen: list[dict[str, Any]] = []
    spec = NodeSpec(run=sees(seen), reads=())
    await ran(built(edge_of("a>b", mapping={"q": "x"}), nodes={"b": spec}), {"x": 1})
    assert seen == [{"q": 1}]


async def test_a_declared_read_that_is_missing_is_noted_and_no_failure() -> None:
    outcome = await alone(NodeSpec(run=writes(), reads=("x", "y", "z")), {"y": 1})
    assert outcome.quality == "clean"
    assert outcome.nodes["a"].missing_inputs == ("x", "z")


async def test_the_context_reaches_every_node_as_it_is() -> None:
    found: list[object] = []
    context = object()

    async def node(_state: State, given: Any) -> NodeResult:
        found.append(given)
        return NodeResult()

    await ran(built("a>b", nodes={"a": node, "b": node}), context=context)
    assert found == [context, context]


# -- what a node writes ---------------------------------------------------------------------------


async def test_writing_what_was_not_declared_fails_the_node_and_nothing_is_written() -> None:
    outcome = await alone(NodeSpec(run=writes(x=1, y=2, z=3), writes=("y",)))
    assert problem(outcome) == ("undeclared_write", "node a wrote x, z, not declared in writes")
    assert outcome.state == {}


@pytest.mark.parametrize("update", [{}, {"x": None}])
async def test_leaving_out_a_declared_write_fails_the_node(update: dict[str, Any]) -> None:
    outcome = await alone(NodeSpec(run=writes(**update, y=1), writes=("x", "y")))
    assert problem(outcome) == ("missing_output", "node a did not write x")


async def test_a_nullable_write_may_be_left_out() -> None:
    outcome = await alone(NodeSpec(run=writes(y=1), writes=("x", "y"), nullable=("x",)))
    assert (outcome.status, outcome.state) == ("completed", {"y": 1})


async def test_an_event_loop_node_may_leave_out_writes_but_not_add_any() -> None:
    outcome = await alone(NodeSpec(run=writes(), writes=("x",), event_loop=True))
    assert outcome.status == "completed"
    outcome = await alone(NodeSpec(run=writes(y=1), writes=("x",), event_loop=True))
    assert problem(outcome)[0] == "undeclared_write"


async def test_a_node_that_reports_an_error_need_not_have_written_anything() -> None:
    outcome = await alone(NodeSpec(run=fails("not yet", times=1, x=1), writes=("x",)))
    assert (outcome.status, outcome.retries, outcome.state) == ("completed", 1, {"x": 1})
    outcome = await alone(NodeSpec(run=fails("never", permanent=True), writes=("x",)))
    assert problem(outcome) == ("node_error", "never")


@pytest.mark.parametrize("key", ["answers", "failure", "fanout"])
async def test_the_keys_of_the_engine_are_not_written_by_nodes(key: str) -> None:
    outcome = await alone(writes(Next(), **{key: {}}))
    assert problem(outcome) == ("undeclared_write", f"node a wrote {key}, which only the engine writes")


async def test_an_update_that_is_not_plain_data_fails_the_node_and_names_the_key() -> None:
    outcome = await alone(writes(x={"deep": object()}))
    assert problem(outcome)[0] == "bad_update"
    assert problem(outcome)[1].startswith("the update of node a, key x, key deep")


async def test_a_further_visit_begins_without_the_nullable_keys_of_the_one_before() -> None:
    seen: list[dict[str, Any]] = []

    async def node(state: State, _context: Any) -> NodeResult:
        seen.append(dict(state))
        done = len(seen) == 2
        return NodeResult(update={} if done else {"x": 1, "y": 1}, decision=Next() if done else Continue())

    spec = NodeSpec(run=node, writes=("x", "y"), nullable=("x", "y"))
    outcome = await alone(spec, {"x": 0, "z": 5})
    assert seen == [{"x": 0, "z": 5}, {"z": 5}]
    assert outcome.state == {"z": 5}


async def test_what_an_edge_maps_to_a_nullable_key_is_seen_also_on_a_further_visit() -> None:
    seen: list[dict[str, Any]] = []

    async def node(state: State, _context: Any) -> NodeResult:
        seen.append(dict(state))
        return NodeResult(update={"x": len(seen)}, decision=Goto("c") if len(seen) > 1 else Next())

    graph = built(
        *("a>b", edge_of("b>b", mapping={"x": "y"}), "c>"),
        nodes={"b": NodeSpec(run=node, writes=("x",), nullable=("x",), goes_to=("c",))},
        others="c",
    )
    await ran(graph, {"y": 7})
    assert [state.get("x") for state in seen] == [None, 7]


# -- channels -------------------------------------------------------------------------------------


async def test_updates_of_a_key_go_through_its_channel_also_the_first_inputs() -> None:
    channels = {
        "log": append,
        "by": merge,
        "newest": last,
        "oldest": first,
        "sum": custom("add", lambda a, b: a + b),
    }
    update: dict[str, Any] = {
        "log": ["a"],
        "by": {"a": 1},
        "newest": "a",
        "oldest": "a",
        "sum": 1,
        "plain": "a",
    }
    state = {"log": ["in"], "by": {"in": 1}, "newest": "in", "oldest": "in", "sum": 10, "plain": "in"}
    outcome = await alone(writes(Next(), **update), state, channels=channels)
    assert outcome.state == {
        "log": ("in", "a"),
        "by": {"in": 1, "a": 1},
        "newest": "a",
        "oldest": "in",
        "sum": 11,
        "plain": "a",
    }


async def test_base_state_is_there_and_inputs_are_folded_into_it() -> None:
    graph = built(nodes={"a": writes(log=["a"])}, channels={"log": append})
    outcome = (await ran(graph, {"log": ["in"]}, base={"log": ["old"], "x": 1})).outcome
    assert outcome.state == {"log": ("old", "in", "a"), "x": 1}


@pytest.mark.parametrize("channel", [append, custom("picky", lambda a, b: a["ghost"])])
async def test_an_update_that_its_channel_can_not_take_fails_the_node(channel: Any) -> None:
    outcome = await alone(writes(x=1), {"x": [] if channel is append else {}}, channels={"x": channel})
    assert outcome.error is not None
    assert outcome.error.node == "a"
    assert "channel" in outcome.error.message


# -- visits and diagnostics -----------------------------------------------------------------------


async def test_a_node_is_skipped_after_so_many_visits_and_the_run_continues_along_its_edges() -> None:
    graph = built(
        *("a>b", after("b>a"), edge_of("b>", OnFailure())),
        nodes={"a": NodeSpec(run=counts("x"), max_visits=2), "b": counts("y")},
        limits=Limits(max_steps=8),
    )
    run = await ran(graph)
    assert run.outcome.state == {"x": 2, "y": 4}
    assert run.outcome.path == ("a", "b", "a", "b", "b", "b")
    assert run.outcome.stop_reason == "max_steps"
    assert [(event.node, event.skipped) for event in run.heard.completed][4] == ("a", True)
    assert run.heard.started == ["a", "b", "a", "b", "b", "b"]
    assert run.outcome.nodes["a"].executions == 2


async def test_no_limit_of_visits_is_none() -> None:
    edges = ("a>b", after("b>a"), edge_of("b>", OnFailure()))
    spec = NodeSpec(run=counts("x"), max_visits=0)
    graph = built(*edges, nodes={"a": spec}, limits=Limits(max_steps=30))
    assert (await ran(graph)).outcome.state["x"] == 15


async def test_a_pause_node_opens_a_gate_when_it_has_nothing_else_to_say() -> None:
    outcome = (await ran(built("a>b", nodes={"a": writes(x=1)}, pause_nodes=("a",)))).outcome
    assert (outcome.status, outcome.stop_reason) == ("paused", "waiting_for_user")
    assert (outcome.path, outcome.state) == (("a",), {"x": 1})
    assert [gate.node for gate in outcome.gates] == ["a"]


async def test_a_pause_node_that_is_skipped_opens_no_gate_and_leads_on() -> None:
    nodes = {"b": NodeSpec(run=writes(Goto("a")), max_visits=1)}
    outcome = (await ran(built("a>b", "b>c", nodes=nodes, pause_nodes=("b",)))).outcome
    assert outcome.path == ("a", "b", "a", "c")
    assert outcome.gates == ()


async def test_each_node_leaves_its_diagnostics() -> None:
    clock = ManualClock()

    async def slow(_state: State, _context: Any) -> NodeResult:
        await clock.sleep(2)
        return NodeResult(decision=Goto("c"))

    graph = built(
        *("a>b", after("b>c"), "c>d"),
        nodes={
            "a": NodeSpec(run=fails(times=1), retry=RetryPolicy(delay_s=5, jitter=0)),
            "b": slow,
        },
    )
    async with asyncio.TaskGroup() as group:
        run = group.create_task(Executor(graph, clock=clock).run({}, None))
        await clock.advance(10)
    nodes = run.result().nodes
    assert list(nodes) == ["a", "b", "c", "d"]
    assert (nodes["a"].executions, nodes["a"].attempts, nodes["a"].seconds) == (1, 2, 0)
    assert (nodes["b"].executions, nodes["b"].seconds, nodes["b"].decision) == (1, 2, "goto c")
    assert nodes["c"].decision == "next"


async def test_the_diagnostics_of_branches_and_subgraphs_are_merged_into_the_runs() -> None:
    specs = {"b": NodeSpec(subgraph=built("a>b", nodes={"a": fails(times=1)})), "c": fails(times=2)}
    run = await ran(built("a>b", "a>c", "b>d", "c>d", nodes=specs))
    nodes = run.outcome.nodes
    assert {label: (node.executions, node.attempts) for label, node in nodes.items()} == {
        "a": (1, 1),
        "b.a": (1, 2),
        "b.b": (1, 1),
        "b": (1, 1),
        "c": (1, 3),
        "d": (1, 1),
    }
    assert run.outcome.retries == 3


async def test_the_failure_inside_a_subgraph_counts_once() -> None:
    inner = built("a>b", nodes={"b": fails(permanent=True)})
    outcome = (await ran(built("a>b", nodes={"a": NodeSpec(subgraph=inner)}))).outcome
    assert outcome.quality == "degraded"
    assert [failure.node for failure in outcome.failures] == ["a.b"]


async def test_a_subgraph_that_ends_beside_its_terminals_has_failed_once() -> None:
    inner = built(edge_of("a>b", When("False")), edge_of("a>c", When("x")), terminals=("b", "c"))
    outcome = (await ran(built("a>b", nodes={"a": NodeSpec(subgraph=inner)}))).outcome
    assert (outcome.status, outcome.quality) == ("completed", "degraded")
    assert [(failure.node, failure.code) for failure in outcome.failures] == [("a.a", "no_terminal")]


async def test_a_subgraph_has_to_write_what_its_node_declares() -> None:
    inner = built("a>b", nodes={"b": writes(x=1, z=1)})
    outcome = await alone(NodeSpec(subgraph=inner, writes=("x", "y")))
    assert problem(outcome) == ("missing_output", "node a did not write y")
    outcome = await alone(NodeSpec(subgraph=inner, writes=("x", "y"), nullable=("y",)))
    assert (outcome.status, outcome.state) == ("completed", {"x": 1})


async def test_a_subgraph_sees_the_reads_of_its_node_and_what_was_mapped_for_it() -> None:
    seen: list[dict[str, Any]] = []
    spec = NodeSpec(subgraph=built("a>b", nodes={"b": sees(seen)}), reads=("x", "ghost"))
    await ran(built(edge_of("a>b", mapping={"q": "y"}), nodes={"b": spec}), {"x": 1, "y": 2})
    assert seen == [{"x": 1, "q": 2}]


async def test_a_further_visit_that_fails_has_cleared_its_nullable_keys_too() -> None:
    seen: list[dict[str, Any]] = []
    answers = [NodeResult(update={"x": 1}, decision=Continue()), NodeResult(error="no", permanent=True)]

    async def node(_state: State, _context: Any) -> NodeResult:
        return answers.pop(0)

    graph = built(
        edge_of("a>b", OnFailure(), mapping={"old": "x"}),
        nodes={"a": NodeSpec(run=node, writes=("x",), nullable=("x",)), "b": sees(seen)},
    )
    assert (await ran(graph)).outcome.state == {}
    assert "old" not in seen[0]


async def test_an_attempt_begins_after_its_wait() -> None:
    clock = ManualClock()
    node = NodeSpec[Any](run=fails(times=1), retry=RetryPolicy(delay_s=5, jitter=0))
    async with asyncio.TaskGroup() as group:
        run = group.create_task(Executor(built(nodes={"a": node}), clock=clock).run({}, None))
        await clock.advance(4.9)
        assert not run.done()
        await clock.advance(0.1)
    assert run.result().status == "completed"
