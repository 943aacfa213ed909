"""Find the problems of the heartbeat across settings."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final

from gateway.config.agents import DEFAULT_AGENT
from gateway.config.chat_place_rules import place_problems
from gateway.config.problems import Problem, SettingSource
from gateway.config.settings import Settings

OWNERS: Final[Mapping[str, tuple[str, str]]] = {"web": ("local", "owner"), "console": ("local", "owner")}
"""The channels with one owner: their account, and the owner's id."""
SAME_ID: Final = "telegram"
"""The channel whose private chats have the ids of their people."""
_READS: Final = ("heartbeat.", "agents.", "channels.", "agent.")


def heartbeat_problems(
    settings: Settings, bad: Collection[str], source_of: Callable[[str], SettingSource]
) -> list[Problem]:
    """The problems; none where a setting that they are about has a bad value."""
    if any(path.startswith(_READS) for path in bad):
        return []
    return [*_whose(settings, source_of), *_agent(settings, source_of), *_graphs(settings)]


def _whose(settings: Settings, source_of: Callable[[str], SettingSource]) -> Iterator[Problem]:
    wanted = settings.heartbeat
    accounts = {channel: account for channel, (account, _) in OWNERS.items()}
    found = [*place_problems("heartbeat", settings, wanted, source_of, accounts)]
    yield from found
    if found:
        return
    for given in ("user", "agent"):
        if getattr(wanted, given) is not None and wanted.channel is None:
            what = f"is missing, as heartbeat.{given} is set{_where(f'heartbeat.{given}', source_of)}"
            fix = "name the channel and the chat of the person, or neither"
            yield Problem(path="heartbeat.channel", what=what, fix=fix)
            return
    if wanted.channel not in (None, SAME_ID, *OWNERS) and wanted.user is None:
        where = _where("heartbeat.channel", source_of)
        what = f"is missing: a chat of {wanted.channel} has another id than its person{where}"
        yield Problem(path="heartbeat.user", what=what, fix="write the person's id on that platform")


def _agent(settings: Settings, source_of: Callable[[str], SettingSource]) -> Iterator[Problem]:
    name, known = settings.heartbeat.agent, (DEFAULT_AGENT, *settings.agents)
    if name is not None and name not in known:
        what = f"there is no agent {name!a}{_where('heartbeat.agent', source_of)}"
        yield Problem(path="heartbeat.agent", what=what, fix=f"write one of {', '.join(known)}")


def _graphs(settings: Settings) -> Iterator[Problem]:
    """Agents that would answer people with the graph of heartbeats."""
    graphs: dict[str, str | None] = {"agent.graph": settings.agent.graph}
    graphs |= {f"agents.{name}.graph": profile.graph for name, profile in settings.agents.items()}
    for path, graph in graphs.items():
        if graph == "heartbeat":
            what = "is the graph of heartbeats, which answers no messages"
            yield Problem(path=path, what=what, fix="name another one, and turn heartbeat.enabled on")


def _where(path: str, source_of: Callable[[str], SettingSource]) -> str:
    source = source_of(path)
    return "" if source.kind == "default" else f" ({source.phrase()})"
