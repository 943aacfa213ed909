"""The write policy and the extraction without a model, on messages and candidates of our own.

The cases of `held_out` were written before any rule, those of `after` when the rules were final, and no rule was
changed by these; the rules were written with `tuning`. All are by the author of the rules, so they say less about other
people's words than about mistakes. A fact that was not stated is worse than one that is missed: the table counts both.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.report import ROOT, BenchUnavailable, table
from evals.model_asking import model_ask
from evals.recorded_runs import difference, record
from gateway.app.embedded_model import MODELS
from pipeline.domain.clock import ManualClock, SystemClock
from pipeline.llm.local_model import LocalModel
from pipeline.llm.local_process import ChildSettings
from pipeline.llm.structured import Ask
from pipeline.memory.candidates import FactCandidate, Judged, RuleCandidate
from pipeline.memory.extraction.facts import extract_facts
from pipeline.memory.extraction.model_candidates import MAX_TOKENS, Kind, answer_schema
from pipeline.memory.extraction.outcome import SaidTurn
from pipeline.memory.extraction.rules import extract_rules
from pipeline.memory.plain_text import words
from pipeline.memory.policy.decisions import decide_fact, decide_rule
from pipeline.memory.values import EntityRef
from pipeline.redaction.redactor import Redactor

HERE = Path(__file__).with_name("memory_texts")
HALVES = ("held_out", "tuning", "after")
NOTHING = "nothing"
_PATIENCE_S = 120.0
"""For one answer of the model."""


class Outcome(NamedTuple):
    """One expected or found thing of a case."""

    part: str
    half: str
    language: str
    expected: str
    found: str
    text: str

    @property
    def right(self) -> bool:
        return self.expected == self.found

    @property
    def line(self) -> str:
        """The case as a miss is shown and recorded."""
        return f"{self.part}, {self.half}, {self.language}: expected {self.expected}, found {self.found}: {self.text}"


async def run_extraction(*, keep: bool = False) -> str:
    """Facts and rules that are found in messages: the table, every miss, the difference to the recorded run, and
    the figures as one line of JSON. `keep`: record the run."""
    outcomes = [one for half in HALVES for one in await _facts(half, None)]
    outcomes += [one for half in HALVES for one in await _rules(half, None)]
    return _report("extraction", outcomes, keep=keep)


async def run_with_model(model: str, *, keep: bool = False) -> str:
    """As `run_extraction`, for the messages of `after` alone, with the embedded model asked as well: minutes. Raises
    BenchUnavailable without the model's file."""
    chosen = MODELS[model]
    file = chosen.path(ROOT / "models")
    if not file.is_file():
        raise BenchUnavailable(f"{file} is missing: run `parlour models get {chosen.id}`")
    clock = SystemClock()
    local = LocalModel(ChildSettings(model_path=file), clock=clock)

    def ask(kind: Kind) -> Ask:
        return model_ask(
            local, answer_schema(kind), max_tokens=MAX_TOKENS, timeout_s=_PATIENCE_S, clock=clock
        )

    try:
        outcomes = [*await _facts("after", ask("facts")), *await _rules("after", ask("rules"))]
    finally:
        await local.close()
    return _report(f"extraction_{model}", outcomes, keep=keep)


async def run_write_policy(*, keep: bool = False) -> str:
    """What the policy decides about candidates; otherwise as `run_extraction`."""
    outcomes = [_decided(half, case) for half in HALVES for case in read_cases("policy", half)]
    return _report("write_policy", outcomes, keep=keep)


async def _facts(half: str, ask: Ask | None) -> list[Outcome]:
    outcomes: list[Outcome] = []
    for case in read_cases("facts", half):
        found = await extract_facts(_said(case), ask=ask, clock=ManualClock(), redactor=Redactor())
        kept = [*found.facts, *(one.candidate for one in found.held)]
        names = {
            f"{one.category} {one.predicate} {one.object.identifier}"
            for one in kept
            if not isinstance(one, RuleCandidate)
        }
        outcomes += _compared("facts", half, case, case["facts"], sorted(names))
    return outcomes


async def _rules(half: str, ask: Ask | None) -> list[Outcome]:
    outcomes: list[Outcome] = []
    for case in read_cases("rules", half):
        found = await extract_rules(_said(case), ask=ask, clock=ManualClock(), redactor=Redactor())
        dropped = found.diagnostics["procedural_policy_drops"]
        names = [f"commit_now {one.text}" for one in found.rules] + ["drop"] * dropped
        held = [(one.decision, one.candidate) for one in found.held]
        names += [f"{decision} {one.text}" for decision, one in held if isinstance(one, RuleCandidate)]
        wanted = [] if not case["rule"] else [f"{case['decision']} {case['rule']}"]
        if case["rule"] and case["decision"] == "drop":
            wanted = ["drop"]
        outcomes += _compared("rules", half, case, wanted, names)
    return outcomes


def _compared(
    part: str, half: str, case: Mapping[str, Any], wanted: Sequence[str], found: Sequence[str]
) -> Iterator[Outcome]:
    """One outcome for each expected thing and for each that was not; one if there is to be nothing, and is."""
    known = {words(name): name for name in found}
    expected = {words(name): name for name in wanted}
    for key, name in expected.items():
        yield Outcome(part, half, case["language"], name, name if key in known else NOTHING, case["text"])
    for key, name in known.items():
        if key not in expected:
            yield Outcome(part, half, case["language"], NOTHING, name, case["text"])
    if not wanted and not found:
        yield Outcome(part, half, case["language"], NOTHING, NOTHING, case["text"])


def _said(case: Mapping[str, Any]) -> SaidTurn:
    return SaidTurn(text=case["text"], message_id="m", session_id="s", turn_index=0, private=True)


def _decided(half: str, case: Mapping[str, Any]) -> Outcome:
    judged = Judged(
        explicitness=case.get("explicitness", "explicit"),
        durability=case.get("durability", "stable"),
        sensitivity=case.get("sensitivity", "medium"),
        scope=case.get("scope", "cross_session"),
    )
    common = {
        "id": "c",
        "evidence_quote": case["quote"],
        "judged": judged,
        "session_id": "s",
        "turn_index": 0,
    }
    if case.get("kind") == "rule":
        part, decided = "rules", decide_rule(RuleCandidate(text=case["quote"], **common))
    else:
        part = "facts"
        decided = decide_fact(
            FactCandidate(
                category=case.get("category", "context"),
                subject=EntityRef("User", "user"),
                predicate=case.get("predicate", "KNOWS"),
                object=EntityRef("Concern", case["object"]),
                confidence="high",
                **common,
            )
        )
    return Outcome(part, half, case["language"], case["decision"], decided.decision, case["quote"])


def read_cases(part: str, half: str) -> Sequence[Mapping[str, Any]]:
    """The cases of a part and a half, as its file has them."""
    read: Sequence[Mapping[str, Any]] = tomllib.loads(
        (HERE / f"{part}_{half}.toml").read_text(encoding="utf-8")
    )["case"]
    return read


def _report(name: str, outcomes: Sequence[Outcome], *, keep: bool) -> str:
    groups = [(part, half) for part in ("facts", "rules") for half in HALVES]
    rows = [
        _row(f"{part}, {half}", [one for one in outcomes if (one.part, one.half) == (part, half)])
        for part, half in groups
    ]
    rows += [
        _row(language, [one for one in outcomes if one.language == language])
        for language in dict.fromkeys(one.language for one in outcomes)
    ]
    headings = ("", "outcomes", "right", "missed", "found and not stated", "other decision")
    parts = ["\n".join(table(headings, [*rows, _row("all", outcomes)]))]
    wrong = [one.line for one in outcomes if not one.right]
    parts.append("\n".join((f"Other than expected: {len(wrong)}", *(f"  {line}" for line in wrong))))
    parts.append(difference(name, len(outcomes), wrong))
    if keep:
        record(name, len(outcomes), wrong)
    shares = {
        f"{part}_{half}": _share([one for one in outcomes if (one.part, one.half) == (part, half)])
        for part, half in groups
    }
    parts.append(json.dumps({"eval": name, "outcomes": len(outcomes), "right": _share(outcomes), **shares}))
    return "\n\n".join(parts)


def _row(name: str, outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    missed = [one for one in outcomes if not one.right and one.found == NOTHING]
    invented = [one for one in outcomes if not one.right and one.expected == NOTHING]
    right = sum(one.right for one in outcomes)
    other = len(outcomes) - right - len(missed) - len(invented)
    figures = (len(outcomes), right, len(missed), len(invented), other)
    return (name, *(str(figure) for figure in figures))


def _share(outcomes: Sequence[Outcome]) -> float:
    return round(sum(one.right for one in outcomes) / len(outcomes), 4) if outcomes else 0.0
