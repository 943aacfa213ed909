"""The exercises from start to end: what is said, what changes in the state, and what is remembered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.companion.exercise_book import (
    LANGUAGES,
    default_exercise,
    exercises,
    general,
    known_language,
    texts,
)
from pipeline.companion.exercise_flow import (
    EXERCISE_KEYS,
    CopingFact,
    ExerciseTurn,
    cleared,
    continue_exercise,
    running_exercise,
    start_exercise,
)
from tests.support.tables import each

STEPS = {
    "grounding_5_4_3_2_1": "5/3 4/2 3/2 2/1 1/1",
    "grounding_box_breathing": "confirm confirm confirm confirm",
    "grounding_stop_technique": "confirm confirm 1/1 1/1",
    "thought_work_simple_record": "1/1 1/1 1/1 1/1",
    "behavioral_activation_tiny_action": "1/1 1/1 1/1 1/1",
    "defusion_leaves_on_stream": "1/1 confirm confirm 1/1 1/1",
    "grounding_muscle_relaxation": "confirm confirm confirm confirm confirm",
    "thought_work_behavioral_experiment": "1/1 1/1 1/1 1/1",
    "self_compassion_break": "confirm confirm 1/1",
    "emotion_regulation_improve": "confirm 1/1 confirm 1/1",
    "defusion_values_compass": "1/1 1/1 1/1 1/1",
    "emotion_regulation_gratitude": "3/2 1/1 1/1",
}
SAYS_DONE = {"en": "done", "de": "fertig", "fr": "fait", "es": "listo"}
SAYS_STOP = {"en": "stop", "de": "stopp", "fr": "stop", "es": "para"}


def _at(exercise: str, step: object, **more: Any) -> dict[str, Any]:
    return {"exercise_type": exercise, "exercise_step": step, **more}


def _applied(state: Mapping[str, Any], turn: ExerciseTurn) -> dict[str, Any]:
    return {**state, **turn.delta}


def test_there_are_twelve_exercises_with_their_steps() -> None:
    shown = {
        name: " ".join(
            "confirm" if step.kind == "confirm" else f"{step.expected}/{step.minimum}"
            for step in exercise.steps
        )
        for name, exercise in exercises().items()
    }
    assert shown == STEPS
    assert default_exercise() == "grounding_5_4_3_2_1"


@each("language", LANGUAGES)
@each("exercise", STEPS)
def test_each_exercise_can_be_gone_through_in_each_language(exercise: str, language: str) -> None:
    state: dict[str, Any] = _at(exercise, 0)
    said = [texts(exercise, language).steps[0]]
    turns: list[ExerciseTurn] = []
    for step in exercises()[exercise].steps:
        answer = SAYS_DONE[language] if step.kind == "confirm" else "abc, bcd, cde, def, efg"
        turns.append(continue_exercise(state, answer, language=language))
        said.append(turns[-1].prompt)
        state = _applied(state, turns[-1])
    assert turns[-1].event == "complete"
    assert said == [*texts(exercise, language).steps, ""]
    assert turns[-1].fact == CopingFact(
        object=f"CopingStrategy:{exercise}",
        evidence=f"Completed {texts(exercise, 'en').name} exercise.",
        category="coping_strategy",
        predicate="USES",
    )
    assert running_exercise(state) is None


@each("language", LANGUAGES)
def test_the_words_that_a_text_asks_for_are_understood(language: str) -> None:
    done, stop = SAYS_DONE[language], SAYS_STOP[language]
    for exercise in exercises().values():
        words = texts(exercise.id, language)
        for step, *asked in zip(exercise.steps, words.steps, words.easier, strict=True):
            assert step.kind != "confirm" or all(done in text for text in asked)
    assert stop in general("may_stop", language)
    assert stop in general("hold_question", language)
    state = _at("grounding_box_breathing", 1)
    assert continue_exercise(state, done.capitalize() + "!", language=language).event == "advance"
    assert continue_exercise(state, stop, language=language).event == "exit"


def test_the_start_says_what_comes_and_asks_the_first_step() -> None:
    turn = start_exercise("can we do box breathing?", language="en")
    words = texts("grounding_box_breathing", "en")
    assert turn.text == f"{words.start} {general('may_stop', 'en')}\n\n{words.steps[0]}"
    assert turn.delta == _at("grounding_box_breathing", 0)
    assert turn.fact is None


def test_a_start_over_an_old_state_changes_only_what_differs() -> None:
    old = _at("grounding_box_breathing", 2, exercise_items=3)
    turn = start_exercise("can we do box breathing?", state=old)
    assert turn.delta == {"exercise_step": 0, "exercise_items": None}


def test_an_advance_changes_the_step_alone() -> None:
    turn = continue_exercise(_at("grounding_box_breathing", 0), "done")
    assert (turn.event, turn.step, turn.delta) == ("advance", 1, {"exercise_step": 1})


def test_to_stay_changes_nothing_and_asks_the_same_again() -> None:
    turn = continue_exercise(_at("grounding_box_breathing", 2), "hmm")
    words = texts("grounding_box_breathing", "en")
    assert (turn.event, turn.step, turn.delta) == ("hold", 2, {})
    assert turn.prompt == words.steps[2]


def test_who_is_stuck_gets_the_smaller_form() -> None:
    turn = continue_exercise(_at("grounding_box_breathing", 2), "I can't")
    assert (turn.event, turn.step, turn.delta) == ("stuck", 2, {})
    assert turn.prompt == texts("grounding_box_breathing", "en").easier[2]


def test_a_question_keeps_the_step_and_says_so() -> None:
    turn = continue_exercise(_at("thought_work_simple_record", 0), "What's the capital of Peru?")
    assert (turn.event, turn.delta) == ("hold", {})
    assert turn.lead == general("hold_question", "en")


def test_things_are_counted_over_several_answers_and_forgotten_with_the_step() -> None:
    state = _at("grounding_5_4_3_2_1", 0)
    first = continue_exercise(state, "a lamp")
    assert first.delta == {"exercise_items": 1}
    assert first.lead == "That is 1 so far. At least 2 more:"
    second = continue_exercise(_applied(state, first), "a book and the door")
    assert (second.event, second.delta) == ("advance", {"exercise_step": 1, "exercise_items": None})


def test_an_exit_clears_and_remembers_nothing() -> None:
    turn = continue_exercise(_at("grounding_5_4_3_2_1", 0, exercise_items=2), "never mind")
    assert (turn.event, turn.fact) == ("exit", None)
    assert turn.delta == dict.fromkeys(EXERCISE_KEYS)
    assert turn.text == general("exit", "en")


@each("language", LANGUAGES)
def test_who_leaves_the_conversation_is_asked_nothing(language: str) -> None:
    turn = continue_exercise(_at("grounding_5_4_3_2_1", 0), "sorry, I have to go", language=language)
    assert (turn.event, turn.text) == ("exit", general("exit_leaving", language))
    assert "?" not in turn.text


@each(
    "state",
    [
        _at("yoga", 0),
        _at("grounding_box_breathing", 4),
        _at("grounding_box_breathing", -1),
        _at("grounding_box_breathing", "2"),
        _at("grounding_box_breathing", 1.0),
        _at("grounding_box_breathing", True),
        {},
    ],
)
def test_a_state_that_cannot_be_begins_again(state: dict[str, Any]) -> None:
    turn = continue_exercise(state, "a lamp")
    running = running_exercise(_applied(state, turn))
    assert (turn.event, turn.fact) == ("restart", None)
    assert running is not None
    assert running.valid
    assert running.step == 0
    if state.get("exercise_type") in exercises():
        assert running.exercise == state["exercise_type"]


def test_a_crisis_or_another_mode_clears_what_there_is() -> None:
    assert cleared(_at("grounding_box_breathing", 1)) == {"exercise_type": None, "exercise_step": None}
    assert cleared({"exercise_type": None, "turn_count": 3}) == {}


def test_an_exercise_without_a_step_is_none() -> None:
    assert running_exercise({"exercise_type": "grounding_box_breathing"}) is None
    assert running_exercise({"exercise_step": 1}) is None


def test_a_language_without_texts_is_english() -> None:
    assert [known_language(tag) for tag in ("de-AT", "FR", "es", "tr", "")] == ["de", "fr", "es", "en", "en"]
