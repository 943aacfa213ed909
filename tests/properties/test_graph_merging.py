"""What parallel branches wrote is merged as a small model says, in whatever order they finish.

Covers: pipeline/graph/definition/merging.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pipeline.graph.definition.decisions import NodeResult, State
from pipeline.graph.definition.elements import END, ConflictPolicy, EdgeSpec, FanOut
from pipeline.graph.definition.frozen_json import thaw
from pipeline.graph.definition.reducers import append
from pipeline.graph.definition.spec import GraphSpec
from pipeline.graph.definition.structure import NodeSpec
from pipeline.graph.execution.executor import Executor
from pipeline.graph.execution.step import current_step
from pipeline.graph.run.events import BranchesJoined, GraphEvent
from pipeline.graph.run.replay import replay
from tests.properties.graph_world import Turns
from tests.support.examples import examples
from tests.support.graph_log import MemoryRunLog

Write = tuple[str, Any]


@dataclass(frozen=True)
class Chain:
    """A branch of one node after the other; each writes the keys it is listed with."""

    nodes: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True)
class Fan:
    """A source, branches, and their join; only the branches write."""

    name: str
    branches: tuple[Chain | Fan, ...]
    policy: ConflictPolicy


class Conflict(Exception):
    pass


@st.composite
def _fans(draw: st.DrawFn) -> Fan:
    made = iter(range(100))
    keys = st.lists(st.sampled_from(("one", "two", "log")), max_size=2, unique=True).map(tuple)
    policies: st.SearchStrategy[ConflictPolicy] = st.sampled_from(
        ("last_wins", "first_wins", "error", "last_wins", "first_wins")
    )

    def fan(depth: int) -> Fan:
        name = f"f{next(made)}"
        branches: list[Chain | Fan] = []
        for _ in range(draw(st.integers(2, 3))):
            if depth < 2 and draw(st.integers(0, 2)) == 0:
                branches.append(fan(depth + 1))
            else:
                length = draw(st.integers(1, 2))
                branches.append(Chain(tuple((f"n{next(made)}", draw(keys)) for _ in range(length))))
        return Fan(name, tuple(branches), draw(policies))

    return fan(0)


@examples(60)
@given(fan=_fans(), data=st.data())
def test_branches_merge_as_the_model_says_and_so_does_their_replay(fan: Fan, data: st.DataObject) -> None:
    graph = _graph(fan)
    order = data.draw(st.permutations(list(graph.nodes)))
    log, joined = MemoryRunLog(), list[BranchesJoined]()

    async def hear(event: GraphEvent) -> None:
        if isinstance(event, BranchesJoined):
            joined.append(event)

    outcome = asyncio.run(Executor(graph).run({"log": [0]}, Turns(order), log=log, listener=hear))
    problem, expected = _expected(fan, outcome.path)
    assert outcome.status == ("failed" if problem else "completed")
    if problem:
        assert outcome.error is not None
        assert (outcome.error.code, outcome.error.message) == ("memory_conflict", problem)
    else:
        assert thaw(outcome.state) == expected
        for event in joined:
            branches = _finished(_find(fan, event.source), outcome.path)
            assert event.finished == tuple(_entry(branch) for branch in branches)
    assert thaw(replay(graph, log.records, {}).run.root.values) == thaw(outcome.state)


def _expected(fan: Fan, path: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """The conflict, or the state."""
    try:
        return "", _merged({"log": [0]}, _surviving(fan, path))
    except Conflict as conflict:
        return str(conflict), {}


def _surviving(part: Chain | Fan, path: Sequence[str]) -> list[Write]:
    """The model: the writes of a part that outlive its conflicts, in order."""
    if isinstance(part, Chain):
        return [(key, [name] if key == "log" else name) for name, keys in part.nodes for key in keys]
    writes: list[Write] = []
    owners: dict[str, str] = {}
    # A conflict deeper down came first, and cut the others off.
    finished = [(branch, _surviving(branch, path)) for branch in _finished(part, path)]
    if any(_exit(branch) not in path for branch, _ in finished):
        return []
    for branch, own in finished:
        taken = {key for key, _ in own if key != "log" and key in owners}
        if taken and part.policy == "error":
            key = min(taken)
            raise Conflict(f"branches {owners[key]} and {_entry(branch)} both wrote {key}")
        writes += [write for write in own if part.policy == "last_wins" or write[0] not in taken]
        owners.update({key: _entry(branch) for key, _ in own if key not in taken})
    return writes


def _merged(values: Mapping[str, Any], writes: Sequence[Write]) -> dict[str, Any]:
    merged = dict(values)
    for key, value in writes:
        merged[key] = merged[key] + value if key == "log" else value
    return merged


def _finished(fan: Fan, path: Sequence[str]) -> list[Chain | Fan]:
    """The branches in the order of their last nodes; those that were cut off come last."""
    return sorted(
        fan.branches, key=lambda branch: path.index(_exit(branch)) if _exit(branch) in path else len(path)
    )


def _find(part: Chain | Fan, source: str) -> Fan:
    return next(fan for fan in _fans_in(part) if fan.name == source)


def _fans_in(part: Chain | Fan) -> Iterator[Fan]:
    if isinstance(part, Fan):
        yield part
        for branch in part.branches:
            yield from _fans_in(branch)


def _entry(part: Chain | Fan) -> str:
    return part.nodes[0][0] if isinstance(part, Chain) else part.name


def _exit(part: Chain | Fan) -> str:
    return part.nodes[-1][0] if isinstance(part, Chain) else f"{part.name}_join"


def _graph(fan: Fan) -> GraphSpec[Turns, State]:
    nodes: dict[str, NodeSpec[Turns, State]] = {}
    edges: list[EdgeSpec] = []

    def add(part: Chain | Fan, after: str) -> None:
        if isinstance(part, Chain):
            names = [name for name, _ in part.nodes]
            nodes.update((name, NodeSpec(run=_Writer(keys))) for name, keys in part.nodes)
            edges.extend(
                EdgeSpec(source=source, target=target)
                for source, target in zip(names, [*names[1:], after], strict=True)
            )
            return
        join = f"{part.name}_join"
        policy = FanOut(on_conflict=part.policy, branch_timeout_s=None)
        nodes[part.name] = NodeSpec(run=_Writer(()), fan_out=policy)
        nodes[join] = NodeSpec(run=_Writer(()))
        for branch in part.branches:
            edges.append(EdgeSpec(source=part.name, target=_entry(branch)))
            add(branch, join)
        edges.append(EdgeSpec(source=join, target=after))

    add(fan, END)
    return GraphSpec(name="g", entry=fan.name, nodes=nodes, edges=tuple(edges), channels={"log": append})


@dataclass(frozen=True)
class _Writer:
    """A node that writes its own name under each of its keys."""

    keys: tuple[str, ...]

    async def __call__(self, _state: State, turns: Turns) -> NodeResult:
        name = current_step().node
        async with turns.turn(name):
            return NodeResult(update={key: [name] if key == "log" else name for key in self.keys})
