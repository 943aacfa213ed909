"""Apply one record to a run: the only code that changes a run.

The executor changes a run only by applying the record of what happened, and `resume` applies the stored
records again: both give the same run because both use this code. Nothing here waits or decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pipeline.graph.definition.decisions import EndReason
from pipeline.graph.definition.elements import END
from pipeline.graph.definition.frozen_json import freeze, freeze_update
from pipeline.graph.definition.merging import ANSWERS, CLEARED, folded, folded_batch
from pipeline.graph.run.frames import NO_INPUTS, Frame, subgraph_frame
from pipeline.graph.run.records import RunRecord, read_failure, read_gate
from pipeline.graph.run.state import Run
from pipeline.graph.run.transitions import close, leave, move, rest

_ORDINARY: Final = frozenset({"do", "head", "frame", "node", "update", "to", "seconds"})
"""The fields of the record of an ordinary step, see `advance`."""
_END_REASONS: Final[Mapping[str, EndReason]] = {
    "end waiting_for_user": "waiting_for_user",
    "end blocked": "blocked",
}


def apply(run: Run, record: RunRecord, values: Mapping[str, Any] | None = None) -> None:
    """Change the run by one record.

    `values`, for a step, is the result of `values_after` for its update, which saves folding it again.
    Raises KeyError, TypeError, ValueError or GraphError for a record that does not fit the run.
    """
    if record["do"] == "step":
        if values is None and _ORDINARY.issuperset(record) and _advanced(run, record):
            return
        run.records += 1
        _step(run, record, values)
    else:
        run.records += 1
        _APPLY[record["do"]](run, record)


def advance(
    run: Run,
    frame: Frame,
    update: Mapping[str, Any],
    target: str,
    values: Mapping[str, Any],
    seconds: float,
    inner: list[Mapping[str, Any]] | None = None,
) -> None:
    """Apply an ordinary step without building its record; otherwise as `apply`. `inner` are the updates of a
    subgraph that ends with the step."""
    run.records += 1
    run.steps += 1
    label = frame.label
    if run.deferred:
        _continues(run, frame)
    run.path.append(label)
    totals = run.totals.get(label) or run.totals_of(label)
    totals.executions += 1
    totals.attempts += 1
    totals.seconds += seconds
    totals.decision, totals.missing = "next", ()
    frame.values, frame.last, frame.attempts = values, frame.node, 0
    if inner is not None:
        if frame.parent is not None:
            frame.updates += inner
        close(run, frame)
    elif update and frame.parent is not None:
        frame.updates.append(update)
    if frame.effects:
        frame.effects = {}
    move(run, frame, target, NO_INPUTS)


def values_after(
    run: Run, frame: Frame, update: Mapping[str, Any], inner: Sequence[Mapping[str, Any]] | None = None
) -> dict[str, Any]:
    """The frame's state after its node has ended with `update`; includes the writes of its subgraph, of which
    `inner` is the result of `subgraph_updates` where it is known.

    Raises GraphError for an update that a channel cannot take.
    """
    if frame.status == "ready" and not frame.plan.spec.nullable:
        return folded(frame.values, frame.channels, update)
    updates = _updates_of(frame, update, repeated=run.executions(frame.label) > 0, inner=inner)
    return folded_batch(frame.values, frame.channels, updates)


def values_after_failure(run: Run, frame: Frame) -> dict[str, Any]:
    """The frame's state after its node has failed for good."""
    updates = _updates_of(frame, NO_INPUTS, repeated=run.executions(frame.label) > 0, failed=True)
    return folded_batch(frame.values, frame.channels, updates)


def subgraph_updates(frame: Frame, child: Frame) -> list[Mapping[str, Any]]:
    """What a finished subgraph writes into the outer state: its node's `writes`, or everything.

    Update by update, so that the outer channels combine them. A key that only the subgraph has a channel
    for is given as its final value.
    """
    plan, updates = frame.plan, list[Mapping[str, Any]]()
    surfaced, whole = plan.surfaced, plan.whole
    for update in child.updates:
        if surfaced is None:
            part = {key: update[key] for key in update if key not in whole}
        else:
            part = {key: update[key] for key in update if key in surfaced and key not in whole}
        if part:
            updates.append(part)
    if whole and (written := {key for update in child.updates for key in update if key in whole}):
        updates.append({key: child.values[key] for key in child.values if key in written})
    return updates


def _step(run: Run, record: RunRecord, values: Mapping[str, Any] | None) -> None:
    frame, node = run.frames[record.get("frame", "")], record["node"]
    if frame.status not in ("ready", "inside") or frame.node != node:
        raise ValueError(f"a step of {node} where {frame.node} was to come")
    _count(run, frame, record)
    if run.deferred:
        _continues(run, frame)
    failure = read_failure(record["error"]) if "error" in record else None
    inside = frame.children[node].failure if frame.status == "inside" else None
    if failure is not None and inside is None:
        run.failures.append(failure)
    _apply_update(run, frame, record, values)
    frame.last = node
    frame.effects = {}
    frame.attempts = 0
    if frame.plan.ends:
        frame.settled = True
    if "gate" in record:
        _open_gate(run, frame, record)
        return
    decision = record.get("decision", "next")
    if decision.startswith("end"):
        frame.settled = True
        frame.end_reason = _END_REASONS.get(decision, "completed")
    leave(run, frame, record, failure)


def _advanced(run: Run, record: RunRecord) -> bool:
    """Apply the record of an ordinary step. False, and nothing changed, if it may be another kind."""
    frame, node, targets = run.frames[record.get("frame", "")], record["node"], record.get("to", ())
    if not frame.plan.ordinary or frame.node != node or len(targets) != 1:
        return False
    target, inner = targets[0], None
    if target != END and target not in frame.graph.specs:
        return False
    update = freeze_update(record.get("update", NO_INPUTS))
    if frame.status == "ready":
        values = folded(frame.values, frame.channels, update)
    elif frame.status == "inside" and frame.children[node].failure is None and not update:
        inner = subgraph_updates(frame, frame.children[node])
        values = folded_batch(frame.values, frame.channels, inner)
    else:
        return False
    advance(run, frame, update, target, values, record.get("seconds", 0.0), inner)
    return True


def _continues(run: Run, frame: Frame) -> None:
    if frame.id in run.deferred:
        run.deferred.remove(frame.id)


def _open_gate(run: Run, frame: Frame, record: RunRecord) -> None:
    frame.status = "paused"
    frame.gate = read_gate(record["gate"], frame.label)
    run.halting = True
    # Gates are listed in the order in which they were opened.
    run.frames[frame.id] = run.frames.pop(frame.id)


def _count(run: Run, frame: Frame, record: RunRecord) -> None:
    label = frame.label
    run.steps += 1
    totals = run.totals.get(label) or run.totals_of(label)
    if "skipped" not in record:
        run.path.append(label)
        totals.executions += 1
        totals.attempts += 1
    totals.seconds += record.get("seconds", 0.0)
    totals.decision = record.get("decision", "next")
    if "edge_errors" in record:
        totals.edge_errors += tuple(record["edge_errors"])
    totals.missing = tuple(record.get("missing", ()))


def _apply_update(run: Run, frame: Frame, record: RunRecord, values: Mapping[str, Any] | None) -> None:
    if "skipped" in record:
        return
    if values is not None and frame.parent is None and frame.status == "ready":
        frame.values = values
    else:
        _fold_update(run, frame, record, values)
    if "phase" in record:
        frame.write(freeze_update(record["phase"]))


def _fold_update(run: Run, frame: Frame, record: RunRecord, values: Mapping[str, Any] | None) -> None:
    if values is not None and frame.parent is None:
        frame.values = values
        if frame.status == "inside":
            close(run, frame)
        return
    update = record.get("update", NO_INPUTS)
    if values is None:
        update = freeze_update(update)
    updates = _updates_of(frame, update, repeated=run.executions(frame.label) > 1, failed="error" in record)
    frame.values = folded_batch(frame.values, frame.channels, updates) if values is None else values
    if frame.parent is not None:
        frame.updates += updates
    if frame.status == "inside":
        close(run, frame)


def _updates_of(
    frame: Frame,
    update: Mapping[str, Any],
    *,
    repeated: bool,
    failed: bool = False,
    inner: Sequence[Mapping[str, Any]] | None = None,
) -> list[Mapping[str, Any]]:
    """What a finished node changes, in order: stale nullable keys, a subgraph's writes, the update."""
    nullable = frame.plan.spec.nullable
    updates: list[Mapping[str, Any]] = []
    if repeated and nullable:
        updates.append(dict.fromkeys(nullable, CLEARED))
    if frame.status == "inside" and not failed:
        updates += subgraph_updates(frame, frame.children[frame.node]) if inner is None else inner
    if update:
        updates.append(update)
    return updates


def _retry(run: Run, record: RunRecord) -> None:
    frame = _frame_in_progress(run, record)
    frame.attempts = record["attempts"]
    run.retries += 1
    run.totals_of(frame.label).attempts += 1


def _enter(run: Run, record: RunRecord) -> None:
    frame = run.frames[record.get("frame", "")]
    if frame.status != "ready" or frame.node != record["node"]:
        raise ValueError(f"{record['node']} is entered where {frame.node} was to come")
    if run.deferred:
        _continues(run, frame)
    child = subgraph_frame(frame, repeated=run.executions(frame.label) > 0)
    frame.status = "inside"
    frame.children = {frame.node: child}
    run.frames[child.id] = child


def _effect(run: Run, record: RunRecord) -> None:
    frame = _frame_in_progress(run, record)
    key, state = record["key"], record["state"]
    if state == "failed":
        frame.effects.pop(key, None)
    else:
        frame.effects[key] = (state, freeze(record.get("result")))


def _frame_in_progress(run: Run, record: RunRecord) -> Frame:
    """The frame whose node is being executed. Raises ValueError if it is not."""
    frame = run.frames[record.get("frame", "")]
    if frame.status != "ready" or frame.node != record["node"]:
        raise ValueError(f"{record['node']} is at work where {frame.node} was to come")
    return frame


def _answer(run: Run, record: RunRecord) -> None:
    gate_id = record["gate"]["id"]
    waiting = (frame for frame in run.paused_frames() if frame.gate is not None and frame.gate.id == gate_id)
    frame = next(waiting, None)
    if frame is None:
        raise ValueError(f"gate {gate_id} is not open")
    answer = {"choice": record["choice"], "note": record.get("note", ""), "by": record.get("by", "")}
    frame.write(freeze_update({ANSWERS: {frame.label: answer}}))
    run.answered.add(gate_id)
    run.halting = False
    frame.status = "answered"
    frame.gate = None


def _route(run: Run, record: RunRecord) -> None:
    frame = run.frames[record.get("frame", "")]
    if frame.status not in ("paused", "answered") or frame.node != record["node"]:
        raise ValueError(f"a way on from {record['node']}, whose gate is not open")
    failure = read_failure(record["error"]) if "error" in record else None
    if failure is not None:
        run.failures.append(failure)
    if frame.gate is not None:
        run.answered.add(frame.gate.id)
        run.halting = False
        frame.gate = None
    if "edge_errors" in record:
        run.totals_of(frame.label).edge_errors += tuple(record["edge_errors"])
    if "phase" in record:
        frame.write(freeze_update(record["phase"]))
    leave(run, frame, record, failure)


def _cancel(run: Run, record: RunRecord) -> None:
    for frame_id, update in record["kept"].items():
        run.frames[frame_id].write(freeze_update(update))


def _fail(run: Run, record: RunRecord) -> None:
    frame, failure = run.frames[record["frame"]], read_failure(record["error"])
    if frame.kind != "branch" or frame.at_rest:
        raise ValueError(f"{record['frame']} fails, which is no branch on its way")
    run.failures.append(failure)
    close(run, frame)
    rest(run, frame, "failed", failure)


def _end(run: Run, _record: RunRecord) -> None:
    run.ended = True


def _mark(run: Run, _record: RunRecord) -> None:
    """A record that changes nothing."""


_APPLY: Final[Mapping[str, Callable[[Run, RunRecord], None]]] = {
    "retry": _retry,
    "enter": _enter,
    "effect": _effect,
    "answer": _answer,
    "route": _route,
    "cancel": _cancel,
    "fail": _fail,
    "end": _end,
    "pause": _mark,
    "snapshot": _mark,
    "resume": _mark,
}
