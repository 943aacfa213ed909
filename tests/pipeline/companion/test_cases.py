"""The cases of the evals: none that was right in the recorded run is wrong now."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable

import pytest

from evals.companion import run_exercises, run_routing


@pytest.mark.parametrize(
    ("run", "cases", "least"),
    [(run_routing, 120, 0.9), (run_exercises, 100, 0.95)],
    ids=["routing", "exercises"],
)
async def test_no_case_of_the_record_has_become_wrong(
    run: Callable[[], Awaitable[str]], cases: int, least: float
) -> None:
    said = await run()
    figures = json.loads(said.splitlines()[-1])
    assert "newly wrong" not in said
    assert "Recorded run" in said
    assert figures["cases"] >= cases
    assert figures["right"] >= least
