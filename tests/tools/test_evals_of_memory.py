"""The evals of memory: the figures that a change may not lower, and the comparison with a recorded run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evals import memory, recorded_runs
from evals.__main__ import EVALS


async def test_the_extraction_states_no_more_than_is_said() -> None:
    report = await memory.run_extraction()
    figures = json.loads(report.splitlines()[-1])
    assert figures["eval"] == "extraction"
    assert figures["facts_held_out"] >= 0.95
    assert figures["facts_after"] >= 0.84
    assert figures["rules_after"] >= 0.88
    assert report.count("expected nothing, found") <= 2


async def test_the_policy_decides_as_labelled() -> None:
    report = await memory.run_write_policy()
    figures = json.loads(report.splitlines()[-1])
    assert (figures["facts_held_out"], figures["rules_held_out"]) == (1.0, 1.0)
    assert figures["right"] >= 0.97
    assert "newly wrong" not in report


def test_there_are_cases_enough() -> None:
    counts = {
        part: sum(len(memory.read_cases(part, half)) for half in memory.HALVES)
        for part in ("facts", "rules", "policy")
    }
    assert counts["facts"] >= 40
    assert counts["rules"] >= 25
    assert counts["policy"] >= 40


def test_a_run_is_compared_with_the_recorded_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded_runs, "RECORDED", tmp_path / "recorded")
    assert "No recorded run" in recorded_runs.difference("x", 3, [])
    recorded_runs.record("x", 3, ["old", "both"])
    shown = recorded_runs.difference("x", 3, ["both", "new"])
    assert shown.splitlines() == [
        "Recorded run: 1 of 3 right; now 1 of 3.",
        "  newly wrong: new",
        "  no longer wrong: old",
    ]


def test_the_evals_are_called_by_their_names() -> None:
    assert {"extraction", "write_policy"} <= EVALS.keys()
