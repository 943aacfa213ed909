"""Load defaults, file, environment and command line into one settings object, or report every problem.

Not here: rules across settings (`file_checks`) and printing (`explain`).
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from gateway.config.agent_rules import agent_problems
from gateway.config.catalog import REPEATED, SETTINGS, SettingInfo, find_setting, toml_value
from gateway.config.channels import MORE
from gateway.config.environment import config_file
from gateway.config.file_checks import cross_problems, mcp_problems, secret_problems
from gateway.config.problems import ConfigurationProblems, Problem, Source
from gateway.config.secrets import REFERENCE_FIX, SecretContext
from gateway.config.settings import Settings
from gateway.config.sources import GivenValue, Layers
from pipeline.domain.frozen import dataclass

_LARGEST_SHOWN = 10**15


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """Valid settings, and where each comes from."""

    settings: Settings
    sources: Mapping[str, Source]
    """By dotted path: for every setting of a single table, and for those of repeated ones that are given."""
    file: Path | None
    """The file that was read, if any."""


def load(
    path: Path | None, environ: Mapping[str, str], overrides: Sequence[str], *, secrets: bool = True
) -> Settings:
    """The settings. `path` is the file named on the command line, `overrides` are `section.key=value`.
    With `secrets` False, for a command that needs none, unreadable secrets are not a problem.

    Raises ConfigurationProblems with all problems.
    """
    return load_with_sources(path, environ, overrides, secrets=secrets).settings


def load_with_sources(
    path: Path | None, environ: Mapping[str, str], overrides: Sequence[str], *, secrets: bool = True
) -> Loaded:
    """As `load`, with the source of each setting."""
    layers = Layers()
    file = config_file(path, environ)
    if file is not None:
        layers.add_file(file)
    layers.add_environment(environ)
    layers.add_overrides(overrides)
    context = SecretContext(folder=file.parent if file else Path(), environ=environ)
    settings, bad, problems = _validate(layers, context)
    problems = [
        *layers.problems,
        *problems,
        *cross_problems(settings, bad, layers.source_of),
        *agent_problems(settings, bad, layers.source_of),
        *(secret_problems(settings, layers.source_of) if secrets else ()),
        *(mcp_problems(settings, layers.source_of) if secrets else ()),
    ]
    if problems:
        raise ConfigurationProblems(problems)
    sources = {name: layers.source_of(name) for name in (*SETTINGS, *layers.values)}
    return Loaded(settings=settings, sources=sources, file=file)


def _validate(layers: Layers, context: SecretContext) -> tuple[Settings, frozenset[str], list[Problem]]:
    """The settings with defaults in place of bad values, the paths of those, and their problems."""
    try:
        return Settings.model_validate(layers.nested(), context=context), frozenset(), []
    except ValidationError as error:
        details = error.errors(include_url=False)
    problems = []
    bad = set()
    for detail in details:
        setting, label = _locate(detail["loc"], layers)
        bad.add(setting.path)
        problems.append(_explain_detail(setting, label, detail, layers.values[setting.path]))
    settings = Settings.model_validate(layers.nested(without=frozenset(bad)), context=context)
    return settings, frozenset(bad), problems


def _locate(location: tuple[int | str, ...], layers: Layers) -> tuple[SettingInfo, str]:
    """The setting of an error, and its path with the position in a list."""
    first, *rest = location
    if first in REPEATED and rest and isinstance(rest[0], int):
        location = (first, layers.array_numbers(str(first))[rest[0]], *rest[1:])
    more = str(rest[0]) if rest else ""
    if first == "channels" and more.endswith(MORE) and isinstance(rest[1], int):
        channel = more.removesuffix(MORE)
        location = (first, channel, layers.account_numbers(channel)[rest[1]], *rest[2:])
    for end in range(1, len(location) + 1):
        setting = find_setting(tuple(str(part) for part in location[:end]))
        if setting is not None:
            return setting, setting.path + "".join(f"[{part}]" for part in location[end:])
    raise LookupError("the error is about no setting")  # unknown keys and sections end in Layers.place


def _explain_detail(setting: SettingInfo, label: str, detail: ErrorDetails, given: GivenValue) -> Problem:
    source = given.source
    if detail["type"] == "refused":
        words = detail["ctx"]
        return Problem(path=label, what=f"{words['what']} ({source.phrase()})", fix=words["fix"])
    in_list = label != setting.path
    expected = "text" if in_list else setting.expected
    shown = _shown(detail["input"], numeric=setting.kind in ("integer", "number"))
    if detail["type"] == "string_unicode":
        shown = "text that is not Unicode"
    return Problem(
        path=label,
        what=f"expected {expected}, but {shown} was given ({source.phrase()})",
        fix=_remedy(setting, detail["input"], source),
    )


def _shown(value: Any, *, numeric: bool) -> str:
    """`value` as text. Only numbers for numeric settings are repeated: anything else may be a secret."""
    match value:
        case bool():
            return "true" if value else "false"
        case float() if not math.isfinite(value):
            return "a number without bounds"
        case int() | float() if numeric and abs(value) <= _LARGEST_SHOWN:
            return str(value)
        case int() | float():
            return "a number"
        case str():
            return f"text of {len(value)} character{'' if len(value) == 1 else 's'}"
        case dict():
            return "a table"
        case list():
            return f"a list of {len(value)}"
        case _:
            return "a date or a time"


def _remedy(setting: SettingInfo, value: Any, source: Source) -> str:
    unquoted = " without quotes" if isinstance(value, str) and source.kind == "file" else ""
    match setting.kind:
        case "flag":
            return f"write true or false{unquoted}"
        case "integer" | "number":
            return f"write a number such as {toml_value(setting.example)}{unquoted}"
        case "choice":
            close = (
                difflib.get_close_matches(value.lower()[:80], setting.choices, n=1)
                if isinstance(value, str)
                else []
            )
            return f'did you mean "{close[0]}"?' if close else "choose one of them"
        case "secret":
            return REFERENCE_FIX
        case "text" | "path" | "list":
            return f"write for example {toml_value(setting.example)}"
