"""The ordinary step in one function: most steps are ordinary, so its speed is the engine's speed.

Ordinary is a node without declarations that succeeds at once, returns `Next` and leads to one target.
This does what `RunLoop` and `Attempts` do for any step, with the same parts, without a call for each. A step
that turns out not to be ordinary is returned to them. A property test shows that both give the same run.
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


def is_ordinary(env: RunEnvironment, frame: Frame) -> bool:
    """Whether the frame's next step can be tried here."""
    return frame.plan.ordinary and not frame.inputs and not frame.attempts and env.phase is None


async def ordinary_step(  # noqa: C901 - one function on purpose: it saves a call for each part
    env: RunEnvironment, attempts: Attempts, frame: Frame, execution: int
) -> NodeExecution | None:
    """Make the step. None when it is recorded, or when the frame ended meanwhile; otherwise the finished
    execution of the node, whose step is not ordinary and still has to be recorded."""
    run, recorder, plan, label = env.run, env.recorder, frame.plan, frame.label
    listener, clock = recorder.listener, env.clock
    if listener is not None:
        await listener(NodeStarted(label))
        if run.frames.get(frame.id) is not frame:
            return None
    view = MappingProxyType(frame.values)
    token = enter_step(partial(attempts.step, frame, execution, 1))
    began, failure, result = clock.monotonic(), None, _NO_RESULT
    update: Mapping[str, Any] = result.update
    try:
        result = await plan.spec.run(view, env.context)  # type: ignore[misc]  # an ordinary node has one
        update = take(frame, plan.spec, result)
        if result.error:
            failure = reported(frame, result, 1)
    except (Exception, asyncio.CancelledError) as raised:  # noqa: BLE001 - node_error sorts them
        error = node_error(label, raised)
        recorder.raise_failure()
        failure = failure_of(label, error, 1)
    finally:
        leave_step(token)
    seconds = clock.monotonic() - began
    if failure is not None:
        return await attempts.run_node(frame, plan.spec, view, execution, failure=failure, seconds=seconds)
    if attempts.steps:
        attempts.end(frame)
    if run.frames.get(frame.id) is not frame:
        return None
    values, targets, exits = frame.values, None, plan.exits
    try:
        values = folded(values, frame.channels, update)
        targets = exits.plain if exits.route is None else routed(exits.route, label, values)
    except Exception:  # noqa: BLE001 - the general path finds and records it again
        targets = None
    if targets is None or len(targets) != 1 or type(result.decision) is not Next:
        return NodeExecution(update, result.decision, None, 1, seconds)
    target = frame.prefix + targets[0]
    recorder.write_ordinary(frame, update, targets[0], values, seconds)
    if listener is not None:
        if recorder.marks:
            await recorder.notify_marks()
        await listener(NodeCompleted(label, "next", MappingProxyType(update), seconds))
        await listener(EdgeTraversed(label, target))
        if run.joined:
            await recorder.notify_joins(run)
    return None
