"""The fresh splits of the eval of tier 1: texts written whole by hand, half of them honest, of which nothing was trained
on, chosen by or compared while the model was made. The second one was written for a later model.

Honest texts have the words of attacks (`twins_of_…`) or are of a kind that is often flagged: articles on security,
mails with orders, manuals, reviews of code, tickets, recipes, law, fiction.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from evals.injection_test_split import ORIGIN as TEST
from evals.injection_test_split import UNSEEN, Case

_TEXTS = Path(__file__).with_name("injection_texts")
ORIGIN = "fresh"
SECOND = "second fresh"
FILES: Mapping[str, Path] = {ORIGIN: _TEXTS / "fresh.toml", SECOND: _TEXTS / "second_fresh.toml"}
SPLITS = (ORIGIN, SECOND, TEST, UNSEEN)
"""The origins that training and the choice of the threshold never read."""
LOOKS: Mapping[str, int] = {ORIGIN: 2, SECOND: 1, TEST: 10, UNSEEN: 10}
"""How often the figures of a split were seen while a model was made, this model's included (ADR 0081, 0108, 0115, 0119). A
split that was seen several times is no longer independent of the model."""


def fresh_cases() -> Iterator[Case]:
    """The texts of both fresh splits."""
    for origin, file in FILES.items():
        table = tomllib.loads(file.read_text(encoding="utf-8"))
        for attack, kinds in ((True, table["attacks"]), (False, table["benign"])):
            for kind, texts in kinds.items():
                for text in texts:
                    yield Case(origin=origin, kind=kind.replace("_", " "), text=text, attack=attack)
