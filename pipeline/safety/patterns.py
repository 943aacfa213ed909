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
    "imminent", "clear", "ambiguous", "distress", "idiom", "denial", "others",
    "check", "asks_danger", "asks_safety", "asks_plan", "fears", "yes", "no", "not_at_all",
    "accepts",
]  # fmt: skip
TIERS: tuple[Tier, ...] = get_args(Tier)
LADDER: tuple[Tier, ...] = ("imminent", "clear", "ambiguous", "distress")
"""The tiers that speak of danger, the gravest first."""
_KEYS = frozenset(("name", "language", "tier", "needs", "pattern"))
_START = 3
"""Letters of a need by which it is looked up."""
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
        return self.pattern.search(plain) is not None


class PatternBook:
    """The families by tier. One instance serves every thread."""

    def __init__(self, families: Sequence[Family]) -> None:
        self.by_tier: Mapping[Tier, tuple[Family, ...]] = {
            tier: tuple(family for family in families if family.tier == tier) for tier in TIERS
        }
        numbered = {family: 1 << number for number, family in enumerate(families)}
        self._rows: Mapping[Tier, Sequence[tuple[int, Family]]] = {
            tier: [(numbered[family], family) for family in of_tier] for tier, of_tier in self.by_tier.items()
        }
        self._of_tier = {tier: sum(bit for bit, _ in rows) for tier, rows in self._rows.items()}
        self._ladder = sum(self._of_tier[tier] for tier in LADDER)
        by_need: dict[str, int] = {}
        for family, bit in numbered.items():
            for need in family.needs:
                by_need[need] = by_need.get(need, 0) | bit
        starts: dict[str, list[tuple[str, int]]] = {}
        for need, bits in by_need.items():
            starts.setdefault(need[:_START], []).append((need, bits))
        self._starts = {start: needs for start, needs in starts.items() if len(start) == _START}
        self._all_starts = frozenset(self._starts)
        self._short = {
            need: bits for start, needs in starts.items() if len(start) < _START for need, bits in needs
        }

    def possible(self, plain: str) -> int:
        """The families that a text in its plain form may match, a bit for each: it holds one of their needs.
        One pass in place of a search for each family."""
        found = 0
        pieces = set(map("".join, zip(plain, plain[1:], plain[2:], strict=False)))
        for start in self._all_starts & pieces:
            for need, bits in self._starts[start]:
                if need in plain:
                    found |= bits
        if any(map(plain.__contains__, self._short)):
            for need, bits in self._short.items():
                if need in plain:
                    found |= bits
        return found

    def first(self, tier: Tier, plain: str, possible: int | None = None) -> Family | None:
        """The first family of the tier that matches a text in its plain form; None if none does. `possible`:
        what `possible` says of the text, or of a longer one that holds it."""
        left = (self.possible(plain) if possible is None else possible) & self._of_tier[tier]
        if left:
            for bit, family in self._rows[tier]:
                if left & bit and family.matches(plain):
                    return family
        return None

    def without(self, tier: Tier, plain: str, possible: int | None = None) -> str:
        """The text without what the families of the tier match."""
        left = (self.possible(plain) if possible is None else possible) & self._of_tier[tier]
        if left:
            for bit, family in self._rows[tier]:
                if left & bit:
                    plain = family.pattern.sub(" ... ", plain)
        return plain

    def says_something(self, plain: str, possible: int) -> bool:
        """Whether any family of the ladder matches a text in its plain form."""
        left = possible & self._ladder
        return bool(left) and any(self.first(tier, plain, left) is not None for tier in LADDER)


@functools.cache
def shipped_patterns() -> PatternBook:
    """The families of the file that comes with the program, read at the first call. Raises BadPatterns."""
    return PatternBook(tuple(_families(tomllib.loads(FILE.read_text(encoding="utf-8")))))


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
