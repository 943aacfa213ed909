"""Markers: groups of words, in four languages, that say how a candidate is to be treated."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, get_args

from pipeline.memory.plain_text import plain

FILE: Final = Path(__file__).with_name("markers.toml")
Marker = Literal[
    "negative_self_belief",
    "emerging_pattern",
    "transient",
    "lasting",
    "turn_scoped",
    "durable_cue",
    "control",
    "safety_conflict",
    "override",
    "instruction",
    "secret",
    "speculative",
    "question",
    "request",
    "fact_shaped",
    "personal",
]


def has(marker: Marker, text: str) -> bool:
    """Whether `text` has the marker, as whole words."""
    return _patterns()[marker].search(plain(text)) is not None


def matches(marker: Marker, text: str) -> str:
    """The words of the plain `text` that are the marker; empty if there are none."""
    found = _patterns()[marker].search(plain(text))
    return found[0] if found is not None else ""


@functools.cache
def _patterns() -> Mapping[Marker, re.Pattern[str]]:
    """One pattern for each marker. Raises ValueError for a file that lacks one or has another."""
    table = tomllib.loads(FILE.read_text(encoding="utf-8"))
    if table.keys() != set(get_args(Marker)):
        raise ValueError(f"{FILE.name}: has other markers than {', '.join(get_args(Marker))}")
    return {marker: re.compile(_whole_words(table[marker])) for marker in get_args(Marker)}


def _whole_words(by_language: Mapping[str, list[str]]) -> str:
    alternatives = [pattern for patterns in by_language.values() for pattern in patterns]
    return rf"(?<!\w)(?:{'|'.join(alternatives)})(?!\w)"
