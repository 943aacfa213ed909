"""Print for `parlour check-config` every setting, its effective value and its source; or the problems.

Not here: the documentation of the settings (`docs_tables`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from gateway.config.catalog import SETTINGS, toml_value
from gateway.config.environment import crash_at
from gateway.config.limits import model_limits
from gateway.config.load import load_with_sources
from gateway.config.problems import ConfigurationProblems, Problem, Source, one_line
from gateway.config.secrets import SecretRef, SecretUnavailable
from gateway.config.settings import Settings

VALID = 0
INVALID = 2


def explain(settings: Settings, sources: Mapping[str, Source]) -> str:
    """One line for each setting: dotted path, source, value. A secret shows as its reference and length."""
    rows = [
        (name, sources.get(name, Source(kind="default")).label(), _shown(_value(settings, name)))
        for name in SETTINGS
    ]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    return "\n".join(
        one_line(f"{name:<{widths[0]}}  {source:<{widths[1]}}  {value}") for name, source, value in rows
    )


def check_config(
    path: Path | None,
    environ: Mapping[str, str],
    overrides: Sequence[str],
    write: Callable[[str], object],
    *,
    labels: Sequence[str],
) -> int:
    """Run the whole command: `write` gets the report line by line. Returns the exit code, 0 or 2.

    `labels` are the failpoints that PARLOUR_CRASH_AT may name.
    """
    problems: list[Problem] = []
    try:
        crash_at(environ, labels=labels)
    except ConfigurationProblems as error:
        problems.extend(error.problems)
    try:
        loaded = load_with_sources(path, environ, overrides)
    except ConfigurationProblems as error:
        return _report([*error.problems, *problems], write)
    if problems:
        return _report(problems, write)
    write(f"{explain(loaded.settings, loaded.sources)}\n")
    write(f"The model's limits: {model_limits(loaded.settings).words()}.\n")
    read_from = one_line(str(loaded.file)) if loaded.file else "no file"
    write(f"The configuration is valid ({read_from}).\n")
    return VALID


def _report(problems: Sequence[Problem], write: Callable[[str], object]) -> int:
    for problem in problems:
        write(f"{problem}\n")
    count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
    write(f"The configuration has {count}.\n")
    return INVALID


def _value(settings: Settings, name: str) -> object:
    value: object = settings
    for part in name.split("."):
        value = getattr(value, part)
    return value


def _shown(value: object) -> str:
    if value is None:
        return "not set"
    return _masked(value) if isinstance(value, SecretRef) else toml_value(value)


def _masked(reference: SecretRef) -> str:
    try:
        return f"{reference} (set, {len(reference.resolve())} characters)"
    except SecretUnavailable:
        return f"{reference} (not readable now)"
