"""Run a graph, or resume a run from its records.

The executor owns traversal and state only: it calls no model, runs no tool, judges no result and knows no
session. It never swallows an outside cancellation.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import nullcontext
from types import MappingProxyType
from typing import Any, Final, Generic, TypeAlias

from pipeline.domain.clock import Clock, SystemClock
from pipeline.domain.errors import GraphError
from pipeline.domain.ids import new_id
from pipeline.graph.definition.decisions import ContextT, State, StateT
from pipeline.graph.definition.frozen_json import freeze_update
from pipeline.graph.definition.merging import RESERVED, folded
from pipeline.graph.definition.ports import Decider, PhaseHook, RunLog
from pipeline.graph.definition.spec import GraphSpec
from pipeline.graph.execution.control import RunAborted, RunControl
from pipeline.graph.execution.edge_selection import Routes, routes_after_failure
from pipeline.graph.execution.environment import RunEnvironment, RunStopped
from pipeline.graph.execution.kept_runs import KeptRuns
from pipeline.graph.execution.run_loop import RunLoop
from pipeline.graph.run.events import Listener, RunCompleted
from pipeline.graph.run.outcome import GATE_EXPIRED, Answer, RunFailure, RunOutcome, RunStatus, StopReason
from pipeline.graph.run.recorder import FIRST_SNAPSHOT, RunRecorder
from pipeline.graph.run.records import GateRefused, Head, RawRecord, RunEnded, RunRecord
from pipeline.graph.run.replay import replay
from pipeline.graph.run.state import Run

_NEVER: Final = nullcontext()
"""Used where there is no deadline."""
NOTHING: Final[State] = MappingProxyType({})
_Verdict: TypeAlias = tuple[RunStatus, StopReason, RunFailure | None]


class Executor(Generic[ContextT, StateT]):
    """Runs one graph, for many threads at once. Between calls it keeps only some runs that wait for a person,
    which it could replay as well."""

    def __init__(
        self,
        graph: GraphSpec[ContextT, StateT],
        *,
        clock: Clock | None = None,
        decider: Decider | None = None,
        phase: PhaseHook[ContextT] | None = None,
        phase_key: str = "",
        details: bool = True,
        chance: Callable[[], float] = random.random,
        first_snapshot: int = FIRST_SNAPSHOT,
    ) -> None:
        """With a `phase_key`, the phase hook is called only while the state has that key. Without `details`,
        listeners receive `NodeEntered`, `NodeLeft` and `RunCompleted` only, and no other event is built.
        `first_snapshot` is the number of records before the first snapshot; see `run.recorder`.
        """
        self._graph = graph
        # Computed here, and not in the first run.
        self._signature, self._plans = graph.signature, graph.plans
        self._clock = clock or SystemClock()
        self._decider = decider
        self._phase = phase
        self._phase_key = phase_key
        self._details = details
        self._chance = chance
        self._first_snapshot = first_snapshot
        self._kept = KeptRuns()

    # Not async: its frame would be in the stack of every node.
    def run(
        self,
        inputs: Mapping[str, Any],
        context: ContextT,
        *,
        base: State = NOTHING,
        entry: str = "",
        run_id: str = "",
        later: frozenset[str] = frozenset(),
        listener: Listener | None = None,
        nodes: Callable[[], bool] | None = None,
        log: RunLog | None = None,
        control: RunControl | None = None,
    ) -> Coroutine[Any, Any, RunOutcome]:
        """Run the graph until it ends, pauses or fails.

        `inputs` enter the state and are recorded. `base` is state from before this run, such as an earlier
        outcome's `state`; it is not recorded, so `resume` needs the same one. A `MappingProxyType` is taken
        as one and used as it is; any other mapping is copied. `entry` names an entry point. The call halts
        before the nodes `later`, with the reason `left`; its last records are not waited for. `resume`
        without them continues there. The `listener` gets the events of ordinary nodes only while `nodes` says
        so, which is asked at each.
        A node's failure is in the outcome. Raises GraphError for inputs that are not plain data or an
        unknown entry, and any exception of the log or the listener.
        """
        graph = self._graph
        if entry and entry not in graph.entry_points:
            raise GraphError(f"graph {graph.name} has no entry point {entry}")
        node = graph.entry_points[entry] if entry else graph.entry
        frozen = freeze_update(inputs, "the inputs") if inputs else {}
        if not RESERVED.isdisjoint(frozen):
            key = min(RESERVED & frozen.keys())
            raise GraphError(f"the inputs have the key {key}, which only the engine writes")
        values = folded(_trusted(base), graph.folds, frozen)
        run = Run.begin(run_id or new_id("run"), graph, values, node)
        head: Head = {
            "run": run.id,
            "graph": graph.name,
            "signature": self._signature,
            "entry": node if entry else "",
            "inputs": frozen,
        }
        snapshot, details = self._first_snapshot, self._details
        recorder = RunRecorder(run, head, log, listener, snapshot, details=details, nodes=nodes)
        keeps = head if base is NOTHING and recorder.verbatim else None
        return self._execute(run, recorder, context, control or RunControl(), (), later=later, keeps=keeps)

    def resume(
        self,
        records: Sequence[RawRecord],
        context: ContextT,
        *,
        base: State = NOTHING,
        answers: Sequence[Answer] = (),
        later: frozenset[str] = frozenset(),
        force: bool = False,
        listener: Listener | None = None,
        log: RunLog | None = None,
        control: RunControl | None = None,
    ) -> Coroutine[Any, Any, RunOutcome]:
        """Resume a run where its records end: finished nodes are not run again.

        `answers` answer its open gates. Raises RunUnreadable, GraphChanged (unless `force`), RunEnded, and
        GateRefused for an answer that is not accepted, before anything has changed; otherwise as `run`.
        """
        replayed = self._kept.find(records) if base is NOTHING else None
        if replayed is None:
            replayed = replay(self._graph, records, _trusted(base), force=force)
        run = replayed.run
        if run.ended:
            raise RunEnded(f"run {run.id} is over and cannot be resumed")
        _check_answers(run, answers, self._clock.now())
        recorder = RunRecorder(run, replayed.head, log, listener, self._first_snapshot, details=self._details)
        kept = replayed.kept if replayed.void else None
        self._kept.drop(run.id)
        keeps = replayed.head if base is NOTHING and recorder.verbatim and kept is None else None
        call = (run, recorder, context, control or RunControl(), answers, kept)
        return self._execute(*call, later=later, keeps=keeps)

    def state_of(self, records: Sequence[RawRecord]) -> State:
        """The state of the run in `records`. Raises as `interrupted`."""
        return MappingProxyType(self._replayed(records).root.values)

    def interrupted(self, records: Sequence[RawRecord]) -> RunOutcome:
        """The outcome of the run in `records` as if it had been cut off there: runs and writes nothing.

        Raises RunUnreadable and GraphChanged, as `resume`.
        """
        run = self._replayed(records)
        return RunOutcome(
            run_id=run.id,
            status="cancelled",
            stop_reason="aborted",
            quality="failed",
            state=MappingProxyType(run.root.values),
            path=tuple(run.path),
            gates=run.open_gates(),
            retries=run.retries,
            failures=tuple(run.failures),
            nodes=run.diagnostics(),
            effects=run.open_effects(),
        )

    def _replayed(self, records: Sequence[RawRecord]) -> Run:
        return (self._kept.find(records) or replay(self._graph, records, NOTHING)).run

    async def _execute(
        self,
        run: Run,
        recorder: RunRecorder,
        context: ContextT,
        control: RunControl,
        answers: Sequence[Answer],
        kept: int | None = None,
        *,
        later: frozenset[str],
        keeps: Head | None = None,
    ) -> RunOutcome:
        """Make one call, from the first node to exactly one completion event.

        `kept` is the number of valid records of a resumed run when later ones are void, else None. `keeps` is
        the head of a run that may be kept while it waits for a person.
        """
        limits = self._graph.limits
        seconds = limits.max_seconds
        env = RunEnvironment(
            run=run,
            context=context,
            limits=limits,
            clock=self._clock,
            decider=self._decider,
            chance=self._chance,
            phase=self._phase,
            phase_key=self._phase_key,
            recorder=recorder,
            control=control,
            deadline_at=None if seconds is None else self._clock.monotonic() + seconds,
            later=later,
        )
        loop, root = RunLoop(env), run.root
        try:
            if kept is not None:
                recorder.write({"do": "resume", "kept": kept}, "resume", "")
            deadline = _NEVER if seconds is None else self._clock.timeout(seconds)
            try:
                with control.guard():
                    async with deadline:
                        if run.records:
                            await _record_answers(loop, answers)
                        await loop.drive(root)
                        while not loop.left and loop.held_back.has_more():
                            await loop.drive(root)
                status, reason, error = _verdict(loop)
            except BaseException as caught:  # noqa: BLE001 - raised again unless it is the engine's own
                status, reason, error = _verdict_after(loop, _leaf(caught), deadline)
            await _close(loop, status, reason)
        except BaseException as caught:  # noqa: BLE001 - raised again after the completion event
            recorder.cut_off({} if isinstance(caught, Exception) else loop.attempts.kept())
            cause = _leaf(caught)
            # An error of the listener must not replace the cause.
            with contextlib.suppress(Exception):
                await recorder.emit(RunCompleted(_cut_off(loop, cause)))
            raise cause from None
        outcome = _outcome(loop, status, reason, error)
        await recorder.emit(RunCompleted(outcome))
        if keeps is not None and reason == "waiting_for_user" and recorder.verbatim:
            self._kept.keep(run, keeps)
        return outcome


def _verdict_after(loop: RunLoop, cause: BaseException, deadline: object) -> _Verdict:
    """The status of a run that an abort, its deadline or a limit ended. Raises any other cause again."""
    timed_out = isinstance(deadline, asyncio.Timeout) and deadline.expired()
    timed_out = timed_out and isinstance(cause, TimeoutError)
    if loop.run.root.at_rest and (timed_out or isinstance(cause, RunAborted)):
        return _verdict(loop)  # The run had ended before.
    if isinstance(cause, RunAborted):
        return "cancelled", "aborted", None
    if timed_out:
        words = f"the run took longer than {loop.env.limits.max_seconds:g} seconds"
        return "failed", "timeout", RunFailure(node="", code="timeout", message=words)
    if isinstance(cause, RunStopped):
        return "failed", cause.reason, RunFailure(node="", code=cause.reason, message=str(cause))
    raise cause from None


def _cut_off(loop: RunLoop, cause: BaseException) -> RunOutcome:
    """The outcome of a call that ended for a cause outside the graph."""
    if isinstance(cause, Exception):
        return _outcome(loop, "failed", "error", _failure_outside(cause))
    if loop.env.recorder.finished:
        return _outcome(loop, *_verdict(loop))  # The run is already recorded as ended.
    return _outcome(loop, "cancelled", "aborted", None)


def _verdict(loop: RunLoop) -> _Verdict:
    """The status of a run that came to rest by itself."""
    root = loop.run.root
    if root.status == "ended":
        return "completed", root.end_reason, None
    if root.status == "failed":
        failure = root.failure
        reason: StopReason = (
            "no_terminal" if failure is not None and failure.code == "no_terminal" else "error"
        )
        return "failed", reason, failure if failure is None else loop.raised.get(failure, failure)
    if loop.run.open_gates() and not loop.env.control.pause_requested:
        return "paused", "waiting_for_user", None
    return "paused", "pause_requested" if loop.env.control.pause_requested else "left", None


async def _close(loop: RunLoop, status: RunStatus, reason: StopReason) -> None:
    """Write the records that end the call. They are durable when this returns, unless the commit of the
    outcome has them."""
    recorder = loop.env.recorder
    if status in ("completed", "failed"):
        kept = loop.attempts.kept()
        if kept:
            await recorder.record({"do": "cancel", "kept": kept}, kind="cancel", label="")
        await recorder.finish({"do": "end", "status": status, "reason": reason})
        return
    if reason == "left":
        return  # The rest of the records belongs to the commit of what has been done.
    if status == "cancelled":
        await recorder.record({"do": "cancel", "kept": loop.attempts.kept()}, kind="cancel", label="")
    else:
        await recorder.record({"do": "pause", "reason": reason}, kind="pause", label="")
        if reason == "waiting_for_user" and recorder.is_committed_later:
            return
    await recorder.barrier()


def _outcome(loop: RunLoop, status: RunStatus, reason: StopReason, error: RunFailure | None) -> RunOutcome:
    run = loop.run
    failures = tuple(loop.raised.get(failure, failure) for failure in run.failures)
    degraded = bool(failures or run.retries)
    return RunOutcome(
        run_id=run.id,
        status=status,
        stop_reason=reason,
        quality="failed" if status in ("failed", "cancelled") else "degraded" if degraded else "clean",
        state=MappingProxyType(run.root.values),
        path=tuple(run.path),
        error=error,
        gates=run.open_gates(),
        retries=run.retries,
        failures=failures,
        nodes=run.diagnostics(),
        effects=run.open_effects(),
    )


async def _record_answers(loop: RunLoop, answers: Sequence[Answer]) -> None:
    """Record the answers, then what follows gates that have expired: those that resume count as answered with
    nothing, and the nodes of the others fail."""
    for answer in answers:
        record: RunRecord = {"do": "answer", "gate": {"id": answer.gate}, "choice": answer.choice}
        if answer.note:
            record["note"] = answer.note
        if answer.by:
            record["by"] = answer.by
        record["at"] = loop.env.clock.now()
        await loop.env.recorder.record(record, kind="answer", label="")
    now = loop.env.clock.now()
    for frame in tuple(loop.run.paused_frames()):
        # A failed branch may have ended the others.
        gate = frame.gate if loop.run.frames.get(frame.id) is frame else None
        if gate is not None and gate.expires_at is not None and gate.expires_at <= now:
            if gate.resumes:
                over: RunRecord = {"do": "answer", "gate": {"id": gate.id}, "choice": "", "at": now}
                await loop.env.recorder.record(over, kind="answer", label="")
                continue
            words = f"no one answered {gate.node} in time"
            failure = RunFailure(node=gate.node, code=GATE_EXPIRED, message=words, permanent=True)
            routes: Routes = routes_after_failure(frame.plan.exits, frame.values)
            await loop.record_route(frame, routes, failure)


def _check_answers(run: Run, answers: Sequence[Answer], now: float) -> None:
    """Raise GateRefused for the first answer that is not accepted."""
    gates = {gate.id: gate for gate in run.open_gates()}
    answered = set(run.answered)
    for answer in answers:
        gate = gates.pop(answer.gate, None)
        if gate is None:
            status = "already_answered" if answer.gate in answered else "unknown"
            raise GateRefused(status, f"gate {answer.gate} is not open: {status.replace('_', ' ')}")
        if gate.expires_at is not None and gate.expires_at <= now:
            raise GateRefused("expired", f"gate {gate.id} has expired")
        answered.add(gate.id)
        if gate.options and answer.choice not in gate.options:
            offered = ", ".join(gate.options)
            raise GateRefused("invalid_choice", f"gate {gate.id} takes {offered}, not {answer.choice!r}")
        if answer.choice in gate.worded and not answer.note.strip():
            raise GateRefused("invalid_choice", f"gate {gate.id} takes {answer.choice!r} with words only")


def _trusted(base: State) -> State:
    """An outcome's state as it is; any other mapping checked and copied."""
    return base if isinstance(base, MappingProxyType) else freeze_update(base, "the base state")


def _failure_outside(error: Exception) -> RunFailure:
    """An error outside the graph: of the log, the listener or the engine."""
    code = getattr(error, "code", "internal")
    return RunFailure(node="", code=str(code), message=str(error), exception=error)


def _leaf(error: BaseException) -> BaseException:
    """The first single error inside the exception groups of parallel branches."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
