"""Find the clearest requests about how the bot answers, without a model.

Only requests that hold for longer than one answer: "keep your answers short", not "write it in German".
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pipeline.domain.frozen import dataclass
from pipeline.memory.extraction.clauses import Clause, clauses_of
from pipeline.memory.extraction.values_of_clauses import value_of
from pipeline.memory.plain_text import plain
from pipeline.memory.policy.markers import has
from pipeline.memory.values import MAX_QUOTE_CHARS, MAX_RULE_CHARS

FILE: Final = Path(__file__).with_name("rule_patterns.toml")
MAX_RULES_OF_MESSAGE: Final = 4
_MAX_COURTESIES: Final = 4
_PUNCTUATION: Final = " ,.!?;:\u2026"


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedRule:
    """A request about answers, as a rule."""

    text: str
    """In the person's own words, addressed to the bot, without words of courtesy."""
    quote: str
    """The sentence."""
    names_person: bool = False
    """It says what the person is called: none of a room's rules."""


def asked_rules(message: str) -> tuple[AskedRule, ...]:
    """The requests in `message` about how the bot answers, each once."""
    found: dict[str, AskedRule] = {}
    for clause in clauses_of(message):
        if (rule := _rule(clause)) is not None:
            found.setdefault(plain(rule.text), rule)
    return tuple(found.values())[:MAX_RULES_OF_MESSAGE]


def _rule(clause: Clause) -> AskedRule | None:
    text = _without_courtesy(clause.text)
    name = _patterns()["name"].match(plain(text))
    if name is not None:
        rest = text[name.end() :].strip()
        cue = _patterns()["cue"].match(plain(rest))
        called = value_of(rest[cue.end() if cue else 0 :].strip(), "name", message=clause.text)
        return _asked(text, clause, names_person=True) if called else None
    if has("fact_shaped", clause.text) or len(text) > MAX_RULE_CHARS:
        return None
    said = plain(text)
    wordings = (said, said.partition(",")[0])
    lasting = has("durable_cue", clause.sentence)
    kinds: tuple[str, ...] = ("with_cue", "always") if lasting else ("always",)
    if not lasting and _patterns()["work"].search(said) is not None:
        kinds = ()
    fits = any(_patterns()[kind].fullmatch(one) is not None for kind in kinds for one in wordings)
    return _asked(text, clause) if fits else None


def _asked(text: str, clause: Clause, *, names_person: bool = False) -> AskedRule:
    quote = clause.sentence if len(clause.sentence) <= MAX_QUOTE_CHARS else clause.text[:MAX_QUOTE_CHARS]
    return AskedRule(text=f"{text[:1].upper()}{text[1:]}.", quote=quote.rstrip(), names_person=names_person)


def _without_courtesy(text: str) -> str:
    """`text` without "please" and the like at its beginning and end, and after its verb."""
    courtesy = _patterns()["courtesy"]
    for _ in range(_MAX_COURTESIES):
        text = text.strip(_PUNCTUATION)
        for pattern in (
            rf"(?:{courtesy.pattern})(?!\w)[\s,:]*",
            rf".*?(?P<end>[\s,]+(?:{courtesy.pattern}))$",
        ):
            # Accents count for nothing in the patterns, so lengths are those of the text without them.
            found = re.match(pattern, _aligned(text))
            if found is None:
                continue
            end = found.groupdict().get("end")
            text = text[: len(text) - len(end)] if end else text[found.end() :]
    return re.sub(r"\s+(?:please|bitte)(?=\s)", "", text.strip(_PUNCTUATION))


def _aligned(text: str) -> str:
    """The plain form, character by character; `text` in lower case where the lengths differ."""
    lowered = "".join(plain(char) or char for char in text)
    return lowered if len(lowered) == len(text) else text.lower()


@functools.cache
def _patterns() -> Mapping[str, re.Pattern[str]]:
    table: dict[str, Any] = tomllib.loads(FILE.read_text(encoding="utf-8"))
    shared = table.pop("words")
    compiled = {}
    for name, by_language in table.items():
        joined = "|".join(pattern for patterns in by_language.values() for pattern in patterns)
        for word, text in shared.items():
            joined = joined.replace(f"{{{word}}}", text)
        whole = name in {"name", "work", "cue"}
        compiled[name] = re.compile(rf"(?<!\w)(?:{joined})(?!\w)" if whole else f"(?:{joined})")
    return compiled
