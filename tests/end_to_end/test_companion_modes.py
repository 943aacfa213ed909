"""Which mode answers a message of a running companion without a model, and which exercise begins.

Covers: pipeline/companion/dispatch_rules.py, pipeline/companion/mode_nodes.py,
pipeline/companion/exercise_choice.py, pipeline/companion/exercise_flow.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.domain.errors import ModelUnavailable
from pipeline.llm.scripted import ScriptedLlm
from tests.support.companion import CompanionModel, Talk, open_companion

MODES = (
    ("why do I keep doing this?", "reflective"),
    ("I always end up apologizing first", "reflective"),
    ("I\u2019m stuck in the same loop", "reflective"),
    ("huh?", "clarifying"),
    ("what do you mean", "clarifying"),
    ("not really", "clarifying"),
    ("ok", "clarifying"),
    ("Why does grounding even work?", "psychoeducation"),
    ("can you give me some tips for sleeping?", "psychoeducation"),
    ("I\u2019m sad", "supportive"),
    ("I can't calm down. Nothing is helping.", "supportive"),
    ("hello", "supportive"),
    ("thanks, that helps", "supportive"),
    ("Every time I try your grounding exercise it helps", "supportive"),
    ("bye, talk to you tomorrow", "closing"),
)
EXERCISES = (
    ("let's do the 5-4-3-2-1 exercise", "grounding_5_4_3_2_1"),
    ("let's do a box breathing exercise", "grounding_box_breathing"),
    ("let's try the STOP technique", "grounding_stop_technique"),
    ("let's do a thought record exercise", "thought_work_simple_record"),
    ("let's do a tiny action exercise", "behavioral_activation_tiny_action"),
    ("let's do the leaves on a stream exercise", "defusion_leaves_on_stream"),
    ("let's do a muscle relaxation exercise", "grounding_muscle_relaxation"),
    ("let's do a behavioral experiment exercise", "thought_work_behavioral_experiment"),
    ("let's do a self-compassion exercise", "self_compassion_break"),
    ("let's do the improve exercise", "emotion_regulation_improve"),
    ("let's do the values compass exercise", "defusion_values_compass"),
    ("let's do a gratitude exercise", "emotion_regulation_gratitude"),
)


def no_model() -> ScriptedLlm:
    """A model that never answers."""
    return ScriptedLlm(failure=ModelUnavailable)


async def _style(talk: Talk) -> str:
    style: str = (await talk.state())["routing"]["response_style"]
    return style


async def test_phrases_and_the_fallback_choose_one_mode_each_without_a_model(tmp_path: Path) -> None:
    async with open_companion(tmp_path, llm=no_model()) as talk:
        for text, mode in MODES:
            answer = await talk.say(text)
            assert answer, text
            assert await _style(talk) == mode, text
            await talk.say("/new")


async def test_each_of_the_twelve_exercises_begins_when_it_is_asked_for(tmp_path: Path) -> None:
    async with open_companion(tmp_path, llm=no_model()) as talk:
        for text, exercise in EXERCISES:
            await talk.say(text)
            assert await talk.step() == (exercise, 0), text
            assert await _style(talk) == "guided_exercise"
            await talk.say("/new")


async def test_an_exercise_holds_is_left_and_leaves_a_fact_only_when_it_is_complete(tmp_path: Path) -> None:
    async with open_companion(tmp_path, llm=no_model()) as talk:
        await talk.say("let's do box breathing")
        await talk.say("my neighbour has a new car and it is blue")
        assert await talk.step() == ("grounding_box_breathing", 0), "it waits for a confirmation"
        await talk.say("I can't")
        assert await talk.step() == ("grounding_box_breathing", 0), "it gets the smaller form"
        await talk.say("stop the exercise")
        assert await talk.step() == (None, None)
        await talk.rested()
        assert await talk.facts() == ()
        for text in ("let's do box breathing", "ok", "done", "yes"):
            await talk.say(text)
        assert await talk.step() == ("grounding_box_breathing", 3)
        await talk.say("ready")
        assert await talk.step() == (None, None)
        await talk.rested()
        (fact,) = await talk.facts()
        assert (fact.predicate, fact.object.type, fact.object.identifier) == (
            "USES",
            "CopingStrategy",
            "grounding_box_breathing",
        )


async def test_off_the_record_a_complete_exercise_leaves_nothing(tmp_path: Path) -> None:
    async with open_companion(tmp_path, llm=no_model()) as talk:
        await talk.say("/otr")
        for text in ("let's do box breathing", "ok", "done", "yes", "ready"):
            await talk.say(text)
        await talk.rested()
        assert await talk.facts() == ()


@pytest.mark.parametrize("mode", ["reflective", "psychoeducation", "clarifying"])
async def test_the_model_chooses_where_no_phrase_does(tmp_path: Path, mode: str) -> None:
    llm = CompanionModel(mode_of_the_message=[{"mode": mode}])
    async with open_companion(tmp_path, llm=llm) as talk:
        await talk.say("I should go to the doctor")
        routing = (await talk.state())["routing"]
        assert (routing["response_style"], routing["response_style_source"]) == (mode, "model")


async def test_tips_are_explained_even_if_the_model_wants_an_exercise(tmp_path: Path) -> None:
    llm = CompanionModel(mode_of_the_message=[{"mode": "guided_exercise"}])
    async with open_companion(tmp_path, llm=llm) as talk:
        await talk.say("do you know any strategies against stage fright?")
        assert await _style(talk) == "psychoeducation"
