"""A companion on the page and on Telegram: an exercise from start to end, and crises that nothing comes
before.

Covers: pipeline/crisis_check.py, pipeline/companion/safety_nodes.py, pipeline/companion/mode_nodes.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.app import safety
from pipeline.domain.errors import ModelUnavailable
from pipeline.llm.scripted import ScriptedLlm
from pipeline.safety.assessment import CrisisAssessment
from pipeline.safety.crisis_gate import CrisisGate
from pipeline.safety.replies import STATIC_REPLY
from pipeline.safety.resources import shipped_resources
from tests.support.companion import COMPANION
from tests.support.two_channels import open_two_channels
from voice.transcription.scripted_transcriber import ScriptedTranscriber

HELP = "Thank you for telling me."


async def test_an_exercise_is_led_from_its_start_to_its_end(tmp_path: Path) -> None:
    async with open_two_channels(tmp_path, COMPANION, llm=ScriptedLlm(failure=ModelUnavailable)) as place:
        for chat in place.chats:
            said = [await chat.ask(text) for text in ("let's do box breathing", "ok", "done", "yes", "ready")]
            assert len(set(said)) == 5, "each step has its own words"
            assert (await chat.ask("thanks, I should go now")) not in said


async def test_a_crisis_ends_an_exercise_and_nothing_comes_before_it(tmp_path: Path) -> None:
    transcriber = ScriptedTranscriber(["I want to die"] * 2, confidence=0.1)
    limits = ("budget.person_tokens=1",)
    async with open_two_channels(tmp_path, COMPANION, *limits, transcriber=transcriber) as place:
        for chat in place.chats:
            await chat.ask("hello there")
            assert HELP in await chat.speak()
            assert (await chat.ask("I want to kill myself")).startswith(HELP)
            assert (await chat.ask("/history I want to kill myself")).startswith(HELP)
        records = await place.harness.store.crises.listed(limit=20)
        assert len(records) == 6, "each response is recorded once"


async def test_a_gate_that_fails_gives_fixed_words_and_no_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_text: str, _history: object) -> CrisisAssessment:
        raise RuntimeError("I want to die")

    monkeypatch.setattr(
        safety, "build_crisis_gate", lambda *_settings: CrisisGate(shipped_resources(), assess=fails)
    )
    async with open_two_channels(tmp_path, COMPANION) as place:
        for chat in place.chats:
            assert (await chat.ask("hello"))[:40] == STATIC_REPLY[:40]
        assert place.harness.llm.requests == []
