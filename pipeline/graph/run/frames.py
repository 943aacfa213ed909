"""The lines of execution of a run: the run's own, one for each parallel branch, one inside each subgraph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from pipeline.domain.errors import GraphError
from pipeline.graph.definition.decisions import EndReason
from pipeline.graph.definition.elements import END, FanOut
from pipeline.graph.definition.merging import channels_of, folded, folded_batch
from pipeline.graph.definition.reducers import Channel
from pipeline.graph.definition.structure import GraphStructure, NodePlan
from pipeline.graph.run.outcome import Failure, Gate

FrameStatus = Literal["ready", "split", "inside", "paused", "answered", "arrived", "ended", "failed"]
"""ready: `node` is next. split: waits for its branches. inside: waits for the subgraph of `node`. paused:
its gate is open. answered: the gate is not, and the way out is to be found. arrived: a branch at its join.
ended, failed: at rest for good."""
FrameKind = Literal["run", "branch", "subgraph"]

AT_REST = frozenset({"arrived", "ended", "failed"})

NO_INPUTS: Mapping[str, Any] = MappingProxyType({})


@dataclass(slots=True, kw_only=True)
class Frame:
    """One line of execution. Only `applying` changes it."""

    id: str
    """Empty for the run's own; else the parent's id, a slash, and the branch or the subgraph's node."""
    kind: FrameKind
    graph: GraphStructure[Any, Any]
    channels: Mapping[str, Channel]
    prefix: str
    """Stands before node names in labels: the path of subgraphs, each with a dot."""
    values: Mapping[str, Any]
    """The state as this frame sees it. Replaced at each update, never changed."""
    parent: Frame | None = None
    status: FrameStatus = "ready"
    node: str = ""
    """The next node, or the one that is paused, answered or split."""
    label: str = ""
    """The label of `node`."""
    plan: NodePlan = field(init=False, repr=False, compare=False)
    """The plan of `node`."""
    inputs: Mapping[str, Any] = field(default_factory=lambda: NO_INPUTS)
    """What the next node sees besides the state."""
    consecutive: int = 0
    """How often `node` has just been executed in a row."""
    last: str = ""
    """The node executed last."""
    settled: bool = False
    """A terminal was reached, or the end was asked for."""
    end_reason: EndReason = "completed"
    """What the node that asked for the end said."""
    updates: list[Mapping[str, Any]] = field(default_factory=list)
    """What a branch or a subgraph has written since it began."""
    gate: Gate | None = None
    failure: Failure | None = None
    join: str = END
    """Where a branch is to arrive."""
    children: dict[str, Frame] = field(default_factory=dict)
    finished: list[str] = field(default_factory=list)
    """The branches at rest, in the order in which they came to it."""
    attempts: int = 0
    """Failed ones of the visit in progress."""
    effects: dict[str, tuple[str, Any]] = field(default_factory=dict)
    """Of the visit in progress: key -> (began or done, result)."""

    @property
    def name(self) -> str:
        """A branch's first node, or END."""
        return self.id.rpartition("/")[2]

    @property
    def at_rest(self) -> bool:
        """Whether nothing more will happen in this frame."""
        return self.status in AT_REST

    @property
    def policy(self) -> FanOut:
        """How the branches behind `node` fail and meet."""
        return self.plan.spec.fan_out or self.graph.fan_out

    def at(self, node: str) -> Frame:
        """This frame, with `node` as the next one. Raises KeyError for a node that is not in the graph."""
        self.plan = self.graph.plans[node]
        self.node, self.label = node, self.prefix + node
        return self

    def write(self, update: Mapping[str, Any]) -> None:
        """Put one frozen update into the state."""
        self.values = folded(self.values, self.channels, update)
        if self.parent is not None and update:
            self.updates.append(update)

    def write_batch(self, updates: list[Mapping[str, Any]]) -> None:
        """Put several into it, in order."""
        self.values = folded_batch(self.values, self.channels, updates)
        if self.parent is not None:
            self.updates += updates


def root_frame(graph: GraphStructure[Any, Any], values: Mapping[str, Any], entry: str) -> Frame:
    """The run's own frame, at its entry."""
    return Frame(
        id="",
        kind="run",
        graph=graph,
        channels=channels_of(graph.channels),
        prefix="",
        values=values,
    ).at(entry)


def branch_frame(parent: Frame, target: str, join: str, inputs: Mapping[str, Any]) -> Frame:
    """A branch that begins at `target` with the parent's state. One to END stays where it parted."""
    return Frame(
        id=f"{parent.id}/{target}",
        kind="branch",
        graph=parent.graph,
        channels=parent.channels,
        prefix=parent.prefix,
        values=parent.values,
        parent=parent,
        inputs=inputs,
        join=join,
    ).at(parent.node if target == END else target)


def subgraph_frame(parent: Frame, *, revisited: bool) -> Frame:
    """The inside of the parent's node: it sees the node's `reads`, and its `inputs` as if they were state.

    On a further visit it begins without the node's `nullable` keys, as any node does.
    Raises GraphError where the records of another graph had a subgraph.
    """
    spec = parent.plan.spec
    graph = spec.subgraph
    if graph is None:
        raise GraphError(f"node {parent.label} is no subgraph, and cannot be entered")
    visible = parent.values
    if spec.reads is not None:
        visible = {key: parent.values[key] for key in spec.reads if key in parent.values}
    if revisited and spec.nullable:
        visible = {key: value for key, value in visible.items() if key not in spec.nullable}
    return Frame(
        id=f"{parent.id}/{parent.node}",
        kind="subgraph",
        graph=graph,
        channels=channels_of(graph.channels),
        prefix=f"{parent.label}.",
        values={**visible, **parent.inputs},
        parent=parent,
    ).at(graph.entry)
