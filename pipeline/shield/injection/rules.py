"""The rules of tier 1, which `rules.toml` lists: concepts near one another, and patterns. No code per rule.

All rules take time in proportion to the text.
"""

from __future__ import annotations

import functools
import itertools
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from pipeline.domain.errors import ParlourError
from pipeline.domain.events import Decision
from pipeline.domain.frozen import dataclass
from pipeline.shield.injection.findings import CONFIDENCE, KINDS, SEVERITIES, Kind, ScanFinding, Severity
from pipeline.shield.injection.lexicon import Lexicon, LexiconReading, shipped_lexicon

FILE = Path(__file__).with_name("rules.toml")
_MOST_NEAR = 32
"""Concepts that are looked at after each concept."""
_KEYS = frozenset(
    (
        *("name", "severity", "decision", "kinds", "concepts", "within", "pattern", "raw", "disguised"),
        *("needs", "unicode", "supported"),
    )
)


class BadRules(ParlourError):
    """The table of rules cannot be used; the message names the rule and the key."""

    code = "bad_rules"


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectionRule:
    """One row of the table."""

    name: str
    severity: Severity
    decision: Decision
    kinds: frozenset[Kind]
    groups: tuple[int, ...] = ()
    """Bits of the concepts of each group."""
    within: int = 0
    """Words."""
    pattern: re.Pattern[str] | None = None
    raw: bool = False
    """Whether the pattern reads the text as it is and not its plain form."""
    disguised: bool = False
    needs: tuple[str, ...] = ()
    """Texts in lower case of which each match holds one; they are searched first, which is faster."""
    unicode: bool = False
    """Whether each match holds a character beyond ASCII."""
    supported: bool = False
    """Whether a match in language counts only if the classifier finds an attack nearly likely too."""

    def matches(self, text: str) -> bool:
        """Whether the pattern matches `text`."""
        if self.pattern is None or (self.unicode and text.isascii()):
            return False
        if not self.needs:
            return self.pattern.search(text) is not None
        # A loop, which is faster than `any` for the few texts.
        for one in self.needs:
            if one in text:
                return self.pattern.search(text) is not None
        return False

    def finding(self, where: str, disguise: str) -> ScanFinding:
        """The finding of this rule in the part `where`."""
        return ScanFinding(
            name=self.name,
            severity=self.severity,
            decision=self.decision,
            score=CONFIDENCE[self.severity],
            where=where,
            disguise=disguise,
        )


class RuleBook:
    """The rules, ready to be applied. One instance serves every thread."""

    def __init__(self, rules: Iterable[InjectionRule]) -> None:
        rules = tuple(rules)
        self._raw = {kind: _of(rules, kind, raw=True) for kind in KINDS}
        self._patterns: dict[tuple[Kind, bool], list[InjectionRule]] = {}
        self._concepts: dict[tuple[Kind, bool], list[InjectionRule]] = {}
        for kind, hidden in itertools.product(KINDS, (False, True)):
            shown = [one for one in _of(rules, kind, raw=False) if hidden or not one.disguised]
            self._patterns[kind, hidden] = [one for one in shown if one.pattern]
            self._concepts[kind, hidden] = [one for one in shown if one.groups]

    def examines(self, kind: Kind) -> bool:
        """Whether any rule is about parts of that kind."""
        return bool(self._raw[kind] or self._patterns[kind, True] or self._concepts[kind, True])

    def reads_concepts(self, kind: Kind) -> bool:
        """Whether a rule about parts of that kind looks for concepts."""
        return bool(self._concepts[kind, True])

    def in_raw(self, text: str, kind: Kind) -> list[InjectionRule]:
        """The rules on characters that match `text` as it is."""
        return [rule for rule in self._raw[kind] if rule.matches(text)]

    def in_plain(self, reading: LexiconReading, kind: Kind, *, hidden: bool) -> list[InjectionRule]:
        """The rules that match a text in plain form; `hidden` if a person does not see it."""
        text, concepts = reading.text, reading.concepts
        found = [rule for rule in self._patterns[kind, hidden] if rule.matches(text)]
        if not concepts:
            return found
        present = 0
        for _, _, concept in concepts:
            present |= 1 << concept
        for rule in self._concepts[kind, hidden]:
            # A loop, which is faster than `all`: the first group of most rules is not there.
            for group in rule.groups:
                if not present & group:
                    break
            else:
                if _near(concepts, rule.groups, rule.within):
                    found.append(rule)
        return found


def _of(rules: Sequence[InjectionRule], kind: Kind, *, raw: bool) -> list[InjectionRule]:
    return [rule for rule in rules if kind in rule.kinds and rule.raw is raw]


def _near(concepts: Sequence[tuple[int, int, int]], groups: Sequence[int], within: int) -> bool:
    """Whether a concept of each group occurs within that many words; one concept counts for one group."""
    for index, (_, word, _) in enumerate(concepts):
        near = concepts[index : index + _MOST_NEAR]
        bits = [1 << concept for _, other, concept in near if other - word <= within]
        if _covered(groups, bits):
            return True
    return False


def _covered(groups: Sequence[int], bits: list[int]) -> bool:
    """Whether each group, of at most four, has an occurrence that no other group needs."""
    if not groups:
        return True
    first, rest = groups[0], groups[1:]
    seen = set()
    for index, bit in enumerate(bits):
        if bit & first and bit not in seen:
            seen.add(bit)
            if _covered(rest, bits[:index] + bits[index + 1 :]):
                return True
    return False


def rules_from(table: Mapping[str, Any], lexicon: Lexicon) -> tuple[InjectionRule, ...]:
    """The rules of a table. Raises BadRules for the first mistake."""
    rows = table.get("rule")
    if not isinstance(rows, list) or not rows:
        raise BadRules("the rules: expected a list of [[rule]] tables")
    return tuple(_rule(row, number, lexicon) for number, row in enumerate(rows, start=1))


def _rule(row: Mapping[str, Any], number: int, lexicon: Lexicon) -> InjectionRule:
    name = row.get("name", f"number {number}")
    unknown = sorted(set(row) - _KEYS)
    if unknown:
        raise BadRules(f"rule {name}: unknown key {unknown[0]}; known are {', '.join(sorted(_KEYS))}")
    severity = row.get("severity")
    if severity not in SEVERITIES:
        raise BadRules(f"rule {name}: severity is one of {', '.join(SEVERITIES)}")
    decision = row.get("decision", "BLOCK" if severity == "critical" else "ESCALATE")
    if decision not in get_args(Decision) or decision == "ALLOW":
        raise BadRules(f"rule {name}: decision is BLOCK or ESCALATE")
    kinds = row.get("kinds", ())
    if not kinds or set(kinds) - set(KINDS):
        raise BadRules(f"rule {name}: kinds is a list of {', '.join(KINDS)}")
    if ("pattern" in row) == ("concepts" in row):
        raise BadRules(f"rule {name}: expected either pattern or concepts")
    try:
        pattern = re.compile(row["pattern"], re.IGNORECASE) if "pattern" in row else None
    except re.error as failure:
        raise BadRules(f"rule {name}: its pattern is no regular expression: {failure}") from None
    needs = tuple(row.get("needs", ()))
    if any(not isinstance(one, str) or not one or one != one.lower() for one in needs):
        raise BadRules(f"rule {name}: needs is a list of texts in lower case")
    groups = tuple(_bits(group, name, lexicon) for group in row.get("concepts", ()))
    return InjectionRule(
        name=name,
        severity=severity,
        decision=decision,
        kinds=frozenset(kinds),
        groups=groups,
        within=int(row.get("within", 8)),
        pattern=pattern,
        raw=bool(row.get("raw", False)),
        disguised=bool(row.get("disguised", False)),
        needs=needs,
        unicode=bool(row.get("unicode", False)),
        supported=bool(row.get("supported", False)),
    )


def _bits(group: str, name: str, lexicon: Lexicon) -> int:
    bits = 0
    for concept in group.split("|"):
        if concept not in lexicon.names:
            raise BadRules(f"rule {name}: {concept} is no concept of lexicon.toml")
        bits |= 1 << lexicon.names.index(concept)
    return bits


@functools.cache
def shipped_rules() -> RuleBook:
    """The rules in the package, loaded once. Raises BadRules."""
    return RuleBook(rules_from(tomllib.loads(FILE.read_text(encoding="utf-8")), shipped_lexicon()))
