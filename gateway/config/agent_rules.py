"""Find the problems across the tables [agents.NAME] and [[routes]], at the line of each."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterator

from gateway.config.agent_settings import agent_settings
from gateway.config.agents import DEFAULT_AGENT, DEFAULT_GRAPH, RouteSettings
from gateway.config.problems import Problem, SettingSource
from gateway.config.settings import Settings
from pipeline.domain.errors import ConfigurationError
from pipeline.llm.backends import resolve_backend

SourceOf = Callable[[str], SettingSource]

CHANNELS = ("telegram", "slack", "discord", "web", "console")
CRITERIA = ("channel", "account", "room", "person", "kind")
"""The keys of a route that choose messages."""
_SHOWN_MISTAKES = 10
"""Of one graph document."""


def agent_problems(settings: Settings, bad: Collection[str], source_of: SourceOf) -> list[Problem]:
    """The problems. A table with a bad value is not compared with others."""
    faulty = {path.split(".")[1] for path in bad if path.startswith("agents.")}
    found = [*_profiles(settings, faulty, source_of)]
    if "agent.graph" not in bad:
        found += _graph_problems("agent", settings.agent.graph, source_of)
    found += _exempt_companion("safety.gate", settings, bad)
    if settings.agent.gate and "agent.gate" not in bad:
        found += _graph_problems("agent", settings.agent.gate, source_of, key="gate")
    if not any(path.startswith("routes.") for path in bad):
        found += _routes(settings, faulty, source_of)
    known = (DEFAULT_AGENT, *settings.agents)
    for account in settings.channels.accounts():
        name = account.settings.agent
        if name is not None and name not in (*known, *faulty):
            what = f"there is no agent of this name{_where(account.path, source_of, 'agent')}"
            found.append(Problem(path=f"{account.path}.agent", what=what, fix=_nearest(name, known)))
    return found


def _profiles(settings: Settings, faulty: Collection[str], source_of: SourceOf) -> Iterator[Problem]:
    for name, profile in settings.agents.items():
        table = f"agents.{name}"
        if name == DEFAULT_AGENT:
            where = _where(table, source_of, *type(profile).model_fields)
            what = f"is the name of the agent that [bot], [llm] and [agent] describe{where}"
            yield Problem(path=table, what=what, fix="choose another name")
        if name in faulty:
            continue
        if profile.graph is not None:
            yield from _graph_problems(table, profile.graph, source_of)
        yield from _exempt_companion(f"{table}.crisis_gate", agent_settings(settings, name), bad=())
        if profile.gate:
            yield from _graph_problems(table, profile.gate, source_of, key="gate")
        llm = agent_settings(settings, name).llm
        for key in ("api_base", "api_key"):
            if llm.model == "local" and getattr(profile, key) is not None:
                what = f'has no effect, as its model is "local"{_where(table, source_of, key)}'
                yield Problem(path=f"{table}.{key}", what=what, fix="remove it or name another model")
        try:
            resolve_backend(llm.model, llm.api_base)
        except ConfigurationError:
            what = f"is not set, but its model names no provider{_where(table, source_of, 'model')}"
            yield Problem(path=f"{table}.api_base", what=what, fix="write the address of the endpoint")


def _exempt_companion(path: str, settings: Settings, bad: Collection[str]) -> list[Problem]:
    """A companion without the crisis gate, which is the first node of its graph."""
    if settings.agent.graph != "companion" or settings.safety.gate == "on" or "safety.gate" in bad:
        return []
    what = 'is "off" for an agent with the graph companion, which begins with the crisis gate'
    return [Problem(path=path, what=what, fix='remove it, or write "on"')]


def _graph_problems(table: str, graph: str, source_of: SourceOf, *, key: str = "graph") -> list[Problem]:
    """The mistakes of the agent's graph or gate: there is none of that name, or the document cannot run."""
    if graph == DEFAULT_GRAPH:
        return []
    from pipeline.graph_book import (  # noqa: PLC0415 - most configurations name no graph
        SAVED,
        SAVED_FORM,
        installed_graphs,
        saved_name,
    )
    from pipeline.message_gate import gate_mistakes  # noqa: PLC0415 - as above

    if graph.startswith(SAVED) and key == "graph":
        if saved_name(graph) is not None:
            # It is in the store, which is read at the start.
            return []
        what = f"is no name of a saved workflow{_where(table, source_of, key)}"
        return [Problem(path=f"{table}.{key}", what=what, fix=f"write {SAVED} and {SAVED_FORM}")]
    try:
        found = installed_graphs().open(graph)
        lines = list(gate_mistakes(found)) if key == "gate" else []
    except ConfigurationError as error:
        lines = str(error).splitlines()
    where = _where(table, source_of, key)
    shown = [*lines[:_SHOWN_MISTAKES], *(["…"] if len(lines) > _SHOWN_MISTAKES else [])]
    fix = "see `parlour graph show` and docs/guides/graphs.md"
    return [Problem(path=f"{table}.{key}", what=f"{line}{where}", fix=fix) for line in shown]


def _routes(settings: Settings, faulty: Collection[str], source_of: SourceOf) -> Iterator[Problem]:
    known = (DEFAULT_AGENT, *settings.agents)
    channels = (*CHANNELS, *(one.name for one in settings.channels.added))
    for number, route in enumerate(settings.routes, start=1):
        table = f"routes.{number}"
        for key, names in (("agent", (route.agent,)), ("also", route.also)):
            for name in names:
                if name not in known and name not in faulty:
                    what = f"there is no agent {name!r}{_where(table, source_of, key)}"
                    yield Problem(path=f"{table}.{key}", what=what, fix=_nearest(name, known))
        if route.channel is not None and route.channel not in channels:
            what = f"there is no channel {route.channel!r}{_where(table, source_of, 'channel')}"
            yield Problem(path=f"{table}.channel", what=what, fix=_nearest(route.channel, channels))
        earlier = _covering(settings.routes[: number - 1], route)
        if earlier:
            where = _where(table, source_of, *CRITERIA, "agent", "also")
            what = f"is never used{where}: routes.{earlier} comes first and matches all of it"
            yield Problem(path=table, what=what, fix="put it before that one, or remove it")


def _covering(earlier: tuple[RouteSettings, ...], route: RouteSettings) -> int:
    """The number of the first earlier route that matches whatever `route` matches; 0 for none."""
    for number, other in enumerate(earlier, start=1):
        if all(getattr(other, key) in (None, getattr(route, key)) for key in CRITERIA):
            return number
    return 0


def _nearest(name: str, known: Collection[str]) -> str:
    close = difflib.get_close_matches(name[:80], known, n=1)
    return f'did you mean "{close[0]}"?' if close else f"there are: {', '.join(known)}"


def _where(table: str, source_of: SourceOf, *keys: str) -> str:
    """The place of the first of the table's keys that is given."""
    sources = [source_of(f"{table}.{key}") for key in keys]
    given = [source for source in sources if source.kind != "default"]
    return f" ({given[0].phrase()})" if given else ""
