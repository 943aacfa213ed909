"""The guided exercises as data: their steps (`exercises/steps.toml`) and their texts by language."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal

from pipeline.domain.errors import ParlourError
from pipeline.domain.frozen import dataclass

FOLDER: Final = Path(__file__).with_name("exercises")
FALLBACK_LANGUAGE: Final = "en"
LANGUAGES: Final = ("en", "de", "fr", "es")


class BadExercises(ParlourError):
    """The files of the exercises cannot be used; the message names the file and the exercise."""

    code = "bad_exercises"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExerciseStep:
    """One step, and what completes it."""

    kind: Literal["items", "confirm"]
    expected: int = 1
    """How many things its text asks for."""
    minimum: int = 1
    """How many complete it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exercise:
    """One exercise; the same steps in every language."""

    id: str
    steps: tuple[ExerciseStep, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExerciseTexts:
    """The texts of one exercise in one language."""

    name: str
    start: str
    steps: tuple[str, ...]
    """What each step asks."""
    easier: tuple[str, ...]
    """The same in a smaller form, for a person who is stuck."""


@functools.cache
def exercises() -> Mapping[str, Exercise]:
    """All exercises by their ids, the default one first. Raises BadExercises."""
    return {name: Exercise(id=name, steps=tuple(_steps(row))) for name, row in _read("steps").items()}


def default_exercise() -> str:
    """The id of the exercise for a person who names none."""
    return next(iter(exercises()))


def texts(exercise: str, language: str) -> ExerciseTexts:
    """The texts of an exercise, in English where there are none in `language`. Raises BadExercises where they
    do not fit its steps."""
    return _texts(exercise, known_language(language))


def general(name: str, language: str) -> str:
    """The text that all exercises share under this name."""
    found: str = _read(known_language(language))["general"][name]
    return found


def known_language(tag: str) -> str:
    """The language of texts for a language tag such as `de-AT`; English where there are none."""
    code = tag.partition("-")[0].lower()
    return code if code in LANGUAGES else FALLBACK_LANGUAGE


@functools.cache
def _texts(exercise: str, language: str) -> ExerciseTexts:
    row = _read(language).get(exercise, {})
    count = len(exercises()[exercise].steps)
    if {"name", "start"} - row.keys() or {len(row.get("steps", ())), len(row.get("easier", ()))} != {count}:
        raise BadExercises(
            f"exercises/{language}.toml: {exercise}: needs name, start, and {count} texts each in steps and "
            "easier"
        )
    return ExerciseTexts(
        name=row["name"], start=row["start"], steps=tuple(row["steps"]), easier=tuple(row["easier"])
    )


@functools.cache
def _read(name: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    return found


def _steps(row: Mapping[str, Any]) -> Iterator[ExerciseStep]:
    for step in row["steps"]:
        match step:
            case "confirm":
                yield ExerciseStep(kind="confirm")
            case "item":
                yield ExerciseStep(kind="items")
            case {"expected": int(expected), "minimum": int(minimum)} if 1 <= minimum <= expected:
                yield ExerciseStep(kind="items", expected=expected, minimum=minimum)
            case _:
                raise BadExercises(f"exercises/steps.toml: {step!r} is no kind of step")
