"""Defects that were found once, each in its smallest form."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import pytest

from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import GraphError
from pipeline.graph.definition.decisions import NodeResult, Pause, State
from pipeline.graph.definition.elements import END, EdgeSpec, FanOut, LlmDecide, OnSuccess, Route, When
from pipeline.graph.definition.ports import Choice, RouteQuestion
from pipeline.graph.definition.retry import RetryPolicy
from pipeline.graph.definition.spec import GraphSpec
from pipeline.graph.definition.structure import NodeSpec
from pipeline.graph.execution.executor import Executor
from pipeline.graph.execution.step import Step, current_step
from pipeline.graph.run.events import BranchesJoined, GraphEvent, NodeEntered, NodeLeft, RunCompleted
from pipeline.graph.run.outcome import Answer
from tests.support.graph_log import LogBroken, MemoryRunLog


async def _idle(_state: State, _context: None) -> NodeResult:
    return NodeResult()


def _fan(
    nodes: Mapping[str, NodeSpec[None, State]], policy: FanOut, **more: EdgeSpec
) -> GraphSpec[None, State]:
    """`start` fans out to a and b, which lead to `join`; `more` edges replace theirs."""
    edges = [EdgeSpec(source="start", target=branch, when=OnSuccess()) for branch in ("a", "b")]
    edges += [
        more.get(branch, EdgeSpec(source=branch, target="join", when=OnSuccess())) for branch in ("a", "b")
    ]
    return GraphSpec(
        name="g",
        entry="start",
        nodes={"start": _idle, "join": _idle, **nodes},
        edges=(*edges, EdgeSpec(source="join", target=END)),
        fan_out=policy,
    )


class _SlowListener:
    """Waits when it hears of one node's event, until `go`."""

    def __init__(self, kind: type[GraphEvent], node: str) -> None:
        self.go = asyncio.Event()
        self.waiting = asyncio.Event()
        self._kind = kind
        self._node = node

    async def __call__(self, event: GraphEvent) -> None:
        if (
            isinstance(event, (NodeEntered, NodeLeft))
            and type(event) is self._kind
            and event.node == self._node
        ):
            self.waiting.set()
            await self.go.wait()


async def test_a_deadline_that_passes_while_the_listener_hears_of_an_arrival_changes_nothing() -> None:
    clock, released = ManualClock(), asyncio.Event()
    listener = _SlowListener(NodeLeft, "a")

    async def slow(_state: State, _context: None) -> NodeResult:
        await released.wait()
        return NodeResult()

    nodes = {"a": NodeSpec(run=_idle), "b": NodeSpec(run=slow)}
    graph = _fan(nodes, FanOut(on_failure="continue_others", branch_timeout_s=5))
    async with asyncio.TaskGroup() as group:
        run = group.create_task(
            Executor(graph, clock=clock).run({}, None, listener=listener, log=MemoryRunLog())
        )
        await listener.waiting.wait()
        await clock.advance(6)
    outcome = run.result()
    assert outcome.status == "completed"
    assert [failure.node for failure in outcome.failures] == ["b"]
    assert outcome.path == ("start", "a", "join")


async def test_a_branch_that_is_gone_before_it_has_begun_enters_no_subgraph() -> None:
    inner = GraphSpec(name="inner", entry="x", nodes={"x": _idle}, edges=(EdgeSpec(source="x", target=END),))
    await _check_gone({"b": NodeSpec(subgraph=inner)})


async def test_a_branch_that_is_gone_while_the_decider_thinks_records_nothing() -> None:
    edge = EdgeSpec(source="b", target="join", when=LlmDecide("go"), fallback=True)
    await _check_gone({"b": NodeSpec(run=_idle)}, b=edge)


async def _check_gone(nodes: Mapping[str, NodeSpec[None, State]], **more: EdgeSpec) -> None:
    """`a` fails and takes `b` with it, which continues while the listener hears of the failure."""
    begun, failed = asyncio.Event(), asyncio.Event()

    class Decider:
        async def decide(self, question: RouteQuestion, _context: None) -> Choice:
            begun.set()
            await failed.wait()
            return Choice(target="join")

    async def broken(_state: State, _context: None) -> NodeResult:
        await begun.wait()
        return NodeResult(error="configured to fail", permanent=True)

    async def hear(event: GraphEvent) -> None:
        if isinstance(event, NodeEntered) and event.node == "b" and not more:
            begun.set()
            await failed.wait()
        if isinstance(event, NodeLeft) and event.node == "a":
            failed.set()
            for _ in range(5):
                await asyncio.sleep(0)

    graph = _fan({"a": NodeSpec(run=broken), **nodes}, FanOut(), **more)
    outcome = await Executor(graph, decider=Decider()).run({}, None, listener=hear, log=MemoryRunLog())
    assert (outcome.status, outcome.stop_reason) == ("failed", "error")
    assert [failure.node for failure in outcome.failures] == ["a"]


async def test_a_route_sees_what_its_node_has_just_written_not_what_it_was_given() -> None:
    async def writes(state: State, _context: None) -> NodeResult:
        return NodeResult(update={"question": state["question"] + "!"})

    def choose(state: State) -> str:
        return "good" if state["question"] == "why!" else "bad"

    graph: GraphSpec[None, State] = GraphSpec(
        name="g",
        entry="first",
        nodes={"first": _idle, "second": writes, "good": _idle, "bad": _idle},
        edges=(
            EdgeSpec(source="first", target="second", mapping={"question": "asked"}),
            EdgeSpec(source="second", when=Route(choose, ("good", "bad"))),
        ),
    )
    outcome = await Executor(graph).run({"asked": "why"}, None)
    assert outcome.path == ("first", "second", "good")


async def test_a_resumed_run_does_not_tell_again_of_a_fan_out_that_was_joined_before() -> None:
    heard: list[GraphEvent] = []

    async def hear(event: GraphEvent) -> None:
        heard.append(event)

    graph = _fan({"a": NodeSpec(run=_idle), "b": NodeSpec(run=_idle)}, FanOut())
    whole = MemoryRunLog()
    await Executor(graph).run({}, None, log=whole)
    await Executor(graph).resume(whole.cut(3).records, None, listener=hear)
    assert [event for event in heard if isinstance(event, BranchesJoined)] == []


async def test_a_reported_error_is_retried_though_its_declared_writes_are_missing() -> None:
    async def reports(_state: State, _context: None) -> NodeResult:
        return NodeResult(error="not yet")

    retry = RetryPolicy(max_attempts=2, delay_s=0.0)
    node = NodeSpec[None, State](run=reports, writes=("answer",), retry=retry)
    graph = GraphSpec(name="g", entry="a", nodes={"a": node}, edges=(EdgeSpec(source="a", target=END),))
    outcome = await Executor(graph).run({}, None)
    assert [(failure.code, failure.attempts) for failure in outcome.failures] == [("node_error", 2)]


async def test_a_source_that_is_its_own_join_does_not_run_in_a_row() -> None:
    async def source(state: State, _context: None) -> NodeResult:
        return NodeResult(update={"rounds": state.get("rounds", 0) + 1})

    arrow = (("start", "a"), ("start", "b"), ("a", "start"), ("b", "start"))
    graph: GraphSpec[None, State] = GraphSpec(
        name="g",
        entry="start",
        nodes={"start": source, "a": _idle, "b": _idle},
        edges=(
            EdgeSpec(source="start", target=END, when=When("rounds > 45")),
            *(EdgeSpec(source=one, target=other) for one, other in arrow),
        ),
    )
    outcome = await Executor(graph).run({}, None)
    assert outcome.stop_reason == "completed"


async def test_a_fan_out_may_lead_to_the_end_beside_a_node() -> None:
    by_route = Route(lambda _state: ("a", END), ("a", END))
    for edges in (
        (EdgeSpec(source="start", when=by_route),),
        tuple(EdgeSpec(source="start", target=target, when=OnSuccess()) for target in ("a", END)),
    ):
        graph: GraphSpec[None, State] = GraphSpec(
            name="g",
            entry="start",
            nodes={"start": _idle, "a": _idle},
            edges=(*edges, EdgeSpec(source="a", target=END)),
        )
        log = MemoryRunLog()
        outcome = await Executor(graph, first_snapshot=1).run({}, None, log=log)
        assert (outcome.status, outcome.path) == ("completed", ("start", "a"))
        assert [record["do"] for record in log.records[:2] if record] == ["step", "snapshot"]
        # The first record is damaged but for its head: the snapshot alone says where the branches are.
        first = {**(log.records[0] or {}), "do": "damaged"}
        resumed = await Executor(graph).resume([first, *log.records[1:2]], None)
        assert (resumed.status, resumed.path) == ("completed", ("start", "a"))


async def test_anyone_who_is_asked_for_the_way_cannot_write_into_the_state() -> None:
    def choose(state: State) -> str:
        cast("dict[str, Any]", state)["written"] = True
        return "b"

    def holds(state: State) -> bool:
        return choose(state) == "b"

    class Decider:
        async def decide(self, question: RouteQuestion, _context: None) -> Choice:
            return Choice(target=choose(question.output))

    arrow = (
        EdgeSpec(source="a", when=Route(choose, ("b",))),
        EdgeSpec(source="a", target="b", when=When(holds)),
        EdgeSpec(source="a", target="b", when=LlmDecide("always"), fallback=True),
    )
    for edge in arrow:
        graph: GraphSpec[None, State] = GraphSpec(
            name="g",
            entry="a",
            nodes={"a": _idle, "b": _idle},
            edges=(edge, EdgeSpec(source="b", target=END)),
        )
        log = MemoryRunLog()
        outcome = await Executor(graph, decider=Decider()).run({}, None, log=log)
        assert "written" not in outcome.state
        assert not any((record or {}).get("update") for record in log.records)
        problems = [failure.message for failure in outcome.failures]
        problems += outcome.nodes["a"].edge_errors
        assert len(problems) == 1
        assert "does not support item assignment" in problems[0]


@pytest.mark.parametrize("key", ["answers", "failure", "fanout"])
def test_a_mapping_cannot_pretend_to_be_the_engine(key: str) -> None:
    edge = EdgeSpec(source="a", target="b", mapping={key: "text"})
    with pytest.raises(GraphError, match=f"edge a -> b: mapping {key}: the engine owns this key"):
        GraphSpec(
            name="g",
            entry="a",
            nodes={"a": _idle, "b": _idle},
            edges=(edge, EdgeSpec(source="b", target=END)),
        )


async def test_a_cancellation_inside_a_node_is_the_failure_of_that_node_and_not_tried_again() -> None:
    calls = 0

    async def waits_for_what_is_gone(_state: State, _context: None) -> NodeResult:
        nonlocal calls
        calls += 1
        gone = asyncio.get_running_loop().create_future()
        gone.cancel()
        await gone
        return NodeResult()

    node = NodeSpec[None, State](run=waits_for_what_is_gone)
    alone: GraphSpec[None, State] = GraphSpec(
        name="g", entry="a", nodes={"a": node}, edges=(EdgeSpec(source="a", target=END, when=OnSuccess()),)
    )
    for graph in (alone, _fan({"a": node, "b": NodeSpec(run=_idle)}, FanOut())):
        calls = 0
        outcome = await Executor(graph).run({}, None)
        assert (outcome.status, outcome.stop_reason, calls) == ("failed", "error", 1)
        assert [failure.node for failure in outcome.failures] == ["a"]


async def test_a_listener_that_fails_does_not_replace_a_cancellation_from_outside() -> None:
    begun = asyncio.Event()

    async def waits(_state: State, _context: None) -> NodeResult:
        begun.set()
        await asyncio.Event().wait()
        return NodeResult()

    async def refuses_the_end(event: GraphEvent) -> None:
        if isinstance(event, RunCompleted):
            raise LogBroken("no")

    graph = GraphSpec[None](name="g", entry="a", nodes={"a": waits}, edges=())
    async with asyncio.TaskGroup() as group:
        run = group.create_task(Executor(graph).run({}, None, listener=refuses_the_end))
        await begun.wait()
        run.cancel()
    assert run.cancelled()


@pytest.mark.parametrize("key", ["answers", "failure", "fanout"])
async def test_the_inputs_cannot_pretend_to_be_the_engine(key: str) -> None:
    graph = GraphSpec[None](name="g", entry="a", nodes={"a": _idle}, edges=())
    with pytest.raises(GraphError, match=f"the key {key}, which only the engine writes"):
        await Executor(graph).run({key: 1}, None)


async def test_a_log_that_refuses_the_record_of_void_ones_still_gives_one_completion() -> None:
    graph = GraphSpec[None](
        name="g",
        entry="a",
        nodes={"a": _idle, "b": _idle, "c": _idle},
        edges=(EdgeSpec(source="a", target="b"), EdgeSpec(source="b", target="c")),
    )
    log = MemoryRunLog()
    await Executor(graph).run({}, None, log=log)
    broken = MemoryRunLog(log.damaged(1, "{").texts[:2], fail_append=1)
    events: list[GraphEvent] = []

    async def listen(event: GraphEvent) -> None:
        events.append(event)

    with pytest.raises(LogBroken):
        await Executor(graph).resume(broken.records, None, listener=listen, log=broken)
    assert [type(event) for event in events] == [RunCompleted]


async def test_a_further_visit_of_a_subgraph_begins_without_its_nullable_keys() -> None:
    seen: list[dict[str, Any]] = []

    async def once(state: State, _context: None) -> NodeResult:
        seen.append(dict(state))
        return NodeResult(update={"k": 1} if len(seen) == 1 else {})

    inner = GraphSpec[None](name="inner", entry="x", nodes={"x": once}, edges=())
    again = Route(choose=lambda _state: "sub" if len(seen) < 2 else END, targets=("sub", END))
    graph = GraphSpec[None](
        name="g",
        entry="sub",
        nodes={"sub": NodeSpec(subgraph=inner, reads=("k",), writes=("k",), nullable=("k",))},
        edges=(EdgeSpec(source="sub", when=again),),
    )
    outcome = await Executor(graph).run({}, None)
    assert seen == [{}, {}]
    assert "k" not in outcome.state
    assert outcome.nodes["sub"].missing_inputs == ()


async def test_a_listener_cannot_change_what_a_node_wrote() -> None:
    async def meddles(event: GraphEvent) -> None:
        if isinstance(event, NodeLeft):
            cast("dict[str, Any]", event.update)["evil"] = 1

    async def writes(_state: State, _context: None) -> NodeResult:
        return NodeResult(update={"x": 1})

    for node in (writes, NodeSpec[None, State](run=writes, writes=("x",))):
        graph = GraphSpec[None](name="g", entry="a", nodes={"a": node}, edges=())
        with pytest.raises(TypeError, match="does not support item assignment"):
            await Executor(graph).run({}, None, listener=meddles)


async def test_a_step_is_of_no_use_once_its_attempt_is_over() -> None:
    steps: list[Step] = []

    async def node(_state: State, _context: None) -> NodeResult:
        steps.append(current_step())
        return NodeResult()

    graph = GraphSpec[None](name="g", entry="a", nodes={"a": node}, edges=())
    await Executor(graph).run({}, None)
    with pytest.raises(GraphError, match="attempt 1 of visit 1 is over"):
        steps[0].keep({"x": 1})
    with pytest.raises(GraphError, match="attempt 1 of visit 1 is over"):
        await steps[0].effect("late", asyncio.Event().wait)


def test_an_async_condition_is_refused_when_the_graph_is_built() -> None:
    async def later(_state: State) -> bool:
        return False

    edge = EdgeSpec(source="a", target="b", when=When(cast("Any", later)))
    with pytest.raises(GraphError, match="edge a -> b: an async function would count as true"):
        GraphSpec[None](name="g", entry="a", nodes={"a": _idle, "b": _idle}, edges=(edge,))


async def test_a_subgraph_that_declares_no_writes_may_have_been_answered_inside() -> None:
    async def asks(_state: State, _context: None) -> NodeResult:
        return NodeResult(decision=Pause(options=("yes",)))

    inner = GraphSpec[None](name="inner", entry="x", nodes={"x": asks}, edges=())
    graph = GraphSpec[None](name="g", entry="sub", nodes={"sub": NodeSpec(subgraph=inner)}, edges=())
    log = MemoryRunLog()
    paused = await Executor(graph).run({}, None, log=log)
    answer = Answer(gate=paused.gates[0].id, choice="yes")
    outcome = await Executor(graph).resume(log.records, None, answers=(answer,), log=log)
    assert outcome.status == "completed"
    assert outcome.state["answers"]["sub.x"]["choice"] == "yes"
