"""Budgets of a day, from a message to the visible line: refused in words, over restarts, until midnight.

Covers: gateway/app/llm.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.domain.clock import ManualClock
from pipeline.domain.events import ErrorEvent
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.harness import GatewayHarness, open_gateway
from voice.transcription.scripted_transcriber import ScriptedTranscriber

pytestmark = pytest.mark.usefixtures("days_pass_quickly")

NOON = 1_900_065_600.0
"""2030-03-18, 12:00 UTC."""
_HALF_A_DAY_S = 12 * 3600.0


async def _code(harness: GatewayHarness, text: str, number: int, voice: bytes | None = None) -> str:
    """Say it; what the message ended with: the error's code, or nothing."""
    accepted = await harness.channel.say(text, native_id=f"n{number}", voice=voice)
    ended = await harness.channel.terminal(accepted.message_id)
    return ended.code if isinstance(ended, ErrorEvent) else ""


def _dear() -> ScriptedLlm:
    return ScriptedLlm([ScriptedAnswer(chunks=("Dear.",), prompt_tokens=1_000) for _ in range(3)])


async def test_a_budget_that_is_used_up_stays_so_over_a_restart_and_not_over_midnight(tmp_path: Path) -> None:
    clock = ManualClock(NOON)
    async with open_gateway(tmp_path, "budget.person_tokens=900", llm=_dear(), clock=clock) as harness:
        assert await _code(harness, "one", 1) == ""
        assert await _code(harness, "two", 2) == "budget"
    llm = _dear()
    async with open_gateway(tmp_path, "budget.person_tokens=900", llm=llm, clock=clock) as harness:
        assert await _code(harness, "three", 3) == "budget"
        (error, *_) = await harness.records("error")
        assert "begins again at midnight UTC, in 12 hours" in error.body["text"]
        await clock.advance(_HALF_A_DAY_S)
        assert await _code(harness, "four", 4) == ""
    assert len(llm.requests) == 1


async def test_a_voice_note_that_no_one_could_answer_is_not_heard(tmp_path: Path) -> None:
    transcriber = ScriptedTranscriber(["what is it?"])
    clock = ManualClock(NOON)
    # With the crisis gate it is heard: what it says may be more urgent than a budget.
    exempt = 'safety.gate="off"'
    async with open_gateway(
        tmp_path, "budget.tokens=900", exempt, llm=_dear(), clock=clock, transcriber=transcriber
    ) as harness:
        assert await _code(harness, "one", 1) == ""
        assert await _code(harness, "", 2, voice=b"opus") == "budget"
    assert transcriber.calls == []


async def test_the_switch_to_the_cheaper_model_is_said_once_and_again_after_it_was_off(
    tmp_path: Path,
) -> None:
    clock = ManualClock(NOON)
    settings = (
        "budget.person_tokens=4000",
        "budget.cheaper_from=0.2",
        'budget.cheaper_model="scripted:echo"',
    )
    async with open_gateway(tmp_path, *settings, llm=_dear(), clock=clock) as harness:
        said = [await _answer(harness, words, number) for number, words in enumerate(("one", "two", "three"))]
        await clock.advance(_HALF_A_DAY_S)
        said += [await _answer(harness, words, number) for number, words in enumerate(("four", "five"), 4)]
    switched = "Your budget for today is nearly used up: a smaller model answers."
    assert said == [
        "Dear.",
        f"{switched}\n\nYou said: two",
        "You said: three",
        "Dear.",
        f"{switched}\n\nYou said: five",
    ]


async def _answer(harness: GatewayHarness, text: str, number: int) -> str:
    accepted = await harness.channel.say(text, native_id=f"a{number}")
    return (await harness.channel.reply(accepted.message_id)).text
