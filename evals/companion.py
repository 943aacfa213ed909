"""The companion's rules on messages of our own: which mode answers, what an answer does to an exercise, and which
exercise is chosen. Without a model.

The rules were tuned with `tuning`, which was written first, and then with `second`, which was written after that and
measured before the rules saw it. `after` was written when the rules were final, and no rule was changed by it. All are
by the author of the rules, so they say less about other people's words than about mistakes.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from bench.report import ROOT, BenchUnavailable, table
from evals.recorded_runs import difference, record
from gateway.app.embedded_model import MODELS
from pipeline.companion.dispatcher import AskModel, dispatch
from pipeline.companion.exercise_choice import choose_exercise
from pipeline.companion.exercise_flow import ITEMS_KEY, STEP_KEY, TYPE_KEY, continue_exercise
from pipeline.domain.clock import SystemClock
from pipeline.llm.client import LlmClient, LlmRequest, TextDelta
from pipeline.llm.local_model import LocalModel
from pipeline.llm.local_process import ChildSettings
from pipeline.safety.ladder import EarlierEntry

HERE = Path(__file__).with_name("companion_texts")
HALVES = ("tuning", "second", "after", "last")


class Judged(NamedTuple):
    """A case, what was expected of it and what came out."""

    part: str
    half: str
    language: str
    by: str
    expected: str
    found: str
    why: str
    text: str

    @property
    def right(self) -> bool:
        """Whether it came out as expected."""
        return self.expected == self.found


async def run_routing(*, keep: bool = False, model: str = "") -> str:
    """Which mode answers: the table, every miss, the difference to the recorded run, and the figures as a line of JSON.
    `keep`: record this run. `model`: what llm.local.model calls the embedded model that judges what no phrase knows;
    empty for none. Raises BenchUnavailable without its file."""
    if not model:
        return await _routing("routing", None, keep=keep)
    file = MODELS[model].path(ROOT / "models")
    if not file.is_file():
        raise BenchUnavailable(f"{file} is missing: run `parlour models get {MODELS[model].id}`")
    embedded = LocalModel(ChildSettings(model_path=file), clock=SystemClock())
    try:
        return await _routing(f"routing_{model}", lambda request: _answer(embedded, request), keep=keep)
    finally:
        await embedded.close()


async def _answer(model: LlmClient, request: LlmRequest) -> str:
    stream = model.stream(replace(request, timeout_s=250.0))
    return "".join([item.text async for item in stream if isinstance(item, TextDelta)])


async def _routing(name: str, ask: AskModel | None, *, keep: bool) -> str:

    async def found(case: dict[str, Any]) -> tuple[str, str]:
        decision = await dispatch(case["text"], history(case), ask=ask)
        return decision.mode, f"{decision.source}: {decision.type}"

    judged = await _judged("routing", "mode", found)
    groups = [*dict.fromkeys(one.expected for one in judged), *(f"by {by}" for by in ("rules", "model"))]
    return report(name, judged, groups, keep=keep)


async def run_exercises(*, keep: bool = False) -> str:
    """What answers do to an exercise and which one is chosen; otherwise as `run_routing`."""

    async def flow(case: dict[str, Any]) -> tuple[str, str]:
        state = {TYPE_KEY: case["exercise"], STEP_KEY: case["step"] - 1, ITEMS_KEY: case.get("named")}
        turn = continue_exercise(state, case["text"])
        return turn.event, turn.type

    async def selection(case: dict[str, Any]) -> tuple[str, str]:
        return choose_exercise(case["text"], history(case)), ""

    judged = [*await _judged("flow", "next", flow), *await _judged("selection", "exercise", selection)]
    return report("exercises", judged, ["flow", "selection"], keep=keep)


def history(case: dict[str, Any]) -> tuple[EarlierEntry, ...]:
    """What was said before a case's message."""
    return tuple(
        EarlierEntry("person" if line.startswith("u:") else "bot", line[2:].strip())
        for line in case.get("history", ())
    )


async def _judged(
    part: str, key: str, found: Callable[[dict[str, Any]], Awaitable[tuple[str, str]]]
) -> list[Judged]:
    judged = []
    for half in HALVES:
        file = HERE / f"{part}_{half}.toml"
        for case in tomllib.loads(file.read_text(encoding="utf-8"))["case"]:
            came, why = await found(case)
            language, by = case.get("language", "en"), case.get("by", "rules")
            judged.append(Judged(part, half, language, by, case[key], came, why, case["text"]))
    return judged


def report(name: str, judged: Sequence[Judged], groups: Sequence[str], *, keep: bool) -> str:
    """The table, the misses of each part of the cases, the difference to the recorded run, and the line of JSON."""
    rows = [_row(group, judged) for group in [*groups, *_languages(judged), "all"]]
    parts = ["\n".join(table(("", *(f"{half}" for half in HALVES), "all"), rows))]
    for half in HALVES:
        wrong = [_wrong(one) for one in judged if one.half == half and not one.right]
        parts.append("\n".join((f"Other than expected in {half}: {len(wrong)}", *wrong)))
    figures: dict[str, float] = {half: _share([one for one in judged if one.half == half]) for half in HALVES}
    parts.append(difference(name, len(judged), _missed(judged)))
    if keep:
        record(name, len(judged), _missed(judged))
    ruled = [one for one in judged if one.half == HALVES[-1] and one.why.startswith("rules")]
    if ruled:
        figures["after_by_phrases"], figures["after_phrases_right"] = len(ruled), _share(ruled)
    parts.append(json.dumps({"eval": name, "cases": len(judged), "right": _share(judged), **figures}))
    return "\n\n".join(parts)


def _missed(judged: Sequence[Judged]) -> list[str]:
    """The misses as they are recorded."""
    return [f"{one.part} ({one.expected}): {one.text}" for one in judged if not one.right]


def _languages(judged: Sequence[Judged]) -> list[str]:
    return sorted({one.language for one in judged})


def _row(group: str, judged: Sequence[Judged]) -> tuple[str, ...]:
    chosen = [one for one in judged if group in (one.expected, f"by {one.by}", one.language, one.part, "all")]
    halves = [[one for one in chosen if one.half == half] for half in HALVES]
    return (group, *(_counted(half) for half in (*halves, chosen)))


def _counted(judged: Sequence[Judged]) -> str:
    return f"{sum(one.right for one in judged)} of {len(judged)}" if judged else "-"


def _share(judged: Sequence[Judged]) -> float:
    return round(sum(one.right for one in judged) / len(judged), 4) if judged else 0.0


def _wrong(one: Judged) -> str:
    return f"  {one.part}, {one.language}: expected {one.expected}, found {one.found} ({one.why}): {one.text}"
