"""The evals of whole sessions: the figures that a change may not lower."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest

from evals import sessions
from evals.__main__ import EVALS


async def test_a_summary_keeps_what_it_should_and_no_secret() -> None:
    report = await sessions.run_summaries()
    figures = json.loads(report.splitlines()[-1])
    assert figures["eval"] == "summaries"
    assert figures["right"] == 1.0, report
    assert "newly wrong" not in report


@pytest.mark.parametrize(
    ("run", "least"),
    [(sessions.run_exercise_memory, 0.9), (sessions.run_trajectory, 0.7)],
    ids=["exercise_memory", "trajectory"],
)
async def test_sessions_in_a_running_gateway_go_as_labelled(
    run: Callable[[], Awaitable[str]], least: float
) -> None:
    report = await run()
    figures = json.loads(report.splitlines()[-1])
    assert figures["right"] >= least, report
    assert "newly wrong" not in report


def test_there_are_sessions_enough_of_each_kind() -> None:
    kinds = Counter(case["kind"] for case in sessions.read_cases("trajectory"))
    assert kinds["short"] >= 8
    assert kinds["long"] >= 6
    assert kinds["memory"] >= 8
    assert len(sessions.read_cases("exercise_memory")) >= 10
    assert len(sessions.read_cases("summaries")) >= 13


def test_the_evals_are_called_by_their_names() -> None:
    assert {"summaries", "trajectory", "exercise_memory"} <= EVALS.keys()
