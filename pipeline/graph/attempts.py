"""The attempts at one node: deadlines, retries with their waits, and what is kept when one is cut off."""

from __future__ import annotations

from typing import Any

from pipeline.graph.decisions import State
from pipeline.graph.events import NodeRetried
from pipeline.graph.frames import Frame
from pipeline.graph.outcome import Failure
from pipeline.graph.records import Record, about
from pipeline.graph.step import Step, enter_step, leave_step
from pipeline.graph.structure import NodeSpec
from pipeline.graph.surroundings import Surroundings
from pipeline.graph.visit import Visited, failure_of, missing_reads, take


class Attempts:
    """Runs nodes. Knows nothing of where a run goes."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._steps: dict[str, Step] = {}

    def kept(self) -> dict[str, Any]:
        """What the attempts in progress have kept, by frame."""
        return {
            frame_id: step.kept
            for frame_id, step in self._steps.items()
            if step.kept and self._around.run.frames.get(frame_id) is step.frame
        }

    # -- the boundary before a node -----------------------------------------------------------

    async def visit(self, frame: Frame, spec: NodeSpec[Any, Any], view: State, visit: int) -> Visited:
        """Run the frame's node until it succeeds or no further attempt is worth it."""
        attempt, seconds = 0, 0.0
        while True:
            attempt += 1
            began = self._around.clock.monotonic()
            visited = await self._attempt(frame, spec, view, visit, attempt)
            seconds += self._around.clock.monotonic() - began
            failure = visited.failure
            if failure is None or attempt >= spec.attempts or not _worth_another(spec, failure):
                break
            delay = spec.retry.delay(attempt, self._around.chance())
            record: Record = {"do": "retry", "attempts": attempt, "error": failure.plain()}
            await self._around.recorder.record(
                about(frame.id, frame.node, record), kind="retry", label=frame.label
            )
            await self._around.recorder.emit(NodeRetried(frame.label, attempt, delay, failure))
            await self._around.clock.sleep(delay)
        visited.attempts, visited.seconds = attempt, seconds
        visited.missing = missing_reads(frame, view)
        return visited

    async def _attempt(
        self, frame: Frame, spec: NodeSpec[Any, Any], view: State, visit: int, attempt: int
    ) -> Visited:
        assert spec.run is not None  # noqa: S101 - validated; for the type checker
        step = Step(
            run_id=self._around.run.id,
            frame=frame,
            visit=visit,
            attempt=attempt,
            recorder=self._around.recorder,
        )
        self._steps[frame.id] = step
        token = enter_step(step)
        deadline = None
        try:
            if spec.timeout_s is None:
                result = await spec.run(view, self._around.context)
            else:
                async with self._around.clock.timeout(spec.timeout_s) as deadline:
                    result = await spec.run(view, self._around.context)
            update = take(frame, spec, result)
        except Exception as error:  # noqa: BLE001 - whatever a node raises is that node's failure
            self._around.recorder.raise_failure()
            self._steps.pop(frame.id, None)
            if deadline is not None and deadline.expired():
                words = f"node {frame.label} took longer than {spec.timeout_s:g} seconds"
                failure = Failure(node=frame.label, code="timeout", message=words, attempts=attempt)
            else:
                failure = failure_of(frame.label, error, attempt)
            return Visited(failure=failure)
        finally:
            leave_step(token)
        self._steps.pop(frame.id, None)
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


def _worth_another(spec: NodeSpec[Any, Any], failure: Failure) -> bool:
    if failure.permanent:
        return False
    error = failure.exception
    return spec.retry.covers(error) if isinstance(error, Exception) else True
