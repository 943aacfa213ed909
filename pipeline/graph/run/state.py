"""A run as data: its frames, its counts, its path. Only `apply` changes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.graph.definition.structure import GraphStructure
from pipeline.graph.run.frames import Frame, root_frame
from pipeline.graph.run.outcome import Effect, Gate, NodeDiagnostics, RunFailure


@dataclass(slots=True)
class Totals:
    """Counts of one node, over the whole run."""

    executions: int = 0
    attempts: int = 0
    seconds: float = 0.0
    decision: str = ""
    edge_errors: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


class _Diagnostics(Mapping[str, NodeDiagnostics]):
    """Counts as they are now; made into values when they are read, as few are."""

    __slots__ = ("_counts",)

    def __init__(self, totals: Mapping[str, Totals]) -> None:
        self._counts = {
            label: (one.executions, one.attempts, one.seconds, one.decision, one.edge_errors, one.missing)
            for label, one in totals.items()
        }

    def __getitem__(self, label: str) -> NodeDiagnostics:
        executions, attempts, seconds, decision, edge_errors, missing = self._counts[label]
        return NodeDiagnostics(
            executions=executions,
            attempts=attempts,
            seconds=seconds,
            decision=decision,
            edge_errors=edge_errors,
            missing_inputs=missing,
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._counts)

    def __len__(self) -> int:
        return len(self._counts)


@dataclass(slots=True)
class Join:
    """A fan-out that was just joined, for the listener."""

    source: str
    join: str
    finished: tuple[str, ...]
    failed: tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class Run:
    """One run."""

    id: str
    root: Frame
    frames: dict[str, Frame]
    path: list[str] = field(default_factory=list)
    """Labels of the nodes executed, without skipped ones."""
    steps: int = 0
    """Finished node executions, skipped ones included."""
    totals: dict[str, Totals] = field(default_factory=dict)
    failures: list[RunFailure] = field(default_factory=list)
    retries: int = 0
    records: int = 0
    """Number of records applied, for the spacing of snapshots."""
    answered: set[str] = field(default_factory=set)
    """Gates that are no longer open."""
    halting: bool = False
    """A gate is open and unanswered: other frames halt at their next boundary."""
    deferred: list[str] = field(default_factory=list)
    """Frames that a gate has held back, in this order, where they continue in turn."""
    ended: bool = False
    """An `end` record has been applied."""
    joined: list[Join] = field(default_factory=list)
    """Filled by `apply`, emptied by the reader."""

    @classmethod
    def begin(
        cls, run_id: str, graph: GraphStructure[Any, Any], values: Mapping[str, Any], entry: str
    ) -> Run:
        """A run before its first step."""
        root = root_frame(graph, values, entry)
        return cls(id=run_id, root=root, frames={"": root})

    def defer(self, frame: Frame) -> None:
        """Hold back a frame that has moved to another node while a gate is open, where frames continue in
        turn. A node in progress ends first, with everything inside it."""
        if self.halting and not frame.prefix and self.in_turn and frame.id not in self.deferred:
            self.deferred.append(frame.id)

    @property
    def in_turn(self) -> bool:
        """Whether what a gate holds back continues one after the other."""
        return self.root.graph.fan_out.after_gates == "in_turn"

    def next_in_turn(self) -> str | None:
        """The frame that continues next; None if none is held back."""
        return next((name for name in self.deferred if name in self.frames), None)

    def executions(self, label: str) -> int:
        """Finished executions of a node, without skipped ones."""
        totals = self.totals.get(label)
        return 0 if totals is None else totals.executions

    def begun(self, *, outer_only: bool) -> int:
        """How many executions of nodes have begun; those inside subgraphs do not count if `outer_only`."""
        entered = [frame for frame in self.frames.values() if frame.status == "inside"]
        if not outer_only:
            return self.steps + len(entered)
        own = sum([totals.executions for label, totals in self.totals.items() if "." not in label])
        return own + sum([not frame.prefix for frame in entered])

    def open_gates(self) -> tuple[Gate, ...]:
        """Gates that wait for an answer, oldest first."""
        paused = [frame.gate for frame in self.frames.values() if frame.status == "paused"]
        return tuple([gate for gate in paused if gate is not None])

    def paused_frames(self) -> Iterator[Frame]:
        """Frames whose gate is open."""
        return (frame for frame in self.frames.values() if frame.status == "paused")

    def open_effects(self) -> tuple[Effect, ...]:
        """Effects of unfinished node executions, by frame, in the order in which they began."""
        return tuple(
            Effect(key=key, done=state == "done", result=result)
            for frame in self.frames.values()
            for key, (state, result) in frame.effects.items()
        )

    def diagnostics(self) -> Mapping[str, NodeDiagnostics]:
        """What happened to each node so far, by label."""
        return _Diagnostics(self.totals)

    def totals_of(self, label: str) -> Totals:
        """A node's counts, created on first use."""
        totals = self.totals.get(label)
        if totals is None:
            totals = self.totals[label] = Totals()
        return totals
