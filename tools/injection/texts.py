"""Generate labelled texts from templates, fillers, languages, carriers and disguises.

The same seed gives the same texts. The templates are in TOML files: those of training in this folder, those
of the eval in evals/injection_texts/.
"""

from __future__ import annotations

import base64
import random
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeline.domain.frozen import dataclass
from pipeline.shield.injection.lexicon import FILE as LEXICON
from tools.injection.synonyms import varied

HERE = Path(__file__).parent
SHARED = ("mail", "url", "n", "word")
"""English fillers that the other languages use too."""
PROSE = "prose"
UNSPACED = ("zh", "ja")
"""Languages that do not separate words."""
_FURTHER = (
    *("train_attacks_en.toml", "train_honest_en.toml", "train_families_en.toml"),
    *("train_contrasts_en.toml", "train_wide_en.toml", "train_pairs_en.toml"),
)
"""Files with further texts in English."""
_FURTHER_LANGUAGES = (
    *("train_languages_more.toml", "train_languages_families.toml"),
    "train_languages_honest.toml",
)
_SLOT = re.compile(r"\{(\w+)\}")
_CARRIED = 1 / 3
"""The share of texts that are in a carrier."""
_MOST_COUNTED = 200
"""Templates of a kind that make it more frequent."""


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
    carriers: Sequence[str] = ()
    """Documents, mails and outputs that may hold any text, in place of `{text}`."""

    def expanded(self, template: str, rng: random.Random) -> str:
        """The template with a random filler in each slot."""
        return _SLOT.sub(lambda slot: self._filled(slot, rng), template)

    def _filled(self, slot: re.Match[str], rng: random.Random) -> str:
        """A filler in place of a slot; one whose name has a capital letter begins with one."""
        name = slot.group(1)
        if name in self.fillers:
            return self.expanded(rng.choice(self.fillers[name]), rng)
        small = name[0].lower() + name[1:]
        if small not in self.fillers:
            return slot.group()
        text = self.expanded(rng.choice(self.fillers[small]), rng)
        return text[:1].upper() + text[1:]


def training_grammars() -> tuple[Grammar, ...]:
    """The templates for training, English first."""
    english, *others = grammars(HERE / "train_en.toml", HERE / "train_languages.toml")
    attacks, benign, fillers = dict(english.attacks), dict(english.benign), dict(english.fillers)
    carriers: list[str] = []
    for name in _FURTHER:
        table = tomllib.loads((HERE / name).read_text(encoding="utf-8"))
        attacks |= table.get("attacks", {})
        benign |= table.get("benign", {})
        fillers |= table["fillers"]
        carriers += table.get("carriers", {}).get("lines", ())
    for kind, name in ((PROSE, "train_prose.txt"), ("docs", "train_docs.txt")):
        benign[kind] = (HERE / name).read_text(encoding="utf-8").splitlines()
    attacks |= _listed(HERE / "train_wide_attacks_en.txt")
    benign |= _listed(HERE / "train_wide_honest_en.txt")
    for name in ("train_written.txt", "train_voices_honest.txt", "train_voices_attacks.txt"):
        for kind, lines in _listed(HERE / name).items():
            (benign if "without" in kind or "honest" in kind else attacks)[kind] = lines
    english = replace(english, attacks=attacks, benign=benign, fillers=fillers, carriers=carriers)
    tables = [tomllib.loads((HERE / name).read_text(encoding="utf-8")) for name in _FURTHER_LANGUAGES]
    wide = _listed(HERE / "train_wide_languages.txt")
    written = _listed(HERE / "train_written_languages.txt")
    voices = _listed(HERE / "train_voices_languages.txt")
    joined = (_joined_grammars(one, [more[one.language] for more in tables], english) for one in others)
    return (
        english,
        *(
            replace(
                one,
                attacks={
                    **one.attacks,
                    "wide": wide[f"{one.language} attacks"],
                    "written": written[f"{one.language} attacks"],
                    "voices": voices[f"{one.language} attacks"],
                },
                benign={
                    **one.benign,
                    "wide": wide[f"{one.language} honest"],
                    "written": written[f"{one.language} honest"],
                    "voices": voices[f"{one.language} honest"],
                },
            )
            for one in joined
        ),
    )


def _listed(file: Path) -> dict[str, Sequence[str]]:
    """The templates of a file with one a line, by kind: a kind is a line in square brackets, and `\\n` in a
    template a line end."""
    found: dict[str, Sequence[str]] = {}
    for part in re.split(r"^\[(?=[a-z ]+\]$)", file.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        kind, _, lines = part.partition("]\n")
        found[kind] = [line.replace("\\n", "\n") for line in lines.splitlines() if line]
    return found


def _joined_grammars(
    grammar: Grammar, tables: Sequence[Mapping[str, Sequence[str]]], english: Grammar
) -> Grammar:
    """The grammar with further texts, and with the carriers of the English one and their fillers."""
    fillers = dict(grammar.fillers)
    for more in tables:
        for name, lines in more.items():
            if name not in ("attacks", "benign"):
                fillers[name] = (*fillers.get(name, ()), *lines)
    further = {f"further {number}": more for number, more in enumerate(tables, start=1)}
    return replace(
        grammar,
        attacks={**grammar.attacks, **{k: one["attacks"] for k, one in further.items() if "attacks" in one}},
        benign={**grammar.benign, **{kind: more["benign"] for kind, more in further.items()}},
        fillers={**english.fillers, **fillers},
        carriers=english.carriers,
    )


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


def samples(
    grammar: Grammar, count: int, rng: random.Random, *, spoiled: float = 0.1, synonyms: bool = False
) -> Iterator[Sample]:
    """`count` attacks and as many benign texts. `spoiled` is the share of texts with typing errors; with
    `synonyms` words are replaced."""

    def changed(text: str) -> str:
        return _spoiled(varied(text, rng) if synonyms else text, rng, spoiled)

    attacks, attack_weights = _kinds(grammar.attacks)
    benign, benign_weights = _kinds(grammar.benign)
    for _ in range(count):
        (kind,) = rng.choices(attacks, attack_weights)
        attack = changed(grammar.expanded(rng.choice(grammar.attacks[kind]), rng))
        yield _carried(attack, kind, grammar, rng)
        (kind,) = rng.choices(benign, benign_weights)
        text = _in_carrier(changed(_benign(grammar, kind, rng)), grammar, rng)[0]
        yield Sample(text=text, attack=False, kind=kind, language=grammar.language)


def _kinds(templates: Mapping[str, Sequence[str]]) -> tuple[Sequence[str], Sequence[float]]:
    """The kinds and how often each is chosen: by its templates, but neither are small ones lost nor do long
    ones leave no room."""
    return tuple(templates), [min(len(lines), _MOST_COUNTED) ** 0.75 for lines in templates.values()]


def _in_carrier(text: str, grammar: Grammar, rng: random.Random) -> tuple[str, int]:
    """The text, in a third of all cases in a carrier, and its place in it."""
    if not grammar.carriers or rng.random() > _CARRIED:
        return text, 0
    before, _, after = grammar.expanded(rng.choice(grammar.carriers), rng).partition("{text}")
    return before + text + after, len(before)


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
                # Encoded text is judged by what it says, not by how it looks.
                "".join(f"&#{byte};" for byte in data),
                "".join(f"&#x{byte:x};" for byte in data),
                "".join(f"\\u{byte:04x}" for byte in data),
                " ".join(map(str, data)),
                "".join(rng.choice("etaoinshrdlu  cmfwyp") for _ in data),
            )
        )
        yield Sample(text=text, attack=False, kind="noise", language="")


def _carried(attack: str, kind: str, grammar: Grammar, rng: random.Random) -> Sample:
    """The attack alone, in a carrier or between benign texts."""
    text, start = _in_carrier(attack, grammar, rng)
    if text == attack and rng.random() < 0.5:
        kinds = tuple(grammar.benign)
        before, after = (
            " ".join(_benign(grammar, rng.choice(kinds), rng) for _ in range(rng.choice((0, 1, 1))))
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
