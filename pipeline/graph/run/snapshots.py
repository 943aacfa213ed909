"""Convert a whole run to plain data and back, so that a long run need not be replayed from its start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.domain.errors import GraphError
from pipeline.graph.definition.frozen_json import freeze, freeze_update
from pipeline.graph.definition.merging import CLEARED
from pipeline.graph.definition.structure import GraphStructure
from pipeline.graph.run.frames import Frame, FrameKind, FrameStatus, branch_frame, root_frame, subgraph_frame
from pipeline.graph.run.records import plain_gate, read_failure, read_gate
from pipeline.graph.run.state import Run, Totals

_CLEARED_MARK = "cleared"


def dump(run: Run) -> dict[str, Any]:
    """The run as plain data, including unchanged values of its `base` state."""
    return {
        "path": tuple(run.path),
        "steps": run.steps,
        "retries": run.retries,
        "records": run.records + 1,  # with this one
        "answered": tuple(sorted(run.answered)),
        "halting": run.halting,
        "deferred": tuple(run.deferred),
        "failures": tuple(failure.plain() for failure in run.failures),
        "totals": {
            label: (
                totals.executions,
                totals.attempts,
                totals.seconds,
                totals.decision,
                totals.edge_errors,
                totals.missing,
            )
            for label, totals in run.totals.items()
        },
        "root": _dump_frame(run.root),
        "frames": tuple(run.frames),
    }


def load(plain: Mapping[str, Any], run_id: str, graph: GraphStructure[Any, Any]) -> Run:
    """The run from `dump`'s data. Raises KeyError, TypeError, ValueError or GraphError for any other."""
    root = root_frame(graph, {}, graph.entry)
    run = Run(id=run_id, root=root, frames={})
    run.path = list(plain["path"])
    run.steps = plain["steps"]
    run.retries = plain["retries"]
    run.records = plain["records"]
    run.answered = set(plain["answered"])
    run.halting = plain["halting"]
    run.deferred = list(plain.get("deferred", ()))  # absent in snapshots of earlier versions
    run.failures = [read_failure(failure) for failure in plain["failures"]]
    for label, (executions, attempts, seconds, decision, edge_errors, missing) in plain["totals"].items():
        run.totals[label] = Totals(
            executions, attempts, seconds, decision, tuple(edge_errors), tuple(missing)
        )
    _load_frame(run, root, plain["root"])
    run.frames = {frame_id: run.frames[frame_id] for frame_id in plain["frames"]}
    return run


def _dump_frame(frame: Frame) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "name": frame.name,
        "kind": frame.kind,
        "status": frame.status,
        "node": frame.node,
        "values": frame.values,
        "inputs": frame.inputs,
        "consecutive": frame.consecutive,
        "last": frame.last,
        "settled": frame.settled,
        "end_reason": frame.end_reason,
        "join": frame.join,
        "finished": tuple(frame.finished),
        "attempts": frame.attempts,
        "effects": dict(frame.effects),  # copied: it may change before the record is written
        "updates": tuple(_dump_update(update) for update in frame.updates),
        "children": tuple(_dump_frame(child) for child in frame.children.values()),
    }
    if frame.gate is not None:
        plain["gate"] = plain_gate(frame.gate)
    if frame.failure is not None:
        plain["failure"] = frame.failure.plain()
    return plain


def _load_frame(run: Run, frame: Frame, plain: Mapping[str, Any]) -> None:
    run.frames[frame.id] = frame
    status: FrameStatus = plain["status"]
    if plain["node"] not in frame.graph.specs:
        raise GraphError(f"a snapshot is at {plain['node']}, which does not exist")
    frame.at(plain["node"]).status = status
    frame.values, frame.inputs = freeze_update(plain["values"]), freeze_update(plain["inputs"])
    frame.consecutive, frame.last, frame.settled = plain["consecutive"], plain["last"], plain["settled"]
    frame.end_reason, frame.attempts = plain["end_reason"], plain["attempts"]
    frame.join, frame.finished = plain["join"], list(plain["finished"])
    frame.effects = {key: (state, freeze(result)) for key, (state, result) in plain["effects"].items()}
    frame.updates = [_load_update(update) for update in plain["updates"]]
    if "gate" in plain:
        frame.gate = read_gate(plain["gate"], frame.label)
    if "failure" in plain:
        frame.failure = read_failure(plain["failure"])
    for child_plain in plain["children"]:
        kind: FrameKind = child_plain["kind"]
        if kind == "subgraph":
            child = subgraph_frame(frame, repeated=False)
        else:
            child = branch_frame(frame, child_plain["name"], child_plain["join"], {})
        frame.children[child.name] = child
        _load_frame(run, child, child_plain)


def _dump_update(update: Mapping[str, Any]) -> dict[str, Any]:
    cleared = tuple(key for key, value in update.items() if value is CLEARED)
    return {_CLEARED_MARK: cleared} if cleared else {"update": update}


def _load_update(plain: Mapping[str, Any]) -> dict[str, Any]:
    if _CLEARED_MARK in plain:
        return dict.fromkeys(plain[_CLEARED_MARK], CLEARED)
    return freeze_update(plain["update"])
