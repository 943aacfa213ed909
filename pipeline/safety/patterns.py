"""The families of patterns of the crisis gate, which `patterns.toml` lists."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from pipeline.domain.errors import ParlourError
from pipeline.domain.frozen import dataclass

FILE = Path(__file__).with_name("patterns.toml")

Tier = Literal[
    "imminent", "clear", "ambiguous", "distress", "idiom", "denial",
    "check", "asks_danger", "asks_safety", "yes", "no", "accepts",
]  # fmt: skip
TIERS: tuple[Tier, ...] = get_args(Tier)
LADDER: tuple[Tier, ...] = ("imminent", "clear", "ambiguous", "distress")
"""The tiers that speak of danger, the gravest first."""
_KEYS = frozenset(("name", "language", "tier", "needs", "pattern"))
_WORD = re.compile(r"\{\{(\w+)\}\}")


class BadPatterns(ParlourError):
    """The table of patterns cannot be used; the message names the family."""

    code = "bad_patterns"


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One row of the table."""

    name: str
    language: str
    tier: Tier
    needs: tuple[str, ...]
    """Texts of which each match holds one; they are searched first, which is faster."""
    pattern: re.Pattern[str]

    @property
    def code(self) -> str:
        """The family as a reason names it."""
        return f"{self.language}.{self.name}"

    def matches(self, plain: str) -> bool:
        """Whether a text in its plain form matches."""
        return self._may_match(plain) and self.pattern.search(plain) is not None

    def without(self, plain: str) -> str:
        """The text without what matches."""
        return self.pattern.sub(" ... ", plain) if self._may_match(plain) else plain

    def _may_match(self, plain: str) -> bool:
        return any(need in plain for need in self.needs)


class PatternBook:
    """The families by tier. One instance serves every thread."""

    def __init__(self, families: Sequence[Family]) -> None:
        self.by_tier: Mapping[Tier, tuple[Family, ...]] = {
            tier: tuple(family for family in families if family.tier == tier) for tier in TIERS
        }
        self._needed: Mapping[Tier, re.Pattern[str]] = {
            tier: _any_of([need for family in of_tier for need in family.needs])
            for tier, of_tier in self.by_tier.items()
        }
        """What a text holds that a family of the tier may match: one search in place of many."""
        self._by_need: dict[str, list[Family]] = {}
        for tier in LADDER:
            for family in self.by_tier[tier]:
                for need in family.needs:
                    self._by_need.setdefault(need, []).append(family)
        self._needs = tuple(self._by_need)

    def first(self, tier: Tier, plain: str) -> Family | None:
        """The first family of the tier that matches a text in its plain form; None if none does."""
        if self._needed[tier].search(plain) is None:
            return None
        for family in self.by_tier[tier]:
            if family.matches(plain):
                return family
        return None

    def without(self, tier: Tier, plain: str) -> str:
        """The text without what the families of the tier match."""
        if self._needed[tier].search(plain) is None:
            return plain
        for family in self.by_tier[tier]:
            plain = family.without(plain)
        return plain

    def says_something(self, plain: str) -> bool:
        """Whether any family of the ladder matches a text in its plain form: fast where none does."""
        possible = {
            family.code + family.tier: family
            for need in [need for need in self._needs if need in plain]
            for family in self._by_need[need]
        }
        return any(family.pattern.search(plain) is not None for family in possible.values())


@functools.cache
def shipped_patterns() -> PatternBook:
    """The families of the file that comes with the program, read at the first call. Raises BadPatterns."""
    return PatternBook(tuple(_families(tomllib.loads(FILE.read_text(encoding="utf-8")))))


def _any_of(texts: Sequence[str]) -> re.Pattern[str]:
    """What finds any of the texts; nothing without texts."""
    return re.compile("|".join(map(re.escape, dict.fromkeys(texts))) if texts else r"(?!)")


def _families(table: Mapping[str, Any]) -> Iterator[Family]:
    words: dict[str, str] = {}
    for name, text in table["words"].items():
        # A word may use those above it.
        words[name] = _expanded(text, words, name)
    for row in table["family"]:
        where = f"{row.get('language')}.{row.get('name')} ({row.get('tier')})"
        if row.keys() != _KEYS or row["tier"] not in TIERS or not row["needs"]:
            raise BadPatterns(f"{FILE.name}: {where}: needs exactly {', '.join(sorted(_KEYS))}")
        try:
            pattern = re.compile(_expanded(row["pattern"], words, where))
        except re.error as error:
            raise BadPatterns(f"{FILE.name}: {where}: {error}") from error
        yield Family(
            name=row["name"],
            language=row["language"],
            tier=row["tier"],
            needs=tuple(row["needs"]),
            pattern=pattern,
        )


def _expanded(text: str, words: Mapping[str, str], where: str) -> str:
    def word(found: re.Match[str]) -> str:
        if found[1] not in words:
            raise BadPatterns(f"{FILE.name}: {where}: there is no word {found[1]}")
        return words[found[1]]

    return _WORD.sub(word, text)
