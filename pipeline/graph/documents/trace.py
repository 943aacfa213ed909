"""Read a run's records as a trace for people, without running or rebuilding the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from pipeline.domain.frozen import dataclass
from pipeline.graph.definition.elements import END
from pipeline.graph.run.records import Head, RawRecord, head_of, valid_records


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedStep:
    """One execution of a node."""

    node: str
    """The node's label, with the path of subgraphs."""
    decision: str
    to: tuple[str, ...]
    seconds: float
    attempts: int
    error: str = ""
    skipped: bool = False
    branch: str = ""
    """The path of branches it ran in; empty outside any branch."""
    update: Mapping[str, Any] = field(default_factory=dict)
    """Its changes to the state; empty if the record omits them."""
    used: tuple[int, ...] = ()
    """Tokens of prompt and answer, if the record keeps them without the update."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A run as recorded."""

    head: Head
    steps: tuple[TracedStep, ...]
    status: str
    """`completed`, `failed: max_steps` …, `paused`, `cancelled`, or `not finished`."""
    open_gates: tuple[str, ...]
    """Nodes that wait for a person."""
    unreadable: int = 0
    """Records that could not be read."""

    @property
    def path(self) -> tuple[str, ...]:
        """The nodes executed, in order, and END if the run completed; for the picture."""
        nodes = tuple(step.node for step in self.steps if not step.skipped)
        return (*nodes, END) if nodes and self.status == "completed" else nodes

    @property
    def quality(self) -> str:
        """As `RunOutcome.quality`, from what is on record: `clean`, `degraded` or `failed`."""
        if self.status.startswith(("failed", "cancelled")):
            return "failed"
        return "degraded" if any(step.error or step.attempts > 1 for step in self.steps) else "clean"

    @property
    def failed(self) -> tuple[str, ...]:
        """The nodes that failed for good at least once."""
        return tuple(dict.fromkeys(step.node for step in self.steps if step.error))


def trace(records: Sequence[RawRecord]) -> Trace:
    """The trace of `records`, given oldest first. Raises RunUnreadable without a readable head."""
    valid = valid_records(records)
    head = head_of(valid)
    reader = _Reader()
    for record in valid:
        if record is not None:
            reader.read(record)
    return Trace(
        head=head,
        steps=tuple(reader.steps),
        status=reader.status,
        open_gates=tuple(reader.gates.values()),
        unreadable=valid.count(None),
    )


class _Reader:
    """Collects the trace in one pass over the records."""

    def __init__(self) -> None:
        self.steps: list[TracedStep] = []
        self.status = "not finished"
        self.gates: dict[str, str] = {}
        self._subgraphs: set[str] = set()

    def read(self, record: Mapping[str, Any]) -> None:
        """Add one record to the trace."""
        frame, node = record.get("frame", ""), record.get("node", "")
        match record.get("do"):
            case "enter":
                self._subgraphs.add(f"{frame}/{node}")
            case "step":
                self._step(record, frame, node)
            case "route":
                self.gates = {
                    gate: label for gate, label in self.gates.items() if label != self._label(frame, node)
                }
            case "answer":
                self.gates.pop(record.get("gate", {}).get("id", ""), None)
                self.status = "not finished"
            case "pause":
                self.status = "paused"
            case "cancel":
                self.status = "cancelled"
            case "end":
                status, reason = record.get("status", ""), record.get("reason", "")
                self.status = status if reason in ("", status) else f"{status}: {reason}"

    def _step(self, record: Mapping[str, Any], frame: str, node: str) -> None:
        label = self._label(frame, node)
        error = record.get("error")
        self.steps.append(
            TracedStep(
                node=label,
                decision=record.get("decision", "next"),
                to=tuple(record.get("to", ())),
                seconds=record.get("seconds", 0.0),
                attempts=record.get("attempts", 1),
                error="" if error is None else f"{error.get('code')}: {error.get('message')}",
                skipped=bool(record.get("skipped", False)),
                branch=self._branch(frame),
                update=record.get("update", {}),
                used=tuple(record.get("used", ())),
            )
        )
        self.status = "not finished"
        if "gate" in record:
            self.gates[record["gate"]["id"]] = label

    def _label(self, frame: str, node: str) -> str:
        inside = [name for place, name in _places(frame) if place in self._subgraphs]
        return ".".join([*inside, node])

    def _branch(self, frame: str) -> str:
        return "/".join(name for place, name in _places(frame) if place not in self._subgraphs)


def _places(frame: str) -> list[tuple[str, str]]:
    """Each frame on the way to this one: (its id, its last part)."""
    parts = frame.split("/")[1:]
    return [("/" + "/".join(parts[: at + 1]), part) for at, part in enumerate(parts)]
