"""Every order in which a workflow can go is explored: what is wrong is shown by the shortest way to it.

Covers: pipeline/workflows/exploring/explorer.py, pipeline/workflows/exploring/endless.py,
pipeline/workflows/exploring/meaning.py, pipeline/workflows/exploring/orders.py,
pipeline/workflows/exploring/reading_runs.py, pipeline/workflows/exploring/engine.py,
pipeline/workflows/exploring/forking.py, pipeline/workflows/exploring/ready_loop.py,
pipeline/workflows/exploring/reduction.py, pipeline/workflows/exploring/outcomes.py.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import pytest

from pipeline.graph.execution.held_back import HeldBack
from pipeline.graph.execution.step import Step
from pipeline.graph.run import apply as applying
from pipeline.graph.run import transitions
from pipeline.graph.run.frames import Frame
from pipeline.graph.run.state import Run as EngineRun
from pipeline.workflows.exploring.explorer import explore
from pipeline.workflows.exploring.findings import Explored
from pipeline.workflows.exploring.meaning import Meaning
from pipeline.workflows.exploring.shown import in_words
from pipeline.workflows.reading import read_workflow
from tests.pipeline.workflows.documents import Plain, agent, approval, choice, document, start, way

TRIAGE = Path(__file__).parents[3] / "examples" / "workflows" / "triage.workflow.json"


def _explored(*nodes: Plain, routes: Sequence[Plain], bound: int = 2_000) -> Explored:
    return explore(read_workflow(document(*nodes, routes=routes)), bound)


def _what(explored: Explored) -> str:
    assert explored.counterexample is not None
    return explored.counterexample.what


def _beside_an_approval() -> tuple[tuple[Plain, ...], list[Plain]]:
    """Two branches of two agents beside an approval."""
    nodes = (start(), approval("ok"), *map(agent, ("a", "b", "c", "d", "e")))
    routes = [way("start > ok"), way("start > a"), way("start > c"), way("a > b"), way("c > d")]
    return nodes, [*routes, way("ok > e", "approve")]


def _ten_beside_an_approval() -> tuple[tuple[Plain, ...], list[Plain]]:
    """Ten branches of two agents beside an approval."""
    nodes = [agent(f"{name}{at}") for name in "ab" for at in range(10)]
    routes = [way(f"start > a{at}") for at in range(10)] + [way(f"a{at} > b{at}") for at in range(10)]
    approved = [way("start > ok"), way("ok > after", "approve")]
    return (start(), approval("ok"), agent("after"), *nodes), [*routes, *approved]


def _unlike_beside_an_approval(count: int = 10) -> tuple[tuple[Plain, ...], list[Plain]]:
    """`count` branches beside an approval, of which no two are alike: a line of one or two agents, a
    condition with a separate text, and one more agent."""
    nodes = [start(), approval("ok"), agent("after")]
    routes = [way("start > ok"), way("ok > after", "approve")]
    for at in range(count):
        line = [f"{name}{at}" for name in "ab"[: at % 2 + 1]]
        nodes += [*map(agent, line), choice(f"if{at}", ("contains", f"word{at}")), agent(f"z{at}")]
        routes += [way(f"{one} > {two}") for one, two in pairwise(["start", *line, f"if{at}"])]
        routes += [way(f"if{at} > z{at}", "condition-0")]
    return tuple(nodes), routes


def test_the_triage_example_has_no_counterexample() -> None:
    explored = explore(read_workflow(TRIAGE.read_text("utf-8")))
    assert (explored.counterexample, explored.bounded) == (None, False)
    # Sorting, drafting, the review, the rewriting, the answer to a question, and both ends.
    assert explored.states == 7


def test_six_branches_at_the_same_time_are_explored_to_their_end() -> None:
    nodes = [agent(f"{name}{at}") for name in "ab" for at in range(6)]
    routes = [way(f"start > a{at}") for at in range(6)] + [way(f"a{at} > b{at}") for at in range(6)]
    explored = _explored(start(), *nodes, routes=routes)
    assert (explored.counterexample, explored.bounded) == (None, False)


def test_ten_branches_beside_an_approval_are_explored_to_their_end_as_one_form() -> None:
    explored = _explored(*_ten_beside_an_approval()[0], routes=_ten_beside_an_approval()[1])
    assert (explored.counterexample, explored.bounded) == (None, False)
    # By name there are some ten thousand: which of the branches is where.
    assert explored.states < 200


def test_ten_unlike_branches_beside_an_approval_are_explored_to_their_end() -> None:
    nodes, routes = _unlike_beside_an_approval()
    explored = _explored(*nodes, routes=routes)
    assert (explored.counterexample, explored.bounded) == (None, False)
    # The branches' outcomes alone, each beside each of the others', are more than 3 ** 10.
    assert explored.states < 1_000


@pytest.mark.parametrize("last", ["z4", "b7"])
def test_a_dead_end_of_one_of_ten_unlike_branches_is_found(last: str) -> None:
    nodes, routes = _unlike_beside_an_approval()
    # Where the first has matched, the second matches too, so its way out is never taken.
    fork = (choice("one", ("contains", "yes")), choice("two", ("contains", "yes")))
    routes = [one for one in routes if one["source"] != last] + [way(f"{last} > one")]
    routes += [way("one > two", "condition-0"), way(f"one > {last}", "false")]
    explored = _explored(*nodes, *fork, routes=[*routes, way(f"two > {last}", "condition-0")])
    assert _what(explored).startswith(f"this path never ends: {last} answers ")


def test_unlike_branches_that_together_take_too_many_steps_are_found() -> None:
    # Ten branches of an agent with conditions behind it that never match: none alone is too long.
    nodes, routes = [start()], list[Plain]()
    for at in range(10):
        ifs = [f"if{at}_{number}" for number in range(20 + at)]
        nodes += [agent(f"a{at}"), *(choice(name, ("equal", "")) for name in ifs)]
        routes += [way(f"start > a{at}"), way(f"a{at} > {ifs[0]}")]
        routes += [way(f"{one} > {two}", "false") for one, two in pairwise(ifs)]
    assert "more than the 200 steps" in _what(_explored(*nodes, routes=routes))


def test_branches_that_differ_anywhere_are_explored_apart() -> None:
    nodes = (start(), agent("a"), agent("b"), choice("c", ("contains", "yes")), agent("d"), approval("e"))
    routes = [way("start > a"), way("start > b"), way("a > c"), way("c > d", "condition-0"), way("b > e")]
    meaning = Meaning(read_workflow(document(*nodes, routes=[*routes, way("e > d", "reject")])))
    assert len({meaning.kind(name) for name in ("start", "a", "b", "c", "d", "e")}) == 6
    same = (start(), agent("a"), agent("b"), agent("c"), agent("d"))
    alike = Meaning(
        read_workflow(document(*same, routes=[*map(way, ("start > a", "start > b", "a > c", "b > d"))]))
    )
    assert (alike.kind("a"), alike.kind("c")) == (alike.kind("b"), alike.kind("d"))
    assert alike.kind("a") != alike.kind("c")


def test_nodes_on_a_circle_are_like_no_other() -> None:
    nodes = (start(), agent("a"), agent("b"), choice("c", ("contains", "yes")))
    routes = [way("start > a"), way("a > b"), way("b > c"), way("c > a", "false")]
    meaning = Meaning(read_workflow(document(*nodes, routes=routes)))
    assert meaning.kind("a") != meaning.kind("b")


def test_three_branches_with_an_approval_each_are_explored_to_their_end() -> None:
    nodes = [agent(f"{name}{at}") for name in "ab" for at in range(3)]
    gates = [approval(f"g{at}", expiresSeconds=60) for at in range(3)]
    routes = [way(f"start > a{at}") for at in range(3)] + [way(f"a{at} > g{at}") for at in range(3)]
    routes += [way(f"g{at} > b{at}", "approve") for at in range(3)]
    explored = _explored(start(), *nodes, *gates, routes=routes)
    assert (explored.counterexample, explored.bounded) == (None, False)


def test_a_circle_without_a_way_out_is_reported_with_the_way_to_it() -> None:
    explored = _explored(
        start(),
        *map(agent, "cab"),
        routes=[way("start > c"), way("c > a"), way("a > b"), way("b > a")],
    )
    found = explored.counterexample
    assert found is not None
    assert found.what == "this path never ends: a -> b -> a; add a condition or an approval that leads out"
    assert (found.steps, found.back_to) == (("start", "c", "a", "b"), 2)


@pytest.mark.parametrize("out", ["condition", "approval"])
def test_a_circle_that_something_leads_out_of_ends(out: str) -> None:
    fork = choice("out", ("contains", "done")) if out == "condition" else approval("out")
    back = "false" if out == "condition" else "reject"
    routes = [way("start > a"), way("a > out"), way("out > a", back)]
    assert _explored(start(), agent("a"), fork, routes=routes).counterexample is None


def test_a_condition_that_never_matches_leads_out_of_no_circle() -> None:
    routes = [way("start > a"), way("a > out"), way("out > a", "false")]
    explored = _explored(start(), agent("a"), choice("out", ("contains", " ")), routes=routes)
    assert _what(explored).startswith("this path never ends: a -> out -> a")


def test_conditions_on_the_same_output_are_taken_together() -> None:
    # Where the first has matched, the second matches too, so its way out is never taken.
    nodes = (
        start(),
        *map(agent, "ab"),
        choice("one", ("contains", "yes")),
        choice("two", ("contains", "ye")),
    )
    routes = [way("start > a"), way("a > one"), way("one > two", "condition-0"), way("b > a")]
    routes += [way("two > b", "condition-0"), way("one > b", "false")]
    found = _explored(*nodes, routes=routes).counterexample
    assert found is not None
    assert found.what == 'this path never ends: a answers "ok" -> b answers -> a answers "ok"'
    assert (found.steps, found.back_to) == (("start", 'a answers "ok"', "b answers"), 1)


def test_conditions_that_lead_to_each_other_with_the_same_output_never_end() -> None:
    nodes = (start(), agent("a"), choice("one", ("contains", "yes")), choice("two", ("equal", "yes")))
    routes = [way("start > a"), way("a > one"), way("one > two", "condition-0")]
    found = _explored(*nodes, routes=[*routes, way("two > one", "condition-0")]).counterexample
    assert found is not None
    assert found.what.startswith("this path never ends: one -> two -> one; nothing between")
    assert found.steps == ("start", 'a answers "yes"')


def test_a_path_that_is_longer_than_a_run_may_be_is_reported() -> None:
    # Ten agents, each followed by twenty conditions that never match.
    names = [[f"a{at}", *(f"i{at}_{number}" for number in range(20))] for at in range(10)]
    nodes = [agent(name) if name.startswith("a") else choice(name, ("equal", "")) for name in chain(*names)]
    routes = [way("start > a0")]
    for one, other in pairwise(chain(*names)):
        routes.append(way(f"{one} > {other}", "" if one.startswith("a") else "false"))
    what = _what(_explored(start(), *nodes, routes=routes))
    assert what == "this path takes more than the 200 steps that a run may take"


def test_branches_that_people_may_add_without_end_are_no_mistake_and_reach_the_bound() -> None:
    routes = [way("start > ok"), way("ok > ok", "approve"), way("ok > a", "approve")]
    explored = _explored(start(), approval("ok"), agent("a"), routes=routes)
    assert (explored.counterexample, explored.bounded) == (None, True)


def test_the_bound_is_said_in_words() -> None:
    nodes, routes = _beside_an_approval()
    explored = _explored(*nodes, routes=routes, bound=5)
    (line,) = in_words(explored)
    assert explored.bounded
    assert "the bound was reached, so there is more that was not looked at: --bound N looks at" in line


# -- faults of the engine, each put into it for one test ------------------------------------------


def test_an_engine_that_forgets_what_was_held_back_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HeldBack, "has_more", lambda _self: False)
    nodes, routes = _beside_an_approval()
    found = _explored(*nodes, routes=routes).counterexample
    assert found is not None
    assert found.what == "the run waits for no one and does not continue"
    # Breadth first: the shortest way needs one held-back agent alone.
    assert found.steps[-1] in ("ok: approve", "ok: reject")


def test_an_engine_that_loses_a_branch_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = transitions.split

    def one_less(run: EngineRun, frame: Frame, targets: tuple[str, ...], inputs: Any) -> None:
        whole(run, frame, targets[1:] if len(targets) > 2 else targets, inputs)

    monkeypatch.setattr(transitions, "split", one_less)
    nodes, routes = _beside_an_approval()
    assert _what(_explored(*nodes, routes=routes)) == "a branch is lost: ok should be reached"


def test_an_engine_that_works_twice_after_a_kill_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Step.effect

    async def forgetful(step: Step, key: str, call: Any, *, repeatable: bool = False) -> Any:
        step.frame.effects.pop(key, None)
        return await whole(step, key, call, repeatable=repeatable)

    monkeypatch.setattr(Step, "effect", forgetful)
    found = _explored(start(), agent("a"), agent("b"), routes=[way("start > a"), way("a > b")]).counterexample
    assert found is not None
    assert found.steps == ("start", "a answers", "the process is killed and starts again")
    assert "a" in found.what


def test_an_engine_that_mixes_the_outputs_of_branches_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = applying.values_after

    def mixed(run: EngineRun, frame: Frame, update: Any, inner: Any = None) -> dict[str, Any]:
        found = whole(run, frame, update, inner)
        return {**found, "previous": "mixed"} if frame.node == "a" and not frame.prefix else found

    monkeypatch.setattr("pipeline.graph.execution.surfacing.values_after", mixed)
    explored = _explored(start(), agent("a"), agent("b"), routes=[way("start > a"), way("a > b")])
    assert _what(explored) == "b gets another output than the one before it"


def _forgets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HeldBack, "has_more", lambda _self: False)


def _loses_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = transitions.split

    def one_less(run: EngineRun, frame: Frame, targets: tuple[str, ...], inputs: Any) -> None:
        whole(run, frame, targets[:-1] if len(targets) > 2 else targets, inputs)

    monkeypatch.setattr(transitions, "split", one_less)


def _mixes_one(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = applying.values_after

    def mixed(run: EngineRun, frame: Frame, update: Any, *inner: Any) -> dict[str, Any]:
        found = whole(run, frame, update, *inner)
        return {**found, "previous": "mixed"} if frame.node == "a5" else found

    for module in ("run_loop", "surfacing"):
        monkeypatch.setattr(f"pipeline.graph.execution.{module}.values_after", mixed)


def _works_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Step.effect

    async def forgetful(step: Step, key: str, call: Any, *, repeatable: bool = False) -> Any:
        step.frame.effects.pop(key, None)
        return await whole(step, key, call, repeatable=repeatable)

    monkeypatch.setattr(Step, "effect", forgetful)


@pytest.mark.parametrize(
    ("plant", "words"),
    [
        (_forgets, "does not continue"),
        (_loses_the_last, "a branch is lost"),
        (_mixes_one, "another output than the one before it"),
        (_works_twice, ""),
    ],
)
def test_a_fault_is_found_among_ten_branches_that_are_alike(
    monkeypatch: pytest.MonkeyPatch, plant: Callable[[pytest.MonkeyPatch], None], words: str
) -> None:
    plant(monkeypatch)
    nodes, routes = _ten_beside_an_approval()
    assert words in _what(_explored(*nodes, routes=routes))


def _drops_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was held back at one node is dropped when its turn comes."""
    whole = HeldBack.has_more

    def one_less(held: HeldBack) -> bool:
        run = held._run
        gone = [one for one in run.deferred if run.frames[one].node == "if6"]
        if gone and not run.halting:
            run.deferred[:] = [one for one in run.deferred if one not in gone]
            for one in gone:
                run.frames[one].status = "ended"
        return whole(held)

    monkeypatch.setattr(HeldBack, "has_more", one_less)


@pytest.mark.parametrize(
    ("plant", "words"),
    [
        (_forgets, "does not continue"),
        (_loses_the_last, "a branch is lost"),
        (_mixes_one, "another output than the one before it"),
        (_works_twice, ""),
        (_drops_one, "a branch is lost"),
    ],
)
def test_a_fault_is_found_among_seven_unlike_branches(
    monkeypatch: pytest.MonkeyPatch, plant: Callable[[pytest.MonkeyPatch], None], words: str
) -> None:
    plant(monkeypatch)
    nodes, routes = _unlike_beside_an_approval(7)
    assert words in _what(_explored(*nodes, routes=routes))


# -- the parts ------------------------------------------------------------------------------------


def test_an_agent_answers_once_for_each_way_through_the_conditions() -> None:
    first = choice("one", ("equal", "refund"), ("contains", "refund"))
    second = choice("two", ("contains", "now"))
    routes = [way("start > a"), way("a > one"), way("a > two")]
    routes += [way("one > a", "condition-0"), way("one > a", "condition-1"), way("two > a", "false")]
    meaning = Meaning(read_workflow(document(start(), agent("a"), first, second, routes=routes)))
    found = {
        tuple(meaning.compared(node, text)[0][1] for node in ("one", "two")) for text in meaning.answers("a")
    }
    assert found == {
        ("false", "false"),
        ("condition-0", "false"),
        ("condition-1", "false"),
        ("false", "condition-0"),
        ("condition-1", "condition-0"),
    }


async def test_exploring_within_a_running_event_loop_leaves_it_as_it_was() -> None:
    here = asyncio.get_running_loop()
    assert explore(read_workflow(json.loads(TRIAGE.read_text("utf-8")))).counterexample is None
    assert asyncio.get_running_loop() is here
    await asyncio.sleep(0)
