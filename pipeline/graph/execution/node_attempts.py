"""The attempts at one node: deadlines, retries with waits, and results kept when one is cut off."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from functools import partial
from typing import Any, Final

from pipeline.domain.errors import GraphError
from pipeline.graph.definition.decisions import Next, NodeDecision, NodeResult, State
from pipeline.graph.definition.structure import NodeSpec
from pipeline.graph.execution.environment import RunEnvironment
from pipeline.graph.execution.node_visit import NodeExecution, failure_of, missing_reads, node_error, take
from pipeline.graph.execution.step import Step, enter_step, leave_step
from pipeline.graph.run.events import NodeRetried
from pipeline.graph.run.frames import NO_INPUTS, Frame
from pipeline.graph.run.outcome import Failure
from pipeline.graph.run.records import Record, about

_NEXT: Final = Next()


class Attempts:
    """Runs nodes. Does not choose routes."""

    def __init__(self, env: RunEnvironment) -> None:
        self._env = env
        self.steps: dict[str, Step] = {}
        """The steps that attempts in progress have requested, by frame id."""

    def kept(self) -> dict[str, Any]:
        """The partial results of the attempts in progress, by frame id."""
        return {
            frame_id: step.kept
            for frame_id, step in self.steps.items()
            if step.kept and self._env.run.frames.get(frame_id) is step.frame
        }

    async def run_node(
        self,
        frame: Frame,
        spec: NodeSpec[Any, Any],
        view: State,
        execution: int,
        *,
        failure: Failure | None = None,
        seconds: float = 0.0,
    ) -> NodeExecution:
        """Run the frame's node until it succeeds or may not be tried again.

        `failure` and `seconds` are those of a first attempt that the caller has made.
        """
        # Attempts before a crash count: a recorded retry is not repeated.
        env, attempt = self._env, frame.attempts + (failure is not None)
        missing = () if spec.reads is None else missing_reads(spec.reads, view)
        run = spec.run
        assert run is not None  # noqa: S101 - validated; for the type checker
        while True:
            if failure is not None:
                if not self._worth_another(frame, spec, failure, attempt):
                    return NodeExecution(NO_INPUTS, _NEXT, failure, attempt, seconds, missing)
                await self._wait(frame, spec, failure, attempt)
            attempt += 1
            token = enter_step(partial(self.step, frame, execution, attempt))
            began = env.clock.monotonic()
            update: Mapping[str, Any] = NO_INPUTS
            decision: NodeDecision = _NEXT
            try:
                call = run(view, env.context)
                result = await (call if spec.timeout_s is None else self._within(spec.timeout_s, call))
                update, decision = take(frame, spec, result), result.decision
                failure = reported(frame, result, attempt) if result.error else None
            except (Exception, asyncio.CancelledError) as raised:  # noqa: BLE001 - node_error sorts them
                error = node_error(frame.label, raised)
                env.recorder.raise_failure()
                failure = _raised(frame, spec, error, attempt)
            finally:
                leave_step(token)
            seconds += env.clock.monotonic() - began
            if failure is None:
                self.end(frame)
                return NodeExecution(update, decision, None, attempt, seconds, missing)

    def _worth_another(self, frame: Frame, spec: NodeSpec[Any, Any], failure: Failure, attempt: int) -> bool:
        self._env.raise_if_cut_off()
        self.end(frame)
        gone = self._env.run.frames.get(frame.id) is not frame
        return not gone and attempt < spec.attempts and _worth_another(spec, failure)

    def step(self, frame: Frame, execution: int, attempt: int) -> Step:
        """The step of the attempt in progress, created on the first request.

        Raises GraphError for an attempt that is over, such as a task that a node left running.
        """
        step = self.steps.get(frame.id)
        if (
            step is not None
            and step.frame is frame
            and (step.execution, step.attempt) == (execution, attempt)
        ):
            return step
        newer = step is not None and step.frame is frame
        if newer or self._env.run.executions(frame.label) >= execution:
            raise GraphError(f"node {frame.label}: attempt {attempt} of visit {execution} is over")
        step = Step(self._env.run.id, frame, execution, attempt, self._env.recorder)
        self.steps[frame.id] = step
        return step

    def end(self, frame: Frame) -> None:
        """End the attempt in progress."""
        step = self.steps.pop(frame.id, None)
        if step is not None:
            step.over = True

    async def _within(self, seconds: float, call: Awaitable[NodeResult]) -> NodeResult:
        deadline = self._env.clock.timeout(seconds)
        try:
            async with deadline:
                return await call
        except TimeoutError:
            if deadline.expired():
                raise _DeadlinePassed from None
            raise

    async def _wait(self, frame: Frame, spec: NodeSpec[Any, Any], failure: Failure, attempt: int) -> None:
        recorder = self._env.recorder
        delay = spec.retry.delay(attempt, self._env.chance())
        record: Record = {"do": "retry", "attempts": attempt, "error": failure.plain()}
        await recorder.record(about(frame.id, frame.node, record), kind="retry", label=frame.label)
        await recorder.emit(NodeRetried(frame.label, attempt, delay, failure))
        await self._env.clock.sleep(delay)


class _DeadlinePassed(Exception):
    pass


def _raised(frame: Frame, spec: NodeSpec[Any, Any], error: Exception, attempt: int) -> Failure:
    if isinstance(error, _DeadlinePassed):
        words = f"node {frame.label} took longer than {spec.timeout_s:g} seconds"
        return Failure(node=frame.label, code="timeout", message=words, attempts=attempt)
    return failure_of(frame.label, error, attempt)


def reported(frame: Frame, result: NodeResult, attempt: int) -> Failure:
    """The failure that a node returned."""
    return Failure(
        node=frame.label,
        code="node_error",
        message=result.error,
        attempts=attempt,
        permanent=result.permanent,
    )


def _worth_another(spec: NodeSpec[Any, Any], failure: Failure) -> bool:
    if failure.permanent:
        return False
    error = failure.exception
    return spec.retry.covers(error) if isinstance(error, Exception) else True
