"""The attempts at nodes: deadlines, retries with waits, and results kept when one is cut off.

How often a node is tried, and after what wait, is the policy in `pipeline/graph/definition/retry.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from pipeline.domain.errors import GraphError
from pipeline.graph.definition.decisions import NodeResult
from pipeline.graph.definition.structure import NodeSpec
from pipeline.graph.execution.environment import RunEnvironment
from pipeline.graph.execution.node_visit import failure_of, node_error
from pipeline.graph.execution.step import Step
from pipeline.graph.run.events import NodeRetried
from pipeline.graph.run.frames import Frame
from pipeline.graph.run.outcome import RunFailure
from pipeline.graph.run.records import RunRecord, about


class Attempts:
    """The attempts of one call: those in progress, and whether another follows a failed one."""

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

    async def tries_again(self, frame: Frame, failure: RunFailure, attempt: int) -> bool:
        """Whether the failed `attempt` is followed by another; if so, records that and waits for it."""
        spec, env = frame.plan.spec, self._env
        env.raise_if_cut_off()
        self.end(frame)
        gone = env.run.frames.get(frame.id) is not frame
        if gone or attempt >= spec.attempts or not _worth_another(spec, failure):
            return False
        delay = spec.retry.delay(attempt, env.chance())
        record: RunRecord = {"do": "retry", "attempts": attempt, "error": failure.plain()}
        await env.recorder.record(about(frame.id, frame.node, record), kind="retry", label=frame.label)
        if env.recorder.wants_details:
            await env.recorder.emit(NodeRetried(frame.label, attempt, delay, failure))
        await env.clock.sleep(delay)
        return True

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

    async def within(self, seconds: float, call: Awaitable[NodeResult]) -> NodeResult:
        """The result of one attempt, which has a deadline."""
        deadline = self._env.clock.timeout(seconds)
        try:
            async with deadline:
                return await call
        except TimeoutError:
            if deadline.expired():
                raise _DeadlinePassed from None
            raise

    def failure(self, frame: Frame, raised: Exception | asyncio.CancelledError, attempt: int) -> RunFailure:
        """What an attempt raised, as a failure of the node. A requested cancellation, and an exception of
        the log or the listener, is raised."""
        error = node_error(frame.label, raised)
        self._env.recorder.raise_failure()
        if isinstance(error, _DeadlinePassed):
            words = f"node {frame.label} took longer than {frame.plan.spec.timeout_s:g} seconds"
            return RunFailure(node=frame.label, code="timeout", message=words, attempts=attempt)
        return failure_of(frame.label, error, attempt)


class _DeadlinePassed(Exception):
    pass


def reported(frame: Frame, result: NodeResult, attempt: int) -> RunFailure:
    """The failure that a node returned."""
    return RunFailure(
        node=frame.label,
        code="node_error",
        message=result.error,
        attempts=attempt,
        permanent=result.permanent,
    )


def _worth_another(spec: NodeSpec[Any, Any], failure: RunFailure) -> bool:
    if failure.permanent:
        return False
    error = failure.exception
    return spec.retry.covers(error) if isinstance(error, Exception) else True
