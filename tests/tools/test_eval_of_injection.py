"""The splits of the eval of injected instructions: what they hold, and that training does not read them.

Covers: evals/injection.py, evals/injection_fresh.py, tools/injection/texts.py.
"""

from __future__ import annotations

import re
from collections import Counter

from evals.injection import Judged, totals
from evals.injection_fresh import LOOKS, ORIGIN, SECOND, SPLITS, fresh_cases
from evals.injection_test_split import Case
from tools.injection.texts import HERE

_WORDS = 5
_WHOLE = (
    *("train_written.txt", "train_written_languages.txt", "train_voices_honest.txt"),
    *("train_voices_attacks.txt", "train_voices_languages.txt"),
)


def _runs(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower())
    return {tuple(words[at : at + _WORDS]) for at in range(len(words) - _WORDS + 1)}


def test_the_fresh_splits_have_each_text_once_and_about_as_many_honest_ones_as_attacks() -> None:
    cases = list(fresh_cases())

    assert Counter((case.origin, case.attack) for case in cases) == {
        (ORIGIN, True): 300,
        (ORIGIN, False): 302,
        (SECOND, True): 152,
        (SECOND, False): 162,
    }
    assert len({case.text for case in cases}) == len(cases)
    assert set(SPLITS) == set(LOOKS)


def test_no_line_that_was_written_whole_for_training_has_five_words_of_a_text_of_the_fresh_splits() -> None:
    fresh = set().union(*(_runs(case.text) for case in fresh_cases()))
    lines = [line for name in _WHOLE for line in (HERE / name).read_text(encoding="utf-8").splitlines()]

    assert len(lines) > 4_000
    assert [line for line in lines if _runs(line) & fresh] == []


def test_the_totals_are_those_of_the_splits_that_training_never_read() -> None:
    judged = [
        Judged(Case(origin=origin, kind="all", text="", attack=attack), flagged, by_model=False)
        for origin, attack, flagged in (
            (SPLITS[0], True, True),
            (SPLITS[1], True, False),
            (SPLITS[1], False, False),
            (SPLITS[2], False, True),
            ("development", True, True),
            ("bastioncorpus", False, True),
        )
    ]

    assert totals(judged) == {"attacks": 2, "found": 0.5, "honest": 2, "false_alarms": 0.5}
