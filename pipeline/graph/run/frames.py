"""The lines of execution of a run: the run's own, one for each parallel branch, one inside each subgraph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from pipeline.domain.errors import GraphError
from pipeline.graph.definition.decisions import EndReason
from pipeline.graph.definition.elements import END, FanOut
from pipeline.graph.definition.merging import folded, folded_batch
from pipeline.graph.definition.reducers import Channel
from pipeline.graph.definition.structure import GraphStructure, NodePlan
from pipeline.graph.run.outcome import Gate, RunFailure

FrameStatus = Literal["ready", "split", "inside", "paused", "answered", "arrived", "ended", "failed"]
"""ready: `node` is next. split: waits for its branches. inside: waits for the subgraph of `node`. paused:
its gate is open. answered: its gate was answered, and its routes are not chosen yet. arrived: a branch at
its join. ended, failed: at rest for good."""
FrameKind = Literal["run", "branch", "subgraph"]

AT_REST = frozenset({"arrived", "ended", "failed"})

NO_INPUTS: Mapping[str, Any] = MappingProxyType({})


@dataclass(slots=True, kw_only=True)
class Frame:
    """One line of execution. Only `apply` changes it."""

    id: str
    """Empty for the run's own; else the parent's id, a slash, and the branch or the subgraph's node."""
    kind: FrameKind
    graph: GraphStructure[Any, Any]
    channels: Mapping[str, Channel]
    prefix: str
    """Prefix of node names in labels: the path of subgraphs, each with a dot."""
    values: Mapping[str, Any]
    """The state as this frame sees it. Replaced at each update, never changed."""
    parent: Frame | None = None
    beside: bool = False
    """Whether branches may run beside this frame: it is one, or is inside one."""
    status: FrameStatus = "ready"
    node: str = ""
    """The next node, or the one that is paused, answered or split."""
    label: str = ""
    """The label of `node`."""
    plan: NodePlan = field(init=False, repr=False, compare=False)
    """The plan of `node`."""
    inputs: Mapping[str, Any] = field(default_factory=lambda: NO_INPUTS)
    """What the next node sees in addition to the state."""
    consecutive: int = 0
    """How often `node` was executed in a row just now."""
    last: str = ""
    """The node executed last."""
    settled: bool = False
    """A terminal was reached, or a node decided to end."""
    end_reason: EndReason = "completed"
    """The reason that the ending node gave."""
    updates: list[Mapping[str, Any]] = field(default_factory=list)
    """The updates of a branch or a subgraph since it began."""
    gate: Gate | None = None
    failure: RunFailure | None = None
    join: str = END
    """Where a branch ends."""
    children: dict[str, Frame] = field(default_factory=dict)
    finished: list[str] = field(default_factory=list)
    """The branches at rest, in the order in which they came to rest."""
    attempts: int = 0
    """Failed attempts of the node in progress."""
    effects: dict[str, tuple[str, Any]] = field(default_factory=dict)
    """Effects of the node in progress: key -> (began or done, result)."""

    @property
    def name(self) -> str:
        """A branch's first node, or END."""
        return self.id.rpartition("/")[2]

    @property
    def at_rest(self) -> bool:
        """Whether this frame has finished."""
        return self.status in AT_REST

    @property
    def policy(self) -> FanOut:
        """How the branches after `node` fail and join."""
        return self.plan.spec.fan_out or self.graph.fan_out

    def at(self, node: str) -> Frame:
        """This frame, with `node` as the next one. Raises KeyError for a node that is not in the graph."""
        self.plan = self.graph.plans[node]
        self.node, self.label = node, self.prefix + node
        return self

    def write(self, update: Mapping[str, Any]) -> None:
        """Fold one frozen update into the state."""
        self.values = folded(self.values, self.channels, update)
        if self.parent is not None and update:
            self.updates.append(update)

    def write_batch(self, updates: list[Mapping[str, Any]]) -> None:
        """Fold several frozen updates into the state, in order."""
        self.values = folded_batch(self.values, self.channels, updates)
        if self.parent is not None:
            self.updates += updates


def root_frame(graph: GraphStructure[Any, Any], values: Mapping[str, Any], entry: str) -> Frame:
    """The run's own frame, at its entry."""
    return Frame(
        id="",
        kind="run",
        graph=graph,
        channels=graph.folds,
        prefix="",
        values=values,
        inputs=NO_INPUTS,
    ).at(entry)


def branch_frame(parent: Frame, target: str, join: str, inputs: Mapping[str, Any]) -> Frame:
    """A branch that begins at `target` with the parent's state. A branch to END stays at the fan-out."""
    return Frame(
        id=f"{parent.id}/{target}",
        kind="branch",
        graph=parent.graph,
        channels=parent.channels,
        prefix=parent.prefix,
        values=parent.values,
        parent=parent,
        beside=True,
        inputs=inputs,
        join=join,
    ).at(parent.node if target == END else target)


def subgraph_frame(parent: Frame, *, repeated: bool) -> Frame:
    """The frame of the parent node's subgraph: it sees the node's `reads`, and its `inputs` as state.

    A repeated execution begins without the node's `nullable` keys, as for any node.
    Raises GraphError for a node that is not a subgraph, as when the records belong to another graph.
    """
    spec = parent.plan.spec
    graph = spec.subgraph
    if graph is None:
        raise GraphError(f"node {parent.label} is no subgraph, and cannot be entered")
    visible = parent.values
    if spec.reads is not None:
        visible = {key: parent.values[key] for key in spec.reads if key in parent.values}
    if repeated and spec.nullable:
        visible = {key: value for key, value in visible.items() if key not in spec.nullable}
    return Frame(
        id=f"{parent.id}/{parent.node}",
        kind="subgraph",
        graph=graph,
        channels=graph.folds,
        prefix=f"{parent.label}.",
        values={**visible, **parent.inputs},
        parent=parent,
        beside=parent.beside,
    ).at(graph.entry)
