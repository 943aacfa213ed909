"""The workflow bench: our side does its work. The other side needs LangGraph."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.graph_work import Case, check_state
from bench.workflow_ours import Ours
from bench.workflows import PAIRINGS


@pytest.mark.parametrize("key", list(PAIRINGS))
async def test_our_side_ends_each_run_with_the_answer_that_is_expected(key: str, tmp_path: Path) -> None:
    case: Case = PAIRINGS[key].ours
    ours = Ours(tmp_path)
    try:
        for number, turn in enumerate(await ours.prepare(case, 2)):
            check_state(case, number, await turn())
    finally:
        await ours.close()
