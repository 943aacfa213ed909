"""The end of a node that is a subgraph: what it has written into the outer state, and its ordinary record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.domain.errors import GraphError
from pipeline.graph.definition.decisions import State
from pipeline.graph.execution.edge_selection import routed
from pipeline.graph.execution.environment import RunEnvironment
from pipeline.graph.execution.node_visit import NodeExecution, check_complete, failure_of
from pipeline.graph.run.apply import values_after
from pipeline.graph.run.frames import NO_INPUTS, Frame
from pipeline.graph.run.state import Run


def surfaced(run: Run, frame: Frame, executed: NodeExecution, inner: Sequence[Mapping[str, Any]]) -> State:
    """What the subgraph wrote into the outer state, as the output of its node; empty, with a failure in
    `executed`, where a channel refuses it or a key is missing. `inner` are its updates."""
    keys = dict.fromkeys([key for update in inner for key in update])
    try:
        after = values_after(run, frame, NO_INPUTS, inner)
        executed.after = after
        output = {key: after[key] for key in keys if key in after}
        if frame.plan.required:
            check_complete(frame.label, frame.plan.required, output)
    except GraphError as error:
        executed.failure = failure_of(frame.label, error, 1)
        return NO_INPUTS
    return output


def record_surfaced(
    env: RunEnvironment, frame: Frame, executed: NodeExecution, inner: list[Mapping[str, Any]]
) -> str:
    """As `fast_path.record_ordinary`, for a node whose subgraph has ended and written `inner`."""
    plan, values = frame.plan, executed.after
    if not plan.ordinary or executed.failure is not None or executed.missing or frame.inputs:
        return ""
    if values is None or (env.phase is not None and (not env.phase_key or env.phase_key in values)):
        return ""
    targets = plan.exits.plain
    if plan.exits.route is not None:
        try:
            targets = routed(plan.exits.route, frame.label, values)
        except Exception:  # noqa: BLE001 - the general path finds and records it again
            return ""
    if targets is None or len(targets) != 1:
        return ""
    env.recorder.write_ordinary(frame, NO_INPUTS, targets[0], values, executed.seconds, inner)
    return targets[0]
