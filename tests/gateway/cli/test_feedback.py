"""`parlour feedback` beside a running gateway: who found which answer good, as lines and as JSON."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from gateway.cli.feedback import since_time
from gateway.cli.main import main
from pipeline.domain.errors import ConfigurationError
from tests.contracts.test_store_feedback import UP
from tests.support.harness import open_gateway

NEW = replace(UP, user="ben", name="Ben \x1b[31m", value="down", at=1_800_000_000.0, agent="")


def parlour(folder: Path, *arguments: str) -> int:
    return main(["feedback", *arguments, "--set", f'data.dir="{folder}"'])


async def test_feedback_is_listed_newest_first_with_person_agent_and_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with open_gateway(tmp_path) as harness:
        assert await asyncio.to_thread(parlour, tmp_path) == 0
        assert capsys.readouterr().out == "no feedback\n"
        await harness.store.feedback.give(replace(UP, name="Ann"))
        await harness.store.feedback.give(NEW)

        assert await asyncio.to_thread(parlour, tmp_path) == 0
        first, newest, oldest = capsys.readouterr().out.splitlines()
        assert first == "feedback: 1 up, 1 down"
        assert newest == "  2027-01-15 08:00  👎  Ben <U+001B>[31m on telegram (mainbot)  run run-1"
        assert oldest == "  1970-01-01 00:01  👍  Ann on telegram (mainbot)  agent support  run run-1"

        assert await asyncio.to_thread(parlour, tmp_path, "--since", "2027-01-15", "--json") == 0
        (line,) = capsys.readouterr().out.splitlines()
        assert json.loads(line) == asdict(NEW)


@pytest.mark.parametrize(
    ("text", "ago"), [("7d", 604_800), ("12h", 43_200), ("30min", 1_800), ("2w", 1_209_600)]
)
def test_a_time_may_be_a_span_before_now(text: str, ago: int) -> None:
    assert since_time(text, 2_000_000_000.0) == 2_000_000_000.0 - ago


@pytest.mark.parametrize("text", ["", "d", "7", "-7d", "yesterday", "2026-13-01", "2026-11-24T10:00"])
def test_another_time_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ConfigurationError, match="write for example 7d, 12h or 2026-11-24"):
        since_time(text, 0.0)
