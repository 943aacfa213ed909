"""One `run` or `resume` call on its way: the ten-step loop of seed 2, for each line of execution.

At each boundary: halt if asked to, check the limits, skip or visit the node, take its update, find the ways
out, record the step, move on. Everything that happens is a record first; `Run.apply` makes it so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pipeline.domain.clock import Clock
from pipeline.domain.errors import GraphError
from pipeline.graph.decisions import (
    Continue,
    End,
    Goto,
    Next,
    NodeDecision,
    Pause,
    Revise,
    State,
    decision_name,
)
from pipeline.graph.edges import Asking, Ways, ways_after_failure, ways_after_success
from pipeline.graph.elements import END, Limits
from pipeline.graph.events import (
    EdgeConditionError,
    EdgeTraversed,
    GateOpened,
    NodeCompleted,
    NodeRetried,
    NodeStarted,
)
from pipeline.graph.frames import NO_INPUTS, Frame
from pipeline.graph.merging import ANSWERS
from pipeline.graph.outcome import Failure, Gate, StopReason
from pipeline.graph.plain import freeze_update
from pipeline.graph.ports import PhaseHook, PhaseTransition
from pipeline.graph.recorder import RunRecorder
from pipeline.graph.records import Record, plain_gate
from pipeline.graph.run_state import Run, given_back
from pipeline.graph.step import Step, enter_step, leave_step
from pipeline.graph.structure import NodeSpec
from pipeline.graph.validation import fan_out_problem
from pipeline.graph.visit import Visited, check_writes, failure_of, missing_reads, take, view_of


class RunStopped(Exception):
    """A limit of the run was reached; `reason` is its stop reason."""

    def __init__(self, reason: StopReason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class _SplitOver(Exception):
    pass


@dataclass(slots=True, kw_only=True)
class Walk:
    """The moving parts of one call. `drive` returns when its frame is at rest, paused or halted."""

    run: Run
    context: Any
    limits: Limits
    clock: Clock
    asking: Asking
    chance: Callable[[], float]
    phase: PhaseHook[Any] | None
    recorder: RunRecorder
    pause_requested: Callable[[], bool]
    gate_opened: bool = False
    """A gate was opened in this call: other frames halt at their next boundary."""
    begun: int = 0
    """Visits begun, those in progress included."""
    steps: dict[str, Step] = field(default_factory=dict)
    """Attempts in progress, by frame."""
    entered: dict[str, float] = field(default_factory=dict)
    """When a subgraph began, by its frame."""
    raised: dict[Failure, Failure] = field(default_factory=dict)
    """Failures as they are on record -> the same with what was raised."""

    async def drive(self, frame: Frame) -> None:
        """Move `frame` on as far as it goes."""
        while self.run.frames.get(frame.id) is frame:
            match frame.status:
                case "ready":
                    if self._must_halt(frame):
                        return
                    await self._boundary(frame)
                case "inside":
                    if not await self._inside(frame):
                        return
                case "split":
                    await self._branches(frame)
                    if frame.status == "split":
                        return
                case "answered":
                    await self._reroute(frame)
                case _:
                    return

    def kept(self) -> dict[str, Any]:
        """What the attempts in progress have kept, by frame."""
        return {
            frame_id: step.kept
            for frame_id, step in self.steps.items()
            if step.kept and self.run.frames.get(frame_id) is step.frame
        }

    # -- the boundary before a node -----------------------------------------------------------

    def _must_halt(self, frame: Frame) -> bool:
        if self.pause_requested():
            return True
        # The first node of every branch begins, so that the order of declaration does not matter.
        return self.gate_opened and bool(frame.last)

    async def _boundary(self, frame: Frame) -> None:
        if frame.consecutive >= self.limits.max_consecutive:
            raise RunStopped("max_loops", f"node {frame.label} ran {frame.consecutive} times in a row")
        if self.begun >= self.limits.max_steps:
            raise RunStopped("max_steps", f"the run has made {self.begun} steps")
        self.begun += 1
        spec = frame.graph.specs[frame.node]
        visits = self.run.visits(frame.label)
        if spec.max_visits and visits >= spec.max_visits:
            await self._complete(frame, Visited(), skipped=True)
            return
        await self.recorder.emit(NodeStarted(frame.label))
        if spec.subgraph is not None:
            await self.recorder.record(_about(frame, {"do": "enter"}), kind="node_start", label=frame.label)
            self.entered[frame.children[frame.node].id] = self.clock.monotonic()
            return
        view = view_of(frame, revisited=visits > 0)
        visited = await self._attempts(frame, spec, view, visits + 1)
        if self.run.frames.get(frame.id) is frame:
            await self._complete(frame, visited, visit=visits + 1)

    # -- attempts -----------------------------------------------------------------------------

    async def _attempts(self, frame: Frame, spec: NodeSpec[Any, Any], view: State, visit: int) -> Visited:
        attempt, seconds = 0, 0.0
        while True:
            attempt += 1
            began = self.clock.monotonic()
            visited = await self._attempt(frame, spec, view, visit, attempt)
            seconds += self.clock.monotonic() - began
            failure = visited.failure
            if failure is None or attempt >= spec.attempts or not _worth_another(spec, failure):
                break
            delay = spec.retry.delay(attempt, self.chance())
            record: Record = {"do": "retry", "attempts": attempt, "error": failure.plain()}
            await self.recorder.record(_about(frame, record), kind="retry", label=frame.label)
            await self.recorder.emit(NodeRetried(frame.label, attempt, delay, failure))
            await self.clock.sleep(delay)
        visited.attempts, visited.seconds = attempt, seconds
        visited.missing = missing_reads(frame, view)
        return visited

    async def _attempt(
        self, frame: Frame, spec: NodeSpec[Any, Any], view: State, visit: int, attempt: int
    ) -> Visited:
        assert spec.run is not None  # noqa: S101 - validated; for the type checker
        step = Step(run_id=self.run.id, frame=frame, visit=visit, attempt=attempt, recorder=self.recorder)
        self.steps[frame.id] = step
        token = enter_step(step)
        deadline = None
        try:
            if spec.timeout_s is None:
                result = await spec.run(view, self.context)
            else:
                async with self.clock.timeout(spec.timeout_s) as deadline:
                    result = await spec.run(view, self.context)
            update = take(frame, spec, result)
        except Exception as error:  # noqa: BLE001 - whatever a node raises is that node's failure
            self.recorder.raise_failure()
            self.steps.pop(frame.id, None)
            if deadline is not None and deadline.expired():
                words = f"node {frame.label} took longer than {spec.timeout_s:g} seconds"
                failure = Failure(node=frame.label, code="timeout", message=words, attempts=attempt)
            else:
                failure = failure_of(frame.label, error, attempt)
            return Visited(failure=failure)
        finally:
            leave_step(token)
        self.steps.pop(frame.id, None)
        if result.error:
            failure = Failure(
                node=frame.label,
                code="node_error",
                message=result.error,
                attempts=attempt,
                permanent=result.permanent,
            )
            return Visited(failure=failure)
        return Visited(update=update, decision=result.decision)

    # -- the end of a visit -------------------------------------------------------------------

    async def _complete(
        self, frame: Frame, visited: Visited, *, visit: int = 0, skipped: bool = False
    ) -> None:
        """Record the step: where it leads is found on the state with the update in it."""
        values: dict[str, Any] | None = None
        ways = Ways()
        phase = NO_INPUTS
        if visited.failure is None:
            try:
                values = self._values(frame, visited, skipped=skipped)
                ways = await self._ways(frame, visited.decision, visited.update, values)
                phase = self._phase(frame, ways, visited.update, values)
            except GraphError as error:
                visited.failure = failure_of(frame.label, error, visited.attempts)
        if visited.failure is not None:
            visited.update, visited.decision = NO_INPUTS, Next()
            values = self.run.values_after_failure(frame)
            ways = ways_after_failure(frame.graph.exits[frame.node], values)
            self.raised[visited.failure] = visited.failure
        gate = None if visited.failure is not None or skipped else self._gate(frame, visited.decision, visit)
        await self._record_step(frame, visited, ways, gate, phase, values, skipped=skipped)

    def _values(self, frame: Frame, visited: Visited, *, skipped: bool) -> dict[str, Any]:
        if skipped:
            return dict(frame.values)
        # A subgraph's update is what it has written already, channel by channel.
        update = NO_INPUTS if frame.status == "inside" else visited.update
        return self.run.values_after(frame, update)

    async def _record_step(
        self,
        frame: Frame,
        visited: Visited,
        ways: Ways,
        gate: Gate | None,
        phase: Any,
        values: dict[str, Any] | None,
        *,
        skipped: bool,
    ) -> None:
        label, node = frame.label, frame.node
        decision = decision_name(visited.decision)
        record = _step_record(frame, visited, ways, decision)
        if phase:
            record["phase"] = phase
        if skipped:
            record["skipped"] = True
        if gate is not None:
            record["gate"] = plain_gate(gate)
            record.pop("to", None)
            self.gate_opened = True
        await self.recorder.record(
            record, kind="node_complete" if gate is None else "pause", label=label, values=values
        )
        completed = NodeCompleted(label, decision, visited.update, visited.seconds, visited.failure, skipped)
        await self.recorder.emit(completed)
        if gate is not None:
            await self.recorder.emit(GateOpened(gate))
        else:
            await self._tell_ways(frame.prefix, node, ways)

    async def _tell_ways(self, prefix: str, node: str, ways: Ways) -> None:
        for target, problem in ways.problems:
            await self.recorder.emit(EdgeConditionError(prefix + node, prefix + target, problem))
        for target in ways.targets:
            await self.recorder.emit(EdgeTraversed(prefix + node, prefix + target, ways.reasoning))
        await self.recorder.tell_joins(self.run)

    async def _ways(self, frame: Frame, decision: NodeDecision, output: State, values: State) -> Ways:
        node = frame.node
        if node in frame.graph.terminals:
            return Ways()
        match decision:
            case Next():
                return await self._along_edges(frame, output, values)
            case Continue():
                return Ways(targets=(node,))
            case Goto(node=target):
                self._check_jump(frame, target)
                return Ways(targets=(target,))
            case Revise():
                reviser = frame.graph.specs[node].reviser
                if reviser is None:
                    raise GraphError(f"node {frame.label} asks for a revision and declares no reviser")
                return Ways(targets=(reviser,))
            case End() | Pause():
                return Ways()

    async def _along_edges(self, frame: Frame, output: State, values: State) -> Ways:
        if frame.node in frame.graph.pause_nodes and frame.status != "answered":
            return Ways()
        graph = frame.graph
        scope = {**values, **frame.inputs} if frame.inputs else values
        ways = await ways_after_success(
            graph.exits[frame.node], frame.label, output, scope, graph.goal, self.asking
        )
        if len(ways.targets) > 1 and graph.exits[frame.node].route is not None:
            problem = fan_out_problem(graph, frame.node, ways.targets)
            if problem:
                raise GraphError(problem)
        return ways

    def _check_jump(self, frame: Frame, target: str) -> None:
        graph, declared = frame.graph, frame.graph.specs[frame.node].goes_to
        if target != END and target not in graph.nodes:
            raise GraphError(
                f"graph {graph.name}: node {frame.label} jumps to {target}, which does not exist"
            )
        if declared is not None and target not in declared:
            raise GraphError(f"node {frame.label} jumps to {target}, not declared in goes_to")
        leaves = frame.kind == "branch" and target not in (END, frame.join)
        if leaves and target not in graph.joins.branch(frame.name, frame.join):
            raise GraphError(f"node {frame.label} jumps to {target}, out of its branch {frame.name}")

    def _phase(self, frame: Frame, ways: Ways, output: State, values: State) -> State:
        targets = tuple(target for target in ways.targets if target not in (END, frame.node))
        if self.phase is None or not targets:
            return NO_INPUTS
        transition = PhaseTransition(
            mode=frame.graph.conversation,
            source=frame.label,
            targets=targets,
            completed=tuple(self.run.path),
            outputs=output,
        )
        return freeze_update(self.phase(transition, values, self.context), "what the phase hook writes")

    def _gate(self, frame: Frame, decision: NodeDecision, visit: int) -> Gate | None:
        if isinstance(decision, Next) and frame.node in frame.graph.pause_nodes:
            decision = Pause()
        if not isinstance(decision, Pause):
            return None
        return Gate(
            id=f"{self.run.id}:{frame.id}/{frame.label}:{visit}",
            node=frame.label,
            prompt=decision.prompt,
            options=decision.options,
            expires_at=None if decision.expires_s is None else self.clock.now() + decision.expires_s,
        )

    # -- gates, subgraphs, branches -----------------------------------------------------------

    async def _reroute(self, frame: Frame) -> None:
        """The gate of this frame was answered: find the way out, with the answer in the state."""
        answer = frame.values.get(ANSWERS, NO_INPUTS).get(frame.label, NO_INPUTS)
        failure = None
        phase = NO_INPUTS
        try:
            ways = await self._along_edges(frame, answer, frame.values)
            phase = self._phase(frame, ways, answer, frame.values)
        except GraphError as error:
            failure = failure_of(frame.label, error, 1)
            ways = ways_after_failure(frame.graph.exits[frame.node], frame.values)
        await self.record_route(frame, ways, failure, phase)

    async def record_route(
        self, frame: Frame, ways: Ways, failure: Failure | None, phase: State = NO_INPUTS
    ) -> None:
        """Record where a frame goes that no longer waits for its gate."""
        prefix, node = frame.prefix, frame.node
        record = _about(frame, {"do": "route"})
        _put_ways(record, ways)
        if phase:
            record["phase"] = phase
        if failure is not None:
            record["error"] = failure.plain()
            self.raised[failure] = failure
        await self.recorder.record(record, kind="answer", label=frame.label)
        await self._tell_ways(prefix, node, ways)

    async def _inside(self, frame: Frame) -> bool:
        """Drive the subgraph of this frame's node; False when it is not at rest yet."""
        child = frame.children[frame.node]
        await self.drive(child)
        if not child.at_rest:
            return False
        visited = Visited(failure=child.failure)
        visited.seconds = self.clock.monotonic() - self.entered.pop(child.id, self.clock.monotonic())
        if visited.failure is None:
            visited.update = self._surfaced(frame, visited)
        await self._complete(frame, visited, visit=self.run.visits(frame.label) + 1)
        return True

    def _surfaced(self, frame: Frame, visited: Visited) -> State:
        """What the subgraph has written into the state around it, as the output of its node."""
        spec, child = frame.graph.specs[frame.node], frame.children[frame.node]
        keys = dict.fromkeys(key for update in given_back(frame, child) for key in update)
        try:
            after = self.run.values_after(frame, NO_INPUTS)
            output = {key: after[key] for key in keys if key in after}
            check_writes(frame.label, spec, output)
        except GraphError as error:
            visited.failure = failure_of(frame.label, error, 1)
            return NO_INPUTS
        return output

    async def _branches(self, frame: Frame) -> None:
        """Drive the branches of a split frame at once, until each is at rest or waits."""
        seconds = frame.policy.branch_timeout_s
        try:
            async with asyncio.TaskGroup() as group:
                for child in tuple(frame.children.values()):
                    if not child.at_rest and child.status != "paused":
                        group.create_task(self._branch(frame, child, seconds))
        except* _SplitOver:
            pass

    async def _branch(self, frame: Frame, child: Frame, seconds: float | None) -> None:
        deadline = self.clock.timeout(seconds)
        try:
            async with deadline:
                await self.drive(child)
        except TimeoutError:
            if not deadline.expired():
                raise
            words = f"branch {child.name} took longer than {seconds:g} seconds"
            failure = Failure(node=child.prefix + child.name, code="timeout", message=words)
            record: Record = {"do": "fail", "frame": child.id, "error": failure.plain()}
            await self.recorder.record(record, kind="node_complete", label=failure.node)
            await self.recorder.tell_joins(self.run)
        if frame.status != "split":
            raise _SplitOver


def _about(frame: Frame, record: Record) -> Record:
    record["node"] = frame.node
    if frame.id:
        record["frame"] = frame.id
    return record


def _step_record(frame: Frame, visited: Visited, ways: Ways, decision: str) -> Record:
    record: Record = {"do": "step", "node": frame.node}
    if frame.id:
        record["frame"] = frame.id
    if visited.update and frame.status != "inside":
        record["update"] = visited.update
    if decision != "next":
        record["decision"] = decision
    _put_ways(record, ways)
    if visited.seconds >= 0.0001:
        record["seconds"] = round(visited.seconds, 4)
    if visited.attempts > 1:
        record["attempts"] = visited.attempts
    if visited.missing:
        record["missing"] = visited.missing
    if visited.failure is not None:
        record["error"] = visited.failure.plain()
    return record


def _put_ways(record: Record, ways: Ways) -> None:
    if ways.targets:
        record["to"] = ways.targets
    if ways.inputs:
        record["inputs"] = ways.inputs
    if ways.problems:
        record["edge_errors"] = tuple(f"{target}: {problem}" for target, problem in ways.problems)


def _worth_another(spec: NodeSpec[Any, Any], failure: Failure) -> bool:
    if failure.permanent:
        return False
    error = failure.exception
    return spec.retry.covers(error) if isinstance(error, Exception) else True
