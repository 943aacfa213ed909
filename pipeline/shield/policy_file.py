"""Read the policy from its TOML files: the shipped one, and the operator's on top of it.

A rule of the operator is evaluated before the shipped ones of its list, and replaces a shipped rule of the
same name, whatever list that is in. Every mistake is named with the file, the rule and the field.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from pipeline.domain.errors import ConfigurationError
from pipeline.shield.action_types import ACTION_TYPES, SINKS, ActionType, Sink
from pipeline.shield.levels import LEVELS, Level
from pipeline.shield.rules import Flow, ListName, Policy, PolicyRule, SourceRule

SHIPPED: Final = "default_policy.toml"
_LISTS: Final[tuple[ListName, ...]] = ("deny", "verify", "allow")
_FLOWS: Final[tuple[Flow, ...]] = ("allow", "ask", "block")
_RULE_FIELDS: Final = frozenset({"name", "action_types", "paths", "hosts", "tier"})
_SOURCE_FIELDS: Final = frozenset({"name", "level", "paths", "tools", "hosts"})
_TIERS: Final = (1, 2, 3)
_MOST_BYTES = 1_000_000
_LONGEST_NAME = 64
_EVERY = "*"


class _Mistakes(list[str]):
    """The mistakes of one file, each with its place."""

    def __init__(self, file: str) -> None:
        super().__init__()
        self.file = file

    def add(self, place: str, words: str) -> None:
        self.append(f"{self.file}: {place}: {words}")


def read_policy(own: Path | None = None) -> Policy:
    """The shipped policy, with the operator's file `own` on top. Reads files: call it in a thread.

    Raises ConfigurationError with one line for each mistake.
    """
    shipped = _shipped_policy()
    if own is None:
        return shipped
    try:
        data = own.read_bytes()
        if len(data) > _MOST_BYTES:
            raise ConfigurationError(f"{own}: the file is larger than 1 MB; a policy is a few rules")
        return _on_top(parsed_policy(data.decode("utf-8"), str(own)), shipped)
    except OSError as error:
        raise ConfigurationError(f"{own}: the policy cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{own}: the policy is not UTF-8 text; save it as UTF-8") from None


@functools.cache
def _shipped_policy() -> Policy:
    """Read once: it is a part of the program."""
    return parsed_policy(files("pipeline.shield").joinpath(SHIPPED).read_text(encoding="utf-8"), SHIPPED)


def parsed_policy(text: str, file: str) -> Policy:
    """The policy in `text`; `file` is its name in the messages. Raises ConfigurationError."""
    try:
        plain = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{file}: this is not TOML: {error}") from None
    wrong = _Mistakes(file)
    known = {*_LISTS, "source", "matrix"}
    for key in plain:
        if key not in known:
            wrong.add(str(key), f"there is no such table; there are {', '.join(sorted(known))}")
    names: dict[str, str] = {}
    rules = {one: tuple(_rules(plain.get(one, []), one, names, wrong)) for one in _LISTS}
    sources = tuple(_sources(plain.get("source", []), names, wrong))
    matrix = _matrix(plain.get("matrix", {}), wrong)
    if wrong:
        raise ConfigurationError("\n".join(wrong))
    return Policy(
        deny=rules["deny"],
        verify=rules["verify"],
        allow=rules["allow"],
        sources=sources,
        matrix=matrix,
    )


def _on_top(own: Policy, shipped: Policy) -> Policy:
    taken = {rule.name for rule in (*own.deny, *own.verify, *own.allow)}
    named = {rule.name for rule in own.sources}

    def both(first: Sequence[PolicyRule], then: Sequence[PolicyRule]) -> tuple[PolicyRule, ...]:
        return (*first, *(rule for rule in then if rule.name not in taken))

    return Policy(
        deny=both(own.deny, shipped.deny),
        verify=both(own.verify, shipped.verify),
        allow=both(own.allow, shipped.allow),
        sources=(*own.sources, *(rule for rule in shipped.sources if rule.name not in named)),
        matrix={**(shipped.matrix or {}), **(own.matrix or {})},
    )


def _tables(plain: Any, kind: str, wrong: _Mistakes) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each table of an array, with its place for messages."""
    if not isinstance(plain, list):
        wrong.add(kind, f"must be written as [[{kind}]]")
        return
    for number, table in enumerate(plain, start=1):
        if isinstance(table, Mapping):
            name = table.get("name")
            yield f'{kind} rule "{name}"' if isinstance(name, str) and name else f"{kind} {number}", table
        else:
            wrong.add(f"{kind} {number}", f"must be written as [[{kind}]]")


def _rules(plain: Any, kind: ListName, names: dict[str, str], wrong: _Mistakes) -> Iterator[PolicyRule]:
    for place, table in _tables(plain, kind, wrong):
        _no_others(table, _RULE_FIELDS, place, wrong)
        yield PolicyRule(
            name=_name(table, place, names, wrong),
            list=kind,
            action_types=_types(table.get("action_types"), place, wrong),
            paths=_texts(table, "paths", place, wrong),
            hosts=_texts(table, "hosts", place, wrong),
            tier=_tier(table, kind, place, wrong),
        )


def _sources(plain: Any, names: dict[str, str], wrong: _Mistakes) -> Iterator[SourceRule]:
    for place, table in _tables(plain, "source", wrong):
        _no_others(table, _SOURCE_FIELDS, place, wrong)
        level = table.get("level")
        if level not in LEVELS:
            wrong.add(place, f"level: must be one of {', '.join(LEVELS)}")
        paths, tools, hosts = (_texts(table, key, place, wrong) for key in ("paths", "tools", "hosts"))
        if not (paths or tools or hosts):
            wrong.add(place, "name what it is about: paths, tools or hosts")
        yield SourceRule(
            name=_name(table, place, names, wrong),
            level=LEVELS.get(str(level), Level.CRITICAL),
            paths=paths,
            tools=tools,
            hosts=hosts,
        )


def _matrix(plain: Any, wrong: _Mistakes) -> dict[tuple[Level, Sink], Flow]:
    found: dict[tuple[Level, Sink], Flow] = {}
    if not isinstance(plain, Mapping):
        wrong.add("matrix", "must be written as [matrix.LEVEL]")
        return found
    for word, row in plain.items():
        place = f"matrix.{word}"
        if word not in LEVELS or not isinstance(row, Mapping):
            wrong.add(place, f"there is no such level; there are {', '.join(LEVELS)}")
            continue
        for sink, flow in row.items():
            if sink not in SINKS:
                wrong.add(place, f"{sink}: there is no such sink; there are {', '.join(SINKS)}")
            elif flow not in _FLOWS:
                wrong.add(place, f"{sink}: must be one of {', '.join(_FLOWS)}")
            else:
                found[LEVELS[word], sink] = flow
    return found


def _no_others(table: Mapping[str, Any], known: frozenset[str], place: str, wrong: _Mistakes) -> None:
    for key in table:
        if key not in known:
            wrong.add(place, f"{key}: there is no such field; there are {', '.join(sorted(known))}")


def _name(table: Mapping[str, Any], place: str, names: dict[str, str], wrong: _Mistakes) -> str:
    name = table.get("name")
    if not isinstance(name, str) or not name.strip() or len(name) > _LONGEST_NAME:
        wrong.add(place, f"name: must be a text of 1 to {_LONGEST_NAME} characters")
        return ""
    if name in names:
        wrong.add(place, f"name: is used twice, also by a rule of {names[name]}")
    names[name] = place.partition(" ")[0]
    return name


def _types(given: Any, place: str, wrong: _Mistakes) -> frozenset[ActionType]:
    if not isinstance(given, list) or not given:
        wrong.add(place, 'action_types: must be a list of types, or ["*"] for all')
        return frozenset()
    if given == [_EVERY]:
        return frozenset(ACTION_TYPES)
    for one in given:
        if one not in ACTION_TYPES:
            wrong.add(place, f"action_types: {one!r} is no type; there are {', '.join(ACTION_TYPES)}")
    return frozenset(one for one in ACTION_TYPES if one in given)


def _texts(table: Mapping[str, Any], key: str, place: str, wrong: _Mistakes) -> tuple[str, ...]:
    given = table.get(key, [])
    if key in table and not given:
        wrong.add(place, f"{key}: is empty; leave it out, or name at least one")
    if not isinstance(given, list) or any(not isinstance(one, str) or not one.strip() for one in given):
        wrong.add(place, f"{key}: must be a list of texts")
        return ()
    return tuple(given)


def _tier(table: Mapping[str, Any], kind: ListName, place: str, wrong: _Mistakes) -> int:
    tier = table.get("tier")
    if kind != "verify":
        if tier is not None:
            wrong.add(place, f"tier: a rule of {kind} has none; it belongs to verify")
        return 0
    if isinstance(tier, bool) or tier not in _TIERS:
        wrong.add(place, "tier: must be 1, 2 or 3")
        return 3
    return int(tier)
