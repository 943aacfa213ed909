"""A run as data: its frames, its counts, its path. Only `apply` changes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.graph.definition.structure import GraphStructure
from pipeline.graph.run.frames import Frame, root_frame
from pipeline.graph.run.outcome import Effect, Failure, Gate, NodeDiagnostics


@dataclass(slots=True)
class Totals:
    """Counts of one node, over the whole run."""

    executions: int = 0
    attempts: int = 0
    seconds: float = 0.0
    decision: str = ""
    edge_errors: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


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
    failures: list[Failure] = field(default_factory=list)
    retries: int = 0
    records: int = 0
    """Number of records applied, for the spacing of snapshots."""
    answered: set[str] = field(default_factory=set)
    """Gates that are no longer open."""
    halting: bool = False
    """A gate is open and unanswered: other frames halt at their next boundary."""
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

    def executions(self, label: str) -> int:
        """Finished executions of a node, without skipped ones."""
        totals = self.totals.get(label)
        return 0 if totals is None else totals.executions

    def open_gates(self) -> tuple[Gate, ...]:
        """Gates that wait for an answer, oldest first."""
        return tuple(frame.gate for frame in self.paused_frames() if frame.gate is not None)

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

    def diagnostics(self) -> dict[str, NodeDiagnostics]:
        """What happened to each node so far, by label."""
        return {
            label: NodeDiagnostics(
                executions=totals.executions,
                attempts=totals.attempts,
                seconds=totals.seconds,
                decision=totals.decision,
                edge_errors=totals.edge_errors,
                missing_inputs=totals.missing,
            )
            for label, totals in self.totals.items()
        }

    def totals_of(self, label: str) -> Totals:
        """A node's counts, created on first use."""
        totals = self.totals.get(label)
        if totals is None:
            totals = self.totals[label] = Totals()
        return totals
