"""A whole graph as declared: its nodes with their declarations, and its edges. Not validated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from typing import Any, Generic, NamedTuple

from pipeline.domain.frozen import dataclass
from pipeline.graph.definition.decisions import ContextT, Node, StateT
from pipeline.graph.definition.elements import (
    END,
    Always,
    ConversationMode,
    EdgeSpec,
    FanOut,
    Goal,
    Kept,
    Limits,
    LlmDecide,
    OnFailure,
    OnSuccess,
    Route,
)
from pipeline.graph.definition.exits import Exits
from pipeline.graph.definition.joins import Joins
from pipeline.graph.definition.merging import RESERVED, channels_of
from pipeline.graph.definition.reducers import Channel
from pipeline.graph.definition.retry import RetryPolicy


class NodePlan(NamedTuple):
    """A node with everything the executor looks up before it runs it."""

    spec: NodeSpec[Any, Any]
    exits: Exits
    ends: bool
    """It is a terminal."""
    pauses: bool
    """It is one of the graph's pause nodes."""
    sees_all: bool
    """Its view is the whole state, on every execution."""
    ordinary: bool
    """It has no declaration that the end of its steps depends on: see `execution.fast_path`."""
    surfaced: frozenset[str] | None
    """The keys that its subgraph writes into the outer state; None for all."""
    whole: frozenset[str]
    """Those of them that the subgraph alone has a channel for: they are given as their final value."""
    writes: frozenset[str] | None
    """The keys that it may write; None for any that the engine does not write."""
    required: tuple[str, ...]
    """The keys that its update must have."""


# No slots: on Python 3.11 a frozen generic with slots cannot be built as `NodeSpec[Context](…)`.
@dataclass(frozen=True, kw_only=True)
class NodeSpec(Generic[ContextT, StateT]):
    """A node with its declarations. A plain function among a graph's nodes gets the defaults."""

    run: Node[ContextT, StateT] | None = None
    """The function; exactly one of `run` and `subgraph` is given."""
    subgraph: GraphStructure[ContextT, StateT] | None = None
    """A whole graph as one node: it receives the keys of `reads` and returns those of `writes`."""
    description: str = ""
    shown: str = ""
    """What people read of it while it runs; empty for nothing."""
    reads: tuple[str, ...] | None = None
    """The keys this node may read; None for all, an empty tuple for none."""
    writes: tuple[str, ...] | None = None
    """The keys it may write, and must unless they are `nullable`; None for any."""
    nullable: tuple[str, ...] = ()
    """Keys of `writes` that may stay unset; a repeated execution begins without them."""
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    event_loop: bool = False
    """The node retries internally, so the executor ignores `retry` and runs it once."""
    max_visits: int = 0
    """After this many executions the node is skipped, which counts as success; 0 is no limit."""
    timeout_s: float | None = None
    """Deadline of one attempt, in seconds."""
    reviser: str | None = None
    """Where `Revise` goes."""
    goes_to: tuple[str, ...] | None = None
    """The only targets `Goto` may name (END: the node may return `End`). They count as routes; without
    the declaration a jump may go anywhere and does not count as a route."""
    fan_out: FanOut | None = None
    """For branches that begin after this node, instead of the graph's policy."""
    kind: str = ""
    """In a document: the kind of node that made `run` or `subgraph` from `parameters`. The engine reads
    neither."""
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def attempts(self) -> int:
        """The maximum number of attempts, the first included."""
        return 1 if self.event_loop or self.subgraph is not None else self.retry.max_attempts

    @property
    def required(self) -> tuple[str, ...]:
        """The keys that an update must have. The judge of an event loop has checked its keys."""
        if self.event_loop:
            return ()
        return tuple(key for key in self.writes or () if key not in self.nullable)


@dataclass(frozen=True, kw_only=True)
class GraphStructure(Generic[ContextT, StateT]):
    """A graph as declared, possibly with mistakes: a `GraphSpec` has been checked."""

    name: str
    entry: str
    nodes: Mapping[str, Node[ContextT, StateT] | NodeSpec[ContextT, StateT]]
    edges: tuple[EdgeSpec, ...]
    limits: Limits = field(default_factory=Limits)
    version: str = "1"
    goal: Goal | None = None
    entry_points: Mapping[str, str] = field(default_factory=dict)
    """Additional entries: name -> node."""
    terminals: tuple[str, ...] = ()
    """Nodes that end the run. When declared, a run that ends anywhere else has failed."""
    pause_nodes: tuple[str, ...] = ()
    """Nodes after which a gate opens, as if they had returned `Pause`."""
    channels: Mapping[str, Channel] = field(default_factory=dict)
    """How updates of a key combine. A key without a channel is replaced."""
    fan_out: FanOut = field(default_factory=FanOut)
    conversation: ConversationMode = "continuous"
    """Passed to the phase hook whenever the run moves to another node."""
    keep: Mapping[str, Kept] = field(default_factory=dict)
    """Keys that outlive the run. The engine does not read it: the host passes them as inputs."""

    @cached_property
    def specs(self) -> Mapping[str, NodeSpec[ContextT, StateT]]:
        """Every node as a NodeSpec."""
        return {
            node: given if isinstance(given, NodeSpec) else NodeSpec(run=given)
            for node, given in self.nodes.items()
        }

    @cached_property
    def outgoing(self) -> Mapping[str, tuple[EdgeSpec, ...]]:
        """The edges out of each node, in declaration order."""
        found: dict[str, list[EdgeSpec]] = {node: [] for node in self.nodes}
        for edge in self.edges:
            found.setdefault(edge.source, []).append(edge)
        return {node: tuple(edges) for node, edges in found.items()}

    @cached_property
    def exits(self) -> Mapping[str, Exits]:
        """The edges out of each node, sorted by kind."""
        return {node: Exits.of(self.edges_from(node)) for node in self.nodes}

    @cached_property
    def plans(self) -> Mapping[str, NodePlan]:
        """The NodePlan of every node, computed once."""
        return {
            node: NodePlan(
                spec=spec,
                exits=self.exits[node],
                ends=node in self.terminals,
                pauses=node in self.pause_nodes,
                sees_all=spec.reads is None and not spec.nullable,
                ordinary=self._is_ordinary(node, spec),
                surfaced=(surfaced := None if spec.writes is None else frozenset(spec.writes)),
                whole=self._whole(spec, surfaced),
                writes=None if spec.writes is None else frozenset(spec.writes) - RESERVED,
                required=spec.required,
            )
            for node, spec in self.specs.items()
        }

    @cached_property
    def folds(self) -> Mapping[str, Channel]:
        """The declared channels and those of the engine."""
        return channels_of(self.channels)

    @cached_property
    def successors(self) -> Mapping[str, tuple[str, ...]]:
        """The declared targets of each node: by edges, jumps and revisions.

        A terminal, and a node without any target, leads to END.
        """
        return {node: self._exits(node, spec) for node, spec in self.specs.items()}

    @cached_property
    def joins(self) -> Joins:
        """Where parallel branches join.

        A node that may return `End` ends its branch only, so it offers no path around the join. Where no
        declared path leads to the end, a run ends at a node whose conditions may all be false.
        """
        declared = dict(self.successors)
        for node, spec in self.specs.items():
            by_edge = any(END in edge.targets() for edge in self.edges_from(node))
            if END in (spec.goes_to or ()) and not by_edge and len(declared[node]) > 1:
                declared[node] = tuple(target for target in declared[node] if target != END)
        for node in _cannot_reach_end(declared):
            if not any(isinstance(edge.when, _ALWAYS_TAKEN) for edge in self.edges_from(node)):
                declared[node] = (*declared[node], END)
        return Joins(declared, END)

    def join_of(self, source: str, targets: tuple[str, ...]) -> str:
        """Where the branches that begin at `targets` after `source` join; END without a join."""
        policy = self.specs[source].fan_out or self.fan_out
        return END if policy.join == "none" else self.joins.of(targets)

    def edges_from(self, node: str) -> tuple[EdgeSpec, ...]:
        """The edges out of `node`, in declaration order."""
        return self.outgoing.get(node, ())

    def _is_ordinary(self, node: str, spec: NodeSpec[ContextT, StateT]) -> bool:
        stops = node in self.terminals or node in self.pause_nodes
        exits = self.exits[node]
        leads = exits.route is not None or (exits.plain is not None and len(exits.plain) == 1)
        return leads and not (spec.nullable or stops)

    def _whole(self, spec: NodeSpec[ContextT, StateT], surfaced: frozenset[str] | None) -> frozenset[str]:
        if spec.subgraph is None:
            return frozenset()
        own = frozenset(spec.subgraph.folds) - self.folds.keys()
        return own if surfaced is None else own & surfaced

    def _exits(self, node: str, spec: NodeSpec[ContextT, StateT]) -> tuple[str, ...]:
        if node in self.terminals:
            return (END,)
        edges = self.edges_from(node)
        exits = [target for edge in edges for target in edge.targets()]
        if edges and all(isinstance(edge.when, OnFailure) for edge in edges):
            exits.append(END)
        exits += spec.goes_to or ()
        if spec.reviser is not None:
            exits.append(spec.reviser)
        return tuple(dict.fromkeys(exits)) or (END,)


_ALWAYS_TAKEN = (Always, OnSuccess, LlmDecide, Route)


def _cannot_reach_end(successors: Mapping[str, tuple[str, ...]]) -> set[str]:
    sources: dict[str, list[str]] = {}
    for node, targets in successors.items():
        for target in targets:
            sources.setdefault(target, []).append(node)
    reaches, waiting = {END}, [END]
    while waiting:
        for node in sources.get(waiting.pop(), ()):
            if node not in reaches:
                reaches.add(node)
                waiting.append(node)
    return set(successors) - reaches
