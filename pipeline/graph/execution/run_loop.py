"""One `run` or `resume` call on its way: the ten-step loop of seed 2, for each line of execution.

At each boundary: halt if asked to, check the limits, skip or visit the node, take its update, find the ways
out, record the step, move on. Everything that happens is a record first; `applying` makes it so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from pipeline.domain.errors import GraphError
from pipeline.graph.definition.decisions import Next, State
from pipeline.graph.definition.elements import FanOut
from pipeline.graph.definition.merging import ANSWERS
from pipeline.graph.execution.edge_selection import Routes, routes_after_failure
from pipeline.graph.execution.environment import RunEnvironment, RunStopped
from pipeline.graph.execution.fast_path import is_ordinary, ordinary_step
from pipeline.graph.execution.node_attempts import Attempts
from pipeline.graph.execution.node_visit import (
    NodeExecution,
    check_complete,
    failure_of,
    missing_reads,
    view_of,
)
from pipeline.graph.execution.routing import (
    gate_of,
    phase_update,
    routes_along_edges,
    routes_by_question,
    routes_for,
    step_record,
    write_routes,
)
from pipeline.graph.run.apply import given_back, values_after, values_after_failure
from pipeline.graph.run.events import (
    EdgeConditionError,
    EdgeTraversed,
    GateOpened,
    Listener,
    NodeCompleted,
    NodeStarted,
)
from pipeline.graph.run.frames import NO_INPUTS, Frame
from pipeline.graph.run.outcome import Failure, Gate
from pipeline.graph.run.records import Record, about, plain_gate


class RunLoop:
    """The moving parts of one call. `drive` returns when its frame is at rest, paused or halted."""

    def __init__(self, around: RunEnvironment) -> None:
        self.around = around
        self.run = around.run
        self.attempts = Attempts(around)
        self.raised: dict[Failure, Failure] = {}
        """Failures as they are on record -> the same with what was raised."""
        self._recorder = around.recorder
        inside = sum(frame.status == "inside" for frame in around.run.frames.values())
        self._begun = around.run.steps + inside
        self._entered: dict[str, float] = {}

    async def drive(self, frame: Frame) -> None:
        """Move `frame` on as far as it goes."""
        while self.run.frames.get(frame.id) is frame:
            match frame.status:
                case "ready":
                    # The first node of every branch begins, and before any second one, so that the order of
                    # declaration does not decide what a gate halts.
                    if frame.parent is not None and frame.last:
                        await asyncio.sleep(0)
                    if self._halts(frame):
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

    def _halts(self, frame: Frame) -> bool:
        if self.around.control.pause_requested or (self.run.halting and frame.last):
            return True
        return frame.parent is not None and self.run.frames.get(frame.id) is not frame

    def _begin(self, frame: Frame) -> None:
        """Count a visit. Raises RunStopped or RunAborted when there is to be none."""
        around = self.around
        if around.control.abort_requested or around.over_at is not None:
            around.raise_if_cut_off()
        if frame.consecutive >= around.limits.max_consecutive:
            raise RunStopped("max_loops", f"node {frame.label} ran {frame.consecutive} times in a row")
        if self._begun >= around.limits.max_steps:
            raise RunStopped("max_steps", f"the run has made {self._begun} steps")
        self._begun += 1

    async def _boundary(self, frame: Frame) -> None:
        self._begin(frame)
        around = self.around
        spec, visits = frame.plan.spec, self.run.visits(frame.label)
        if spec.max_visits and visits >= spec.max_visits:
            await self._complete(frame, NodeExecution(NO_INPUTS), skipped=True)
            return
        if is_ordinary(around, frame):
            visited = await ordinary_step(around, self.attempts, frame, visits + 1)
            if visited is not None and self.run.frames.get(frame.id) is frame:
                await self._complete(frame, visited, visit=visits + 1)
            return
        if self._recorder.listener is not None:
            await self._recorder.listener(NodeStarted(frame.label))
            if self.run.frames.get(frame.id) is not frame:
                return  # A sibling failed meanwhile, and took this branch with it.
        if spec.subgraph is not None:
            await self._recorder.record(
                about(frame.id, frame.node, {"do": "enter"}), kind="node_start", label=frame.label
            )
            self._entered[frame.children[frame.node].id] = self.around.clock.monotonic()
            return
        view = view_of(frame, revisited=visits > 0)
        visited = await self.attempts.visit(frame, spec, view, visits + 1)
        if self.run.frames.get(frame.id) is frame:
            await self._complete(frame, visited, visit=visits + 1)

    # -- the end of a visit -------------------------------------------------------------------

    async def _complete(
        self, frame: Frame, visited: NodeExecution, *, visit: int = 0, skipped: bool = False
    ) -> None:
        """Record the step: where it leads is found on the state with the update in it."""
        try:
            values, ways = await self._led(frame, visited, skipped=skipped)
            if self.run.frames.get(frame.id) is not frame:
                return  # The decider was asked meanwhile.
            phase, gate = NO_INPUTS, None
            if visited.failure is None:
                phase = phase_update(self.around, frame, ways, visited.update, values)
                gate = None if skipped else gate_of(self.around, frame, visited.decision, visit)
        except Exception as error:  # noqa: BLE001 - routes and hooks are a user's code: this node failed
            failure = failure_of(frame.label, error, visited.attempts)
            values, ways = self._after_failure(frame, visited, failure)
            phase, gate = NO_INPUTS, None
        record = step_record(frame, visited, ways)
        if phase:
            record["phase"] = phase
        if skipped:
            record["skipped"] = True
        if gate is not None:
            record["gate"] = plain_gate(gate)
        source, prefix = frame.label, frame.prefix
        self._recorder.write(record, "node_complete" if gate is None else "pause", source, values)
        if self._recorder.listener is not None:
            decision = record.get("decision", "next")
            completed = NodeCompleted(
                source, decision, MappingProxyType(visited.update), visited.seconds, visited.failure, skipped
            )
            await self._tell(self._recorder.listener, source, prefix, ways, completed, gate)

    async def _led(
        self, frame: Frame, visited: NodeExecution, *, skipped: bool
    ) -> tuple[Mapping[str, Any], Routes]:
        """The state behind the visit, and where it leads."""
        if visited.failure is not None:
            return self._after_failure(frame, visited, visited.failure)
        values = self._values(frame, visited, skipped=skipped)
        ways = routes_for(frame, visited.decision, visited.update, values, skipped=skipped)
        if ways.undecided:
            ways = await routes_by_question(self.around, frame, ways, visited.update, values)
        return values, ways

    def _after_failure(
        self, frame: Frame, visited: NodeExecution, failure: Failure
    ) -> tuple[Mapping[str, Any], Routes]:
        visited.update, visited.decision, visited.failure = NO_INPUTS, Next(), failure
        self.raised[failure] = failure
        values = values_after_failure(self.run, frame)
        return values, routes_after_failure(frame.plan.exits, values)

    async def _tell(
        self,
        listener: Listener,
        source: str,
        prefix: str,
        ways: Routes,
        completed: NodeCompleted | None = None,
        gate: Gate | None = None,
    ) -> None:
        if self._recorder.marks:
            await self._recorder.tell_marks()
        if completed is not None:
            await listener(completed)
        if gate is not None:
            await listener(GateOpened(gate))
        for target, problem in ways.problems:
            await listener(EdgeConditionError(source, prefix + target, problem))
        for target in ways.targets:
            await listener(EdgeTraversed(source, prefix + target, ways.reasoning))
        if self.run.joined:
            await self._recorder.tell_joins(self.run)

    def _values(self, frame: Frame, visited: NodeExecution, *, skipped: bool) -> Mapping[str, Any]:
        if skipped:
            return frame.values
        # A subgraph's update is what it has written already, channel by channel.
        update = NO_INPUTS if frame.status == "inside" else visited.update
        return values_after(self.run, frame, update)

    # -- gates, subgraphs, branches -----------------------------------------------------------

    async def _reroute(self, frame: Frame) -> None:
        """The gate of this frame was answered: find the way out, with the answer in the state."""
        answer = frame.values.get(ANSWERS, NO_INPUTS).get(frame.label, NO_INPUTS)
        failure = None
        phase = NO_INPUTS
        try:
            ways = routes_along_edges(frame, answer, frame.values)
            if ways.undecided:
                ways = await routes_by_question(self.around, frame, ways, answer, frame.values)
                if self.run.frames.get(frame.id) is not frame:
                    return
            phase = phase_update(self.around, frame, ways, answer, frame.values)
        except Exception as error:  # noqa: BLE001 - as for a step
            failure = failure_of(frame.label, error, 1)
            ways = routes_after_failure(frame.plan.exits, frame.values)
        await self.record_route(frame, ways, failure, phase)

    async def record_route(
        self, frame: Frame, ways: Routes, failure: Failure | None, phase: State = NO_INPUTS
    ) -> None:
        """Record where a frame goes that no longer waits for its gate."""
        prefix, source = frame.prefix, frame.label
        record = about(frame.id, frame.node, {"do": "route"})
        write_routes(record, ways)
        if phase:
            record["phase"] = phase
        if failure is not None:
            record["error"] = failure.plain()
            self.raised[failure] = failure
        self._recorder.write(record, "answer", source)
        if self._recorder.listener is not None:
            await self._tell(self._recorder.listener, source, prefix, ways)

    async def _inside(self, frame: Frame) -> bool:
        """Drive the subgraph of this frame's node; False when it is not at rest yet."""
        child = frame.children[frame.node]
        failure = await self._drive_in_time(child, frame.plan.spec.timeout_s)
        if failure is None and not child.at_rest:
            return False
        if child.failure is not None:
            failure = self.raised.get(child.failure, child.failure)
        visited = NodeExecution(NO_INPUTS, failure=failure)
        visited.seconds = self.around.clock.monotonic() - self._entered.pop(
            child.id, self.around.clock.monotonic()
        )
        reads = frame.plan.spec.reads
        visited.missing = () if reads is None else missing_reads(reads, {**frame.values, **frame.inputs})
        if visited.failure is None:
            visited.update = self._surfaced(frame, visited)
        await self._complete(frame, visited, visit=self.run.visits(frame.label) + 1)
        return True

    async def _drive_in_time(self, child: Frame, seconds: float | None) -> Failure | None:
        """Drive the inside of a node. The node's failure, when its deadline passes before the end."""
        deadline = self.around.clock.timeout(seconds)
        try:
            async with deadline:
                await self.drive(child)
        except TimeoutError:
            if not deadline.expired():
                raise
            if not child.at_rest:
                label = child.prefix.removesuffix(".")
                words = f"node {label} took longer than {seconds:g} seconds"
                return Failure(node=label, code="timeout", message=words)
        return None

    def _surfaced(self, frame: Frame, visited: NodeExecution) -> State:
        """What the subgraph has written into the state around it, as the output of its node."""
        child = frame.children[frame.node]
        keys = dict.fromkeys(key for update in given_back(frame, child) for key in update)
        try:
            after = values_after(self.run, frame, NO_INPUTS)
            output = {key: after[key] for key in keys if key in after}
            check_complete(frame.label, frame.plan.spec, output)
        except GraphError as error:
            visited.failure = failure_of(frame.label, error, 1)
            return NO_INPUTS
        return output

    async def _branches(self, frame: Frame) -> None:
        """Drive the branches of a split frame at once, until each is at rest or waits."""
        policy, siblings = frame.policy, _Siblings()
        async with asyncio.TaskGroup() as group:
            for child in tuple(frame.children.values()):
                if not child.at_rest and child.status != "paused":
                    siblings.tasks.append(group.create_task(self._branch(child, policy, siblings)))
        if siblings.problem is not None:
            raise siblings.problem

    async def _branch(self, child: Frame, policy: FanOut, siblings: _Siblings) -> None:
        try:
            await self._branch_in_time(child, policy.branch_timeout_s)
        except Exception as error:  # noqa: BLE001 - raised again once all branches are gone
            siblings.problem = siblings.problem or error
            siblings.cancel()
        if child.status == "failed" and policy.on_failure == "fail_all":
            siblings.cancel()

    async def _branch_in_time(self, child: Frame, seconds: float | None) -> None:
        deadline = self.around.clock.timeout(seconds)
        try:
            async with deadline:
                await self.drive(child)
        except TimeoutError:
            if not deadline.expired():
                raise
            if self.run.frames.get(child.id) is not child or child.at_rest:
                return
            words = f"branch {child.name} took longer than {seconds:g} seconds"
            failure = Failure(node=child.prefix + child.name, code="timeout", message=words)
            record: Record = {"do": "fail", "frame": child.id, "error": failure.plain()}
            await self._recorder.record(record, kind="node_complete", label=failure.node)
            await self._recorder.tell_joins(self.run)


class _Siblings:
    """The branches of one fan-out in progress.

    What goes wrong in one is kept from the TaskGroup: on Python 3.11 a group that sees an error leaves its
    parent's task marked as being cancelled, which the run's deadline and an abort would take for another
    cancellation; and a cancellation from outside that comes meanwhile would be lost.
    """

    def __init__(self) -> None:
        self.tasks: list[asyncio.Task[None]] = []
        self.problem: Exception | None = None

    def cancel(self) -> None:
        """Cancel the others, once."""
        while self.tasks:
            task = self.tasks.pop()
            if task is not asyncio.current_task():
                task.cancel()
