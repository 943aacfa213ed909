"""Print for `parlour check-config` every setting, its effective value and its source; or the problems.

Not here: the documentation of the settings (`docs_tables`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from gateway.config.agent_rules import CRITERIA
from gateway.config.agent_settings import agent_settings
from gateway.config.agents import DEFAULT_AGENT, RouteSettings
from gateway.config.api import EVERY_WORKFLOW
from gateway.config.api_rules import workflow_agents
from gateway.config.catalog import SECTIONS, SETTINGS, toml_value
from gateway.config.environment import crash_at
from gateway.config.limits import model_limits
from gateway.config.load import Loaded, load_with_sources
from gateway.config.problems import ConfigurationProblems, Problem, SettingSource, one_line
from gateway.config.secrets import SecretRef, SecretUnavailable
from gateway.config.section import Section
from gateway.config.settings import Settings

VALID = 0
INVALID = 2


def explain(settings: Settings, sources: Mapping[str, SettingSource]) -> str:
    """One line for each setting: dotted path, source, value. A secret shows as its reference and length."""
    rows = [
        (name, sources.get(name, SettingSource(kind="default")).label(), _shown(_value(settings, name)))
        for name in (*SETTINGS, *_of_repeated(settings))
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
    embedded: Callable[[Settings], str] = lambda _: "of this machine",
) -> int:
    """Run the whole command: `write` gets the report line by line. Returns the exit code, 0 or 2.

    `labels` are the crash labels PARLOUR_CRASH_AT may name; `embedded` says which embedded model is in use.
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
    problems += _left_out(loaded)
    if problems:
        return _report(problems, write)
    write(f"{explain(loaded.settings, loaded.sources)}\n")
    for line in models_of(loaded.settings, embedded):
        write(f"{one_line(line)}\n")
    if loaded.settings.agents or loaded.settings.every_route:
        write(f"{who_answers(loaded.settings)}\n")
    read_from = one_line(str(loaded.file)) if loaded.file else "no file"
    write(f"The configuration is valid ({read_from}).\n")
    return VALID


def _left_out(loaded: Loaded) -> list[Problem]:
    """The channels whose tables could not be checked. The gateway starts without them."""
    return [
        Problem(
            path=f"channels.{one.name}",
            what=f"is left out, and its table was not checked: the plug-in {one.package} cannot be used "
            f"({one.problem})",
            fix="repair or remove the plug-in, or remove the table; without it the gateway starts as it is",
        )
        for one in loaded.settings.channels.added
        if one.problem
    ]


def models_of(settings: Settings, embedded: Callable[[Settings], str]) -> list[str]:
    """One line for the limits of each model, and one for the embedded model where an agent uses it."""
    usual = model_limits(settings)
    lines = [f"The model's limits: {usual.words()}."]
    models = {settings.llm.model, settings.budget.cheaper_model}
    for name in settings.agents:
        own = agent_settings(settings, name)
        models.add(own.llm.model)
        limits = model_limits(own)
        if own.llm.model != settings.llm.model or limits != usual:
            lines.append(f"The limits of the agent {name} ({own.llm.model}): {limits.words()}.")
    if settings.budget.cheaper_model is not None:
        limits = model_limits(settings, settings.budget.cheaper_model)
        lines.append(f"The limits of the cheaper model ({settings.budget.cheaper_model}): {limits.words()}.")
    if "local" in models:
        lines.append(f"The embedded model: {embedded(settings)}.")
    return lines


def who_answers(settings: Settings) -> str:
    """One line for each route, in order, for the rest, and for each agent that answers nowhere."""
    lines = [
        f"{_chats(route)}: {route.agent}"
        + (f" (or {', '.join(route.also)}, by /agent)" if route.also else "")
        for route in settings.every_route
    ]
    if not any(_matches_all(route) for route in settings.every_route):
        lines.append(f"{'everywhere else' if lines else 'everywhere'}: {DEFAULT_AGENT}")
    reached = {name for route in settings.every_route for name in (route.agent, *route.also)}
    over_api = _over_api(settings)
    lines += [f"runs of the HTTP API, by name: {', '.join(over_api)}"] if over_api else []
    reached |= set(over_api)
    idle = [name for name in settings.agents if name not in reached]
    lines += [f"nowhere, as no route names it: {name}" for name in idle]
    return "\n".join(
        ["Who answers where, the first line that matches:", *(one_line(f"  {line}") for line in lines)]
    )


def _over_api(settings: Settings) -> list[str]:
    """The workflows that a token of the API may use."""
    if not settings.api.enabled:
        return []
    named = {name for token in settings.api.tokens.values() for name in token.workflows}
    return [name for name in workflow_agents(settings) if EVERY_WORKFLOW in named or name in named]


def _chats(route: RouteSettings) -> str:
    given = {key: getattr(route, key) for key in CRITERIA if getattr(route, key) is not None}
    return ", ".join(f"{key} {value}" for key, value in given.items()) or "everywhere"


def _matches_all(route: RouteSettings) -> bool:
    return all(getattr(route, key) is None for key in CRITERIA)


def _report(problems: Sequence[Problem], write: Callable[[str], object]) -> int:
    for problem in problems:
        write(f"{problem}\n")
    count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
    write(f"The configuration has {count}.\n")
    return INVALID


def _of_repeated(settings: Settings) -> list[str]:
    """The paths of the settings of the tables that repeat; without those that are not set."""
    tables: list[tuple[str, Section]] = [
        (f"agents.{name}", profile) for name, profile in settings.agents.items()
    ]
    tables += [(one.path, one.settings) for one in settings.channels.accounts() if one.path not in SECTIONS]
    tables += [(f"api.tokens.{name}", token) for name, token in settings.api.tokens.items()]
    tables += [(f"api.webhooks.{name}", hook) for name, hook in settings.api.webhooks.items()]
    tables += [(f"routes.{number}", route) for number, route in enumerate(settings.routes, start=1)]
    return [
        f"{path}.{key}"
        for path, table in tables
        for key in type(table).model_fields
        if key in table.model_fields_set
    ]


def _value(settings: Settings, name: str) -> object:
    value: object = settings
    path, _, key = name.rpartition(".")
    further = {one.path: one.settings for one in settings.channels.accounts()}
    if path in further:
        return getattr(further[path], key)
    for part in name.split("."):
        match value:
            case Mapping():
                value = value[part]
            case tuple():
                value = value[int(part) - 1]
            case _:
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
