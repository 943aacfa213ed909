"""The attempts at one node: deadlines, retries with their waits, and what is kept when one is cut off."""

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
    """Runs nodes. Knows nothing of where a run goes."""

    def __init__(self, around: RunEnvironment) -> None:
        self._around = around
        self.steps: dict[str, Step] = {}
        """Of the attempts in progress that have asked for one, by frame."""

    def kept(self) -> dict[str, Any]:
        """What the attempts in progress have kept, by frame."""
        return {
            frame_id: step.kept
            for frame_id, step in self.steps.items()
            if step.kept and self._around.run.frames.get(frame_id) is step.frame
        }

    async def visit(
        self,
        frame: Frame,
        spec: NodeSpec[Any, Any],
        view: State,
        visit: int,
        *,
        failure: Failure | None = None,
        seconds: float = 0.0,
    ) -> NodeExecution:
        """Run the frame's node until it succeeds or no further attempt is worth it.

        `failure` and `seconds` are those of a first attempt that was made already.
        """
        # Attempts before a crash count: a retry on record is not made again.
        around, attempt = self._around, frame.attempts + (failure is not None)
        missing = () if spec.reads is None else missing_reads(spec.reads, view)
        run = spec.run
        assert run is not None  # noqa: S101 - validated; for the type checker
        while True:
            if failure is not None:
                if not self._worth_another(frame, spec, failure, attempt):
                    return NodeExecution(NO_INPUTS, _NEXT, failure, attempt, seconds, missing)
                await self._wait(frame, spec, failure, attempt)
            attempt += 1
            token = enter_step(partial(self.step, frame, visit, attempt))
            began = around.clock.monotonic()
            update: Mapping[str, Any] = NO_INPUTS
            decision: NodeDecision = _NEXT
            try:
                call = run(view, around.context)
                result = await (call if spec.timeout_s is None else self._within(spec.timeout_s, call))
                update, decision = take(frame, spec, result), result.decision
                failure = reported(frame, result, attempt) if result.error else None
            except (Exception, asyncio.CancelledError) as raised:  # noqa: BLE001 - the node's, unless ours
                error = node_error(frame.label, raised)
                around.recorder.raise_failure()
                failure = _raised(frame, spec, error, attempt)
            finally:
                leave_step(token)
            seconds += around.clock.monotonic() - began
            if failure is None:
                self.end(frame)
                return NodeExecution(update, decision, None, attempt, seconds, missing)

    def _worth_another(self, frame: Frame, spec: NodeSpec[Any, Any], failure: Failure, attempt: int) -> bool:
        self._around.raise_if_cut_off()
        self.end(frame)
        gone = self._around.run.frames.get(frame.id) is not frame
        return not gone and attempt < spec.attempts and _worth_another(spec, failure)

    def step(self, frame: Frame, visit: int, attempt: int) -> Step:
        """The step of the attempt in progress, made when it is first asked for.

        Raises GraphError for an attempt that is over: what a node leaves running has no step any more.
        """
        step = self.steps.get(frame.id)
        if step is not None and step.frame is frame and (step.visit, step.attempt) == (visit, attempt):
            return step
        newer = step is not None and step.frame is frame
        if newer or self._around.run.visits(frame.label) >= visit:
            raise GraphError(f"node {frame.label}: attempt {attempt} of visit {visit} is over")
        step = Step(self._around.run.id, frame, visit, attempt, self._around.recorder)
        self.steps[frame.id] = step
        return step

    def end(self, frame: Frame) -> None:
        """The attempt in progress is over."""
        step = self.steps.pop(frame.id, None)
        if step is not None:
            step.over = True

    async def _within(self, seconds: float, call: Awaitable[NodeResult]) -> NodeResult:
        deadline = self._around.clock.timeout(seconds)
        try:
            async with deadline:
                return await call
        except TimeoutError:
            if deadline.expired():
                raise _DeadlinePassed from None
            raise

    async def _wait(self, frame: Frame, spec: NodeSpec[Any, Any], failure: Failure, attempt: int) -> None:
        recorder = self._around.recorder
        delay = spec.retry.delay(attempt, self._around.chance())
        record: Record = {"do": "retry", "attempts": attempt, "error": failure.plain()}
        await recorder.record(about(frame.id, frame.node, record), kind="retry", label=frame.label)
        await recorder.emit(NodeRetried(frame.label, attempt, delay, failure))
        await self._around.clock.sleep(delay)


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
