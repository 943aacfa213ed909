"""Nodes that one call leaves to a later one.

Covers: pipeline/graph/execution/executor.py, pipeline/graph/execution/run_loop.py.
"""

from __future__ import annotations

from pipeline.domain.clock import ManualClock
from pipeline.graph.definition.decisions import State
from pipeline.graph.definition.spec import GraphSpec, merge
from pipeline.graph.execution.control import RunControl
from pipeline.graph.execution.executor import Executor
from tests.pipeline.graph.running import Writing, graph
from tests.support.graph_log import MemoryRunLog

LATER = frozenset({"b", "c"})


def _graph() -> GraphSpec[None, State]:
    nodes = {"a": Writing(x=1), "b": Writing(seen={"b": 1}), "c": Writing(seen={"c": 2})}
    return graph(nodes, "a>b", "a>c", channels={"seen": merge})


def _executor() -> Executor[None, State]:
    return Executor(_graph(), clock=ManualClock(), chance=lambda: 0.0)


async def test_a_call_halts_before_the_nodes_that_it_leaves_and_another_runs_them() -> None:
    log = MemoryRunLog()
    left = await _executor().run({}, None, later=LATER, log=log)
    assert (left.status, left.stop_reason, left.quality) == ("paused", "left", "clean")
    assert left.path == ("a",)
    assert left.state == {"x": 1}
    assert log.durable == 0, "the commit of what was done writes the records"

    again = await _executor().resume(log.records, None, later=LATER, log=log)
    assert (again.stop_reason, again.path) == ("left", ("a",)), "a resumed call leaves them too"

    done = await _executor().resume(log.records, None, log=log)
    assert done.status == "completed"
    assert sorted(done.path) == ["a", "b", "c"]
    assert done.state["seen"] == {"b": 1, "c": 2}


async def test_a_single_node_is_left_and_a_pause_comes_first() -> None:
    executor = Executor(graph({"a": Writing(x=1), "b": Writing(y=1)}, "a>b"), clock=ManualClock())
    left = await executor.run({}, None, later=frozenset({"b"}))
    assert (left.status, left.stop_reason, left.path) == ("paused", "left", ("a",))
    control = RunControl()
    control.request_pause()
    paused = await executor.run({}, None, later=frozenset({"b"}), control=control)
    assert paused.stop_reason == "pause_requested"
