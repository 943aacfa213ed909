"""The companion's graph in a running gateway: modes, exercises, crises, and what comes after the answer.

Covers: pipeline/companion/graph.py, pipeline/companion/mode_nodes.py, pipeline/companion/safety_nodes.py,
pipeline/companion/turn_end.py, pipeline/companion/reply.py, gateway/turns/after_answer.py.
"""

from __future__ import annotations

from pathlib import Path

from pipeline.domain.errors import ModelUnavailable
from pipeline.llm.local_model import LocalModel
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.companion import CompanionModel, open_companion

AFTER = {"extract_semantic_facts", "extract_procedural_rules"}


def no_model() -> ScriptedLlm:
    """A model that never answers."""
    return ScriptedLlm(failure=ModelUnavailable)


async def test_a_message_passes_the_gate_memory_one_mode_and_both_extractors(tmp_path: Path) -> None:
    llm = CompanionModel([ScriptedAnswer.of("That sounds hard.")])
    async with open_companion(tmp_path, llm=llm) as talk:
        assert await talk.say("I can't calm down, nothing is helping") == "That sounds hard."
        path = await talk.path()
        assert path[:2] == ["crisis_gate", "load_memory"]
        assert path[2] == "therapeutic_subgraph.dispatcher"
        assert path[3:6] == ["therapeutic_subgraph.supportive", "therapeutic_subgraph", "finalize_turn"]
        assert set(path[6:]) == AFTER


async def test_a_crisis_turn_reads_no_memory_is_recorded_once_and_still_ends_as_every_turn(
    tmp_path: Path,
) -> None:
    async with open_companion(tmp_path) as talk:
        answer = await talk.say("I want to kill myself")
        assert answer.startswith("Thank you for telling me.")
        path = await talk.path()
        assert path[:4] == ["crisis_gate", "crisis_response", "crisis_log", "finalize_turn"]
        assert set(path[4:]) == AFTER
        assert talk.harness.llm.requests == [], "no model is called"
        (record,) = await talk.harness.store.crises.listed(limit=9)
        assert (record.level, record.path, record.completed) == (2, "deterministic", True)
        state = await talk.state()
        assert "working_memory" not in state
        assert state["routing"]["route"] == "crisis"
        assert [entry["role"] for entry in state["transcript"]] == ["user", "assistant"]
        assert state["transcript"][-1]["response_style"] == "safety_check"


async def test_an_exercise_continues_over_restarts_and_ends_in_a_crisis(tmp_path: Path) -> None:
    async with open_companion(tmp_path, llm=no_model()) as talk:
        first = await talk.say("let's do a box breathing exercise")
        assert await talk.step() == ("grounding_box_breathing", 0)
        assert await talk.say("ok") != first
        assert await talk.step() == ("grounding_box_breathing", 1)
    async with open_companion(tmp_path, llm=no_model()) as talk:
        await talk.say("done")
        assert await talk.step() == ("grounding_box_breathing", 2)
        assert (await talk.say("I want to kill myself")).startswith("Thank you for telling me.")
        assert await talk.step() == (None, None)


class SmallModel(CompanionModel, LocalModel):
    """A scripted model that the gateway takes for the embedded one."""

    async def warm_up(self) -> None:
        """Nothing is loaded."""

    async def close(self) -> None:
        """Nothing is loaded."""


async def test_the_embedded_model_answers_and_is_not_asked_to_judge(tmp_path: Path) -> None:
    # The warm-up may take the first answer.
    llm = SmallModel([ScriptedAnswer.of("Tell me more.")] * 2)
    async with open_companion(tmp_path, llm=llm) as talk:
        assert await talk.say("The new flat has a blue wall, a small kitchen and a view") == "Tell me more."
        assert set((await talk.path())[6:]) == AFTER
    assert llm.asked == []
