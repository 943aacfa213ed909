"""A run as data, and the one function that moves it on: `Run.apply`.

The executor changes a run only by applying the record of what has happened, and resuming applies the
recorded ones again: both give the same run because it is the same code. Nothing here waits or decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pipeline.domain.errors import GraphError
from pipeline.graph.decisions import EndReason
from pipeline.graph.elements import END
from pipeline.graph.frames import AT_REST, NO_INPUTS, Frame, branch_frame, root_frame, subgraph_frame
from pipeline.graph.merging import (
    ANSWERS,
    CLEARED,
    FAILURE,
    FANOUT,
    BranchWrites,
    MemoryConflict,
    folded,
    folded_batch,
    winning_updates,
)
from pipeline.graph.outcome import Failure, Gate, NodeDiagnostics
from pipeline.graph.plain import freeze, freeze_update
from pipeline.graph.records import Record, read_failure, read_gate
from pipeline.graph.structure import GraphStructure

_END_REASONS: Final[Mapping[str, EndReason]] = {
    "end waiting_for_user": "waiting_for_user",
    "end blocked": "blocked",
}


@dataclass(slots=True)
class Totals:
    """Counts of one node, over the whole run."""

    visits: int = 0
    attempts: int = 0
    seconds: float = 0.0
    decision: str = ""
    edge_errors: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(slots=True)
class Join:
    """A fan-out that has just been joined, for whoever listens."""

    source: str
    join: str
    finished: tuple[str, ...]
    failed: tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class Run:
    """One run. `apply` moves it; everything else reads."""

    id: str
    root: Frame
    frames: dict[str, Frame]
    path: list[str] = field(default_factory=list)
    """Labels of the nodes executed, skipped ones left out."""
    steps: int = 0
    """Node visits that are over, skipped ones included."""
    totals: dict[str, Totals] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    retries: int = 0
    records: int = 0
    """Records applied, for the spacing of snapshots."""
    answered: set[str] = field(default_factory=set)
    """Gates that are no longer open."""
    ended: bool = False
    """An `end` record has been applied."""
    joined: list[Join] = field(default_factory=list)
    """Filled by `apply`, emptied by the reader."""

    @classmethod
    def begin(
        cls, run_id: str, graph: GraphStructure[Any, Any], values: Mapping[str, Any], entry: str
    ) -> Run:
        """A run that has not made a step."""
        root = root_frame(graph, values, entry)
        return cls(id=run_id, root=root, frames={"": root})

    def visits(self, label: str) -> int:
        """Visits of a node that are over, skipped ones left out."""
        totals = self.totals.get(label)
        return 0 if totals is None else totals.visits

    def open_gates(self) -> tuple[Gate, ...]:
        """Gates that wait for an answer, in the order of their frames."""
        return tuple(frame.gate for frame in self.paused_frames() if frame.gate is not None)

    def paused_frames(self) -> Iterator[Frame]:
        """Frames whose gate is open."""
        return (frame for frame in self.frames.values() if frame.status == "paused")

    def diagnostics(self) -> dict[str, NodeDiagnostics]:
        """What happened to each node so far, by label."""
        return {
            label: NodeDiagnostics(
                visits=totals.visits,
                attempts=totals.attempts,
                seconds=totals.seconds,
                decision=totals.decision,
                edge_errors=totals.edge_errors,
                missing_inputs=totals.missing,
            )
            for label, totals in self.totals.items()
        }

    def values_after(self, frame: Frame, update: Mapping[str, Any]) -> dict[str, Any]:
        """The frame's state once its node has ended with `update`; the subgraph's writes, if it has one.

        Raises GraphError for an update that a channel cannot take.
        """
        updates = self._updates_of(frame, update, revisited=self.visits(frame.label) > 0)
        if len(updates) == 1 and updates[0] is update:
            return folded(frame.values, frame.channels, update)
        return folded_batch(frame.values, frame.channels, updates)

    def values_after_failure(self, frame: Frame) -> dict[str, Any]:
        """The frame's state once its node has failed for good."""
        updates = self._updates_of(frame, NO_INPUTS, revisited=self.visits(frame.label) > 0, failed=True)
        return folded_batch(frame.values, frame.channels, updates)

    def apply(self, record: Record, values: Mapping[str, Any] | None = None) -> None:
        """Move the run on by one record.

        `values`, for a step, is what `values_after` gave for its update, to spare the second folding.
        Raises KeyError, TypeError, ValueError or GraphError for a record that does not fit the run.
        """
        self.records += 1
        match record["do"]:
            case "step":
                self._step(record, values)
            case "retry":
                self.retries += 1
                self._totals_of(self._frame(record).prefix + record["node"]).attempts += 1
            case "enter":
                self._enter(self._frame(record))
            case "effect":
                self._effect(self._frame(record), record)
            case "answer":
                self._answer(record)
            case "route":
                self._route(record)
            case "cancel":
                for frame_id, update in record["kept"].items():
                    self._write(self.frames[frame_id], freeze_update(update))
            case "fail":
                self._rest(self._frame(record), "failed", read_failure(record["error"]))
            case "end":
                self.ended = True
            case "pause" | "snapshot" | "resume":
                pass
            case unknown:
                raise ValueError(f"there is no record called {unknown}")

    # -- one record each ----------------------------------------------------------------------

    def _step(self, record: Record, values: Mapping[str, Any] | None) -> None:
        frame, node = self._frame(record), record["node"]
        if frame.status not in ("ready", "inside") or frame.node != node:
            raise ValueError(f"a step of {node} where {frame.node} was to come")
        self._count(frame, record)
        failure = read_failure(record["error"]) if "error" in record else None
        if failure is not None:
            self.failures.append(failure)
        self._take_update(frame, record, values)
        frame.last = node
        frame.effects = {}
        if "gate" in record:
            frame.status = "paused"
            frame.gate = read_gate(record["gate"], frame.label)
            return
        if node in frame.graph.terminals:
            frame.settled = True
        decision = record.get("decision", "next")
        if decision.startswith("end"):
            frame.settled = True
            frame.end_reason = _END_REASONS.get(decision, "completed")
        self._leave(frame, record, failure)

    def _count(self, frame: Frame, record: Record) -> None:
        label = frame.label
        self.steps += 1
        totals = self._totals_of(label)
        if "skipped" not in record:
            self.path.append(label)
            totals.visits += 1
            totals.attempts += 1
        totals.seconds += record.get("seconds", 0.0)
        totals.decision = record.get("decision", "next")
        if "edge_errors" in record:
            totals.edge_errors += tuple(record["edge_errors"])
        totals.missing = tuple(record.get("missing", ()))

    def _take_update(self, frame: Frame, record: Record, values: Mapping[str, Any] | None) -> None:
        if "skipped" in record:
            return
        update = record.get("update", NO_INPUTS)
        if values is None:
            update = freeze_update(update)
        updates = self._updates_of(
            frame, update, revisited=self.visits(frame.label) > 1, failed="error" in record
        )
        frame.values = folded_batch(frame.values, frame.channels, updates) if values is None else values
        if frame.parent is not None:
            frame.updates += updates
        if frame.status == "inside":
            self._close(frame)
        if "phase" in record:
            self._write(frame, freeze_update(record["phase"]))

    def _updates_of(
        self, frame: Frame, update: Mapping[str, Any], *, revisited: bool, failed: bool = False
    ) -> list[Mapping[str, Any]]:
        """What a finished visit changes, in order: stale nullable keys, a subgraph's writes, the update."""
        nullable = frame.graph.specs[frame.node].nullable
        updates: list[Mapping[str, Any]] = []
        if revisited and nullable:
            updates.append(dict.fromkeys(nullable, CLEARED))
        if frame.status == "inside" and not failed:
            updates += given_back(frame, frame.children[frame.node])
        if update:
            updates.append(update)
        return updates

    def _enter(self, frame: Frame) -> None:
        child = subgraph_frame(frame)
        frame.status = "inside"
        frame.children = {frame.node: child}
        self.frames[child.id] = child

    def _effect(self, frame: Frame, record: Record) -> None:
        key, state = record["key"], record["state"]
        if state == "failed":
            frame.effects.pop(key, None)
        else:
            frame.effects[key] = (state, freeze(record.get("result")))

    def _answer(self, record: Record) -> None:
        frame = next(
            frame
            for frame in self.paused_frames()
            if frame.gate is not None and frame.gate.id == record["gate"]["id"]
        )
        answer = {"choice": record["choice"], "note": record.get("note", ""), "by": record.get("by", "")}
        self._write(frame, freeze_update({ANSWERS: {frame.label: answer}}))
        self.answered.add(record["gate"]["id"])
        frame.status = "answered"
        frame.gate = None

    def _route(self, record: Record) -> None:
        frame = self._frame(record)
        failure = read_failure(record["error"]) if "error" in record else None
        if failure is not None:
            self.failures.append(failure)
        if frame.gate is not None:
            self.answered.add(frame.gate.id)
            frame.gate = None
        if "edge_errors" in record:
            self._totals_of(frame.label).edge_errors += tuple(record["edge_errors"])
        if "phase" in record:
            self._write(frame, freeze_update(record["phase"]))
        self._leave(frame, record, failure)

    # -- where a frame goes -------------------------------------------------------------------

    def _leave(self, frame: Frame, record: Record, failure: Failure | None) -> None:
        targets = tuple(record.get("to", ()))
        inputs = record.get("inputs", NO_INPUTS)
        if failure is not None and targets:
            inputs = {target: {**inputs.get(target, {}), FAILURE: failure.plain()} for target in targets}
        if not targets:
            self._rest(frame, "ended" if failure is None else "failed", failure)
        elif len(targets) == 1:
            self._move(frame, targets[0], inputs.get(targets[0], NO_INPUTS))
        else:
            self._split(frame, targets, inputs)

    def _move(self, frame: Frame, target: str, inputs: Mapping[str, Any]) -> None:
        if target == END:
            frame.settled = True
            self._rest(frame, "ended")
        elif frame.kind == "branch" and target == frame.join:
            frame.inputs = freeze_update(inputs)
            self._rest(frame, "arrived")
        else:
            frame.consecutive = frame.consecutive + 1 if target == frame.last else 0
            frame.node, frame.status = target, "ready"
            frame.inputs = freeze_update(inputs) if inputs else NO_INPUTS

    def _split(self, frame: Frame, targets: tuple[str, ...], inputs: Mapping[str, Any]) -> None:
        join = frame.graph.joins.of(targets)
        frame.status, frame.finished = "split", []
        frame.children = {
            target: branch_frame(frame, target, join, freeze_update(inputs.get(target, NO_INPUTS)))
            for target in targets
        }
        for child in frame.children.values():
            self.frames[child.id] = child
        for target, child in tuple(frame.children.items()):
            if target in (join, END):
                self._move(child, target, child.inputs)

    def _rest(self, frame: Frame, status: str, failure: Failure | None = None) -> None:
        if status == "ended" and not frame.settled and frame.kind != "branch" and frame.graph.terminals:
            status, failure = "failed", _no_terminal(frame)
        frame.status = status  # type: ignore[assignment]  # one of the three at-rest words
        frame.failure = failure
        parent = frame.parent
        if parent is None or frame.kind == "subgraph":
            return
        parent.finished.append(frame.name)
        if status == "failed" and parent.policy.on_failure == "fail_all":
            self._fail_split(parent, failure)
        elif all(child.status in AT_REST for child in parent.children.values()):
            self._join(parent)

    def _join(self, frame: Frame) -> None:
        children = [frame.children[name] for name in frame.finished]
        good = [child for child in children if child.status != "failed"]
        bad = [child for child in children if child.status == "failed"]
        policy = frame.policy
        join = children[0].join
        goes_on = any(child.status == "arrived" for child in good) or (
            bad and policy.on_failure == "wait_all"
        )
        if not good and (policy.on_failure != "wait_all" or join == END):
            self._fail_split(frame, bad[0].failure)
            return
        try:
            updates = winning_updates(
                [BranchWrites(child.name, child.updates) for child in good],
                frame.channels,
                policy.on_conflict,
            )
            self._write_batch(frame, updates)
        except GraphError as error:
            code = error.code if isinstance(error, MemoryConflict) else "bad_update"
            self._fail_split(frame, Failure(node=frame.label, code=code, message=str(error), permanent=True))
            return
        self.joined.append(Join(frame.label, join, tuple(frame.finished), tuple(child.name for child in bad)))
        inputs: dict[str, Any] = {}
        for child in good:
            if child.status == "arrived":
                inputs |= child.inputs
        if policy.on_failure != "fail_all":
            inputs[FANOUT] = {
                "results": {child.name: _results(child) for child in good},
                "errors": {child.name: child.failure.plain() for child in bad if child.failure is not None},
            }
        frame.settled = frame.settled or any(child.settled for child in good)
        self._close(frame)
        if goes_on and join != END:
            self._move(frame, join, inputs)
        else:
            self._rest(frame, "ended")

    def _fail_split(self, frame: Frame, failure: Failure | None) -> None:
        failed = tuple(name for name in frame.finished if frame.children[name].status == "failed")
        self.joined.append(Join(frame.label, "", tuple(frame.finished), failed))
        self._close(frame)
        self._rest(frame, "failed", failure)

    def _close(self, frame: Frame) -> None:
        for child in frame.children.values():
            self._forget(child)
        frame.children = {}

    def _forget(self, frame: Frame) -> None:
        self.frames.pop(frame.id, None)
        for child in frame.children.values():
            self._forget(child)

    # -- the state ----------------------------------------------------------------------------

    def _write(self, frame: Frame, update: Mapping[str, Any]) -> None:
        frame.values = folded(frame.values, frame.channels, update)
        if frame.parent is not None and update:
            frame.updates.append(update)

    def _write_batch(self, frame: Frame, updates: list[Mapping[str, Any]]) -> None:
        frame.values = folded_batch(frame.values, frame.channels, updates)
        if frame.parent is not None:
            frame.updates += updates

    def _frame(self, record: Record) -> Frame:
        return self.frames[record.get("frame", "")]

    def _totals_of(self, label: str) -> Totals:
        totals = self.totals.get(label)
        if totals is None:
            totals = self.totals[label] = Totals()
        return totals


def given_back(frame: Frame, child: Frame) -> list[Mapping[str, Any]]:
    """What a finished subgraph writes into the state around it: its node's `writes`, or everything."""
    writes = frame.graph.specs[frame.node].writes
    if writes is None:
        return list(child.updates)
    kept = ({key: value for key, value in update.items() if key in writes} for update in child.updates)
    return [update for update in kept if update]


def _results(child: Frame) -> Mapping[str, Any]:
    results: dict[str, Any] = {}
    for update in child.updates:
        results |= update
    return {key: value for key, value in results.items() if value is not CLEARED}


def _no_terminal(frame: Frame) -> Failure:
    words = f"the run ended at {frame.last}, which is not one of the graph's terminals"
    return Failure(node=frame.prefix + frame.last, code="no_terminal", message=words, permanent=True)
