"""The main loop of one `run` or `resume` call, for each line of execution (frame).

At each node boundary: halt if requested, check the limits, skip or run the node, take its update, choose its
routes, record the step, move on. Every change is first a record; `run.apply` then changes the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from pipeline.graph.definition.decisions import Next, State
from pipeline.graph.definition.elements import FanOut
from pipeline.graph.definition.merging import ANSWERS
from pipeline.graph.execution.edge_selection import Routes, routes_after_failure
from pipeline.graph.execution.environment import RunEnvironment, RunStopped
from pipeline.graph.execution.fast_path import record_ordinary
from pipeline.graph.execution.held_back import HeldBack
from pipeline.graph.execution.node_attempts import Attempts, reported
from pipeline.graph.execution.node_visit import (
    NodeExecution,
    failure_of,
    missing_reads,
    take,
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
from pipeline.graph.execution.siblings import Siblings
from pipeline.graph.execution.step import enter_step, leave_step
from pipeline.graph.execution.surfacing import record_surfaced, surfaced
from pipeline.graph.run.apply import subgraph_updates, values_after, values_after_failure
from pipeline.graph.run.events import (
    EdgeConditionError,
    EdgeTraversed,
    GateOpened,
    Listener,
    NodeEntered,
    NodeLeft,
)
from pipeline.graph.run.frames import NO_INPUTS, Frame
from pipeline.graph.run.outcome import Gate, RunFailure
from pipeline.graph.run.records import RunRecord, about, plain_gate


class RunLoop:
    """The loop of one call. `drive` returns when its frame is at rest, paused or halted."""

    def __init__(self, env: RunEnvironment) -> None:
        self.env = env
        self.run = env.run
        self.attempts = Attempts(env)
        self.raised: dict[RunFailure, RunFailure] = {}
        """Recorded failure -> the same failure with its exception."""
        self.left = False
        """Nodes are left to a later call."""
        self._recorder = env.recorder
        self._begun = env.run.begun(outer_only=env.limits.outer_only)
        self.held_back = HeldBack(env)
        self._entered: dict[str, float] = {}

    async def drive(self, frame: Frame) -> None:  # noqa: C901 - one function: every call of a node passes it
        """Run the nodes of `frame` until it rests, waits or halts."""
        env, run, listener, attempts = self.env, self.run, self._recorder.listener, self.attempts
        wanted = self._recorder.wants_nodes
        while run.frames.get(frame.id) is frame:
            if frame.status != "ready":
                if not await self._between_nodes(frame):
                    return
                continue
            # The first node of every branch starts before any second node, so that the declaration order
            # does not decide what a gate halts.
            if frame.beside and frame.last:
                await asyncio.sleep(0)
            if env.control.pause_requested or (run.halting and frame.last and self.held_back.halts(frame)):
                return
            if run.deferred and self.held_back.waits(frame):
                return
            if frame.node in env.later:
                self.left = True
                return
            if run.frames.get(frame.id) is not frame:
                return
            execution = self._begin(frame)
            label, spec = frame.label, frame.plan.spec
            if spec.max_visits and execution > spec.max_visits:
                await self._complete(frame, NodeExecution(NO_INPUTS), skipped=True)
                continue
            if listener is not None and (wanted is None or wanted()):
                await listener(NodeEntered(label))
                if run.frames.get(frame.id) is not frame:
                    return  # A sibling failed meanwhile and ended this branch.
            if spec.run is None:
                await self._enter(frame)
                continue
            if frame.plan.sees_all and not frame.inputs:
                view: State = MappingProxyType(frame.values)
            else:
                view = view_of(frame, repeated=execution > 1)
            # Attempts before a crash count: a recorded retry is not repeated.
            executed = NodeExecution(NO_INPUTS, attempts=frame.attempts)
            again = True
            while again:
                executed.attempts += 1
                token = enter_step(partial(attempts.step, frame, execution, executed.attempts))
                began, failure = env.clock.monotonic(), None
                try:
                    call = spec.run(view, env.context)
                    result = await (call if spec.timeout_s is None else attempts.within(spec.timeout_s, call))
                    executed.update, executed.decision = take(frame, result), result.decision
                    if result.error:
                        failure = reported(frame, result, executed.attempts)
                except (Exception, asyncio.CancelledError) as raised:  # noqa: BLE001 - `failure` sorts them
                    failure = attempts.failure(frame, raised, executed.attempts)
                finally:
                    leave_step(token)
                executed.seconds += env.clock.monotonic() - began
                executed.failure = failure
                again = failure is not None and await attempts.tries_again(frame, failure, executed.attempts)
            if attempts.steps:
                attempts.end(frame)
            if run.frames.get(frame.id) is not frame:
                return
            if spec.reads:
                executed.missing = missing_reads(spec.reads, view)
            target = record_ordinary(env, frame, executed)
            if not target:
                await self._complete(frame, executed, execution=execution)
            elif listener is not None and (wanted is None or wanted()):
                await self._notify_ordinary(listener, label, frame.prefix + target, executed)

    async def _between_nodes(self, frame: Frame) -> bool:
        """Take the step of a frame that has no node to run; False when it rests or waits."""
        match frame.status:
            case "inside":
                return await self._inside(frame)
            case "split":
                await self._branches(frame)
                return frame.status != "split"
            case "answered":
                await self._reroute(frame)
                return True
            case _:
                return False

    def _begin(self, frame: Frame) -> int:
        """Count an execution; its number for the node, from 1. Raises RunStopped or RunAborted when none may
        start."""
        env = self.env
        if env.control.abort_requested or env.deadline_at is not None:
            env.raise_if_cut_off()
        if frame.consecutive >= env.limits.max_consecutive:
            raise RunStopped("max_loops", f"node {frame.label} ran {frame.consecutive} times in a row")
        if self._begun >= env.limits.max_steps:
            raise RunStopped("max_steps", f"the run has made {self._begun} steps")
        if not (env.limits.outer_only and frame.prefix):
            self._begun += 1
        totals = env.run.totals.get(frame.label)
        return 1 if totals is None else totals.executions + 1

    async def _enter(self, frame: Frame) -> None:
        """Begin the subgraph of the frame's node."""
        record = about(frame.id, frame.node, {"do": "enter"})
        await self._recorder.record(record, kind="node_start", label=frame.label)
        self._entered[frame.children[frame.node].id] = self.env.clock.monotonic()

    # -- the end of a node execution ----------------------------------------------------------

    async def _complete(
        self, frame: Frame, executed: NodeExecution, *, execution: int = 0, skipped: bool = False
    ) -> None:
        """Record the step. Its routes are chosen on the state that includes the update."""
        try:
            values, routes = await self._state_and_routes(frame, executed, skipped=skipped)
            if self.run.frames.get(frame.id) is not frame:
                return  # The frame ended while the decider was asked.
            phase, gate = NO_INPUTS, None
            if executed.failure is None:
                phase = phase_update(self.env, frame, routes, executed.update, values)
                gate = None if skipped else gate_of(self.env, frame, executed.decision, execution)
        except Exception as error:  # noqa: BLE001 - routes and hooks are user code: this node failed
            failure = failure_of(frame.label, error, executed.attempts)
            values, routes = self._after_failure(frame, executed, failure)
            phase, gate = NO_INPUTS, None
        record = step_record(frame, executed, routes)
        if phase:
            record["phase"] = phase
        if skipped:
            record["skipped"] = True
        if gate is not None:
            record["gate"] = plain_gate(gate)
        if executed.failure is not None:
            record["at"] = self.env.clock.now()
        source, prefix = frame.label, frame.prefix
        self._recorder.write(record, "node_complete" if gate is None else "pause", source, values)
        if self._recorder.listener is not None:
            decision = record.get("decision", "next")
            completed = NodeLeft(
                source,
                decision,
                MappingProxyType(executed.update),
                executed.seconds,
                executed.failure,
                skipped,
            )
            await self._notify(self._recorder.listener, source, prefix, routes, completed, gate)

    async def _notify_ordinary(
        self, listener: Listener, source: str, target: str, executed: NodeExecution
    ) -> None:
        recorder = self._recorder
        if recorder.marks:
            await recorder.notify_marks()
        await listener(NodeLeft(source, "next", MappingProxyType(executed.update), executed.seconds))
        if recorder.wants_details:
            await listener(EdgeTraversed(source, target))
        if self.run.joined:
            await recorder.notify_joins(self.run)

    async def _state_and_routes(
        self, frame: Frame, executed: NodeExecution, *, skipped: bool
    ) -> tuple[Mapping[str, Any], Routes]:
        """The state after the node, and its routes."""
        if executed.failure is not None:
            return self._after_failure(frame, executed, executed.failure)
        values = self._values(frame, executed, skipped=skipped)
        routes = routes_for(frame, executed.decision, executed.update, values, skipped=skipped)
        if routes.undecided:
            routes = await routes_by_question(self.env, frame, routes, executed.update, values)
        return values, routes

    def _after_failure(
        self, frame: Frame, executed: NodeExecution, failure: RunFailure
    ) -> tuple[Mapping[str, Any], Routes]:
        executed.update, executed.decision, executed.failure = NO_INPUTS, Next(), failure
        self.raised[failure] = failure
        values = values_after_failure(self.run, frame)
        return values, routes_after_failure(frame.plan.exits, values)

    async def _notify(
        self,
        listener: Listener,
        source: str,
        prefix: str,
        routes: Routes,
        completed: NodeLeft | None = None,
        gate: Gate | None = None,
    ) -> None:
        if self._recorder.marks:
            await self._recorder.notify_marks()
        if completed is not None:
            await listener(completed)
        if self._recorder.wants_details:
            if gate is not None:
                await listener(GateOpened(gate))
            for target, problem in routes.problems:
                await listener(EdgeConditionError(source, prefix + target, problem))
            for target in routes.targets:
                await listener(EdgeTraversed(source, prefix + target, routes.reasoning))
        if self.run.joined:
            await self._recorder.notify_joins(self.run)

    def _values(self, frame: Frame, executed: NodeExecution, *, skipped: bool) -> Mapping[str, Any]:
        if skipped:
            return frame.values
        if executed.after is not None:
            return executed.after
        # A subgraph has already written its update, channel by channel.
        return values_after(self.run, frame, NO_INPUTS if frame.status == "inside" else executed.update)

    # -- gates, subgraphs, branches -----------------------------------------------------------

    async def _reroute(self, frame: Frame) -> None:
        """Choose the routes of a frame whose gate was answered; the answer is in the state."""
        answer = frame.values.get(ANSWERS, NO_INPUTS).get(frame.label, NO_INPUTS)
        failure = None
        phase = NO_INPUTS
        try:
            routes = routes_along_edges(frame, answer, frame.values)
            if routes.undecided:
                routes = await routes_by_question(self.env, frame, routes, answer, frame.values)
                if self.run.frames.get(frame.id) is not frame:
                    return
            phase = phase_update(self.env, frame, routes, answer, frame.values)
        except Exception as error:  # noqa: BLE001 - as for a step
            failure = failure_of(frame.label, error, 1)
            routes = routes_after_failure(frame.plan.exits, frame.values)
        await self.record_route(frame, routes, failure, phase)

    async def record_route(
        self, frame: Frame, routes: Routes, failure: RunFailure | None, phase: State = NO_INPUTS
    ) -> None:
        """Record the routes of a frame that no longer waits for its gate."""
        prefix, source = frame.prefix, frame.label
        record = about(frame.id, frame.node, {"do": "route"})
        write_routes(record, routes)
        if phase:
            record["phase"] = phase
        if failure is not None:
            record["error"], record["at"] = failure.plain(), self.env.clock.now()
            self.raised[failure] = failure
        self._recorder.write(record, "answer", source)
        if self._recorder.listener is not None:
            await self._notify(self._recorder.listener, source, prefix, routes)

    async def _inside(self, frame: Frame) -> bool:
        """Drive the subgraph of this frame's node; False when it is not at rest yet."""
        child = frame.children[frame.node]
        failure = await self._drive_in_time(child, frame.plan.spec.timeout_s)
        if failure is None and not child.at_rest:
            return False
        if child.failure is not None:
            failure = self.raised.get(child.failure, child.failure)
        executed = NodeExecution(NO_INPUTS, failure=failure)
        executed.seconds = self.env.clock.monotonic() - self._entered.pop(
            child.id, self.env.clock.monotonic()
        )
        if reads := frame.plan.spec.reads:
            executed.missing = tuple(
                [key for key in reads if key not in frame.values and key not in frame.inputs]
            )
        inner: list[Mapping[str, Any]] = []
        if failure is None:
            inner = subgraph_updates(frame, child)
            executed.update = surfaced(self.run, frame, executed, inner)
        source, prefix = frame.label, frame.prefix
        target = record_surfaced(self.env, frame, executed, inner)
        if not target:
            await self._complete(frame, executed, execution=self.run.executions(frame.label) + 1)
        elif (listener := self._recorder.listener) is not None:
            await self._notify_ordinary(listener, source, prefix + target, executed)
        return True

    async def _drive_in_time(self, child: Frame, seconds: float | None) -> RunFailure | None:
        """Drive the inside of a node. The node's failure, when its deadline passes before the end."""
        if seconds is None:
            await self.drive(child)
            return None
        deadline = self.env.clock.timeout(seconds)
        try:
            async with deadline:
                await self.drive(child)
        except TimeoutError:
            if not deadline.expired():
                raise
            if not child.at_rest:
                label = child.prefix.removesuffix(".")
                words = f"node {label} took longer than {seconds:g} seconds"
                return RunFailure(node=label, code="timeout", message=words)
        return None

    async def _branches(self, frame: Frame) -> None:
        """Drive the branches of a split frame concurrently, until each is at rest or waits."""
        policy, siblings = frame.policy, Siblings()
        async with asyncio.TaskGroup() as group:
            for child in tuple(frame.children.values()):
                if not child.at_rest and child.status != "paused":
                    siblings.tasks.append(group.create_task(self._branch(child, policy, siblings)))
        if siblings.problem is not None:
            raise siblings.problem

    async def _branch(self, child: Frame, policy: FanOut, siblings: Siblings) -> None:
        try:
            await self._branch_in_time(child, policy.branch_timeout_s)
        except Exception as error:  # noqa: BLE001 - raised again once all branches have ended
            siblings.problem = siblings.problem or error
            siblings.cancel()
        if child.status == "failed" and policy.on_failure == "fail_all":
            siblings.cancel()

    async def _branch_in_time(self, child: Frame, seconds: float | None) -> None:
        if seconds is None:
            await self.drive(child)
            return
        deadline = self.env.clock.timeout(seconds)
        try:
            async with deadline:
                await self.drive(child)
        except TimeoutError:
            if not deadline.expired():
                raise
            if self.run.frames.get(child.id) is not child or child.at_rest:
                return
            words = f"branch {child.name} took longer than {seconds:g} seconds"
            failure = RunFailure(node=child.prefix + child.name, code="timeout", message=words)
            record: RunRecord = {"do": "fail", "frame": child.id, "error": failure.plain()}
            await self._recorder.record(record, kind="node_complete", label=failure.node)
            await self._recorder.notify_joins(self.run)
