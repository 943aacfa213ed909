"""A whole graph as one node: what goes in, what comes back, how it fails, pauses and is resumed.

Covers: pipeline/graph/execution/run_loop.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.domain.clock import ManualClock
from pipeline.graph.definition.decisions import Continue, End, NodeResult, Pause, State
from pipeline.graph.definition.spec import (
    END,
    EdgeSpec,
    GraphSpec,
    Limits,
    NodeSpec,
    OnFailure,
    OnSuccess,
    RetryPolicy,
    When,
    append,
)
from pipeline.graph.execution.control import RunControl
from pipeline.graph.execution.executor import Executor
from pipeline.graph.execution.step import current_step
from pipeline.graph.run.events import EdgeTraversed, NodeEntered, NodeLeft
from pipeline.graph.run.outcome import Answer
from tests.pipeline.graph.running import Blocking, Events, Flaky, Writing, graph, in_time
from tests.pipeline.graph.written import edge_of
from tests.support.graph_log import MemoryRunLog

ONCE = RetryPolicy(max_attempts=1)
Built = GraphSpec[None, State]


def _executor(built: Built, clock: ManualClock | None = None) -> Executor[None, State]:
    return Executor(built, clock=clock or ManualClock())


def _around(inner: Built, **fields: Any) -> Built:
    """A graph of a, the subgraph s, and z."""
    spec = NodeSpec[None](subgraph=inner, **fields)
    return graph({"a": Writing(a=1), "s": spec, "z": Writing(z=1)}, "a>s", "s>z")


async def test_a_subgraph_sees_what_its_node_reads_and_gives_back_what_it_writes() -> None:
    inside = Writing(result=1, scratch=2)
    built = _around(graph({"p": inside}), reads=("a",), writes=("result",))
    outcome = await _executor(built).run({"secret": 1}, None)
    assert inside.seen == [{"a": 1}]
    assert outcome.state == {"secret": 1, "a": 1, "result": 1, "z": 1}


async def test_a_subgraph_without_declarations_sees_and_gives_back_everything() -> None:
    inside = Writing(result=1, scratch=2)
    outcome = await _executor(_around(graph({"p": inside}))).run({"x": 1}, None)
    assert inside.seen == [{"x": 1, "a": 1}]
    assert outcome.state == {"x": 1, "a": 1, "result": 1, "scratch": 2, "z": 1}


async def test_a_subgraph_sees_its_mapped_inputs_in_all_its_nodes() -> None:
    first, second = Writing(), Writing()
    built = graph(
        {"a": Writing(a=1), "s": NodeSpec(subgraph=graph({"p": first, "q": second}, "p>q"), reads=())},
        edge_of("a>s", mapping={"given": "a"}),
    )
    outcome = await _executor(built).run({}, None)
    assert first.seen == second.seen == [{"given": 1}]
    assert outcome.state == {"a": 1}


async def test_only_what_is_new_is_given_back_to_an_appending_channel() -> None:
    inner = graph({"p": Writing(said=["p"]), "q": Writing(said=["q"])}, "p>q", channels={"said": append})
    built = graph({"s": NodeSpec(subgraph=inner), "z": Writing(said=["z"])}, "s>z", channels={"said": append})
    outcome = await _executor(built).run({"said": ["before"]}, None)
    assert outcome.state["said"] == ("before", "p", "q", "z")


async def test_edges_behind_a_subgraph_see_what_it_has_written() -> None:
    built = graph(
        {"s": NodeSpec(subgraph=graph({"p": Writing(good=True)})), "yes": Writing(), "no": Writing()},
        edge_of("s>yes", When("good")),
        edge_of("s>no", When("not good")),
    )
    assert (await _executor(built).run({}, None)).path == ("s.p", "s", "yes")


async def test_a_subgraph_that_does_not_write_what_it_must_has_failed() -> None:
    built = _around(graph({"p": Writing(other=1)}), writes=("result",))
    outcome = await _executor(built).run({}, None)
    assert [(failure.node, failure.code) for failure in outcome.failures] == [("s", "missing_output")]


async def test_a_subgraph_may_leave_out_a_nullable_key() -> None:
    built = _around(graph({"p": Writing()}), writes=("result",), nullable=("result",))
    assert (await _executor(built).run({}, None)).quality == "clean"


async def test_a_failure_inside_fails_the_node_and_follows_its_edge_once() -> None:
    rescue = Writing()
    inner = graph({"p": Writing(x=1), "q": NodeSpec(run=Flaky(9), retry=ONCE)}, "p>q")
    built = graph(
        {"s": NodeSpec(subgraph=inner), "b": rescue, "c": Writing()},
        edge_of("s>b", OnFailure()),
        edge_of("s>c", OnSuccess()),
    )
    outcome = await _executor(built).run({}, None)
    assert (outcome.status, outcome.quality, outcome.path) == (
        "completed",
        "degraded",
        ("s.p", "s.q", "s", "b"),
    )
    assert [failure.node for failure in outcome.failures] == ["s.q"]
    assert outcome.state == {}
    assert rescue.seen[0]["failure"]["node"] == "s.q"


async def test_a_failure_inside_that_nothing_rescues_fails_the_run_with_its_error() -> None:
    error = ValueError("deep down")
    built = graph({"s": NodeSpec(subgraph=graph({"p": NodeSpec(run=Flaky(9, error), retry=ONCE)}))})
    outcome = await _executor(built).run({}, None)
    assert outcome.error is not None
    assert (outcome.error.node, outcome.error.exception) == ("s.p", error)


async def test_a_failure_inside_can_be_rescued_inside() -> None:
    inner = graph(
        {"p": NodeSpec(run=Flaky(9), retry=ONCE), "q": Writing(saved=1)}, edge_of("p>q", OnFailure())
    )
    outcome = await _executor(_around(inner)).run({}, None)
    assert (outcome.status, outcome.quality, outcome.state["saved"]) == ("completed", "degraded", 1)


async def test_a_subgraph_that_misses_its_own_terminals_has_failed() -> None:
    inner = graph({"p": Writing(), "q": Writing()}, edge_of("p>q", When("go")), terminals=("q",))
    built = graph(
        {"s": NodeSpec(subgraph=inner), "z": Writing(), "bad": Writing()},
        edge_of("s>z", OnSuccess()),
        edge_of("s>bad", OnFailure()),
    )
    assert (await _executor(built).run({}, None)).path[-1] == "bad"
    assert (await _executor(built).run({"go": True}, None)).path[-1] == "z"


async def test_a_subgraph_is_not_retried_as_a_whole_but_its_nodes_are() -> None:
    first, flaky = Writing(), Flaky(1)
    inner = graph({"p": first, "q": NodeSpec(run=flaky, retry=RetryPolicy(delay_s=0.0))}, "p>q")
    outcome = await _executor(_around(inner, retry=RetryPolicy(max_attempts=5, delay_s=0.0))).run({}, None)
    assert (first.calls, flaky.calls, outcome.retries) == (1, 2, 1)


async def test_the_end_inside_is_the_end_of_the_subgraph_only() -> None:
    inner = graph({"p": Writing(End("blocked"), x=1), "q": Writing()}, "p>q")
    outcome = await _executor(_around(inner)).run({}, None)
    assert (outcome.stop_reason, outcome.path) == ("completed", ("a", "s.p", "s", "z"))


async def test_a_visit_too_many_is_skipped_and_changes_nothing() -> None:
    inside = Writing(x=1)
    built = graph(
        {"s": NodeSpec(subgraph=graph({"p": inside}), max_visits=2), "b": Writing()},
        "s>b",
        edge_of("b>s", When("more")),
        limits=Limits(max_steps=12),
    )
    outcome = await _executor(built).run({"more": True}, None)
    assert inside.calls == 2
    assert outcome.nodes["s"].executions == 2


async def test_a_second_visit_begins_again() -> None:
    async def counts(state: State, _context: None) -> NodeResult:
        return NodeResult(update={"inner": state.get("inner", 0) + 1, "said": [current_step().execution]})

    async def again(state: State, _context: None) -> NodeResult:
        return NodeResult(update={"outer": state.get("outer", 0) + 1})

    built = graph(
        {"s": NodeSpec(subgraph=graph({"p": counts}), reads=(), writes=("said",)), "b": again},
        "s>b",
        edge_of("b>s", When("outer < 2")),
        edge_of(f"b>{END}", OnFailure()),
        channels={"said": append},
    )
    outcome = await _executor(built).run({}, None)
    assert outcome.state == {"said": (1, 2), "outer": 2}


async def test_labels_and_events_carry_the_way_to_the_node_two_levels_deep() -> None:
    deep = graph({"x": Writing(x=1), "y": Writing()}, "x>y")
    inner = graph({"p": NodeSpec(subgraph=deep)})
    built, events = graph({"s": NodeSpec(subgraph=inner)}), Events()
    outcome = await _executor(built).run({}, None, listener=events)
    assert outcome.path == ("s.p.x", "s.p.y", "s.p", "s")
    assert [event.node for event in events.of(NodeEntered)] == ["s", "s.p", "s.p.x", "s.p.y"]
    assert [event.node for event in events.of(NodeLeft)] == list(outcome.path)
    assert events.of(EdgeTraversed) == [EdgeTraversed("s.p.x", "s.p.y")]
    assert outcome.state == {"x": 1}
    assert outcome.nodes["s.p.x"].executions == 1


async def test_a_run_two_levels_deep_is_resumed_behind_every_record() -> None:
    deep = graph({"x": Writing(said=["x"]), "y": Writing(said=["y"])}, "x>y", channels={"said": append})
    inner = graph({"o": Writing(said=["o"]), "p": NodeSpec(subgraph=deep)}, "o>p", channels={"said": append})
    built = graph(
        {"s": NodeSpec(subgraph=inner, reads=("said",), writes=("said",)), "z": Writing(said=["z"])},
        "s>z",
        channels={"said": append},
    )
    log = MemoryRunLog()
    whole = await _executor(built).run({"said": ["in"]}, None, log=log)
    assert whole.state["said"] == ("in", "o", "x", "y", "z")
    kinds = [record["do"] for record in log.records if record]
    assert kinds == ["enter", "step", "enter", "step", "step", "step", "step", "step", "end"]
    for length in range(1, len(log.texts)):
        outcome = await _executor(built).resume(log.cut(length).records, None)
        assert (outcome.state, outcome.path) == (whole.state, whole.path), length


async def test_a_gate_inside_halts_the_whole_run_and_its_answer_continues_inside() -> None:
    inner = graph({"ask": Writing(Pause()), "q": Writing(q=1)}, edge_of("ask>q", When("choice == 'yes'")))
    built, log = _around(inner), MemoryRunLog()
    paused = await _executor(built).run({}, None, log=log, run_id="r")
    assert [(gate.id, gate.node) for gate in paused.gates] == [("r:/s/s.ask:1", "s.ask")]
    outcome = await _executor(built).resume(
        log.records, None, answers=[Answer(gate=paused.gates[0].id, choice="yes")]
    )
    assert outcome.path == ("a", "s.ask", "s.q", "s", "z")


async def test_a_subgraph_can_be_a_pause_node() -> None:
    log = MemoryRunLog()
    built = graph(
        {"s": NodeSpec(subgraph=graph({"p": Writing(x=1)})), "z": Writing()}, "s>z", pause_nodes=("s",)
    )
    paused = await _executor(built).run({}, None, log=log)
    assert (paused.status, paused.state, paused.path) == ("paused", {"x": 1}, ("s.p", "s"))
    outcome = await _executor(built).resume(
        log.records, None, answers=[Answer(gate=paused.gates[0].id, choice="y")]
    )
    assert outcome.path == ("s.p", "s", "z")


async def test_a_requested_pause_halts_inside() -> None:
    control, log, after = RunControl(), MemoryRunLog(), Writing()

    async def node(_state: State, _context: None) -> NodeResult:
        control.request_pause()
        return NodeResult()

    built = _around(graph({"p": node, "q": after}, "p>q"))
    paused = await _executor(built).run({}, None, control=control, log=log)
    assert (paused.stop_reason, paused.path, after.calls) == ("pause_requested", ("a", "s.p"), 0)
    assert (await _executor(built).resume(log.records, None)).path == ("a", "s.p", "s.q", "s", "z")


async def test_an_abort_inside_keeps_what_was_kept_for_the_node_when_it_is_resumed() -> None:
    control, log = RunControl(), MemoryRunLog()
    seen: list[object] = []

    async def node(state: State, _context: None) -> NodeResult:
        seen.append(state.get("part"))
        if "part" not in state:
            current_step().keep({"part": 1})
            control.abort()
            await Blocking()(state, None)
        return NodeResult(update={"whole": True})

    built = _around(graph({"p": node}))
    assert (await _executor(built).run({}, None, control=control, log=log)).status == "cancelled"
    outcome = await _executor(built).resume(log.records, None)
    assert seen == [None, 1]
    assert outcome.state["whole"] is True


async def test_the_limits_of_the_run_hold_inside() -> None:
    inner = graph({"p": Writing(Continue())}, limits=Limits(max_steps=2, max_consecutive=2))
    for limits, reason, count in (
        (Limits(max_consecutive=5), "max_loops", 5),
        (Limits(max_steps=7), "max_steps", 6),  # the subgraph's own node is the seventh
    ):
        outcome = await _executor(graph({"s": NodeSpec(subgraph=inner)}, limits=limits)).run({}, None)
        assert (outcome.stop_reason, len(outcome.path)) == (reason, count)


async def test_a_subgraph_over_its_deadline_has_failed() -> None:
    clock, log = ManualClock(), MemoryRunLog()
    inner = graph({"p": Writing(x=1), "q": Blocking()}, "p>q")
    built = graph(
        {"s": NodeSpec(subgraph=inner, timeout_s=10.0), "z": Writing(), "late": Writing(late=1)},
        edge_of("s>z", OnSuccess()),
        edge_of("s>late", OnFailure()),
    )
    outcome = await in_time(clock, 11, _executor(built, clock).run({}, None, log=log))
    assert (outcome.path, outcome.state) == (("s.p", "s", "late"), {"late": 1})
    assert [(failure.node, failure.code) for failure in outcome.failures] == [("s", "timeout")]
    again = await _executor(built, clock).resume(log.cut(len(log.texts) - 2).records, None)
    assert (again.path, again.failures) == (outcome.path, outcome.failures)


async def test_the_time_in_a_subgraph_is_the_time_of_its_node() -> None:
    clock = ManualClock()

    async def slow(_state: State, _context: None) -> NodeResult:
        await clock.sleep(2)
        return NodeResult()

    built = graph({"s": NodeSpec(subgraph=graph({"p": slow, "q": slow}, "p>q"))})
    outcome = await in_time(clock, 5, _executor(built, clock).run({}, None))
    assert (outcome.nodes["s"].seconds, outcome.nodes["s.p"].seconds) == (4.0, 2.0)


@pytest.mark.parametrize("conversation", ["continuous", "isolated"])
async def test_a_fan_out_inside_joins_inside(conversation: str) -> None:
    inner = graph(
        {"p": Writing(), "l": Writing(l=1), "r": Writing(r=1), "j": Writing(j=1)},
        *("p>l", "p>r", "l>j", "r>j"),
        conversation=conversation,
    )
    outcome = await _executor(_around(inner)).run({}, None)
    assert outcome.path == ("a", "s.p", "s.l", "s.r", "s.j", "s", "z")
    assert outcome.state == {"a": 1, "l": 1, "r": 1, "j": 1, "z": 1}


async def test_a_subgraph_runs_in_a_branch() -> None:
    built = graph(
        {
            "a": Writing(),
            "s": NodeSpec(subgraph=graph({"p": Writing(p=1), "q": Writing(q=1)}, "p>q")),
            "b": Writing(b=1),
            "z": Writing(),
        },
        *("a>s", "a>b", "s>z", "b>z"),
    )
    log = MemoryRunLog()
    outcome = await _executor(built).run({}, None, log=log)
    assert outcome.state == {"p": 1, "q": 1, "b": 1}
    for length in range(1, len(log.texts)):
        again = await _executor(built).resume(log.cut(length).records, None)
        assert (again.state, again.status) == (outcome.state, "completed"), length


async def test_a_list_that_only_the_subgraph_appends_to_comes_out_whole() -> None:
    inner = GraphSpec[None](
        name="inner",
        entry="x",
        nodes={"x": Writing(notes=["a"]), "y": Writing(notes=["b"])},
        edges=(EdgeSpec(source="x", target="y"),),
        channels={"notes": append},
    )
    outer = GraphSpec[None](name="g", entry="sub", nodes={"sub": NodeSpec(subgraph=inner)}, edges=())
    outcome = await Executor(outer).run({}, None)
    assert outcome.state["notes"] == ("a", "b")
