"""Edges that ask the decider: one question, the declared fallback for everything that goes wrong.

Covers: pipeline/graph/execution/edge_selection.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import GraphError
from pipeline.graph.definition.ports import Candidate, Choice, RouteQuestion
from pipeline.graph.definition.spec import (
    EdgeSpec,
    Goal,
    GraphSpec,
    Limits,
    LlmDecide,
    OnFailure,
    OnSuccess,
    When,
)
from pipeline.graph.execution.executor import Executor
from pipeline.graph.run.events import EdgeTraversed
from tests.pipeline.graph.runs import Heard, built, fails, ran, writes
from tests.pipeline.graph.written import edge_of

ASKED = (
    edge_of("a>b", LlmDecide("it is about money")),
    edge_of("a>c", LlmDecide("it is about something else"), fallback=True),
)
GOAL = Goal(description="answer", success_criteria=("friendly",), constraints=("short",))


class Decides:
    """A decider that notes its questions."""

    def __init__(self, answer: Callable[[], Any]) -> None:
        self.questions: list[RouteQuestion] = []
        self._answer = answer

    async def decide(self, question: RouteQuestion, _context: None) -> Choice:
        self.questions.append(question)
        answer = self._answer()
        if isinstance(answer, Awaitable):
            answer = await answer
        chosen: Choice = answer
        return chosen


def names(target: Any, reasoning: str = "") -> Decides:
    return Decides(lambda: Choice(target=target, reasoning=reasoning))


def asking(*others: EdgeSpec | str, **fields: Any) -> GraphSpec[Any]:
    return built(*ASKED, *others, nodes={"a": writes(x=1)}, **fields)


async def test_the_decider_names_the_target_and_its_reasoning_is_for_logs_only() -> None:
    run = await ran(asking(), decider=names("b", "money was mentioned"))
    assert run.outcome.path == ("a", "b")
    assert run.heard.of(EdgeTraversed) == [EdgeTraversed("a", "b", "money was mentioned")]
    assert "money was mentioned" not in str(run.outcome.state)
    assert run.heard.problems == []


async def test_it_is_asked_once_with_the_goal_the_output_and_all_candidates() -> None:
    decider = names("b")
    await ran(asking(goal=GOAL), {"before": 7}, decider=decider)
    assert decider.questions == [
        RouteQuestion(
            goal=GOAL,
            node="a",
            output={"x": 1},
            candidates=(
                Candidate(target="b", description="it is about money"),
                Candidate(target="c", description="it is about something else"),
            ),
        )
    ]


async def test_white_space_around_its_answer_does_not_matter_but_case_does() -> None:
    assert (await ran(asking(), decider=names(" b\n"))).outcome.path == ("a", "b")
    assert (await ran(asking(), decider=names("B"))).outcome.path == ("a", "c")


def _broken() -> Choice:
    raise ConnectionError("the model is away")


@pytest.mark.parametrize(
    ("decider", "problem"),
    [
        (None, "there is no decider"),
        (names("ghost"), "the decider named none of the candidates"),
        (names(""), "the decider named none of the candidates"),
        (Decides(_broken), "the decider failed: ConnectionError: the model is away"),
        (names(None), "the decider failed: AttributeError"),
        (Decides(lambda: None), "the decider failed: AttributeError"),
    ],
)
async def test_without_a_usable_answer_the_fallback_is_taken_and_an_event_says_why(
    decider: Decides | None, problem: str
) -> None:
    run = await ran(asking(), decider=decider)
    assert run.outcome.path == ("a", "c")
    assert (run.outcome.status, run.outcome.quality) == ("completed", "clean")
    assert [(event.source, event.target) for event in run.heard.problems] == [("a", "c")]
    assert run.heard.problems[0].problem.startswith(problem)


@pytest.mark.parametrize(("limits", "seconds"), [(Limits(), 30), (Limits(decide_seconds=2), 2)])
async def test_an_answer_that_takes_too_long_is_none(limits: Limits, seconds: float) -> None:
    clock, heard = ManualClock(), Heard()
    executor: Executor[Any, Any] = Executor(
        asking(limits=limits), clock=clock, decider=Decides(lambda: asyncio.Event().wait())
    )
    async with asyncio.TaskGroup() as group:
        run = group.create_task(executor.run({}, None, listener=heard))
        await clock.advance(seconds - 1)
        assert not run.done()
        await clock.advance(1)
    assert run.result().path == ("a", "c")
    assert "TimeoutError" in heard.problems[0].problem


async def test_the_time_to_decide_must_be_some() -> None:
    with pytest.raises(GraphError, match="limits: decide_seconds must be above 0"):
        asking(limits=Limits(decide_seconds=0))


async def test_a_conditional_edge_that_holds_spares_the_question() -> None:
    decider = names("b")
    graph = asking(edge_of("a>d", When("x == 1")))
    assert (await ran(graph, decider=decider)).outcome.path == ("a", "d")
    assert decider.questions == []


async def test_no_question_is_asked_after_a_failure() -> None:
    decider = names("b")
    graph = built(*ASKED, edge_of("a>d", OnFailure()), nodes={"a": fails(permanent=True)})
    assert (await ran(graph, decider=decider)).outcome.path == ("a", "d")
    assert decider.questions == []


async def test_an_always_edge_is_not_taken_beside_the_answer_and_an_on_success_edge_is() -> None:
    run = await ran(asking("a>d"), decider=names("b"))
    assert run.heard.traversed == [("a", "b")]
    run = await ran(asking(edge_of("a>d", OnSuccess())), decider=names("b"))
    assert run.heard.traversed == [("a", "b"), ("a", "d")]


async def test_the_mapping_of_the_chosen_edge_is_the_one_that_counts() -> None:
    edges = (
        edge_of("a>b", LlmDecide("one"), mapping={"as_b": "x"}),
        edge_of("a>c", LlmDecide("other"), mapping={"as_c": "x"}, fallback=True),
    )
    graph = built(*edges, edge_of("c>d", When("as_c == 1")), "c>e", nodes={"a": writes(x=1)})
    assert (await ran(graph, decider=names("c"))).outcome.path == ("a", "c", "d")


async def test_a_cancellation_while_the_decider_thinks_is_no_answer() -> None:
    thinking = asyncio.Event()

    def waits() -> Awaitable[bool]:
        thinking.set()
        return asyncio.Event().wait()

    async with asyncio.TaskGroup() as group:
        run = group.create_task(Executor(asking(), decider=Decides(waits)).run({}, None))
        await thinking.wait()
        run.cancel()
    assert run.cancelled()
