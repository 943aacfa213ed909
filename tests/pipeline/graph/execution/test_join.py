"""Where branches meet: how what they wrote is put together, and in which order.

Covers: pipeline/graph/run/transitions.py.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import GraphError
from pipeline.graph.definition.decisions import NodeResult, State
from pipeline.graph.definition.spec import (
    Channel,
    ConflictPolicy,
    FanOut,
    GraphSpec,
    NodeSpec,
    When,
    append,
    custom,
    first,
    last,
    merge,
)
from pipeline.graph.execution.executor import Executor
from pipeline.graph.run.outcome import RunOutcome
from tests.pipeline.graph.runs import Heard, Held, after, built, ran, writes
from tests.pipeline.graph.written import edge_of

TO_JOIN = ("a>b", "a>c", after("b>d"), after("c>d"))


async def met(
    graph: GraphSpec[Any], held: dict[str, Held], *order: str, heard: Heard | None = None
) -> RunOutcome:
    """Run a graph whose branches finish in `order`."""
    clock = ManualClock()
    async with asyncio.TaskGroup() as group:
        run = group.create_task(Executor(graph, clock=clock).run({}, None, listener=heard))
        for name in order:
            await held[name].begun.wait()
            held[name].release.set()
            await clock.advance(0)
    return run.result()


def two(
    b: dict[str, Any],
    c: dict[str, Any],
    policy: ConflictPolicy = "last_wins",
    channels: dict[str, Channel] | None = None,
) -> tuple[GraphSpec[Any], dict[str, Held]]:
    held = {"b": Held(b), "c": Held(c)}
    return built(*TO_JOIN, nodes=held, fan_out=FanOut(on_conflict=policy), channels=channels or {}), held


@pytest.mark.parametrize("order", ["bc", "cb"])
async def test_the_branch_that_finished_last_wins(order: str) -> None:
    outcome = await met(*two({"x": "b"}, {"x": "c"}), *order)
    assert outcome.state == {"x": order[-1]}


@pytest.mark.parametrize("order", ["bc", "cb"])
async def test_the_branch_that_finished_first_wins_under_first_wins(order: str) -> None:
    outcome = await met(*two({"x": "b", "b": 1}, {"x": "c", "c": 1}, "first_wins"), *order)
    assert outcome.state == {"x": order[0], "b": 1, "c": 1}


@pytest.mark.parametrize("order", ["bc", "cb"])
async def test_a_key_that_two_branches_wrote_is_an_error_under_error(order: str) -> None:
    outcome = await met(*two({"x": "b"}, {"x": "c"}, "error"), *order)
    assert (outcome.status, outcome.quality) == ("failed", "failed")
    assert outcome.error is not None
    assert (outcome.error.code, outcome.error.node) == ("memory_conflict", "a")
    assert "d" not in outcome.path
    with pytest.raises(GraphError, match=f"branches {order[0]} and {order[1]} both wrote x"):
        outcome.raise_for_failure()


async def test_the_same_value_twice_is_a_conflict_too() -> None:
    outcome = await met(*two({"x": 1}, {"x": 1}, "error"), *"bc")
    assert outcome.error is not None
    assert outcome.error.code == "memory_conflict"


async def test_different_keys_are_no_conflict() -> None:
    assert (await met(*two({"x": 1}, {"y": 1}, "error"), *"bc")).state == {"x": 1, "y": 1}


async def test_what_a_branch_writes_over_the_state_before_is_no_conflict() -> None:
    graph = built(*TO_JOIN, nodes={"a": writes(x=0), "b": writes(x=1)}, fan_out=FanOut(on_conflict="error"))
    assert (await ran(graph)).outcome.state == {"x": 1}


async def test_a_conflict_in_a_nested_fan_out_counts_as_the_failure_of_its_branch() -> None:
    edges = ("a>b", "a>c", "b>e", "b>f", after("e>g"), after("f>g"), "g>d", "c>d")
    nodes = {
        "a": NodeSpec(run=writes(), fan_out=FanOut(on_failure="continue_others")),
        "e": writes(x=1),
        "f": writes(x=2),
        "c": writes(c=1),
    }
    outcome = (await ran(built(*edges, nodes=nodes, fan_out=FanOut(on_conflict="error")))).outcome
    assert (outcome.status, outcome.quality, outcome.state) == ("completed", "degraded", {"c": 1})
    assert [failure.code for failure in outcome.failures] == ["memory_conflict"]


@pytest.mark.parametrize("policy", ["last_wins", "first_wins", "error"])
@pytest.mark.parametrize("order", ["bc", "cb"])
async def test_channels_combine_in_finishing_order_whatever_the_policy(
    policy: ConflictPolicy, order: str
) -> None:
    channels = {
        "log": append,
        "by": merge,
        "newest": last,
        "oldest": first,
        "text": custom("add", lambda a, b: a + b),
    }
    updates = {
        name: {"log": [name], "by": {"who": name, name: 1}, "newest": name, "oldest": name, "text": name}
        for name in order
    }
    outcome = await met(*two(updates["b"], updates["c"], policy, channels), *order)
    assert outcome.state == {
        "log": tuple(order),
        "by": {"who": order[1], "b": 1, "c": 1},
        "newest": order[1],
        "oldest": order[0],
        "text": order,
    }


async def test_every_update_of_a_branch_counts_and_they_stay_together() -> None:
    graph = built(
        *("a>b", "b>e", "e>d", "a>c", "c>d"),
        nodes={
            "a": writes(log=["a"]),
            "b": writes(log=["b"]),
            "e": writes(log=["e"]),
            "c": (held := Held({"log": ["c"]})),
        },
        channels={"log": append},
    )
    outcome = await met(graph, {"c": held}, "c")
    assert sorted(outcome.state["log"]) == list("abce")
    assert "".join(outcome.state["log"]) in ("abec", "acbe")


async def test_a_failed_branch_leaves_nothing_in_the_state() -> None:
    async def fails_later(state: State, _context: Any) -> NodeResult:
        return NodeResult(error="no", permanent=True)

    graph = built(
        *("a>b", after("b>e"), after("e>d"), "a>c", after("c>d")),
        nodes={"b": writes(x=1), "e": fails_later, "c": writes(y=1)},
        fan_out=FanOut(on_failure="continue_others"),
    )
    assert (await ran(graph)).outcome.state == {"y": 1}


async def test_a_channel_that_cannot_take_what_the_branches_wrote_fails_the_run_in_words() -> None:
    channels = {"x": custom("picky", lambda a, b: a // b)}
    outcome = await met(*two({"x": 1}, {"x": 0}, channels=channels), *"bc")
    assert outcome.error is not None
    assert outcome.error.code == "bad_update"
    assert outcome.error.message.startswith("channel picky cannot combine: ZeroDivisionError")


async def test_the_listener_hears_in_which_order_the_branches_finished() -> None:
    heard = Heard()
    await met(*two({}, {}), *"cb", heard=heard)
    assert [(join.source, join.join, join.finished, join.failed) for join in heard.joined] == [
        ("a", "d", ("c", "b"), ())
    ]


async def test_the_join_sees_the_mappings_of_all_its_branches() -> None:
    seen: list[dict[str, Any]] = []

    async def d(state: State, _context: Any) -> NodeResult:
        seen.append(dict(state))
        return NodeResult()

    edges = ("a>b", "a>c", after("b>d", mapping={"from_b": "x"}), after("c>d", mapping={"from_c": "y"}))
    outcome = (await ran(built(*edges, nodes={"b": writes(x=1), "c": writes(y=2), "d": d}))).outcome
    assert seen == [{"x": 1, "y": 2, "from_b": 1, "from_c": 2}]
    assert outcome.state == {"x": 1, "y": 2}


async def test_only_the_policies_that_continue_after_failures_give_the_join_results_and_errors() -> None:
    for policy, expected in (("fail_all", False), ("continue_others", True), ("wait_all", True)):
        seen: list[State] = []

        async def d(state: State, _context: Any, seen: list[State] = seen) -> NodeResult:
            seen.append(state)
            return NodeResult()

        graph = built(*TO_JOIN, "d>e", nodes={"d": d, "e": d}, fan_out=FanOut(on_failure=policy))  # type: ignore[arg-type]  # looped over
        await ran(graph)
        assert ["fanout" in state for state in seen] == [expected, False]


async def test_the_results_of_a_branch_are_what_it_wrote_last_under_each_key() -> None:
    seen: list[State] = []

    async def d(state: State, _context: Any) -> NodeResult:
        seen.append(state)
        return NodeResult()

    graph = built(
        *("a>b", "b>e", "e>d", "a>c", "c>d"),
        nodes={"b": writes(x=1, y=1), "e": writes(x=2), "d": d},
        fan_out=FanOut(on_failure="wait_all"),
    )
    await ran(graph)
    assert seen[0]["fanout"]["results"] == {"b": {"x": 2, "y": 1}, "c": {}}
    assert seen[0]["fanout"]["errors"] == {}


async def test_a_fan_out_may_be_repeated() -> None:
    async def d(state: State, _context: Any) -> NodeResult:
        return NodeResult(update={"rounds": state.get("rounds", 0) + 1})

    graph = built(
        *("a>b", "a>c", "b>d", "c>d", edge_of("d>a", When("rounds < 3")), "d>"),
        nodes={"b": writes(log=["b"]), "c": writes(log=["c"]), "d": d},
        channels={"log": append},
    )
    outcome = (await ran(graph)).outcome
    assert outcome.state["rounds"] == 3
    assert sorted(outcome.state["log"]) == list("bbbccc")
