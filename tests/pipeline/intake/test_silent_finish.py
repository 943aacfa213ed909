"""A refused message gets one line: at length for the first of a flood, in short for the others."""

from __future__ import annotations

import pytest

from pipeline.intake.confirmation import after_intake
from pipeline.intake.silent_finish import declined
from tests.support.contexts import context

NOW = 1_700_000_000.0


async def _answer(refused: str, now: float = NOW, arrivals: tuple[float, ...] = ()) -> str:
    result = await declined({"intake": {"refused": refused}}, context(received_at=now, arrivals=arrivals))
    assert result.update["agent"]["status"] == "done"
    return str(result.update["agent"]["answer"])


async def test_spam_is_answered_with_advice() -> None:
    assert "in other words" in await _answer("spam")


async def test_of_a_flood_the_first_refusal_in_ten_seconds_is_the_long_one() -> None:
    flood = tuple(NOW + 0.5 * number for number in range(18))
    reported = [await _answer("too_fast", at, flood[:place]) for place, at in enumerate(flood)][12:]
    assert "wait ten seconds" in reported[0]
    assert set(reported[1:]) == {"Left out: too fast."}
    later = flood[-1] + 20
    assert "wait ten seconds" in await _answer("too_fast", later + 0.1, (*flood, later))


@pytest.mark.parametrize(
    ("refused", "choice", "target"),
    [
        ("", None, "agent"),
        ("spam", None, "declined"),
        ("too_fast", None, "declined"),
        ("", "Edit", "set_aside"),
    ],
)
def test_a_refused_message_reaches_neither_the_agent_nor_the_care_of_its_history(
    refused: str, choice: str | None, target: str
) -> None:
    state = {
        "intake": {"refused": refused, "long": target == "declined"},
        "answers": {"intake": {"choice": choice}} if choice else {},
    }
    assert after_intake(state) == target
