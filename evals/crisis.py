"""The crisis gate's rules and model on labelled messages of our own, with histories.

`tuning`, `development` and `development_2` were used to choose rules, templates and thresholds. `held_out` was
written before the first rules and `held_out_after` when these were final; only their figures were seen. `unread`
was written when rules and model were final; its misses were seen once, before the model learned short everyday
messages (docs/benchmarks.md). `independent` is by another author, who had read none of it; the others are by the
author of the rules, so they say less about other people's words than about mistakes.
`fresh` and `last` ask for imminent danger: the first was written before the templates of `imminent_*.txt` and the
second after them. The misses of `fresh` and `unread` were read before `parts_*.txt` was written, and those of `last`
before these were widened (ADR 0109). `after_parts` was written, by the author of the templates, before they were
widened, `after_all` when all was final, and `letters` has longer messages, grave ones and their harmless twins. The
misses of these three were read before `frames_*.txt` and the last messages were written (ADR 0118). `final` is by
another author, who had seen no rule, no template and no other set. It was judged for the first time when all of these
were final: recall of levels 2 and 3 was 55.8 %, that of level 3 54.2 %, and 2.1 % of the harmless ones alarmed; that
is the honest measure of new, indirect words of another author. (This judgement left out the earlier entries of its
histories. With them the same gate found 56.7 % and 52.8 %, and 9.4 % alarmed.) Then its misses were read, and rules,
words and messages of their families written: it counts as read since.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.report import table
from gateway.app.crisis_vectors import crisis_embedder
from pipeline.domain.clock import SystemClock
from pipeline.memory.local_embedder import is_installed
from pipeline.safety.assessment import CLEAR, IMMINENT, CrisisAssessment
from pipeline.safety.crisis_gate import CrisisGate
from pipeline.safety.ladder import EarlierEntry, assess
from pipeline.safety.resources import shipped_resources
from pipeline.safety.vector_judge import VectorJudge

HERE = Path(__file__).with_name("crisis_texts")
HALVES = (
    "tuning",
    "development",
    "development_2",
    "held_out",
    "held_out_after",
    "unread",
    "independent",
    "fresh",
    "last",
    "after_parts",
    "after_all",
    "letters",
    "final",
)
UNREAD = ("held_out", "held_out_after", "independent")
"""The halves of which only the figures were seen."""
READ = tuple(half for half in HALVES if half not in UNREAD)
"""The halves that rules and model were made with."""
NINE = HALVES[:9]
"""The halves that there were before ADR 0109."""
_PATIENCE_S = 120.0
"""Seconds for a vector here, so that a busy machine gives the same figures."""


class Case(NamedTuple):
    """A labelled message."""

    half: str
    language: str
    kind: str
    level: int
    history: tuple[EarlierEntry, ...]
    text: str


class Judged(NamedTuple):
    """A case and what the rules say of it."""

    case: Case
    assessment: CrisisAssessment

    @property
    def is_miss(self) -> bool:
        """Whether danger was taken for less than it is."""
        return self.assessment.level < self.case.level

    @property
    def is_false_alarm(self) -> bool:
        """Whether the agent would be kept from a message without danger."""
        return self.case.level < CLEAR and self.assessment.needs_crisis_response


async def run(chosen: str = "all") -> str:
    """The table, each case with another level than expected, the figures of each half, and those of all cases as one
    line of JSON; then the same figures with vectors, if their model is installed. `chosen`: the beginning of a half's
    name, or all."""
    halves = tuple(half for half in HALVES if chosen == "all" or half.startswith(chosen))
    judged = [judge(case) for half in halves for case in read_cases(half)]
    parts = [report(judged)]
    for half in halves:
        wrong = [_wrong(one) for one in judged if one.case.half == half and _differs(one)]
        parts.append("\n".join((f"Other than expected in {half}: {len(wrong)}", *wrong)))
    parts.append(json.dumps(_by_half(judged)))
    named = figures([judge(one.case, only_named=True) for one in judged])
    parts.append(json.dumps({"agents": "without the companion's graph", **named}))
    parts.append(json.dumps({"eval": "crisis", **figures(judged)}))
    return "\n\n".join((*parts, *await _with_vectors(judged)))


async def _with_vectors(judged: Sequence[Judged]) -> list[str]:
    """What is printed about the cases with vectors beside the rules."""
    if not is_installed():
        return ["With vectors: not judged, as parlour[memory] is not installed"]
    embedder = crisis_embedder(SystemClock(), _PATIENCE_S)
    judge_vectors = VectorJudge(embedder, SystemClock(), limit_s=_PATIENCE_S)
    try:
        raised = [await _raised(one, judge_vectors) for one in judged]
    finally:
        await embedder.close()
    wrong = [_wrong(one) for old, one in zip(judged, raised, strict=True) if old != one and _differs(one)]
    return [
        f"With vectors (safety.vectors):\n{report(raised)}",
        "\n".join((f"Changed by vectors, and other than expected: {len(wrong)}", *wrong)),
        json.dumps(_by_half(raised)),
        json.dumps({"eval": "crisis with vectors", **figures(raised)}),
    ]


async def _raised(one: Judged, vectors: VectorJudge) -> Judged:
    """The case as a companion's gate with vectors judges it."""
    gate = CrisisGate(shipped_resources(), assess=lambda _text, _history: one.assessment, vectors=vectors)
    return Judged(one.case, (await gate.judged(one.case.text, one.case.history)).assessment)


def _by_half(judged: Sequence[Judged]) -> dict[str, dict[str, float]]:
    """The figures of each half, and of groups of them."""
    halves = dict.fromkeys(one.case.half for one in judged)
    by_half = {half: figures([one for one in judged if one.case.half == half]) for half in halves}
    by_half["read"] = figures([one for one in judged if one.case.half in READ])
    by_half["twelve"] = figures([one for one in judged if one.case.half != "final"])
    by_half["nine"] = figures([one for one in judged if one.case.half in NINE])
    by_half["others"] = figures([one for one in judged if one.case.half not in READ])
    return by_half


def read_cases(half: str) -> Iterator[Case]:
    """The cases of one half."""
    read = tomllib.loads((HERE / f"{half}.toml").read_text(encoding="utf-8"))
    for group in read["group"]:
        said = tuple(
            EarlierEntry("person" if one["role"] == "user" else "bot", one["text"])
            for one in group.get("history", ())
        )
        for text in group["texts"]:
            yield Case(half, group["language"], group["kind"], group["level"], said, text)
    for one in read.get("case", ()):
        history = tuple(_entry(line) for line in one.get("history", ()))
        yield Case(half, one["language"], one["kind"], one["level"], history, one["text"])


def _entry(line: str) -> EarlierEntry:
    return EarlierEntry("person" if line.startswith("u:") else "bot", line[2:].strip())


def judge(case: Case, *, only_named: bool = False) -> Judged:
    """What the rules of a companion's gate say of one case, or those of another agent's."""
    return Judged(case, assess(case.text, case.history, only_named=only_named))


def report(judged: Sequence[Judged]) -> str:
    """The table: a line for each half and language, and each half."""
    rows = []
    for half in dict.fromkeys(one.case.half for one in judged):
        of_half = [one for one in judged if one.case.half == half]
        languages = (*dict.fromkeys(one.case.language for one in of_half), "all")
        rows += [
            _row(half, name, [one for one in of_half if name in (one.case.language, "all")])
            for name in languages
        ]
    headings = (
        "half",
        "language",
        "cases",
        "recall of 2 and 3",
        "recall of 3",
        "precision of 3",
        "2 judged 3",
        "false alarms",
        "false notes",
    )
    return "\n".join(table(headings, rows))


def _row(half: str, language: str, judged: Sequence[Judged]) -> tuple[str, ...]:
    known = figures(judged)
    shares = ("recall_2", "recall_3", "precision_3", "raised_2", "false_alarms", "false_notes")
    return (half, language, str(len(judged)), *(f"{100 * known[name]:.1f} %" for name in shares))


def figures(judged: Sequence[Judged]) -> dict[str, float]:
    """The figures for programs: of the clear and imminent cases, those that get the crisis response; of the imminent ones,
    those judged imminent; of those judged imminent, those that are; of the clear ones, those judged imminent; of the
    harmless ones, those that get the crisis response, and those of level 1."""
    said_imminent = [one for one in judged if one.assessment.level == IMMINENT]
    clear = [one for one in judged if one.case.level == CLEAR]
    grave = [one for one in judged if one.case.level >= CLEAR]
    imminent = [one for one in judged if one.case.level == IMMINENT]
    harmless = [one for one in judged if one.case.level == 0]
    return {
        "recall_2": _share([one.assessment.needs_crisis_response for one in grave]),
        "recall_3": _share([one.assessment.level == IMMINENT for one in imminent]),
        "precision_3": _share([one.case.level == IMMINENT for one in said_imminent]),
        "raised_2": _share([one.assessment.level == IMMINENT for one in clear]),
        "false_alarms": _share([one.assessment.needs_crisis_response for one in harmless]),
        "false_notes": _share([one.assessment.needs_clarification for one in harmless]),
        "cases": len(judged),
    }


def _share(flags: Sequence[bool]) -> float:
    return round(sum(flags) / len(flags), 4) if flags else 0.0


def _differs(one: Judged) -> bool:
    return one.assessment.level != one.case.level


def _wrong(one: Judged) -> str:
    case, said = one.case, one.assessment
    what = "MISS" if one.is_miss else "FALSE ALARM" if one.is_false_alarm else "higher"
    return (
        f"  {what}: {case.language}, expected {case.level}, found {said.level} ({said.reason}): {case.text}"
    )
