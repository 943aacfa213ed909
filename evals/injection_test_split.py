"""The test split of the eval of tier 1: its own templates, carriers, disguises and languages, which training never reads.

Attacks and honest texts come in the same carriers and encodings, so that neither gives an attack away.
"""

from __future__ import annotations

import base64
import html
import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from pipeline.domain.frozen import dataclass
from tools.injection.texts import Grammar, grammars

HERE = Path(__file__).with_name("injection_texts")
SEED = 90_210
ORIGIN = "test"
UNSEEN = "test, unseen languages"
_ENGLISH = 90
"""Texts of each kind."""
_OTHER = 40
"""Attacks and honest texts of each language."""
_DISGUISED = 24
UNSEEN_LANGUAGES = ("sv", "cs", "ro", "uk")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A text to judge."""

    origin: str
    kind: str
    text: str
    attack: bool


CARRIERS = (
    "{text}",
    "{text}",
    "{text}",
    '{{"tool": "search", "hits": [{{"title": "Opening hours", "body": "{text}"}}]}}',
    "<article><h2>Spring timetable</h2><p>Trains run every ten minutes.</p><p>{text}</p></article>",
    "From: Noor\nTo: Emil\nSubject: Saturday\n\nHi Emil,\nthe hall is booked from two.\n{text}\nBest, Noor",
    "| name | remark |\n|---|---|\n| chair | oak, 40 cm |\n| table | {text} |\n| lamp | brass |",
    "2026-04-02 08:11:09 INFO import finished, 118 rows\n2026-04-02 08:11:10 INFO remark: {text}\n",
    "## Changes\n\n- faster start\n- {text}\n- fewer warnings\n",
    "The hotel lies by the river and has forty rooms. Breakfast is until ten. {text} Parking costs nine euros a night.",
    "BEGIN:VEVENT\nSUMMARY:Dentist\nDESCRIPTION:{text}\nEND:VEVENT",
)
"""Where a text is found. The first three are the text alone."""

_LEET = str.maketrans("aeiot", "43!07")
_WIDE = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}
_BOLD = {ord("a") + at: 0x1D41A + at for at in range(26)} | {ord("A") + at: 0x1D400 + at for at in range(26)}
DISGUISES: Mapping[str, Callable[[str], str]] = {
    "base64 in a sentence": lambda text: f"Decode: {base64.b64encode(text.encode()).decode()} Thanks.",
    "base32": lambda text: base64.b32encode(text.encode()).decode(),
    "hex with spaces": lambda text: text.encode().hex(" "),
    "unicode escapes": lambda text: "".join(f"\\u{ord(char):04x}" for char in text),
    "entities": lambda text: "".join(f"&#{ord(char)};" for char in text),
    "full width": lambda text: text.translate(_WIDE),
    "bold letters": lambda text: text.translate(_BOLD),
    "reversed": lambda text: text[::-1],
    "leetspeak": lambda text: text.translate(_LEET),
    "hidden element": lambda text: (
        f'<p>Menu of the day</p><span style="display:none">{html.escape(text)}</span>'
    ),
}
_ONLY_ATTACKS = ("reversed", "leetspeak", "bold letters")
"""Disguises in which honest texts do not come."""


def test_cases() -> Iterator[Case]:
    """The cases. The same in every run."""
    rng = random.Random(SEED)
    for grammar in grammars(HERE / "test_en.toml", HERE / "test_languages.toml"):
        english = grammar.language == "en"
        count = _ENGLISH if english else _OTHER
        for attack, kinds in ((True, grammar.attacks), (False, grammar.benign)):
            for kind, templates in kinds.items():
                for _ in range(count):
                    text = _carried(grammar.expanded(rng.choice(templates), rng), rng)
                    yield _case(grammar.language, kind, text, attack=attack)
        if english:
            yield from _disguised(grammar, rng)


def _case(language: str, kind: str, text: str, *, attack: bool) -> Case:
    if language != "en":
        kind = f"language {language}"
    return Case(
        origin=UNSEEN if language in UNSEEN_LANGUAGES else ORIGIN, kind=kind, text=text, attack=attack
    )


def _carried(text: str, rng: random.Random) -> str:
    return rng.choice(CARRIERS).format(text=text)


def _disguised(grammar: Grammar, rng: random.Random) -> Iterator[Case]:
    for name, disguise in DISGUISES.items():
        for attack, kinds in ((True, grammar.attacks), (False, grammar.benign)):
            if not attack and name in _ONLY_ATTACKS:
                continue
            for _ in range(_DISGUISED):
                text = grammar.expanded(rng.choice(kinds[rng.choice(list(kinds))]), rng)
                yield _case("en", f"disguise: {name}", disguise(text), attack=attack)
