"""Start, go through and end a guided exercise: pure functions from a state and an answer to a text and a
delta.

The state is plain data in a run's state: which exercise, which step from 0, and how many things earlier
answers to the step have named. A delta has only the keys that change; None clears one. No model is asked
here, and none ever decides about a step: it may only write the first sentences of a text (`exercise_words`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Final, Literal

from pipeline.companion.exercise_answers import StepReading, read_answer
from pipeline.companion.exercise_book import FALLBACK_LANGUAGE, exercises, general, texts
from pipeline.companion.exercise_choice import choose_exercise
from pipeline.domain.frozen import dataclass
from pipeline.safety.ladder import EarlierEntry

TYPE_KEY: Final = "exercise_type"
STEP_KEY: Final = "exercise_step"
ITEMS_KEY: Final = "exercise_items"
EXERCISE_KEYS: Final = (TYPE_KEY, STEP_KEY, ITEMS_KEY)

_LEAVES: Final = ".leaving"
"""The family of words by which a person leaves the conversation too."""

ExerciseEvent = Literal["start", "restart", "hold", "stuck", "advance", "complete", "exit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExerciseState:
    """A running exercise."""

    exercise: str
    step: int = 0
    items: int = 0

    @property
    def valid(self) -> bool:
        """Whether there is such an exercise with such a step."""
        known = exercises().get(self.exercise)
        return known is not None and 0 <= self.step < len(known.steps) and self.items >= 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CopingFact:
    """What is to be remembered of an exercise that was completed. The user is the subject."""

    object: str
    evidence: str
    category: str = "coping_strategy"
    predicate: str = "USES"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExerciseTurn:
    """One turn of an exercise: what is said, and what becomes of the state."""

    event: ExerciseEvent
    exercise: str
    step: int
    """The step that the text asks for; the last one after `complete` and `exit`."""
    lead: str
    """The first sentences, which a model may write in their place except for `start`, `restart` and
    `exit`."""
    prompt: str = ""
    """What the step asks, in fixed words. Empty after the end."""
    delta: Mapping[str, Any] = field(default_factory=dict)
    fact: CopingFact | None = None
    type: str = ""
    """The grounds of the transition, as a code."""

    @property
    def text(self) -> str:
        """The whole reply."""
        return f"{self.lead}\n\n{self.prompt}" if self.prompt else self.lead


def running_exercise(state: Mapping[str, Any]) -> ExerciseState | None:
    """The exercise of a run's state, which may be invalid; None if none is running."""
    name, step = state.get(TYPE_KEY), state.get(STEP_KEY)
    if name is None or step is None:
        return None
    items = state.get(ITEMS_KEY)
    return ExerciseState(
        exercise=str(name),
        step=step if type(step) is int else -1,
        items=items if type(items) is int else 0,
    )


def cleared(state: Mapping[str, Any]) -> dict[str, None]:
    """The delta that ends whatever exercise the state has: a crisis, an exit, another mode."""
    return {key: None for key in EXERCISE_KEYS if state.get(key) is not None}


def start_exercise(
    message: str,
    history: Sequence[EarlierEntry] = (),
    *,
    state: Mapping[str, Any] | None = None,
    language: str = FALLBACK_LANGUAGE,
) -> ExerciseTurn:
    """Begin the exercise that `message` asks for. `state`: what the delta is to be applied to."""
    exercise = choose_exercise(message, history)
    words = texts(exercise, language)
    return ExerciseTurn(
        event="start",
        exercise=exercise,
        step=0,
        lead=f"{words.start} {general('may_stop', language)}",
        prompt=words.steps[0],
        delta=_changed(state or {}, ExerciseState(exercise=exercise)),
        type="start",
    )


def continue_exercise(
    state: Mapping[str, Any],
    answer: str,
    history: Sequence[EarlierEntry] = (),
    *,
    language: str = FALLBACK_LANGUAGE,
) -> ExerciseTurn:
    """What an answer does to the running exercise. One that cannot be (an unknown name or step) is cleared,
    and one begins from the start."""
    running = running_exercise(state)
    if running is None or not running.valid:
        return _restarted(state, running, answer, history, language)
    step = exercises()[running.exercise].steps[running.step]
    reading = read_answer(answer, step, named=running.items)
    match reading.outcome:
        case "exit":
            return _ended(state, running, reading, language)
        case "complete":
            return _completed(state, running, reading, language)
        case "stuck" | "hold":
            return _stayed(state, running, reading, language)


def _restarted(
    state: Mapping[str, Any],
    running: ExerciseState | None,
    answer: str,
    history: Sequence[EarlierEntry],
    language: str,
) -> ExerciseTurn:
    begun = start_exercise(answer, history, language=language)
    exercise = running.exercise if running is not None and running.exercise in exercises() else begun.exercise
    words = texts(exercise, language)
    return ExerciseTurn(
        event="restart",
        exercise=exercise,
        step=0,
        lead=f"{general('restart', language)} {words.start}",
        prompt=words.steps[0],
        delta=_changed(state, ExerciseState(exercise=exercise)),
        type="invalid_state",
    )


def _ended(
    state: Mapping[str, Any], running: ExerciseState, reading: StepReading, language: str
) -> ExerciseTurn:
    return ExerciseTurn(
        event="exit",
        exercise=running.exercise,
        step=running.step,
        # Who leaves the conversation is asked nothing.
        lead=general("exit_leaving" if reading.type.endswith(_LEAVES) else "exit", language),
        delta=cleared(state),
        type=reading.type,
    )


def _completed(
    state: Mapping[str, Any], running: ExerciseState, reading: StepReading, language: str
) -> ExerciseTurn:
    words = texts(running.exercise, language)
    following = running.step + 1
    if following == len(words.steps):
        return ExerciseTurn(
            event="complete",
            exercise=running.exercise,
            step=running.step,
            lead=general("complete", language).format(name=words.name),
            delta=cleared(state),
            fact=CopingFact(
                object=f"CopingStrategy:{running.exercise}",
                evidence=f"Completed {texts(running.exercise, FALLBACK_LANGUAGE).name} exercise.",
            ),
            type=reading.type,
        )
    return ExerciseTurn(
        event="advance",
        exercise=running.exercise,
        step=following,
        lead=general("advance", language),
        prompt=words.steps[following],
        delta=_changed(state, replace(running, step=following, items=0)),
        type=reading.type,
    )


def _stayed(
    state: Mapping[str, Any], running: ExerciseState, reading: StepReading, language: str
) -> ExerciseTurn:
    words = texts(running.exercise, language)
    stuck = reading.outcome == "stuck"
    named = running.items + reading.items
    return ExerciseTurn(
        event="stuck" if stuck else "hold",
        exercise=running.exercise,
        step=running.step,
        lead=general("stuck", language) if stuck else _hold(running, reading, named, language),
        prompt=words.easier[running.step] if stuck else words.steps[running.step],
        delta=_changed(state, replace(running, items=named)),
        type=reading.type,
    )


def _hold(running: ExerciseState, reading: StepReading, named: int, language: str) -> str:
    step = exercises()[running.exercise].steps[running.step]
    if reading.type == "question":
        return general("hold_question", language)
    if step.kind == "confirm":
        return general("hold_confirm", language)
    if step.minimum == 1 or named == 0:
        return general("hold_item", language)
    return general("hold_items", language).format(count=named, missing=step.minimum - named)


def _changed(state: Mapping[str, Any], wanted: ExerciseState) -> dict[str, Any]:
    """The keys whose values differ from `wanted`. No named things and none yet are the same."""
    values = {TYPE_KEY: wanted.exercise, STEP_KEY: wanted.step, ITEMS_KEY: wanted.items or None}
    return {key: value for key, value in values.items() if not _same(state.get(key), value)}


def _same(one: object, other: object) -> bool:
    """Whether two values are equal and of one type: False is no step 0."""
    return type(one) is type(other) and one == other
