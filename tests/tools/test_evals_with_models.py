"""The evals that hear and answer with the shipped models: what they print. The runs take minutes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.report import BenchUnavailable
from evals import examples, transcription
from evals.__main__ import EVALS
from evals.transcription import Heard


def test_each_misheard_recording_is_listed_with_what_was_said() -> None:
    found = [
        Heard(part="clips", name="a", said="one two three four five", heard="One two, three four five."),
        Heard(part="clips", name="b", said="one two", heard="one too"),
        Heard(part="clips", name="c", said="one", heard="one", problem="taken for 'nl'"),
        Heard(part="without words", name="hum", said="", heard=""),
        Heard(part="without words", name="hiss", said="", heard="Thank you."),
    ]
    table, misses, figures = transcription.report(found).split("\n\n")
    assert [line.split()[-4:-2] for line in table.splitlines()[2:]] == [["3", "1"], ["2", "1"], ["5", "2"]]
    assert misses.splitlines() == [
        "Misheard: 3",
        "  clips, b: 50% of the words are wrong: 'one too' instead of 'one two'",
        "  clips, c: taken for 'nl': 'one' instead of 'one'",
        "  without words, hiss: 100% of the words are wrong: 'Thank you.' instead of ''",
    ]
    assert json.loads(figures) == {
        "eval": "transcription",
        "recordings": 5,
        "good": 0.4,
        "clips": 0.3333,
        "without words": 0.5,
    }


def test_each_message_that_was_not_answered_is_listed() -> None:
    found = [examples.Outcome("tools", "the time?", ""), examples.Outcome("tools", "a note", "ran []")]
    table, misses, figures = examples.report(found, "0.5b").split("\n\n")
    assert table.splitlines()[-1].split() == ["tools", "2", "1"]
    assert misses == "Missed: 1\n  tools, 'a note': ran []"
    assert json.loads(figures) == {
        "eval": "examples",
        "model": "0.5b",
        "messages": 2,
        "missed": 1,
        "tools": 0.5,
    }


async def test_without_its_model_an_eval_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(BenchUnavailable, match="parlour models get"):
        await transcription.run(tmp_path)


def test_they_are_called_by_their_names() -> None:
    assert {"transcription", "examples"} <= EVALS.keys()
