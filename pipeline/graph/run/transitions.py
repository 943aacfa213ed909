"""Move frames: to a node, into parallel branches, to rest; and join the branches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.domain.errors import GraphError
from pipeline.graph.definition.elements import END
from pipeline.graph.definition.frozen_json import freeze_update
from pipeline.graph.definition.merging import (
    FAILURE,
    FANOUT,
    BranchWrites,
    MemoryConflict,
    folded_batch,
    winning_updates,
)
from pipeline.graph.run.frames import AT_REST, NO_INPUTS, Frame, FrameStatus, branch_frame
from pipeline.graph.run.outcome import RunFailure
from pipeline.graph.run.records import RunRecord
from pipeline.graph.run.state import Join, Run


def leave(run: Run, frame: Frame, record: RunRecord, failure: RunFailure | None) -> None:
    """Move a frame to the targets of a `step` or `route` record; without targets, end it."""
    targets = tuple(record.get("to", ()))
    for target in targets:
        if target != END and target not in frame.graph.specs:
            raise ValueError(f"{frame.label} leads to {target}, which does not exist")
    inputs = record.get("inputs", NO_INPUTS)
    if failure is not None and targets:
        inputs = {target: {**inputs.get(target, {}), FAILURE: failure.plain()} for target in targets}
    if not targets:
        rest(run, frame, "ended" if failure is None else "failed", failure)
    elif len(targets) == 1:
        move(run, frame, targets[0], inputs.get(targets[0], NO_INPUTS))
    else:
        split(run, frame, targets, inputs)


def move(run: Run, frame: Frame, target: str, inputs: Mapping[str, Any]) -> None:
    """Move a frame to one node, to its join, or to the end."""
    if target == END:
        frame.settled = True
        rest(run, frame, "ended")
    elif frame.kind == "branch" and target == frame.join:
        frame.inputs = freeze_update(inputs)
        rest(run, frame, "arrived")
    else:
        frame.consecutive = frame.consecutive + 1 if target == frame.last else 0
        frame.at(target).status = "ready"
        frame.inputs = freeze_update(inputs) if inputs else NO_INPUTS
        if run.halting:
            run.defer(frame)


def split(run: Run, frame: Frame, targets: tuple[str, ...], inputs: Mapping[str, Any]) -> None:
    """Begin a branch at each target."""
    join = frame.graph.join_of(frame.node, targets)
    frame.status, frame.finished = "split", []
    frame.children = {
        target: branch_frame(frame, target, join, freeze_update(inputs.get(target, NO_INPUTS)))
        for target in targets
    }
    for child in frame.children.values():
        if run.halting:
            child.last = frame.last  # Makes the loop defer the branch, as any node after the gate.
        run.frames[child.id] = child
    for target, child in tuple(frame.children.items()):
        if target in (join, END):
            move(run, child, target, child.inputs)
        elif run.halting:
            run.defer(child)


def rest(run: Run, frame: Frame, status: FrameStatus, failure: RunFailure | None = None) -> None:
    """Bring a frame to rest; if it is the last branch of a fan-out, join that too."""
    if status == "ended" and not frame.settled and frame.kind != "branch" and frame.graph.terminals:
        status, failure = "failed", _no_terminal(frame)
        run.failures.append(failure)
    frame.status = status
    frame.failure = failure
    parent = frame.parent
    if parent is None or frame.kind == "subgraph":
        return
    parent.finished.append(frame.name)
    if status == "failed" and parent.policy.on_failure == "fail_all":
        _fail_split(run, parent, failure)
    elif all(child.status in AT_REST for child in parent.children.values()):
        _join(run, parent)


def _join(run: Run, frame: Frame) -> None:
    children = [frame.children[name] for name in frame.finished]
    good = [child for child in children if child.status != "failed"]
    bad = [child for child in children if child.status == "failed"]
    policy = frame.policy
    join = children[0].join
    if bad and policy.on_failure == "fail_at_end":
        frame.write_batch([update for child in children for update in child.updates])
        _fail_split(run, frame, bad[0].failure)
        return
    continues = any(child.status == "arrived" for child in good) or (bad and policy.on_failure == "wait_all")
    if not good and (policy.on_failure != "wait_all" or join == END):
        _fail_split(run, frame, bad[0].failure)
        return
    try:
        updates = winning_updates(
            [BranchWrites(child.name, child.updates) for child in good],
            frame.channels,
            policy.on_conflict,
        )
        frame.write_batch(updates)
    except GraphError as error:
        code = error.code if isinstance(error, MemoryConflict) else "bad_update"
        failure = RunFailure(node=frame.label, code=code, message=str(error), permanent=True)
        run.failures.append(failure)
        _fail_split(run, frame, failure)
        return
    run.joined.append(Join(frame.label, join, tuple(frame.finished), tuple(child.name for child in bad)))
    inputs: dict[str, Any] = {}
    for child in good:
        if child.status == "arrived":
            inputs |= child.inputs
    if policy.on_failure != "fail_all":
        inputs[FANOUT] = {
            "results": {child.name: _results(child) for child in good},
            "errors": {child.name: child.failure.plain() for child in bad if child.failure is not None},
        }
    close(run, frame)
    if continues and join != END:
        move(run, frame, join, inputs)
        frame.consecutive = 0  # Branches ran in between, also where the join is the source.
    else:
        frame.settled = any(child.settled for child in good)
        reasons = [child.end_reason for child in good if child.end_reason != "completed"]
        frame.end_reason = reasons[0] if reasons else "completed"
        rest(run, frame, "ended")


def _fail_split(run: Run, frame: Frame, failure: RunFailure | None) -> None:
    failed = tuple(name for name in frame.finished if frame.children[name].status == "failed")
    run.joined.append(Join(frame.label, "", tuple(frame.finished), failed))
    close(run, frame)
    rest(run, frame, "failed", failure)


def close(run: Run, frame: Frame) -> None:
    """Drop the frames inside this one."""
    for child in frame.children.values():
        _forget(run, child)
    frame.children = {}
    if run.halting and not any(run.paused_frames()):
        run.halting = False  # The closed frames held the last open gate.


def _forget(run: Run, frame: Frame) -> None:
    run.frames.pop(frame.id, None)
    for child in frame.children.values():
        _forget(run, child)


def _results(child: Frame) -> Mapping[str, Any]:
    """What a branch wrote, folded through the channels."""
    return folded_batch({}, child.channels, child.updates)


def _no_terminal(frame: Frame) -> RunFailure:
    words = f"the run ended at {frame.last}, which is not one of the graph's terminals"
    return RunFailure(node=frame.prefix + frame.last, code="no_terminal", message=words, permanent=True)
