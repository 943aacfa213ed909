"""Runs that wait for a person: kept in memory, and used only while they are what the records say.

Covers: pipeline/graph/execution/kept_runs.py, pipeline/graph/execution/executor.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.domain.clock import ManualClock
from pipeline.graph.definition.decisions import Pause, State
from pipeline.graph.definition.spec import GraphSpec, NodeSpec
from pipeline.graph.execution.executor import Executor
from pipeline.graph.execution.kept_runs import MOST
from pipeline.graph.run import replay as replaying
from pipeline.graph.run.outcome import Answer, RunOutcome
from pipeline.graph.run.records import GateRefused, GraphChanged, RunEnded
from pipeline.redaction.redactor import Redactor
from pipeline.runtime.safe_log import SafeRunLog
from tests.pipeline.graph.running import Writing, graph
from tests.support.graph_log import MemoryRunLog


class VerbatimLog(MemoryRunLog):
    """A log from which the records are read as they were made."""

    verbatim = True


class QuestionLog(VerbatimLog):
    """A log whose host commits a question together with the records."""

    commits_pauses = True


@pytest.fixture
def replays(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of records of every replay."""
    seen: list[int] = []

    def counted(built: Any, records: Any, *given: Any, **options: Any) -> Any:
        seen.append(len(records))
        return replaying.replay(built, records, *given, **options)

    monkeypatch.setattr("pipeline.graph.execution.executor.replay", counted)
    return seen


def _built() -> GraphSpec[None, State]:
    inside = graph({"think": Writing(thought="t"), "say": Writing(said="s")}, "think>say", name="inside")
    part = NodeSpec[None, State](subgraph=inside, reads=("x",), writes=("said",))
    return graph(
        {
            "a": Writing(x=1),
            "part": part,
            "ask": Writing(Pause(options=("on", "off"))),
            "more": Writing(Pause()),
        },
        "a>part",
        "part>ask",
        "ask>more",
    )


def _executor(built: GraphSpec[None, State] | None = None) -> Executor[None, State]:
    return Executor(built or _built(), clock=ManualClock())


def _answer(outcome: RunOutcome, choice: str = "on") -> tuple[Answer, ...]:
    return (Answer(gate=outcome.gates[0].id, choice=choice, note="n", by="ann"),)


def _plain(outcome: RunOutcome) -> dict[str, Any]:
    return {
        "state": dict(outcome.state),
        "path": outcome.path,
        "nodes": dict(outcome.nodes),
        "gates": outcome.gates,
        "status": outcome.status,
    }


async def test_an_answer_resumes_the_kept_run_as_a_replay_would(replays: list[int]) -> None:
    executor, log = _executor(), VerbatimLog()
    asked = await executor.run({"given": [1, {"y": 2}]}, None, log=log, run_id="r")
    before, known = list(log.texts), executor.interrupted(log.records)
    found = await executor.resume(log.records, None, answers=_answer(asked), log=log)
    assert replays == []
    other = VerbatimLog(before)
    expected = await _executor().resume(other.records, None, answers=_answer(asked), log=other)
    assert replays == [len(before)]
    assert _plain(found) == _plain(expected)
    assert log.texts == other.texts
    assert known.state == asked.state
    assert asked.nodes["a"].executions == 1


async def test_counts_of_an_outcome_stay_when_its_run_is_resumed() -> None:
    executor, log = _executor(), VerbatimLog()
    asked = await executor.run({}, None, log=log)
    await executor.resume(log.records, None, answers=_answer(asked), log=log)
    assert "more" not in asked.nodes


async def test_a_run_that_was_resumed_elsewhere_is_replayed(replays: list[int]) -> None:
    executor, log = _executor(), VerbatimLog()
    asked = await executor.run({}, None, log=log)
    again = await _executor().resume(log.records, None, answers=_answer(asked), log=log)
    replays.clear()
    outcome = await executor.resume(log.records, None, answers=_answer(again), log=log)
    assert outcome.status == "completed"
    assert len(replays) == 1
    with pytest.raises(RunEnded):
        await executor.resume(log.records, None, answers=_answer(again))


async def test_damaged_records_are_replayed(replays: list[int]) -> None:
    executor, log = _executor(), VerbatimLog()
    asked = await executor.run({}, None, log=log)
    damaged = log.damaged(len(log.texts) - 2, "not JSON")
    # Without its question the run asks again.
    outcome = await executor.resume(damaged.records, None, log=damaged)
    assert len(replays) == 1
    assert (outcome.status, outcome.gates[0].node) == ("paused", asked.gates[0].node)


async def test_records_of_another_graph_are_refused_though_the_run_is_kept() -> None:
    executor, log = _executor(), VerbatimLog()
    asked = await executor.run({}, None, log=log)
    signature = str(log.records[0]["head"]["signature"]) if log.records[0] else ""
    other = VerbatimLog([text.replace(signature, "other") for text in log.texts])
    with pytest.raises(GraphChanged):
        await executor.resume(other.records, None, answers=_answer(asked))


async def test_a_refused_answer_leaves_the_run_waiting(replays: list[int]) -> None:
    executor, log = _executor(), VerbatimLog()
    asked = await executor.run({}, None, log=log)
    with pytest.raises(GateRefused):
        await executor.resume(log.records, None, answers=_answer(asked, "perhaps"))
    outcome = await executor.resume(log.records, None, answers=_answer(asked), log=log)
    assert outcome.gates[0].node == "more"
    assert replays == []


async def test_only_the_newest_runs_are_kept(replays: list[int]) -> None:
    executor, logs = _executor(), [VerbatimLog() for _ in range(MOST + 1)]
    asked = [await executor.run({}, None, log=log) for log in logs]
    for number in (0, MOST):
        outcome = await executor.resume(logs[number].records, None, answers=_answer(asked[number]))
        assert outcome.gates[0].node == "more"
    assert replays == [len(logs[0].texts)]


async def test_a_run_is_replayed_where_its_log_leaves_something_out(replays: list[int]) -> None:
    executor, kept = _executor(), VerbatimLog()
    asked = await executor.run({}, None, log=SafeRunLog(kept, Redactor(), frozenset({"x"})))
    outcome = await executor.resume(kept.records, None, answers=_answer(asked))
    assert "x" not in outcome.state
    assert len(replays) == 1


async def test_a_run_is_kept_through_a_log_that_changes_nothing(replays: list[int]) -> None:
    executor, kept = _executor(), VerbatimLog()
    asked = await executor.run({}, None, log=SafeRunLog(kept, Redactor(), frozenset({"z"})))
    await executor.resume(kept.records, None, answers=_answer(asked))
    assert replays == []


def test_a_redacted_error_is_a_change() -> None:
    log = SafeRunLog(VerbatimLog(), Redactor())
    assert log.verbatim
    log.append({"do": "retry", "node": "a", "attempts": 1, "error": {"node": "a", "message": "boom"}})
    assert not log.verbatim


async def test_a_pause_is_not_waited_for_where_the_question_is_committed_with_it() -> None:
    log = QuestionLog()
    outcome = await _executor().run({}, None, log=log)
    assert outcome.gates
    assert log.durable == 0
    safe = QuestionLog()
    await _executor().run({}, None, log=SafeRunLog(safe, Redactor()))
    assert safe.durable == 0
