"""The ordinary step, in one piece: most of a run consists of it, and so its speed is the engine's.

A node without declarations that succeeds at once, says `Next` and leads to one place.
This does what `Walk` and `Attempts` do for any step, with the same parts, without a call for each. Whatever
turns out not to be ordinary is handed back to them. A property shows that both give the same run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from pipeline.graph.definition.decisions import Next, NodeResult
from pipeline.graph.definition.merging import folded
from pipeline.graph.execution.edge_selection import routed
from pipeline.graph.execution.environment import RunEnvironment
from pipeline.graph.execution.node_attempts import Attempts, reported
from pipeline.graph.execution.node_visit import NodeExecution, failure_of, node_error, take
from pipeline.graph.execution.step import enter_step, leave_step
from pipeline.graph.run.events import EdgeTraversed, NodeCompleted, NodeStarted
from pipeline.graph.run.frames import Frame

_NO_RESULT: Final = NodeResult()


def is_ordinary(around: RunEnvironment, frame: Frame) -> bool:
    """Whether the frame's next step can be tried here."""
    return frame.plan.ordinary and not frame.inputs and not frame.attempts and around.phase is None


async def ordinary_step(  # noqa: C901 - in one piece on purpose: a call for each part is what it saves
    around: RunEnvironment, attempts: Attempts, frame: Frame, visit: int
) -> NodeExecution | None:
    """Make the step. None when it is done, or when the frame has gone meanwhile; else the visit, which is
    over, and whose step is not ordinary."""
    run, recorder, plan, label = around.run, around.recorder, frame.plan, frame.label
    listener, clock = recorder.listener, around.clock
    if listener is not None:
        await listener(NodeStarted(label))
        if run.frames.get(frame.id) is not frame:
            return None
    view = MappingProxyType(frame.values)
    token = enter_step(partial(attempts.step, frame, visit, 1))
    began, failure, result = clock.monotonic(), None, _NO_RESULT
    update: Mapping[str, Any] = result.update
    try:
        result = await plan.spec.run(view, around.context)  # type: ignore[misc]  # an ordinary node has one
        update = take(frame, plan.spec, result)
        if result.error:
            failure = reported(frame, result, 1)
    except (Exception, asyncio.CancelledError) as raised:  # noqa: BLE001 - the node's failure, unless ours
        error = node_error(label, raised)
        recorder.raise_failure()
        failure = failure_of(label, error, 1)
    finally:
        leave_step(token)
    seconds = clock.monotonic() - began
    if failure is not None:
        return await attempts.visit(frame, plan.spec, view, visit, failure=failure, seconds=seconds)
    if attempts.steps:
        attempts.end(frame)
    if run.frames.get(frame.id) is not frame:
        return None
    values, targets, exits = frame.values, None, plan.exits
    try:
        values = folded(values, frame.channels, update)
        targets = exits.plain if exits.route is None else routed(exits.route, label, values)
    except Exception:  # noqa: BLE001 - found again, and told, on the way of all other steps
        targets = None
    if targets is None or len(targets) != 1 or type(result.decision) is not Next:
        return NodeExecution(update, result.decision, None, 1, seconds)
    target = frame.prefix + targets[0]
    recorder.write_ordinary(frame, update, targets[0], values, seconds)
    if listener is not None:
        if recorder.marks:
            await recorder.tell_marks()
        await listener(NodeCompleted(label, "next", MappingProxyType(update), seconds))
        await listener(EdgeTraversed(label, target))
        if run.joined:
            await recorder.tell_joins(run)
    return None
