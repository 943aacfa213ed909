"""Change the rules of a profile: pure functions, from one profile to the next."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from pipeline.memory.policy.rule_topics import replaces
from pipeline.memory.values import MAX_RULES, Profile, Rule

EVICTION: Final = "eviction"
MAX_ARCHIVED_RULES: Final = 50
"""Replaced rules that are kept for the person to see; the oldest are removed first."""


def with_rules(profile: Profile, rules: Iterable[Rule]) -> Profile:
    """`profile` with each rule in turn. A rule replaces those that say the same or the contrary; the oldest
    rule is archived where there are more than 20. A rule whose id is known is not added again. The revision
    stays."""
    active, archived = list(profile.rules), list(profile.archived_rules)
    known = {rule.id for rule in (*active, *archived)}
    for rule in rules:
        if rule.id in known:
            continue
        known.add(rule.id)
        gone = [old for old in active if replaces(rule.text, old.text)]
        archived += [replace(old, superseded_by=rule.id) for old in gone]
        active = [*(old for old in active if old not in gone), rule]
        while len(active) > MAX_RULES:
            oldest = min(active, key=lambda one: one.created_at)
            active.remove(oldest)
            archived.append(replace(oldest, superseded_by=EVICTION))
    if len(active) == len(profile.rules) and active == list(profile.rules):
        return profile
    return replace(profile, rules=tuple(active), archived_rules=tuple(archived[-MAX_ARCHIVED_RULES:]))
