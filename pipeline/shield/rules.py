"""The rules of tier 0, and their evaluation: deny, then verify, then allow, then none.

Not here: reading the rules from a file (`policy_file`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Literal

from pipeline.domain.frozen import dataclass
from pipeline.shield.action_types import ActionType, Sink
from pipeline.shield.globs import any_host, any_path
from pipeline.shield.levels import Labels, Level
from pipeline.shield.proposal import Proposal

_NAMED_BY: Mapping[ActionType, str] = {"read_note": "title", "read_attachment": "file"}
_MOST_MATCHED = 1_000
_FEW_NAMES = 8
"""Paths and hosts of an action whose rule is kept."""
ListName = Literal["deny", "verify", "allow"]
Flow = Literal["allow", "ask", "block"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRule:
    """One rule of the policy. Empty patterns match every action of the types."""

    name: str
    list: ListName
    action_types: frozenset[ActionType]
    paths: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    tier: int = 0
    """Of a verify rule: the least tier, 1 to 3."""

    def matches(self, proposal: Proposal) -> bool:
        """Whether the rule applies. One forbidden path or host is enough for deny and verify; an allow rule
        has to cover all paths and all hosts that the action names."""
        if proposal.type not in self.action_types:
            return False
        every = self.list == "allow"
        by_path = not self.paths or _named(any_path(self.paths), proposal.paths, every=every)
        by_host = not self.hosts or _named(any_host(self.hosts), proposal.hosts, every=every)
        if self.paths and self.hosts and not every:
            return by_path or by_host
        return by_path and by_host


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRule:
    """What the results of actions are labelled with. The first rule that matches counts."""

    name: str
    level: Level
    paths: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    """Names of tools or, with the group, `mcp:crm/*`."""
    hosts: tuple[str, ...] = ()

    def matches(self, proposal: Proposal) -> bool:
        """Whether a path, the tool or a host of the action is one that the rule names."""
        if any(self.names(path) for path in proposal.paths):
            return True
        tools = (proposal.tool.casefold(), f"{proposal.group}/{proposal.tool}".casefold())
        return (bool(self.tools) and _named(any_path(self.tools), tools)) or (
            bool(self.hosts) and _named(any_host(self.hosts), proposal.hosts)
        )

    def names(self, path: str) -> bool:
        """Whether the rule names that path."""
        return bool(self.paths) and any_path(self.paths).fullmatch(path) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The rules of tier 0 and of the information flow, in the order of their evaluation."""

    deny: tuple[PolicyRule, ...] = ()
    verify: tuple[PolicyRule, ...] = ()
    allow: tuple[PolicyRule, ...] = ()
    sources: tuple[SourceRule, ...] = ()
    matrix: Mapping[tuple[Level, Sink], Flow] | None = None
    _matched: dict[tuple[ActionType, tuple[str, ...], tuple[str, ...]], PolicyRule | None] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """What `match` has found, by all that a rule looks at: names recur. A table that is full begins again."""

    def match(self, proposal: Proposal) -> PolicyRule | None:
        """The rule that decides: the first of deny, else the strictest of verify, else the first of allow."""
        key = (proposal.type, proposal.paths, proposal.hosts)
        if key in self._matched:
            return self._matched[key]
        rule = self._match(proposal)
        if len(proposal.paths) + len(proposal.hosts) <= _FEW_NAMES:
            if len(self._matched) >= _MOST_MATCHED:
                self._matched.clear()
            self._matched[key] = rule
        return rule

    def _match(self, proposal: Proposal) -> PolicyRule | None:
        if (denied := _first(self.deny, proposal)) is not None:
            return denied
        type_ = proposal.type
        verified = [rule for rule in self.verify if type_ in rule.action_types and rule.matches(proposal)]
        if verified:
            return max(verified, key=lambda rule: rule.tier)
        return _first(self.allow, proposal)

    def level_of(self, proposal: Proposal) -> tuple[Level, str]:
        """The level of what the action reads, and the name of the rule; PUBLIC without one."""
        for rule in self.sources:
            if rule.matches(proposal):
                return rule.level, rule.name
        return Level.PUBLIC, ""

    def level_of_path(self, path: str) -> tuple[Level, str]:
        """The level of a file or note, as `level_of`; `path` is normalised."""
        for rule in self.sources:
            if rule.names(path):
                return rule.level, rule.name
        return Level.PUBLIC, ""

    def reader(self, proposal: Proposal) -> Callable[[str], bool]:
        """Which files and notes an action that does not name them may read, now that it may run: those that
        could be read by name without a question, and those under the rule that decided about the action."""
        decided = self.match(proposal)
        key = _NAMED_BY.get(proposal.type, "path")

        def may_read(name: str) -> bool:
            named = name.partition("/")[2] if key == "title" else name
            rule = self.match(replace(proposal, payload={key: named}))
            if rule is decided:
                return True
            return rule is not None and (rule.list == "allow" or (rule.list == "verify" and rule.tier <= 1))

        return may_read

    def closes(self, proposal: Proposal, host: str) -> bool:
        """Whether the action is denied at that host, to which a server redirects it."""
        address = f"https://[{host}]/" if ":" in host else f"https://{host}/"
        rule = self.match(replace(proposal, payload={"url": address}))
        return rule is not None and rule.list == "deny"

    def flow(self, labels: Labels, sink: Sink | None) -> Flow:
        """What the matrix says about data with these labels going there. A missing cell blocks."""
        if sink is None or self.matrix is None:
            return "allow"
        return self.matrix.get((labels.level, sink), "block")


def _first(rules: tuple[PolicyRule, ...], proposal: Proposal) -> PolicyRule | None:
    """The first rule that matches. Most rules are about other types, which is found out without a call."""
    type_ = proposal.type
    for rule in rules:
        if type_ in rule.action_types and rule.matches(proposal):
            return rule
    return None


def _named(pattern: re.Pattern[str], names: tuple[str, ...], *, every: bool = False) -> bool:
    """Whether the pattern matches one of the names or, with `every`, all of at least one."""
    matches = map(pattern.fullmatch, names)
    return bool(names) and all(matches) if every else any(matches)
