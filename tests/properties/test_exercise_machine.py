"""Exercises as a state machine: whatever is answered, no step is left out and the state stays valid."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pipeline.companion.exercise_book import LANGUAGES, exercises, texts
from pipeline.companion.exercise_flow import (
    EXERCISE_KEYS,
    ExerciseTurn,
    cleared,
    continue_exercise,
    running_exercise,
    start_exercise,
)
from tests.support.examples import examples

ANSWERS = st.one_of(
    st.sampled_from(
        (
            *("done", "ok", "yes", "a lamp", "a lamp, a chair, my phone", "I feel sad and tired", "stop"),
            *("never mind", "I can't", "I don't know", "why?", "What should I do?", "", "hm", "fertig"),
        )
    ),
    st.text(max_size=60),
)


class Exercising(RuleBasedStateMachine):
    """A person who answers anything, and a store that keeps the state between turns."""

    @initialize(exercise=st.sampled_from(sorted(exercises())), language=st.sampled_from(LANGUAGES))
    def begin(self, exercise: str, language: str) -> None:
        self.language = language
        self.state: dict[str, Any] = {"exercise_type": exercise, "exercise_step": 0, "turn_count": 7}

    def _apply(self, turn: ExerciseTurn) -> None:
        assert set(turn.delta) <= set(EXERCISE_KEYS)
        assert all(repr(self.state.get(key)) != repr(value) for key, value in turn.delta.items())
        assert turn.text.strip()
        self.state = {**self.state, **turn.delta}

    @rule(answer=ANSWERS)
    def answers(self, answer: str) -> None:
        before = running_exercise(self.state)
        turn = continue_exercise(self.state, answer, language=self.language)
        self._apply(turn)
        after = running_exercise(self.state)
        if before is None or not before.valid:
            assert turn.event == "restart"
            assert after is not None
            assert after.step == 0
        elif after is None:
            last = len(exercises()[before.exercise].steps) - 1
            assert turn.event == "exit" or (turn.event == "complete" and before.step == last)
            assert (turn.fact is not None) == (turn.event == "complete")
        else:
            assert after.exercise == before.exercise
            assert after.step - before.step == (1 if turn.event == "advance" else 0)
            assert after.items >= before.items or turn.event == "advance"
            assert turn.fact is None
            words = texts(after.exercise, self.language)
            assert turn.prompt == (words.easier if turn.event == "stuck" else words.steps)[after.step]

    @rule(message=ANSWERS)
    def starts(self, message: str) -> None:
        self._apply(start_exercise(message, state=self.state, language=self.language))

    @rule()
    def crisis(self) -> None:
        self.state = {**self.state, **cleared(self.state)}
        assert running_exercise(self.state) is None

    @rule(
        step=st.one_of(st.none(), st.integers(-3, 9), st.booleans(), st.text(max_size=3)),
        exercise=st.sampled_from(("yoga", "", *sorted(exercises()))),
    )
    def spoils(self, step: object, exercise: str) -> None:
        """What an older version, or a hand, may have left in the store."""
        self.state = {"exercise_type": exercise, "exercise_step": step, "turn_count": 7}

    @invariant()
    def the_rest_of_the_state_is_left_alone(self) -> None:
        assert getattr(self, "state", {"turn_count": 7})["turn_count"] == 7


TestExercising = Exercising.TestCase
TestExercising.settings = examples(15, steps=20)
