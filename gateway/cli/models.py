"""`parlour models list|get|verify`: run the commands, print their results and return exit codes."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from gateway.models import fetch
from gateway.models.manifest import MODELS, Model, find
from gateway.models.progress import DownloadProgress, megabytes, progress_on
from pipeline.domain.errors import ParlourError


def models_list(models_dir: Path, models: tuple[Model, ...] = MODELS) -> int:
    """Print each model and its state on this machine. Exit code 0."""
    _write(f"models in {models_dir}:")
    for model in models:
        _write(
            f"  {model.id:<20} {fetch.state(model, models_dir):<13} {megabytes(model.size):>9}  "
            f"{model.licence:<11} {model.purpose}{' (optional)' if model.optional else ''}"
        )
    return 0


def models_present(models_dir: Path, models: tuple[Model, ...] = MODELS) -> tuple[str, ...]:
    """For each model its problem as readable text; an empty string for a model that is present, or optional
    and not requested."""
    states = ((model, fetch.state(model, models_dir)) for model in models)
    return tuple(
        f"{model.id} is {state} in {models_dir}: run `parlour models get {model.id}`"
        if state == "incomplete" or (state == "missing" and not model.optional)
        else ""
        for model, state in states
    )


def models_get(models_dir: Path, ids: Sequence[str] = (), models: tuple[Model, ...] = MODELS) -> int:
    """Fetch the models called `ids`; without ids all but the optional ones. Exit code 0, or 1 when one
    could not be fetched."""
    usual = tuple(model for model in models if not model.optional)
    return _each(ids, models, usual, lambda chosen: asyncio.run(_get_all(chosen, models_dir)))


def models_verify(models_dir: Path, ids: Sequence[str] = (), models: tuple[Model, ...] = MODELS) -> int:
    """Hash the files of the models called `ids`; without ids all but the optional ones that were not fetched.
    Exit code 0, or 1 when one is missing or damaged."""
    wanted = tuple(
        model for model in models if not model.optional or fetch.state(model, models_dir) != "missing"
    )
    return _each(ids, models, wanted, lambda chosen: _verify_all(chosen, models_dir))


def _each(
    ids: Sequence[str],
    models: tuple[Model, ...],
    default: tuple[Model, ...],
    act: Callable[[tuple[Model, ...]], int],
) -> int:
    """Run `act` on the models called `ids`, or on `default`; turns errors into messages and exit codes."""
    try:
        return act(tuple(find(model_id, models) for model_id in ids) or default)
    except ParlourError as error:
        _write(f"error: {error}")
        return 2
    except KeyboardInterrupt:
        _write("\ninterrupted; the same command continues where this one stopped")
        return 130


async def _get_all(models: tuple[Model, ...], models_dir: Path) -> int:
    """Fetch one after the other; a failure does not stop the others."""
    progress = progress_on(sys.stdout)
    results = [await _get_one(model, models_dir, progress) for model in models]
    return 0 if all(results) else 1


async def _get_one(model: Model, models_dir: Path, progress: DownloadProgress) -> bool:
    try:
        fetched = await fetch.get(model, models_dir, progress)
    except ParlourError as error:
        progress.note(f"error: {error}")
        return False
    path = model.path(models_dir)
    progress.note(f"{model.id}: {'fetched and verified' if fetched else 'already there'}: {path}")
    return True


def _verify_all(models: tuple[Model, ...], models_dir: Path) -> int:
    checks = [check for model in models for check in fetch.verify(model, models_dir)]
    for check in checks:
        _write(f"{'ok ' if not check.problem else 'BAD'} {check.path}{_because(check.problem)}")
    if all(not check.problem for check in checks):
        return 0
    _write("run `parlour models get` to fetch what is missing or damaged")
    return 1


def _because(problem: str) -> str:
    return f": {problem}" if problem else ""


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
