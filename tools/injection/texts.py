"""Generate labelled texts from templates, fillers, languages, carriers and disguises.

The same seed gives the same texts. The templates are in TOML files: those of training in this folder, those
of the eval in evals/injection_texts/.
"""

from __future__ import annotations

import base64
import random
import re
import tomllib
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeline.domain.frozen import dataclass
from pipeline.shield.injection.lexicon import FILE as LEXICON

HERE = Path(__file__).parent
SHARED = ("mail", "url", "n", "word")
"""English fillers that the other languages use too."""
FOLDS = 4
"""Parts of the templates for cross-validation."""
PROSE = "prose"
MADE_UP = ("words", "noise")
"""Kinds of benign texts that no person writes."""
UNSPACED = ("zh", "ja")
"""Languages that do not separate words."""
_SLOT = re.compile(r"\{(\w+)\}")
_MOST_SLOTS = 40


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

    def part(self, fold: int, *, validation: bool) -> Grammar:
        """The templates of a fold of cross-validation, or the others."""
        return Grammar(
            language=self.language,
            attacks=_chosen(self.attacks, fold, validation=validation),
            benign=_chosen(self.benign, fold, validation=validation),
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


def _chosen(kinds: Mapping[str, Sequence[str]], fold: int, *, validation: bool) -> dict[str, Sequence[str]]:
    parts = {
        kind: [one for one in templates if (zlib.crc32(one.encode()) % FOLDS == fold) is validation]
        for kind, templates in kinds.items()
    }
    return {kind: templates for kind, templates in parts.items() if templates}


def training_grammars() -> tuple[Grammar, ...]:
    """The templates for training, English first."""
    english, *others = grammars(HERE / "train_en.toml", HERE / "train_languages.toml")
    prose = (HERE / "train_prose.txt").read_text(encoding="utf-8").splitlines()
    # Prose counts for half of the kinds: it has the widest vocabulary.
    with_prose = replace(english, benign={**english.benign, PROSE: prose})
    return (with_prose, *others)


def lexicon_entries(language: str) -> tuple[str, ...]:
    """The words and phrases of the shipped lexicon in a language."""
    table = tomllib.loads(LEXICON.read_text(encoding="utf-8"))
    return tuple(one.strip() for concept in table.values() for one in concept[language].split(","))


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
    benign = [
        kind for kind in grammar.benign for _ in range(len(grammar.benign) // 2 if kind == PROSE else 1)
    ]
    for _ in range(count):
        kind = rng.choice(attacks)
        attack = _spoiled(grammar.expanded(rng.choice(grammar.attacks[kind]), rng), rng, spoiled)
        yield _carried(attack, kind, grammar, rng)
        kind = rng.choice(benign)
        text = _spoiled(_benign(grammar, kind, rng), rng, spoiled)
        yield Sample(text=text, attack=False, kind=kind, language=grammar.language)


def _benign(grammar: Grammar, kind: str, rng: random.Random) -> str:
    """A benign text that begins with one of `kind` and may continue with others."""
    first = grammar.expanded(rng.choice(grammar.benign[kind]), rng)
    if kind == PROSE:
        sentences = first.split(". ")
        start = rng.randrange(len(sentences))
        return ". ".join(sentences[start : start + rng.choice((1, 2, 3))])
    others = [
        rng.choice(grammar.benign[rng.choice(list(grammar.benign))]) for _ in range(rng.choice((0, 0, 1, 2)))
    ]
    return _joined([first, *(grammar.expanded(one, rng) for one in others)], rng)


def salads(grammar: Grammar, entries: Sequence[str], count: int, rng: random.Random) -> Iterator[Sample]:
    """`count` benign texts of words in random order, with one or two `entries` of the lexicon: a word
    of the lexicon alone is no attack."""
    lines = " ".join(line for lines in grammar.benign.values() for line in lines)
    lines = _SLOT.sub(" ", lines)
    unspaced = grammar.language in UNSPACED
    words = [lines[at : at + 3] for at in range(0, len(lines), 3)] if unspaced else lines.split()
    for _ in range(count):
        text = [rng.choice(words) for _ in range(rng.randrange(6, 24))]
        for _ in range(rng.randrange(1, 3)):
            text.insert(rng.randrange(len(text) + 1), rng.choice(entries).replace("-", ""))
        gap = "" if unspaced else " "
        yield Sample(text=gap.join(text), attack=False, kind="words", language=grammar.language)


def noise(count: int, rng: random.Random) -> Iterator[Sample]:
    """`count` benign texts of random letters and bytes: keys, hashes, encoded files, addresses."""
    for _ in range(count):
        data = rng.randbytes(rng.randrange(12, 90))
        text = rng.choice(
            (
                data.hex(),
                base64.b64encode(data).decode(),
                base64.b32encode(data).decode(),
                "".join(f"%{byte:02x}" for byte in data),
                f"https://{data[:5].hex()}.example/{base64.urlsafe_b64encode(data).decode()}",
                " ".join(f"{byte:08b}" for byte in data[:20]),
                "".join(rng.choice("etaoinshrdlu  cmfwyp") for _ in data),
            )
        )
        yield Sample(text=text, attack=False, kind="noise", language="")


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
