"""Whether a procedural rule takes the place of another: by the topics that both are about."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pipeline.memory.plain_text import jaccard, meaningful, plain, words

FILE: Final = Path(__file__).with_name("rule_topics.toml")
_SAME: Final = 0.85
"""The share of common words of two rules that say the same."""


@functools.lru_cache(maxsize=256)
def topics(rule: str) -> frozenset[str]:
    """What of an answer the rule is about; empty if it is about something else."""
    text = plain(rule)
    return frozenset(topic for topic, pattern in _patterns().items() if pattern.search(text) is not None)


def replaces(new: str, old: str) -> bool:
    """Whether the rule `new` takes the place of `old`: it says the same, it settles every topic of it, or it
    says the contrary of the same thing."""
    if words(new) == words(old) or jaccard(frozenset(words(new)), frozenset(words(old))) >= _SAME:
        return True
    before, now = topics(old), topics(new)
    if before or now:
        return bool(before) and before <= now
    about = meaningful(old) - _polarity()
    return bool(about) and about == meaningful(new) - _polarity()


@functools.cache
def _table() -> Mapping[str, Any]:
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


@functools.cache
def _patterns() -> Mapping[str, re.Pattern[str]]:
    return {
        topic: re.compile(rf"(?<!\w)(?:{'|'.join(patterns)})(?!\w)")
        for topic, patterns in _table()["topics"].items()
    }


@functools.cache
def _polarity() -> frozenset[str]:
    return frozenset(_table()["polarity"].split())
