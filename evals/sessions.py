"""Whole sessions of the companion, in a running gateway: what each message leads to, which exercises are remembered,
and what a summary keeps.

`trajectory` has conversations: short ones, long ones, and such that lean on what an earlier session left. The expected
path of a message is its mode, or the level of the crisis response, and the exercise that runs afterwards. `exercise_memory`
has what is remembered of exercises that were completed, left or broken off. `summaries` has ended sessions with what a model
said of them: what becomes of it. All were written after the rules, by their author's successor, who had read these rules.
"""

from __future__ import annotations

import json
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from bench.report import ROOT, BenchUnavailable, table
from evals.model_asking import model_ask
from evals.recorded_runs import difference, record
from gateway.app.embedded_model import MODELS
from pipeline.domain.chat import ChatMessage
from pipeline.domain.clock import SystemClock
from pipeline.domain.errors import ModelUnavailable
from pipeline.llm.local_model import LocalModel
from pipeline.llm.local_process import ChildSettings
from pipeline.llm.scripted import ScriptedLlm
from pipeline.llm.structured import Ask
from pipeline.memory.sessions.ended import EndedSession, SessionTurn
from pipeline.memory.sessions.summary import ARC_SCHEMA, MAX_TOKENS, Summarised, summarise
from pipeline.redaction.redactor import Redactor
from tests.support.companion import CompanionModel, Talk, open_companion

HERE: Final = Path(__file__).with_name("session_texts")
NOTHING: Final = "nothing"
_PATIENCE_S: Final = 120.0
"""For one answer of the model."""


class Outcome(NamedTuple):
    """One thing that was expected of a case, and what came."""

    group: str
    expected: str
    found: str
    text: str

    @property
    def right(self) -> bool:
        return self.expected == self.found

    @property
    def line(self) -> str:
        """The case as a miss is shown and recorded."""
        return f"{self.group}: expected {self.expected}, found {self.found}: {self.text}"


def read_cases(name: str) -> Sequence[Mapping[str, Any]]:
    """The cases of one file."""
    read: Sequence[Mapping[str, Any]] = tomllib.loads((HERE / f"{name}.toml").read_text(encoding="utf-8"))[
        "case"
    ]
    return read


async def run_trajectory(*, keep: bool = False) -> str:
    """What each message of a conversation leads to, without a model: the table, every miss, the difference to the
    recorded run, and the figures as one line of JSON. `keep`: record the run."""
    outcomes = [one for case in read_cases("trajectory") for one in await _trajectory(case)]
    return _report("trajectory", outcomes, keep=keep)


async def run_exercise_memory(*, keep: bool = False) -> str:
    """Which exercises are remembered, and recalled in the next session; otherwise as `run_trajectory`."""
    outcomes = [one for case in read_cases("exercise_memory") for one in await _exercise_memory(case)]
    return _report("exercise_memory", outcomes, keep=keep)


async def run_summaries(*, keep: bool = False) -> str:
    """What becomes of the summaries that a model gives; otherwise as `run_trajectory`."""
    outcomes = []
    for case in read_cases("summaries"):
        said = case.get("model", "")
        made = await summarise(_ended(case), ask=_saying(said) if said else None, redactor=Redactor())
        outcomes.append(Outcome("kept", case["outcome"], _outcome(made), case["name"]))
        outcomes += _kept(case, made)
    return _report("summaries", outcomes, keep=keep)


async def run_summaries_with_model(model: str, *, keep: bool = False) -> str:
    """As `run_summaries`, with the summaries of the embedded model: minutes. Judged is whether a session is summarised
    or found too thin, and that no secret is kept. Raises BenchUnavailable without the model's file."""
    chosen = MODELS[model]
    file = chosen.path(ROOT / "models")
    if not file.is_file():
        raise BenchUnavailable(f"{file} is missing: run `parlour models get {chosen.id}`")
    clock = SystemClock()
    local = LocalModel(ChildSettings(model_path=file), clock=clock)
    ask = model_ask(local, ARC_SCHEMA, max_tokens=MAX_TOKENS, timeout_s=_PATIENCE_S, clock=clock)
    outcomes = []
    try:
        for case in read_cases("summaries"):
            made = await summarise(_ended(case), ask=ask, redactor=Redactor())
            said = _text(made)
            outcomes.append(Outcome("arc", case["worth"], "an arc" if made.arc else NOTHING, case["name"]))
            outcomes += [_absent(one, said, case["name"]) for one in case.get("never", ())]
    finally:
        await local.close()
    return _report(f"summaries_{model}", outcomes, keep=keep)


def _model(case: Mapping[str, Any]) -> ScriptedLlm:
    """A model that never answers: phrases, patterns and fixed words do everything. Where a case looks at what the model
    is shown, one that echoes."""
    if case.get("recalls") or case.get("asks") or case.get("never"):
        return CompanionModel()
    return ScriptedLlm(failure=ModelUnavailable)


async def _trajectory(case: Mapping[str, Any]) -> list[Outcome]:
    group, outcomes = f"{case['kind']}, {case['language']}", []
    with tempfile.TemporaryDirectory() as folder:
        async with open_companion(Path(folder), llm=_model(case)) as talk:
            for said, expected in case["turns"]:
                await talk.say(said)
                await talk.rested()
                if expected:
                    outcomes.append(Outcome(group, expected, await _path(talk), said))
            quotes = [fact.evidence_quote for fact in await talk.facts()]
            shown = talk.harness.llm.requests[-1].messages[0].content if talk.harness.llm.requests else ""
    outcomes += [
        Outcome(group, quote, quote if quote in quotes else NOTHING, "remembered")
        for quote in case.get("remembers", ())
    ]
    outcomes += [
        Outcome(group, quote, quote if quote in shown else NOTHING, "recalled")
        for quote in case.get("recalls", ())
    ]
    outcomes += [_absent(one, "\n".join((*quotes, shown)), group) for one in case.get("never", ())]
    return outcomes


async def _path(talk: Talk) -> str:
    """Where the newest message led: its mode or the crisis level, and what exercise runs at which step, from 1."""
    state = await talk.state()
    if state["routing"]["route"] == "crisis":
        led = f"crisis {state['crisis']['level']}"
    else:
        led = state["routing"]["response_style"]
    exercise, step = await talk.step()
    return led if exercise is None or step is None else f"{led} {exercise}:{step + 1}"


async def _exercise_memory(case: Mapping[str, Any]) -> list[Outcome]:
    with tempfile.TemporaryDirectory() as folder:
        async with open_companion(Path(folder), llm=_model(case)) as talk:
            for said in case["says"]:
                await talk.say(said)
                await talk.rested()
            facts = await talk.facts()
            kept = sorted(one.object.identifier for one in facts if one.write_reason == "exercise_completed")
            outcomes = [Outcome("kept", _listed(sorted(case["kept"])), _listed(kept), case["name"])]
            if asked := case.get("asks", ""):
                await talk.say("/new")
                await talk.say(asked)
                await talk.rested()
                shown = talk.harness.llm.requests[-1].messages[0].content
                recalled = sorted(one for one in case["recalled"] if one in shown)
                outcomes.append(
                    Outcome("recalled", _listed(sorted(case["recalled"])), _listed(recalled), case["name"])
                )
    return outcomes


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or NOTHING


def _ended(case: Mapping[str, Any]) -> EndedSession:
    turns = tuple(SessionTurn(text=said, answer=answer) for said, answer in case["turns"])
    return EndedSession(
        session_id="s",
        started_at=0.0,
        ended_at=600.0,
        turns=turns,
        private=case.get("private", True),
        off_the_record=case.get("off_the_record", False),
        crisis_level_max=case.get("crisis_level", 0),
    )


def _saying(text: str) -> Ask:
    async def ask(_messages: tuple[ChatMessage, ...]) -> str:
        return text

    return ask


def _outcome(made: Summarised) -> str:
    return made.reason.removeprefix("skipped: ")


def _kept(case: Mapping[str, Any], made: Summarised) -> list[Outcome]:
    """What is expected to be in the arc, and what may not be."""
    name, outcomes, arc = case["name"], [], made.arc
    if arc is None:
        return []
    fields = {"themes": arc.primary_themes, "loops": arc.open_loops, "resolved": arc.resolved_threads}
    for field, found in fields.items():
        if field in case:
            outcomes.append(Outcome(field, _listed(case[field]), _listed(found), name))
    if "moods" in case:
        outcomes.append(
            Outcome("moods", _listed(case["moods"]), _listed([arc.mood_opened, arc.mood_closed]), name)
        )
    level = str(case.get("crisis_level", 0))
    outcomes.append(Outcome("level", level, str(arc.crisis_level_max), name))
    return outcomes + [_absent(one, _text(made), name) for one in case.get("never", ())]


def _text(made: Summarised) -> str:
    """All words that are kept."""
    arc = made.arc
    if arc is None:
        return ""
    return "\n".join((arc.summary, *arc.primary_themes, *arc.open_loops, *arc.resolved_threads))


def _absent(words: str, text: str, name: str) -> Outcome:
    return Outcome("never kept", NOTHING, words if words.lower() in text.lower() else NOTHING, name)


def _report(name: str, outcomes: Sequence[Outcome], *, keep: bool) -> str:
    groups = [*dict.fromkeys(one.group for one in outcomes), "all"]
    rows = []
    for group in groups:
        chosen = [one for one in outcomes if group in (one.group, "all")]
        rows.append((group, str(len(chosen)), str(sum(one.right for one in chosen))))
    wrong = [one.line for one in outcomes if not one.right]
    parts = ["\n".join(table(("", "outcomes", "right"), rows))]
    parts.append("\n".join((f"Other than expected: {len(wrong)}", *(f"  {line}" for line in wrong))))
    parts.append(difference(name, len(outcomes), wrong))
    if keep:
        record(name, len(outcomes), wrong)
    right = round((len(outcomes) - len(wrong)) / max(len(outcomes), 1), 4)
    cases = len(read_cases(name.partition("_0")[0] if name.startswith("summaries") else name))
    parts.append(json.dumps({"eval": name, "cases": cases, "outcomes": len(outcomes), "right": right}))
    return "\n\n".join(parts)
