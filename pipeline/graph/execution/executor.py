"""The engine's door: run a graph, or resume a run from its records.

The executor owns traversal and state, nothing else (seed 2): it calls no model, runs no tool, judges
nothing, and knows no session. It swallows no cancellation from outside.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from types import MappingProxyType
from typing import Any, Final, Generic

from pipeline.domain.clock import Clock, SystemClock
from pipeline.domain.errors import GraphError
from pipeline.domain.ids import new_id
from pipeline.graph.definition.decisions import ContextT, State, StateT
from pipeline.graph.definition.frozen_json import freeze_update
from pipeline.graph.definition.merging import RESERVED
from pipeline.graph.definition.ports import Decider, PhaseHook, RunLog
from pipeline.graph.definition.spec import GraphSpec
from pipeline.graph.execution.control import RunAborted, RunControl
from pipeline.graph.execution.edge_selection import Asking, Routes, routes_after_failure
from pipeline.graph.execution.environment import RunEnvironment, RunStopped
from pipeline.graph.execution.run_loop import RunLoop
from pipeline.graph.run.events import Listener, RunCompleted
from pipeline.graph.run.outcome import GATE_EXPIRED, Answer, Failure, RunOutcome, RunStatus, StopReason
from pipeline.graph.run.recorder import FIRST_SNAPSHOT, RunRecorder
from pipeline.graph.run.records import GateRefused, Head, RawRecord, Record, RunEnded
from pipeline.graph.run.replay import replay, seeded
from pipeline.graph.run.state import Run

_NEVER: Final = nullcontext()
"""In the place of a deadline."""
NOTHING: Final[State] = MappingProxyType({})


class Executor(Generic[ContextT, StateT]):
    """Runs one graph. Keeps nothing between runs, so one executor serves many threads at once."""

    def __init__(
        self,
        graph: GraphSpec[ContextT, StateT],
        *,
        clock: Clock | None = None,
        decider: Decider | None = None,
        phase: PhaseHook[ContextT] | None = None,
        chance: Callable[[], float] = random.random,
        first_snapshot: int = FIRST_SNAPSHOT,
    ) -> None:
        """`first_snapshot` is the number of records before the first one; see `recorder`."""
        self._graph = graph
        self._clock = clock or SystemClock()
        self._decider = decider
        self._phase = phase
        self._chance = chance
        self._first_snapshot = first_snapshot

    async def run(
        self,
        inputs: Mapping[str, Any],
        context: ContextT,
        *,
        base: State = NOTHING,
        entry: str = "",
        run_id: str = "",
        listener: Listener | None = None,
        log: RunLog | None = None,
        control: RunControl | None = None,
    ) -> RunOutcome:
        """Walk the graph until it ends, pauses or fails.

        `inputs` go into the state and on record. `base` is state from before this run that is not recorded
        again, as an earlier outcome's `state`; resuming needs the same one. A read-only view is taken for
        one of these and not copied; anything else is. `entry` names an entry point.
        A node's failure is in the outcome. Raises GraphError for inputs that are not plain data or an
        unknown entry, and whatever the log or the listener raises.
        """
        graph = self._graph
        if entry and entry not in graph.entry_points:
            raise GraphError(f"graph {graph.name} has no entry point {entry}")
        node = graph.entry_points[entry] if entry else graph.entry
        frozen = freeze_update(inputs, "the inputs")
        if not RESERVED.isdisjoint(frozen):
            key = min(RESERVED & frozen.keys())
            raise GraphError(f"the inputs have the key {key}, which only the engine writes")
        values = seeded(graph, _trusted(base), frozen)
        run = Run.begin(run_id or new_id("run"), graph, values, node)
        head: Head = {
            "run": run.id,
            "graph": graph.name,
            "signature": graph.signature,
            "entry": node if entry else "",
            "inputs": frozen,
        }
        recorder = RunRecorder(run, head, log, listener, self._first_snapshot)
        return await self._conduct(run, recorder, context, control or RunControl(), ())

    async def resume(
        self,
        records: Sequence[RawRecord],
        context: ContextT,
        *,
        base: State = NOTHING,
        answers: Sequence[Answer] = (),
        force: bool = False,
        listener: Listener | None = None,
        log: RunLog | None = None,
        control: RunControl | None = None,
    ) -> RunOutcome:
        """Go on with a run where its records end: finished nodes are not run again.

        `answers` answer its open gates. Raises RunUnreadable, GraphChanged (unless `force`), RunEnded, and
        GateRefused for an answer that is not taken, in which case nothing has happened; and as `run`.
        """
        replayed = replay(self._graph, records, _trusted(base), force=force)
        run = replayed.run
        if run.ended:
            raise RunEnded(f"run {run.id} is over and cannot be resumed")
        _check_answers(run, answers, self._clock.now())
        recorder = RunRecorder(run, replayed.head, log, listener, self._first_snapshot)
        kept = replayed.kept if replayed.void else None
        return await self._conduct(run, recorder, context, control or RunControl(), answers, kept)

    def interrupted(self, records: Sequence[RawRecord]) -> RunOutcome:
        """How the run behind `records` stands, as if it had been cut off there: nothing is run or written.

        Raises RunUnreadable and GraphChanged, as `resume`.
        """
        run = replay(self._graph, records, NOTHING).run
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
            nodes=MappingProxyType(run.diagnostics()),
            effects=run.open_effects(),
        )

    async def _conduct(
        self,
        run: Run,
        recorder: RunRecorder,
        context: ContextT,
        control: RunControl,
        answers: Sequence[Answer],
        kept: int | None = None,
    ) -> RunOutcome:
        """One call, from the first node to exactly one completion event.

        `kept` is how many records of a resumed run count, when those behind them do not.
        """
        limits = self._graph.limits
        around = RunEnvironment(
            run=run,
            context=context,
            limits=limits,
            clock=self._clock,
            asking=Asking(
                decider=self._decider, context=context, clock=self._clock, seconds=limits.decide_seconds
            ),
            chance=self._chance,
            phase=self._phase,
            recorder=recorder,
            control=control,
            over_at=None if limits.max_seconds is None else self._clock.monotonic() + limits.max_seconds,
        )
        walk = RunLoop(around)
        try:
            if kept is not None:
                recorder.write({"do": "resume", "kept": kept}, "resume", "")
            status, reason, error = await self._drive(walk, control, answers)
            await _close(walk, status, reason)
        except BaseException as caught:  # noqa: BLE001 - one completion event, then it goes on its way
            recorder.cut_off({} if isinstance(caught, Exception) else walk.attempts.kept())
            cause = _leaf(caught)
            # Whatever the listener makes of it, what ended the call is what goes on.
            with contextlib.suppress(Exception):
                await recorder.emit(RunCompleted(_cut_off(walk, cause)))
            raise cause from None
        outcome = _outcome(walk, status, reason, error)
        await recorder.emit(RunCompleted(outcome))
        return outcome

    async def _drive(
        self, walk: RunLoop, control: RunControl, answers: Sequence[Answer]
    ) -> tuple[RunStatus, StopReason, Failure | None]:
        run, seconds = walk.run, walk.around.limits.max_seconds
        deadline = _NEVER if seconds is None else self._clock.timeout(seconds)
        try:
            with control.guard():
                async with deadline:
                    await _take_answers(walk, answers)
                    await walk.drive(run.root)
                    while not (run.root.at_rest or control.pause_requested or run.open_gates()):
                        await walk.drive(run.root)  # The gate that they halted for is gone.
        except BaseException as caught:  # noqa: BLE001 - sorted out here, and raised again unless it is ours
            cause = _leaf(caught)
            timed_out = isinstance(deadline, asyncio.Timeout) and deadline.expired()
            timed_out = timed_out and isinstance(cause, TimeoutError)
            if run.root.at_rest and (timed_out or isinstance(cause, RunAborted)):
                return _verdict(walk)  # It came too late.
            if isinstance(cause, RunAborted):
                return "cancelled", "aborted", None
            if timed_out:
                words = f"the run took longer than {seconds:g} seconds"
                return "failed", "timeout", Failure(node="", code="timeout", message=words)
            if isinstance(cause, RunStopped):
                return "failed", cause.reason, Failure(node="", code=cause.reason, message=str(cause))
            raise cause from None
        return _verdict(walk)


def _cut_off(walk: RunLoop, cause: BaseException) -> RunOutcome:
    """How a call ends that something outside of the graph has ended."""
    if isinstance(cause, Exception):
        return _outcome(walk, "failed", "error", _failure_outside(cause))
    if walk.around.recorder.finished:
        return _outcome(walk, *_verdict(walk))  # It came too late: the run is on record as over.
    return _outcome(walk, "cancelled", "aborted", None)


def _verdict(walk: RunLoop) -> tuple[RunStatus, StopReason, Failure | None]:
    """How a run stands that has come to rest by itself."""
    root = walk.run.root
    if root.status == "ended":
        return "completed", root.end_reason, None
    if root.status == "failed":
        failure = root.failure
        reason: StopReason = (
            "no_terminal" if failure is not None and failure.code == "no_terminal" else "error"
        )
        return "failed", reason, failure if failure is None else walk.raised.get(failure, failure)
    if walk.run.open_gates() and not walk.around.control.pause_requested:
        return "paused", "waiting_for_user", None
    return "paused", "pause_requested", None


async def _close(walk: RunLoop, status: RunStatus, reason: StopReason) -> None:
    """The records that end the call, made durable."""
    recorder = walk.around.recorder
    if status in ("completed", "failed"):
        kept = walk.attempts.kept()
        if kept:
            await recorder.record({"do": "cancel", "kept": kept}, kind="cancel", label="")
        await recorder.finish({"do": "end", "status": status, "reason": reason})
        return
    if status == "cancelled":
        await recorder.record({"do": "cancel", "kept": walk.attempts.kept()}, kind="cancel", label="")
    else:
        await recorder.record({"do": "pause", "reason": reason}, kind="pause", label="")
    await recorder.barrier()


def _outcome(walk: RunLoop, status: RunStatus, reason: StopReason, error: Failure | None) -> RunOutcome:
    run = walk.run
    failures = tuple(walk.raised.get(failure, failure) for failure in run.failures)
    troubled = bool(failures or run.retries)
    return RunOutcome(
        run_id=run.id,
        status=status,
        stop_reason=reason,
        quality="failed" if status in ("failed", "cancelled") else "degraded" if troubled else "clean",
        state=MappingProxyType(run.root.values),
        path=tuple(run.path),
        error=error,
        gates=run.open_gates(),
        retries=run.retries,
        failures=failures,
        nodes=MappingProxyType(run.diagnostics()),
        effects=run.open_effects(),
    )


async def _take_answers(walk: RunLoop, answers: Sequence[Answer]) -> None:
    """Put the answers on record, and fail the nodes whose gates have expired."""
    for answer in answers:
        record: Record = {"do": "answer", "gate": {"id": answer.gate}, "choice": answer.choice}
        if answer.note:
            record["note"] = answer.note
        if answer.by:
            record["by"] = answer.by
        await walk.around.recorder.record(record, kind="answer", label="")
    now = walk.around.clock.now()
    for frame in tuple(walk.run.paused_frames()):
        # A branch that has failed may have taken the others with it.
        gate = frame.gate if walk.run.frames.get(frame.id) is frame else None
        if gate is not None and gate.expires_at is not None and gate.expires_at <= now:
            words = f"nobody answered {gate.node} in time"
            failure = Failure(node=gate.node, code=GATE_EXPIRED, message=words, permanent=True)
            ways: Routes = routes_after_failure(frame.plan.exits, frame.values)
            await walk.record_route(frame, ways, failure)


def _check_answers(run: Run, answers: Sequence[Answer], now: float) -> None:
    """Raise GateRefused for the first answer that cannot be taken."""
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


def _trusted(base: State) -> State:
    """An outcome's own state as it is; anything else is checked and copied."""
    return base if isinstance(base, MappingProxyType) else freeze_update(base, "the base state")


def _failure_outside(error: Exception) -> Failure:
    """What went wrong around the graph: the log, the listener, the engine itself."""
    code = getattr(error, "code", "internal")
    return Failure(node="", code=str(code), message=str(error), exception=error)


def _leaf(error: BaseException) -> BaseException:
    """The first single error inside the groups that parallel branches make of it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
