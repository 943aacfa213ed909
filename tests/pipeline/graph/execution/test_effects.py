"""Effects: done once over crashes and attempts, durable before they begin, honest when no one knows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import GraphError
from pipeline.graph.definition.decisions import Goto, NodeResult, State
from pipeline.graph.definition.spec import END, EdgeSpec, GraphSpec, NodeSpec, RetryPolicy, Route
from pipeline.graph.execution.executor import Executor
from pipeline.graph.execution.step import EffectUnknown, current_step
from pipeline.graph.run.events import Checkpointed
from tests.pipeline.graph.running import Events, Writing, graph
from tests.support.graph_log import MemoryRunLog

TWICE = RetryPolicy(max_attempts=2, delay_s=0.0)


class World:
    """What effects are done to: each call is counted, and may fail or never return."""

    def __init__(self, *results: Any) -> None:
        self.calls = 0
        self.begun = asyncio.Event()
        self._results = results

    async def __call__(self) -> Any:
        self.calls += 1
        self.begun.set()
        result = self._results[min(self.calls, len(self._results)) - 1] if self._results else None
        if isinstance(result, asyncio.Event):
            await result.wait()
        if isinstance(result, Exception):
            raise result
        return result


def _executor(built: GraphSpec[None, State]) -> Executor[None, State]:
    return Executor(built, clock=ManualClock())


def _doing(
    world: Callable[[], Awaitable[Any]], *, failures: int = 0, repeatable: bool = False
) -> NodeSpec[None, State]:
    """A node that does one effect, then fails so many times."""
    calls: list[int] = []

    async def node(_state: State, _context: None) -> NodeResult:
        calls.append(1)
        result = await current_step().effect("send", world, repeatable=repeatable)
        if len(calls) <= failures:
            raise ValueError("behind the effect")
        return NodeResult(update={"receipt": result})

    return NodeSpec(run=node, retry=TWICE)


def _states(log: MemoryRunLog) -> list[str]:
    return [record["state"] for record in log.records if record and record["do"] == "effect"]


async def test_an_effect_is_done_once_over_the_attempts_of_a_visit() -> None:
    world = World({"id": 7})
    outcome = await _executor(graph({"a": _doing(world, failures=1)})).run({}, None)
    assert (world.calls, outcome.retries) == (1, 1)
    assert outcome.state == {"receipt": {"id": 7}}


async def test_an_effect_is_done_once_over_a_crash() -> None:
    world, log, events = World(["receipt"]), MemoryRunLog(), Events()
    built = graph({"a": Writing(), "b": _doing(world), "c": Writing()}, "a>b", "b>c")
    await _executor(built).run({}, None, log=log, listener=events)
    assert _states(log) == ["began", "done"]
    assert events.heard.count(Checkpointed("effect", "b")) == 2
    outcome = await _executor(built).resume(log.cut(3).records, None)
    assert world.calls == 1
    assert outcome.state == {"receipt": ("receipt",)}


async def test_all_records_are_durable_before_the_call_and_the_beginning_is_among_them() -> None:
    log = MemoryRunLog()

    async def world() -> None:
        assert _states(log) == ["began"]
        assert log.durable == len(log.texts) == 2

    built = graph({"a": Writing(), "b": _doing(world)}, "a>b")
    assert (await _executor(built).run({}, None, log=log)).status == "completed"


async def test_a_barrier_makes_everything_before_it_durable() -> None:
    log = MemoryRunLog()

    async def node(_state: State, _context: None) -> NodeResult:
        assert log.durable == 0
        await current_step().barrier()
        assert log.durable == 1
        return NodeResult()

    assert (await _executor(graph({"a": Writing(), "b": node}, "a>b")).run({}, None, log=log)).status == (
        "completed"
    )


async def test_an_effect_that_had_begun_when_the_process_died_is_not_repeated() -> None:
    world, log = World(1), MemoryRunLog()
    built = graph({"a": Writing(), "b": _doing(world)}, "a>b")
    await _executor(built).run({}, None, log=log)
    outcome = await _executor(built).resume(log.cut(2).records, None)
    assert world.calls == 1
    assert outcome.status == "failed"
    assert outcome.error is not None
    assert (outcome.error.code, outcome.error.attempts) == ("effect_unknown", 1)
    assert "send" in outcome.error.message


async def test_a_repeatable_effect_is_repeated_when_no_one_knows() -> None:
    world, log = World(1, 2), MemoryRunLog()
    built = graph({"a": Writing(), "b": _doing(world, repeatable=True)}, "a>b")
    await _executor(built).run({}, None, log=log)
    cut = log.cut(2)
    outcome = await _executor(built).resume(cut.records, None, log=cut)
    assert (world.calls, outcome.state) == (2, {"receipt": 2})
    assert _states(cut) == ["began", "began", "done"]


async def test_a_repeatable_effect_that_was_done_is_not_repeated() -> None:
    world = World(1)
    outcome = await _executor(graph({"a": _doing(world, failures=1, repeatable=True)})).run({}, None)
    assert (world.calls, outcome.status) == (1, "completed")


async def test_an_effect_that_was_cut_off_is_unknown_to_the_next_attempt() -> None:
    clock, world = ManualClock(), World(asyncio.Event(), 2)
    spec = NodeSpec(run=_doing(world).run, retry=TWICE, timeout_s=5.0)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(Executor(graph({"a": spec}), clock=clock).run({}, None))
        await clock.advance(6)
    assert world.calls == 1
    error = running.result().error
    assert error is not None
    assert isinstance(error.exception, EffectUnknown)


async def test_an_effect_that_failed_may_be_tried_again() -> None:
    world, log = World(ConnectionError("refused"), "sent"), MemoryRunLog()
    outcome = await _executor(graph({"a": _doing(world)})).run({}, None, log=log)
    assert (world.calls, outcome.state) == (2, {"receipt": "sent"})
    assert _states(log) == ["began", "failed", "began", "done"]


async def test_an_effect_that_failed_may_be_tried_again_after_a_crash() -> None:
    world, log = World(ConnectionError("refused"), "sent"), MemoryRunLog()
    built = graph({"a": Writing(), "b": _doing(world)}, "a>b")
    await _executor(built).run({}, None, log=log)
    outcome = await _executor(built).resume(log.cut(3).records, None)
    assert (world.calls, outcome.state) == (3, {"receipt": "sent"})


async def test_an_effect_whose_result_cannot_be_recorded_is_not_taken_for_a_failed_one() -> None:
    world, log = World(object()), MemoryRunLog()
    calls: list[type[Exception]] = []

    async def node(_state: State, _context: None) -> NodeResult:
        for _ in range(2):
            try:
                await current_step().effect("send", world)
            except GraphError as error:
                calls.append(type(error))
        return NodeResult()

    await _executor(graph({"a": node})).run({}, None, log=log)
    assert world.calls == 1
    assert calls == [GraphError, EffectUnknown]
    assert _states(log) == ["began"]


async def test_a_recorded_result_cannot_be_changed_by_who_gave_it() -> None:
    given = {"list": [1]}

    async def world() -> dict[str, list[int]]:
        return given

    async def node(_state: State, _context: None) -> NodeResult:
        await current_step().effect("send", world)
        given["list"].append(2)
        return NodeResult(update={"again": await current_step().effect("send", world)})

    outcome = await _executor(graph({"a": node})).run({}, None)
    assert outcome.state == {"again": {"list": (1,)}}


async def test_effects_with_other_keys_and_in_other_visits_are_others() -> None:
    world = World(1, 2, 3, 4)

    async def node(state: State, _context: None) -> NodeResult:
        first = await current_step().effect("one", world)
        second = await current_step().effect("two", world)
        again = "seen" not in state
        return NodeResult(update={"seen": [first, second]}, decision=Goto("a" if again else "end"))

    outcome = await _executor(graph({"a": node})).run({}, None)
    assert (world.calls, outcome.state) == (4, {"seen": (3, 4)})


async def test_a_further_visit_along_an_edge_does_its_effects_again() -> None:
    world = World(1, 2)

    async def node(_state: State, _context: None) -> NodeResult:
        return NodeResult(update={"receipt": await current_step().effect("send", world)})

    back = Route(lambda state: "a" if state["receipt"] < 2 else END, ("a", END))
    built = graph({"a": node, "b": Writing()}, "a>b", EdgeSpec(source="b", when=back))
    outcome = await _executor(built).run({}, None)
    assert (world.calls, outcome.state) == (2, {"receipt": 2})


async def test_effects_of_branches_do_not_know_each_other() -> None:
    left, right, log = World("l"), World("r"), MemoryRunLog()
    built = graph(
        {"a": Writing(), "l": _doing(left, failures=1), "r": _doing(right), "z": Writing()},
        *("a>l", "a>r", "l>z", "r>z"),
    )
    await _executor(built).run({}, None, log=log)
    assert (left.calls, right.calls) == (1, 1)
    frames = [record["frame"] for record in log.records if record and record["do"] == "effect"]
    assert sorted(frames) == ["/l", "/l", "/r", "/r"]


@pytest.mark.parametrize("length", range(1, 8))
async def test_effects_inside_a_subgraph_are_done_once_over_a_crash_behind_any_record(length: int) -> None:
    world, log = World(1, 2), MemoryRunLog()
    inner = graph({"p": Writing(), "q": _doing(world, repeatable=True)}, "p>q")
    built = graph({"a": Writing(), "s": NodeSpec(subgraph=inner)}, "a>s")
    whole = await _executor(built).run({}, None, log=log)
    assert [record["do"] for record in log.records if record] == (
        ["step", "enter", "step", "effect", "effect", "step", "step", "end"]
    )
    outcome = await _executor(built).resume(log.cut(length).records, None)
    assert (outcome.status, outcome.path) == ("completed", whole.path)
    assert world.calls == (2 if length < 5 else 1)


def test_outside_a_run_there_is_no_step() -> None:
    with pytest.raises(GraphError, match="there is no step"):
        current_step()


async def test_a_step_says_where_it_is_and_ends_with_its_node() -> None:
    seen: list[tuple[str, str, int, int]] = []

    async def node(_state: State, _context: None) -> NodeResult:
        step = current_step()
        seen.append((step.run_id, step.node, step.execution, step.attempt))
        return NodeResult()

    inner = graph({"p": node})
    await _executor(graph({"s": NodeSpec(subgraph=inner)})).run({}, None, run_id="r")
    assert seen == [("r", "s.p", 1, 1)]
    with pytest.raises(GraphError):
        current_step()


@pytest.mark.parametrize(
    ("update", "words"),
    [({"other": 1}, "not declared in writes"), ({"answers": {}}, "only the engine writes")],
    ids=["undeclared", "reserved"],
)
async def test_a_node_keeps_only_what_it_may_write(update: State, words: str) -> None:
    async def node(_state: State, _context: None) -> NodeResult:
        current_step().keep(update)
        return NodeResult(update={"mine": 1})

    declared = NodeSpec[None](run=node, writes=("mine",))
    outcome = await Executor(GraphSpec[None](name="g", entry="a", nodes={"a": declared}, edges=())).run(
        {}, None
    )
    assert outcome.error is not None
    assert words in outcome.error.message
