"""Human gates: what waits, what continues meanwhile, and which answers are taken.

Covers: pipeline/graph/execution/routing.py.
"""

from __future__ import annotations

import asyncio
import itertools

import pytest

from pipeline.domain.clock import ManualClock
from pipeline.graph.definition.decisions import NodeResult, Pause, State
from pipeline.graph.definition.spec import FanOut, GraphSpec, NodeSpec, OnFailure, OnSuccess, When
from pipeline.graph.execution.executor import Executor
from pipeline.graph.run.events import Checkpointed, GateOpened, NodeEntered
from pipeline.graph.run.outcome import Answer, Gate, RunOutcome
from pipeline.graph.run.records import GateRefused, RunEnded
from tests.pipeline.graph.running import Events, Writing, graph
from tests.pipeline.graph.written import edge_of
from tests.support.graph_log import MemoryRunLog


def _executor(built: GraphSpec[None, State], clock: ManualClock | None = None) -> Executor[None, State]:
    return Executor(built, clock=clock or ManualClock())


def _yes(gate: Gate, choice: str = "yes") -> Answer:
    return Answer(gate=gate.id, choice=choice)


async def test_the_run_halts_at_the_gate_before_anything_downstream() -> None:
    after, events, log = Writing(), Events(), MemoryRunLog()
    built = graph(
        {"ask": Writing(Pause(prompt="Sure?", options=("yes", "no")), draft="x"), "b": after}, "ask>b"
    )
    outcome = await _executor(built).run({}, None, listener=events, log=log, run_id="r")
    assert (outcome.status, outcome.stop_reason) == ("paused", "waiting_for_user")
    assert outcome.gates == (Gate(id="r:/ask:1", node="ask", prompt="Sure?", options=("yes", "no")),)
    assert outcome.state == {"draft": "x"}
    assert outcome.error is None
    assert after.calls == 0
    assert [event.gate for event in events.of(GateOpened)] == list(outcome.gates)
    assert Checkpointed("pause", "ask") in events.heard


async def test_an_answer_leads_on_and_is_in_the_state() -> None:
    ask, after, log = Writing(Pause()), Writing(), MemoryRunLog()
    built = graph({"ask": ask, "b": after}, "ask>b")
    paused = await _executor(built).run({}, None, log=log)
    answer = Answer(gate=paused.gates[0].id, choice="yes", note="go ahead", by="ann")
    outcome = await _executor(built).resume(log.records, None, answers=[answer], log=log)
    assert (outcome.status, outcome.quality, outcome.path) == ("completed", "clean", ("ask", "b"))
    assert after.seen == [{"answers": {"ask": {"choice": "yes", "note": "go ahead", "by": "ann"}}}]
    assert ask.calls == 1
    assert outcome.gates == ()


async def test_edges_behind_a_gate_are_followed_by_its_answer() -> None:
    built = graph(
        {"ask": Writing(Pause()), "send": Writing(), "drop": Writing()},
        edge_of("ask>send", When("choice == 'yes'")),
        edge_of("ask>drop", When(lambda state: state["answers"]["ask"]["choice"] == "no")),
    )
    for choice, node in (("yes", "send"), ("no", "drop")):
        log = MemoryRunLog()
        paused = await _executor(built).run({}, None, log=log)
        outcome = await _executor(built).resume(log.records, None, answers=[_yes(paused.gates[0], choice)])
        assert outcome.path == ("ask", node)


async def test_a_declared_pause_node_opens_a_gate_when_it_has_run() -> None:
    node, log = Writing(x=1), MemoryRunLog()
    built = graph({"a": node, "b": Writing(y=2)}, "a>b", pause_nodes=("a",))
    paused = await _executor(built).run({}, None, log=log)
    assert (paused.status, paused.state, paused.gates[0].node) == ("paused", {"x": 1}, "a")
    outcome = await _executor(built).resume(log.records, None, answers=[_yes(paused.gates[0])])
    assert outcome.path == ("a", "b")
    assert node.calls == 1


async def test_a_gate_without_an_answer_stays_open_and_nothing_runs() -> None:
    ask, log, events = Writing(Pause()), MemoryRunLog(), Events()
    built = graph({"ask": ask, "b": Writing()}, "ask>b")
    paused = await _executor(built).run({}, None, log=log)
    again = await _executor(built).resume(log.records, None, log=log, listener=events)
    assert (again.status, again.gates) == ("paused", paused.gates)
    assert ask.calls == 1
    assert events.of(NodeEntered) == []
    outcome = await _executor(built).resume(log.records, None, answers=[_yes(paused.gates[0])], log=log)
    assert outcome.status == "completed"


async def test_a_terminal_may_ask_before_it_ends_the_run() -> None:
    log = MemoryRunLog()
    built = graph({"a": Writing(Pause())}, terminals=("a",))
    paused = await _executor(built).run({}, None, log=log)
    outcome = await _executor(built).resume(log.records, None, answers=[_yes(paused.gates[0])])
    assert outcome.status == "completed"


@pytest.mark.parametrize("order", [("agent", "approval"), ("approval", "agent")])
async def test_siblings_finish_their_node_and_their_successors_wait_whatever_the_order(
    order: tuple[str, str],
) -> None:
    after, log = Writing(after=1), MemoryRunLog()
    nodes = {"agent": Writing(agent=1), "approval": Writing(Pause())}
    built = graph(
        {"a": Writing(), **{name: nodes[name] for name in order}, "next": after, "z": Writing()},
        *(f"a>{name}" for name in order),
        edge_of("agent>next", mapping={"given": "agent"}),
        *("next>z", "approval>z"),
    )
    paused = await _executor(built).run({}, None, log=log)
    assert paused.stop_reason == "waiting_for_user"
    assert sorted(paused.path) == ["a", "agent", "approval"]
    outcome = await _executor(built).resume(log.records, None, answers=[_yes(paused.gates[0])], log=log)
    assert outcome.status == "completed"
    assert sorted(outcome.path) == ["a", "agent", "approval", "next", "z"]
    assert after.seen == [{"agent": 1, "given": 1}]


async def test_a_deferred_fan_out_waits_as_a_whole() -> None:
    first, second, log = Writing(), Writing(), MemoryRunLog()
    built = graph(
        {"a": Writing(), "ask": Writing(Pause()), "b": Writing(), "x": first, "y": second, "z": Writing()},
        *("a>ask", "a>b", "b>x", "b>y", "x>z", "y>z", "ask>z"),
    )
    paused = await _executor(built).run({}, None, log=log)
    assert (first.calls, second.calls) == (0, 0)
    outcome = await _executor(built).resume(log.records, None, answers=[_yes(paused.gates[0])])
    assert (first.calls, second.calls, outcome.status) == (1, 1, "completed")


def _two() -> GraphSpec[None, State]:
    return graph(
        {
            "a": Writing(),
            "b": Writing(Pause(prompt="b?")),
            "c": Writing(Pause(prompt="c?")),
            "z": Writing(z=1),
        },
        *("a>b", "a>c", "b>z", "c>z"),
    )


@pytest.mark.parametrize("order", list(itertools.permutations([0, 1])))
async def test_two_parallel_gates_are_answered_in_any_order(order: tuple[int, int]) -> None:
    built, log = _two(), MemoryRunLog()
    paused = await _executor(built).run({}, None, log=log)
    assert [gate.prompt for gate in paused.gates] == ["b?", "c?"]
    half = await _executor(built).resume(log.records, None, answers=[_yes(paused.gates[order[0]])], log=log)
    assert (half.status, half.gates) == ("paused", (paused.gates[order[1]],))
    outcome = await _executor(built).resume(
        log.records, None, answers=[_yes(paused.gates[order[1]])], log=log
    )
    assert outcome.status == "completed"
    assert outcome.path == ("a", "b", "c", "z")
    assert outcome.state["answers"].keys() == {"b", "c"}


async def test_two_parallel_gates_are_answered_at_once() -> None:
    built, log = _two(), MemoryRunLog()
    paused = await _executor(built).run({}, None, log=log)
    outcome = await _executor(built).resume(log.records, None, answers=[_yes(gate) for gate in paused.gates])
    assert outcome.status == "completed"


async def test_a_gate_behind_an_answered_gate_is_another_one() -> None:
    log = MemoryRunLog()
    built = graph(
        {
            "a": Writing(),
            "b": Writing(Pause()),
            "again": Writing(Pause()),
            "c": Writing(Pause()),
            "z": Writing(),
        },
        *("a>b", "a>c", "b>again", "again>z", "c>z"),
    )
    paused = await _executor(built).run({}, None, log=log)
    second = await _executor(built).resume(log.records, None, answers=[_yes(paused.gates[0])], log=log)
    assert [gate.node for gate in second.gates] == ["c", "again"]
    outcome = await _executor(built).resume(
        log.records, None, answers=[_yes(gate) for gate in second.gates], log=log
    )
    assert outcome.status == "completed"


async def test_each_visit_opens_a_separate_gate_also_in_the_same_second() -> None:
    built = graph(
        {"ask": Writing(Pause())},
        edge_of("ask>ask", When("choice == 'again'")),
        edge_of("ask>", When("choice == 'enough'")),
    )
    log, ids = MemoryRunLog(), []
    outcome = await _executor(built).run({}, None, log=log)
    for _ in range(4):
        ids.append(outcome.gates[0].id)
        outcome = await _executor(built).resume(
            log.records, None, answers=[_yes(outcome.gates[0], "again")], log=log
        )
    assert len(set(ids)) == 4


async def _refused(
    built: GraphSpec[None, State], log: MemoryRunLog, *answers: Answer, clock: ManualClock | None = None
) -> GateRefused:
    """The refusal of these answers, by which nothing has happened."""
    texts, events = list(log.texts), Events()
    with pytest.raises(GateRefused) as caught:
        await _executor(built, clock).resume(log.records, None, answers=answers, log=log, listener=events)
    assert log.texts == texts
    assert events.heard == []
    return caught.value


async def test_an_answer_to_an_unknown_gate_is_refused() -> None:
    built, log = _two(), MemoryRunLog()
    await _executor(built).run({}, None, log=log)
    assert (await _refused(built, log, Answer(gate="r:/ghost:1", choice="yes"))).status == "unknown"


async def test_a_repeated_answer_is_refused_in_the_same_call_and_later() -> None:
    built, log = _two(), MemoryRunLog()
    paused = await _executor(built).run({}, None, log=log)
    answer = _yes(paused.gates[0])
    assert (await _refused(built, log, answer, answer)).status == "already_answered"
    await _executor(built).resume(log.records, None, answers=[answer], log=log)
    assert (await _refused(built, log, answer)).status == "already_answered"


async def test_a_choice_that_is_not_offered_is_refused_and_the_gate_stays_open() -> None:
    built, log = graph({"ask": Writing(Pause(options=("yes", "no")))}), MemoryRunLog()
    paused = await _executor(built).run({}, None, log=log)
    refusal = await _refused(built, log, _yes(paused.gates[0], "maybe"))
    assert refusal.status == "invalid_choice"
    assert "takes yes, no, not 'maybe'" in str(refusal)
    outcome = await _executor(built).resume(log.records, None, answers=[_yes(paused.gates[0], "no")])
    assert outcome.status == "completed"


async def test_a_valid_answer_is_not_taken_beside_a_refused_one() -> None:
    built, log = _two(), MemoryRunLog()
    paused = await _executor(built).run({}, None, log=log)
    await _refused(built, log, _yes(paused.gates[0]), Answer(gate="ghost", choice="yes"))
    assert (await _executor(built).resume(log.records, None)).gates == paused.gates


async def test_an_answer_to_a_run_that_is_over_is_refused() -> None:
    built, log = graph({"ask": Writing(Pause())}), MemoryRunLog()
    paused = await _executor(built).run({}, None, log=log)
    await _executor(built).resume(log.records, None, answers=[_yes(paused.gates[0])], log=log)
    with pytest.raises(RunEnded):
        await _executor(built).resume(log.records, None, answers=[_yes(paused.gates[0])])


def _expiring(**fields: object) -> GraphSpec[None, State]:
    ask = Writing(Pause(expires_s=60.0))
    return graph(
        {"ask": ask, "b": Writing(), "late": Writing()},
        edge_of("ask>b", OnSuccess()),
        edge_of("ask>late", OnFailure()),
        **fields,
    )


async def test_an_answer_in_time_is_taken_and_a_late_one_refused() -> None:
    clock, log = ManualClock(), MemoryRunLog()
    paused = await _executor(_expiring(), clock).run({}, None, log=log)
    assert paused.gates[0].expires_at == clock.now() + 60
    await clock.advance(59.9)
    outcome = await _executor(_expiring(), clock).resume(log.records, None, answers=[_yes(paused.gates[0])])
    assert outcome.path == ("ask", "b")
    await clock.advance(0.2)
    assert (await _refused(_expiring(), log, _yes(paused.gates[0]), clock=clock)).status == "expired"


async def test_an_expired_gate_fails_its_node_and_follows_on_failure() -> None:
    clock, log = ManualClock(), MemoryRunLog()
    built = _expiring()
    paused = await _executor(built, clock).run({}, None, log=log)
    assert (await _executor(built, clock).resume(log.records, None)).gates == paused.gates
    await clock.advance(60)
    outcome = await _executor(built, clock).resume(log.records, None, log=log)
    assert (outcome.status, outcome.quality, outcome.path) == ("completed", "degraded", ("ask", "late"))
    assert [(failure.node, failure.code) for failure in outcome.failures] == [("ask", "gate_expired")]


async def test_an_answer_to_a_gate_that_has_expired_and_been_left_is_refused() -> None:
    clock, log = ManualClock(), MemoryRunLog()
    built = graph(
        {"ask": Writing(Pause(expires_s=60.0)), "late": Writing(Pause())}, edge_of("ask>late", OnFailure())
    )
    paused = await _executor(built, clock).run({}, None, log=log)
    await clock.advance(61)
    again = await _executor(built, clock).resume(log.records, None, log=log)
    assert [gate.node for gate in again.gates] == ["late"]
    refusal = await _refused(built, log, _yes(paused.gates[0]), clock=clock)
    assert refusal.status == "already_answered"


async def test_an_expired_gate_that_nothing_rescues_fails_the_run() -> None:
    clock, log = ManualClock(), MemoryRunLog()
    built = graph({"ask": Writing(Pause(expires_s=60.0)), "b": Writing()}, edge_of("ask>b", OnSuccess()))
    await _executor(built, clock).run({}, None, log=log)
    await clock.advance(61)
    outcome = await _executor(built, clock).resume(log.records, None)
    assert outcome.status == "failed"
    assert outcome.error is not None
    assert outcome.error.code == "gate_expired"


@pytest.mark.parametrize(("policy", "status"), [("fail_all", "failed"), ("wait_all", "completed")])
async def test_gates_that_expire_together_in_branches_follow_the_policy(policy: str, status: str) -> None:
    clock, log = ManualClock(), MemoryRunLog()
    nodes = {name: Writing(Pause(expires_s=60.0)) for name in "bc"}
    built = graph(
        {"a": Writing(), **nodes, "z": Writing()},
        *("a>b", "a>c", edge_of("b>z", OnSuccess()), edge_of("c>z", OnSuccess())),
        fan_out=FanOut(on_failure=policy),  # type: ignore[arg-type]  # given by name above
    )
    await _executor(built, clock).run({}, None, log=log)
    await clock.advance(61)
    outcome = await _executor(built, clock).resume(log.records, None, log=log)
    assert outcome.status == status


async def test_an_answer_outlives_a_crash_before_the_next_node() -> None:
    log = MemoryRunLog()
    built = graph({"ask": Writing(Pause()), "b": Writing(), "c": Writing()}, "ask>b", "b>c")
    paused = await _executor(built).run({}, None, log=log)
    answered = MemoryRunLog(log.texts)
    await _executor(built).resume(log.records, None, answers=[_yes(paused.gates[0])], log=answered)
    kinds = [record["do"] for record in answered.records if record]
    assert kinds == ["step", "pause", "answer", "route", "step", "step", "end"]
    for length in (3, 4, 5):
        outcome = await _executor(built).resume(answered.cut(length).records, None)
        assert (outcome.status, outcome.path) == ("completed", ("ask", "b", "c"))


@pytest.mark.parametrize("slow", [0, 20])
async def test_a_gate_that_its_failed_sibling_takes_with_it_does_not_halt_the_others(slow: int) -> None:
    log = MemoryRunLog()

    async def works(_state: State, _context: None) -> NodeResult:
        for _ in range(slow):
            await asyncio.sleep(0)
        return NodeResult()

    async def fails(_state: State, _context: None) -> NodeResult:
        for _ in range(10):
            await asyncio.sleep(0)
        return NodeResult(error="no", permanent=True)

    built = graph(
        {
            "a": Writing(),
            "b": NodeSpec(run=Writing(), fan_out=FanOut()),
            "ask": Writing(Pause()),
            "bad": fails,
            "meet": Writing(),
            "c": works,
            "d": Writing(d=1),
            "z": Writing(),
        },
        *("a>b", "a>c", "b>ask", "b>bad", "c>d", "d>z"),
        *(edge_of(arrow, OnSuccess()) for arrow in ("ask>meet", "bad>meet", "meet>z")),
        fan_out=FanOut(on_failure="continue_others"),
    )
    outcome = await _executor(built).run({}, None, log=log)
    assert (outcome.status, outcome.gates) == ("completed", ())
    assert outcome.state["d"] == 1


async def test_an_outcome_of_an_open_gate_raises_nothing() -> None:
    outcome: RunOutcome = await _executor(graph({"ask": Writing(Pause())})).run({}, None)
    outcome.raise_for_failure()
    assert outcome.status == "paused"
