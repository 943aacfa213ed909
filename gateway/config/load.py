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
from gateway.config.api_rules import api_problems
from gateway.config.catalog import REPEATED, SETTINGS, SettingInfo, toml_value
from gateway.config.channel_plugins import added_channel
from gateway.config.channels import MORE, AddedChannel
from gateway.config.environment import config_file
from gateway.config.evaluator_rules import evaluator_problems
from gateway.config.file_checks import (
    classifier_problems,
    cross_problems,
    mcp_problems,
    policy_problems,
    resource_problems,
    secret_problems,
)
from gateway.config.heartbeat_rules import heartbeat_problems
from gateway.config.posting import PostingSettings
from gateway.config.problems import ConfigurationProblems, Problem, SettingSource
from gateway.config.safety_rules import safety_problems
from gateway.config.secrets import REFERENCE_FIX, SecretContext
from gateway.config.settings import Settings
from gateway.config.sources import GivenValue, Layers, find_any_setting
from pipeline.domain.frozen import dataclass

_LARGEST_SHOWN = 10**15


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """Valid settings, and where each comes from."""

    settings: Settings
    sources: Mapping[str, SettingSource]
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
    return _settings(Layers(), config_file(path, environ), environ, overrides, secrets=secrets)


def load_with_sources(
    path: Path | None, environ: Mapping[str, str], overrides: Sequence[str], *, secrets: bool = True
) -> Loaded:
    """As `load`, with the source of each setting."""
    layers, file = Layers(), config_file(path, environ)
    settings = _settings(layers, file, environ, overrides, secrets=secrets)
    sources = {name: layers.source_of(name) for name in (*SETTINGS, *layers.values)}
    return Loaded(settings=settings, sources=sources, file=file)


def _settings(
    layers: Layers, file: Path | None, environ: Mapping[str, str], overrides: Sequence[str], *, secrets: bool
) -> Settings:
    """The settings, with what is given in `layers`."""
    if file is not None:
        layers.add_file(file)
    layers.add_environment(environ)
    layers.add_overrides(overrides)
    context = SecretContext(folder=file.parent if file else Path(), environ=environ)
    settings, bad, problems = _validate(layers, context)
    added, bad_added, problems_added = _added(layers, context)
    channels = settings.channels.model_copy(update={"plugged": added})
    settings, bad = settings.model_copy(update={"channels": channels}), bad | bad_added
    problems = [
        *layers.problems,
        *problems,
        *problems_added,
        *cross_problems(settings, bad, layers.source_of),
        *agent_problems(settings, bad, layers.source_of),
        *api_problems(settings, bad, layers.source_of, secrets=secrets),
        *evaluator_problems(settings, bad, layers.source_of),
        *safety_problems(settings, bad, layers.source_of),
        *heartbeat_problems(settings, bad, layers.source_of),
        *(secret_problems(settings, layers.source_of) if secrets else ()),
        *(mcp_problems(settings, layers.source_of) if secrets else ()),
        *(policy_problems(settings, layers.source_of) if secrets else ()),
        *(classifier_problems(settings, layers.source_of) if secrets else ()),
        *(resource_problems(settings, layers.source_of) if secrets else ()),
    ]
    if problems:
        raise ConfigurationProblems(problems)
    return settings


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


def _added(
    layers: Layers, context: SecretContext
) -> tuple[tuple[AddedChannel, ...], frozenset[str], list[Problem]]:
    """As `_validate`, for the channels of plug-ins."""
    channels: list[AddedChannel] = []
    bad: set[str] = set()
    problems: list[Problem] = []
    for name in layers.added:
        plugin = added_channel(("channels", name))
        if plugin is None:  # it was there when its table was read
            continue
        if plugin.problem:
            channels.append(AddedChannel(name=name, package=plugin.package, problem=plugin.problem))
            continue
        kind = plugin.value.kind
        try:
            tables = [
                _section(kind.settings, path, values, layers, context, bad, problems)
                for path, values in layers.added_tables(name).items()
            ]
            for table in tables:
                _try_out(table)
        except Exception as error:  # noqa: BLE001 - a plug-in's own checks may raise anything
            # Not its text, which may repeat a value.
            words = f"reading its table failed with {type(error).__name__}"
            channels.append(AddedChannel(name=name, package=plugin.package, problem=words))
            continue
        channels.append(AddedChannel(name=name, package=plugin.package, kind=kind, tables=tuple(tables)))
    return tuple(channels), frozenset(bad), problems


def _try_out(table: PostingSettings) -> None:
    """Call what the plug-in's class may have overridden: whatever it raises is raised here, not later."""
    for mistake in table.mistakes():
        key, what, fix = mistake
        if key not in type(table).model_fields or not (what and fix):
            raise ValueError("mistakes returns a setting of the table, what is wrong, and what to do")
    _ = (table.active, table.secret_refs())


def _section(
    model: type[PostingSettings],
    path: str,
    values: Mapping[str, Any],
    layers: Layers,
    context: SecretContext,
    bad: set[str],
    problems: list[Problem],
) -> PostingSettings:
    """One table of a plug-in's channel, with defaults in place of bad values."""
    left = dict(values)
    while True:
        try:
            return model.model_validate(left, context=context)
        except ValidationError as error:
            details = error.errors(include_url=False)
        wrong = {str(detail["loc"][0]) for detail in details if detail["loc"]} & left.keys()
        if not wrong:
            what = f"is refused by the channel ({layers.added[path.split('.')[1]].phrase()})"
            problems.append(Problem(path=path, what=what, fix="see the documentation of the channel"))
            return model()
        for detail in details:
            if detail["loc"] and detail["loc"][0] in wrong:
                setting, label = _locate((*path.split("."), *detail["loc"]), layers)
                bad.add(setting.path)
                problems.append(_explain_detail(setting, label, detail, layers.values[setting.path]))
        left = {key: value for key, value in left.items() if key not in wrong}


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
        setting = find_any_setting(tuple(str(part) for part in location[:end]))
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


def _remedy(setting: SettingInfo, value: Any, source: SettingSource) -> str:
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
