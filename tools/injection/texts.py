"""Generate labelled texts from templates, fillers, languages, carriers and disguises.

The same seed gives the same texts. The templates are in TOML files: those of training in this folder, those of
the eval in evals/injection/.
"""

from __future__ import annotations

import random
import re
import tomllib
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.domain.frozen import dataclass

HERE = Path(__file__).parent
SHARED = ("mail", "url", "n", "word")
"""English fillers that the other languages use too."""
_SLOT = re.compile(r"\{(\w+)\}")
_MOST_SLOTS = 40
_VALIDATION = 7
"""One of this many templates is kept for choosing the threshold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A labelled text."""

    text: str
    attack: bool
    kind: str
    language: str
    start: int = 0
    """The place of the attack in the text."""
    end: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """The templates of one language."""

    language: str
    attacks: Mapping[str, Sequence[str]]
    benign: Mapping[str, Sequence[str]]
    fillers: Mapping[str, Sequence[str]]

    def part(self, *, validation: bool) -> Grammar:
        """The templates for choosing the threshold, or those for training."""
        return Grammar(
            language=self.language,
            attacks=_chosen(self.attacks, validation=validation),
            benign=_chosen(self.benign, validation=validation),
            fillers=self.fillers,
        )

    def expanded(self, template: str, rng: random.Random) -> str:
        """The template with a random filler in each slot."""
        for _ in range(_MOST_SLOTS):
            found = next((slot for slot in _SLOT.finditer(template) if slot.group(1) in self.fillers), None)
            if found is None:
                break
            filler = rng.choice(self.fillers[found.group(1)])
            template = template[: found.start()] + filler + template[found.end() :]
        return template


def _chosen(kinds: Mapping[str, Sequence[str]], *, validation: bool) -> dict[str, Sequence[str]]:
    parts = {
        kind: [one for one in templates if (zlib.crc32(one.encode()) % _VALIDATION == 0) is validation]
        for kind, templates in kinds.items()
    }
    return {kind: templates for kind, templates in parts.items() if templates}


def training_grammars() -> tuple[Grammar, ...]:
    """The templates for training, English first."""
    return grammars(HERE / "train_en.toml", HERE / "train_languages.toml")


def grammars(english: Path, others: Path) -> tuple[Grammar, ...]:
    """The grammars in two files, English first."""
    table = tomllib.loads(english.read_text(encoding="utf-8"))
    fillers = {**table["fillers"], **table.get("benign_fillers", {})}
    found = [Grammar(language="en", attacks=table["attacks"], benign=table["benign"], fillers=fillers)]
    shared = {name: fillers[name] for name in SHARED}
    for language, texts in tomllib.loads(others.read_text(encoding="utf-8")).items():
        found.append(_other(language, texts, shared))
    return tuple(found)


def _other(language: str, texts: Mapping[str, Any], shared: Mapping[str, Sequence[str]]) -> Grammar:
    fillers = {name: lines for name, lines in texts.items() if name not in ("attacks", "benign")}
    return Grammar(
        language=language,
        attacks={"other language": texts["attacks"]},
        benign={"other language": texts["benign"]},
        fillers={**shared, **fillers},
    )


def samples(grammar: Grammar, count: int, rng: random.Random, *, spoiled: float = 0.1) -> Iterator[Sample]:
    """`count` attacks and as many benign texts. `spoiled` is the share of texts with typing errors."""
    attacks = [kind for kind in grammar.attacks for _ in range(_weight(kind))]
    benign = list(grammar.benign)
    for _ in range(count):
        kind = rng.choice(attacks)
        attack = _spoiled(grammar.expanded(rng.choice(grammar.attacks[kind]), rng), rng, spoiled)
        yield _carried(attack, kind, grammar, rng)
        kind = rng.choice(benign)
        lines = [grammar.expanded(rng.choice(grammar.benign[kind]), rng) for _ in range(rng.choice((1, 1, 2, 3)))]
        text = _spoiled(_joined(lines, rng), rng, spoiled)
        yield Sample(text=text, attack=False, kind=kind, language=grammar.language)


def _weight(kind: str) -> int:
    return 2 if kind in ("override", "indirect", "exfiltration", "reveal") else 1


def _carried(attack: str, kind: str, grammar: Grammar, rng: random.Random) -> Sample:
    """The attack alone, or between benign texts."""
    before = after = ""
    if rng.random() < 0.5:
        pool = grammar.benign[rng.choice(list(grammar.benign))]
        before, after = (
            " ".join(grammar.expanded(rng.choice(pool), rng) for _ in range(rng.choice((0, 1, 1, 2))))
            for _ in range(2)
        )
    gap = rng.choice((" ", " ", "\n", "\n\n"))
    start = len(before) + len(gap) if before else 0
    text = gap.join(part for part in (before, attack, after) if part)
    return Sample(
        text=text, attack=True, kind=kind, language=grammar.language, start=start, end=start + len(attack)
    )


def _joined(lines: Sequence[str], rng: random.Random) -> str:
    return rng.choice((" ", "\n", "\n- ")).join(lines)


def _spoiled(text: str, rng: random.Random, share: float) -> str:
    """The text with two typing errors, in a `share` of all cases."""
    if rng.random() >= share or len(text) < 8:
        return text
    letters = list(text)
    for _ in range(2):
        at = rng.randrange(1, len(letters) - 1)
        if rng.random() < 0.5:
            letters[at], letters[at - 1] = letters[at - 1], letters[at]
        else:
            letters[at] = ""
    return "".join(letters)
