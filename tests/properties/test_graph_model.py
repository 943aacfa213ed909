"""Graphs without parallel branches run as a reference interpreter of a page says: edges, visits, limits."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, reject
from hypothesis import strategies as st

from pipeline.domain.errors import GraphError
from pipeline.graph.definition.decisions import Continue, End, Goto, Next, NodeDecision, NodeResult, State
from pipeline.graph.definition.elements import END, Always, EdgeSpec, Limits, OnFailure, OnSuccess, When
from pipeline.graph.definition.retry import RetryPolicy
from pipeline.graph.definition.spec import GraphSpec
from pipeline.graph.definition.structure import NodeSpec
from pipeline.graph.execution.executor import Executor
from pipeline.graph.execution.step import current_step
from tests.support.examples import examples


@dataclass(frozen=True)
class Visit:
    """What one visit to a node does."""

    value: int
    """Written under `v`."""
    failing: int = 0
    """Attempts that fail."""
    decision: str = ""
    """Empty for next; continue, end, or a node to go to."""


@dataclass(frozen=True)
class Plan:
    """One node with its edges, which are never taken two at a time."""

    visits: tuple[Visit, ...]
    """In turn, and from the first again."""
    attempts: int
    max_visits: int
    conditions: tuple[tuple[int, str], ...] = ()
    """(least value, target) in declaration order."""
    success: str = ""
    failure: str = ""
    always: str = ""

    def visit(self, number: int) -> Visit:
        return self.visits[(number - 1) % len(self.visits)]


@dataclass
class Ended:
    """How a run ends, for comparison."""

    reason: str = ""
    path: list[str] = field(default_factory=list)
    state: dict[str, Any] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    retries: int = 0


Plans = dict[str, Plan]


@st.composite
def _plans(draw: st.DrawFn) -> Plans:
    names = [f"n{number}" for number in range(draw(st.integers(1, 5)))]
    anywhere = st.sampled_from([*names, END])
    maybe = st.one_of(st.just(""), anywhere)
    visits = st.builds(
        Visit,
        value=st.integers(0, 9),
        failing=st.sampled_from((0, 0, 0, 1, 2)),
        decision=st.sampled_from(("", "", "", "continue", "end", *names)),
    )
    plans = st.builds(
        Plan,
        visits=st.lists(visits, min_size=1, max_size=3).map(tuple),
        attempts=st.integers(1, 2),
        max_visits=st.sampled_from((0, 0, 1, 3)),
        conditions=st.lists(st.tuples(st.integers(0, 9), anywhere), max_size=2, unique=True).map(tuple),
        success=maybe,
        failure=maybe,
        always=maybe,
    )
    return {name: draw(plans) for name in names}


@examples(150)
@given(
    plans=_plans(),
    terminal=st.booleans(),
    max_steps=st.sampled_from((5, 30)),
    max_consecutive=st.sampled_from((1, 2, 40)),
)
def test_a_graph_without_branches_runs_as_the_reference_interpreter_says(
    plans: Plans, terminal: bool, max_steps: int, max_consecutive: int
) -> None:
    terminals = tuple(name for name in plans if terminal and not _edges(name, plans[name]))
    try:
        graph = _graph(plans, terminals, Limits(max_steps=max_steps, max_consecutive=max_consecutive))
    except GraphError:
        reject()
    outcome = asyncio.run(Executor(graph, chance=lambda: 0.0).run({"v": 0}, plans))
    expected = _interpreted(plans, terminals, max_steps, max_consecutive)
    assert (
        Ended(
            reason=outcome.stop_reason,
            path=list(outcome.path),
            state=dict(outcome.state),
            failed=[failure.node for failure in outcome.failures if failure.code != "no_terminal"],
            retries=outcome.retries,
        )
        == expected
    )
    assert outcome.status == ("completed" if expected.reason == "completed" else "failed")


def _interpreted(plans: Plans, terminals: tuple[str, ...], max_steps: int, max_consecutive: int) -> Ended:
    """The reference: one loop, no state but what is compared and the counters."""
    ended = Ended(state={"v": 0})
    node, before, steps, in_a_row = next(iter(plans)), "", 0, 0
    visits: Counter[str] = Counter()
    while True:
        in_a_row = in_a_row + 1 if node == before else 0
        if in_a_row >= max_consecutive or steps >= max_steps:
            ended.reason = "max_loops" if in_a_row >= max_consecutive else "max_steps"
            return ended
        plan, skipped = plans[node], bool(plans[node].max_visits and visits[node] >= plans[node].max_visits)
        steps += 1
        failed, target, asked = False, None, ""
        if not skipped:
            visits[node] += 1
            visit = plan.visit(visits[node])
            ended.path.append(node)
            ended.retries += min(visit.failing, plan.attempts - 1)
            failed = visit.failing >= plan.attempts
            asked = "" if failed else visit.decision
            if failed:
                ended.failed.append(node)
            else:
                ended.state["v"] = visit.value
        target = _next(plan, node, ended.state["v"], asked, failed=failed, terminal=node in terminals)
        if target is None or target == END:
            # A failed node without a way on fails the run, and so does any end that is no terminal.
            good = node in terminals or target == END or asked == "end" or not terminals
            ended.reason = "error" if failed and target is None else "completed" if good else "no_terminal"
            return ended
        before, node = node, target


def _next(plan: Plan, node: str, value: int, asked: str, *, failed: bool, terminal: bool) -> str | None:
    if failed:
        return plan.failure or plan.always or None
    if terminal or asked == "end":
        return None
    if asked:
        return node if asked == "continue" else asked
    matched = next((target for least, target in plan.conditions if value >= least), None)
    return matched or ("" if plan.conditions else plan.success) or plan.always or None


def _edges(name: str, plan: Plan) -> list[EdgeSpec]:
    edges = [
        EdgeSpec(source=name, target=target, when=When(f"v >= {least}")) for least, target in plan.conditions
    ]
    if plan.success and not plan.conditions:
        edges.append(EdgeSpec(source=name, target=plan.success, when=OnSuccess()))
    if plan.failure:
        edges.append(EdgeSpec(source=name, target=plan.failure, when=OnFailure()))
    if plan.always:
        edges.append(EdgeSpec(source=name, target=plan.always, when=Always()))
    return edges


def _graph(plans: Plans, terminals: tuple[str, ...], limits: Limits) -> GraphSpec[Plans, State]:
    return GraphSpec(
        name="g",
        entry=next(iter(plans)),
        # Every node is a way in, so that none is unreachable.
        entry_points={name: name for name in plans},
        nodes={
            name: NodeSpec(
                run=_node,
                retry=RetryPolicy(max_attempts=plan.attempts, delay_s=0.0),
                max_visits=plan.max_visits,
            )
            for name, plan in plans.items()
        },
        edges=tuple(edge for name, plan in plans.items() for edge in _edges(name, plan)),
        terminals=terminals,
        limits=limits,
    )


async def _node(_state: State, plans: Plans) -> NodeResult:
    step = current_step()
    visit = plans[step.node].visit(step.execution)
    if step.attempt <= visit.failing:
        return NodeResult(error="configured to fail")
    decisions: dict[str, NodeDecision] = {"": Next(), "continue": Continue(), "end": End()}
    return NodeResult(
        update={"v": visit.value}, decision=decisions.get(visit.decision) or Goto(visit.decision)
    )
