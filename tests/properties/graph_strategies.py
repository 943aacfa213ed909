"""Random graphs that are valid by construction: blocks with one way in and one way out, put together.

A block leads to the node that it is given as `after`. Nodes do what a `NodePlan` says; see graph_world.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from pipeline.graph.definition.decisions import State
from pipeline.graph.definition.elements import (
    END,
    Always,
    Condition,
    EdgeSpec,
    FanOut,
    Limits,
    LlmDecide,
    OnFailure,
    OnSuccess,
    Route,
    When,
)
from pipeline.graph.definition.retry import RetryPolicy
from pipeline.graph.definition.spec import GraphSpec
from pipeline.graph.definition.structure import NodeSpec
from tests.properties.graph_world import CHANNELS, NodePlan, PlannedNode, World, digest


class Scenario:
    """A graph and how its gates are answered; printed as the lines that made it."""

    def __init__(self, graph: GraphSpec[World, State], lines: Sequence[str], *, one_by_one: bool) -> None:
        self.graph = graph
        self.one_by_one = one_by_one
        """Of several open gates, one is answered before the run continues."""
        self._lines = lines

    def __repr__(self) -> str:
        return "\n".join(["", *self._lines, f"answers {self.one_by_one=}"])


@st.composite
def scenarios(draw: st.DrawFn, *, any_order: bool = False, parallel: bool = True) -> Scenario:
    """Graphs of up to about twelve nodes.

    With `any_order`, how a run ends does not depend on the order in which parallel branches finish, apart
    from the order of lists: no conflicts, no failed branches, no limits that are ever reached. Without it, no
    branch has a gate.
    """
    builder = _Builder(
        draw=draw,
        any_order=any_order,
        parallel=parallel,
        left=draw(st.integers(3, 12)),
        contested=not any_order and draw(st.booleans()),
    )
    graph = builder.graph("g", depth=0)
    return Scenario(graph, builder.lines, one_by_one=draw(st.booleans()))


class ByDigest:
    """A route's choice: by the state."""

    def __init__(self, targets: tuple[str, ...], *, several: bool) -> None:
        self._targets = targets
        self._several = several

    def __call__(self, state: State) -> str | tuple[str, ...]:
        number = digest({"state": dict(state)})
        if not self._several:
            return self._targets[number % len(self._targets)]
        chosen = tuple(target for place, target in enumerate(self._targets) if number >> place & 1)
        return chosen or self._targets


def _even(state: State) -> bool:
    return digest({"state": dict(state)}) % 2 == 0


@dataclass
class _Builder:
    draw: st.DrawFn
    any_order: bool
    parallel: bool
    left: int
    """Nodes that may still be added."""
    contested: bool
    """All of them write one key that has no channel."""
    gateless: bool = False
    """Within branches whose order counts: a node that was at work beside a gate when the run was killed is
    deferred afterwards, as nothing on record says that it had begun."""
    lines: list[str] = field(default_factory=list)
    made: int = 0
    nodes: dict[str, NodeSpec[World, State]] = field(default_factory=dict)
    edges: list[EdgeSpec] = field(default_factory=list)
    pauses: list[str] = field(default_factory=list)

    # -- whole graphs -------------------------------------------------------------------------

    def graph(self, name: str, depth: int) -> GraphSpec[World, State]:
        outside = (self.nodes, self.edges, self.pauses)
        self.nodes, self.edges, self.pauses = {}, [], []
        after = END
        terminals: tuple[str, ...] = ()
        if self.draw(st.booleans()):
            after = self.node(self.plan(), says="terminal")
            terminals = (after,)
        entry = self.block(after, depth=depth, inside=False, last=True)
        fan_out = self.fan_out_policy()
        graph = GraphSpec(
            name=name,
            entry=entry,
            nodes=self.nodes,
            edges=tuple(self.edges),
            terminals=terminals,
            pause_nodes=tuple(self.pauses),
            channels=CHANNELS,
            fan_out=fan_out,
            limits=Limits(
                max_steps=500 if self.any_order else self.draw(st.sampled_from((10, 40))),
                max_consecutive=40 if self.any_order else self.draw(st.sampled_from((2, 40))),
            ),
        )
        self.lines.append(f"graph {name}: entry {entry}, {terminals=}, pauses={self.pauses}, {fan_out}")
        self.lines.append(f"    {graph.limits}")
        self.nodes, self.edges, self.pauses = outside
        return graph

    # -- blocks -------------------------------------------------------------------------------

    def block(self, after: str, *, depth: int, inside: bool, last: bool = False) -> str:
        """Nodes that lead to `after`; returns the first. `inside` a branch; `last` before the end."""
        kinds: list[Callable[..., str]] = [self.leaf]
        if self.left >= 2:
            kinds += [self.chain, self.choice, self.loop, self.rescue]
            kinds += [] if self.gateless else [self.gate]
            kinds += [self.subgraph] if depth < 2 else []
        if self.left >= 4 and self.parallel:
            kinds += [self.fan, self.fan]
        kind = self.draw(st.sampled_from(kinds))
        first: str = kind(after, depth=depth, inside=inside, last=last)
        return first

    def leaf(self, after: str, *, inside: bool, **_: Any) -> str:
        decision = self.draw(st.sampled_from(("next", "next", "continue", "end")))
        # What a branch brings to its join, mapped keys and a failure, goes by the order of arrival.
        free = not (self.any_order and inside)
        plan = self.plan(decision=decision, may_fail=free)
        styles = ("always", "success", "when", "route", "mapped") if free else ("always", "success", "route")
        style = self.draw(st.sampled_from(styles))
        node = self.node(plan)
        match style:
            case "success":
                self.edge(node, after, OnSuccess())
                if self.draw(st.booleans()):
                    self.edge(node, after, OnFailure())
            case "when":
                self.edge(node, after, When("number >= 0"))
                self.edge(node, after, Always())
            case "route":
                self.edges.append(
                    EdgeSpec(source=node, when=Route(ByDigest((after,), several=False), (after,)))
                )
                self.lines.append(f"  edge {node} -> {after} Route")
            case "mapped":
                self.edge(node, after, Always(), mapping={"alias": f"own_{node}", "more": "log"})
            case _:
                self.edge(node, after, Always())
        return node

    def chain(self, after: str, **where: Any) -> str:
        second = self.block(after, **where)
        return self.block(second, **(where | {"last": False}))

    def choice(self, after: str, **where: Any) -> str:
        style = self.draw(st.sampled_from(("when", "function", "llm", "route", "goto")))
        node = self.name()
        one = self.block(after, **where)
        other = after if style != "route" and self.draw(st.booleans()) else self.block(after, **where)
        goto = f"goto {other}" if style == "goto" else "next"
        goes_to = (other,) if style == "goto" else None
        self.node(self.plan(node, decision=goto, until=2), goes_to=goes_to)
        match style:
            case "when":
                self.edge(node, one, When(f"own_{node} >= 500"))
                self.edge(node, other, Always())
            case "function":
                self.edge(node, one, When(_even))
                self.edge(node, other, Always())
            case "llm":
                self.edge(node, one, LlmDecide("the one"), fallback=True)
                self.edge(node, other, LlmDecide("the other"))
            case "route":
                route = Route(ByDigest((one, other), several=False), (one, other))
                self.edges.append(EdgeSpec(source=node, when=route))
                self.lines.append(f"  edge {node} -> {one}, {other} Route")
            case _:
                self.edge(node, one, Always())
        return node

    def fan(self, after: str, *, depth: int, inside: bool, last: bool) -> str:
        node = self.name()
        open_ended = last and after == END and not inside and self.draw(st.booleans())
        join = END if open_ended else self.leaf(after, inside=inside)
        outside, self.gateless = self.gateless, not self.any_order
        arms = [self.block(join, depth=depth, inside=True) for _ in range(self.draw(st.integers(2, 3)))]
        self.gateless = outside
        if not open_ended and self.draw(st.integers(0, 5)) == 0:
            arms.append(join)
        policy = self.fan_out_policy() if self.draw(st.booleans()) else None
        self.node(self.plan(node), fan_out=policy)
        style = self.draw(st.sampled_from(("success", "always", "when", "llm", "route")))
        if style == "route":
            route = Route(ByDigest(tuple(arms), several=True), tuple(arms))
            self.edges.append(EdgeSpec(source=node, when=route))
            self.lines.append(f"  edge {node} -> {arms} Route")
            return node
        for place, arm in enumerate(arms):
            leading = place == 0 and join != arm
            if style == "when" and leading:
                self.edge(node, arm, When("number >= 0"))
            elif style == "llm" and leading:
                self.edge(node, arm, LlmDecide("go"), fallback=True)
            else:
                self.edge(node, arm, Always() if style == "always" else OnSuccess())
        return node

    def loop(self, after: str, **where: Any) -> str:
        tail = self.name()
        head = self.block(tail, **(where | {"last": False}))
        rounds = self.draw(st.integers(2, 3))
        style = self.draw(st.sampled_from(("when", "revise", "goto")))
        decision = {"when": "next", "revise": "revise", "goto": f"goto {head}"}[style]
        self.node(
            self.plan(tail, decision=decision, until=rounds - 1),
            reviser=head if style == "revise" else None,
            goes_to=(head,) if style == "goto" else None,
            max_visits=0 if self.any_order else self.draw(st.sampled_from((0, 0, 1, 2))),
        )
        if style == "when":
            self.edge(tail, head, When(f"visits_{tail} < {rounds}"))
        self.edge(tail, after, Always())
        return head

    def rescue(self, after: str, **where: Any) -> str:
        node = self.name()
        helper = self.block(after, **where)
        self.node(self.plan(node, fails_at=self.draw(st.integers(1, 2)), failing=9))
        self.edge(node, helper, OnFailure())
        self.edge(node, after, OnSuccess())
        return node

    def gate(self, after: str, **where: Any) -> str:
        node = self.name()
        helper = self.block(after, **where)
        by_declaration = self.draw(st.booleans())
        self.node(self.plan(node, decision="next" if by_declaration else "pause", until=9))
        if by_declaration:
            self.pauses.append(node)
        self.edge(node, helper, When("choice == 'yes'"))
        self.edge(node, after, Always())
        return node

    def subgraph(self, after: str, *, depth: int, **_: Any) -> str:
        node = self.name()
        graph = self.graph(f"{node}_graph", depth + 1)
        some = st.sampled_from((None, ("log", "sum"), ()))
        reads, writes = self.draw(some), self.draw(some)
        self.nodes[node] = NodeSpec(subgraph=graph, reads=reads, writes=writes, nullable=writes or ())
        self.lines.append(f"  node {node}: subgraph {graph.name}, {reads=}, {writes=}")
        self.edge(node, after, Always())
        return node

    # -- parts --------------------------------------------------------------------------------

    def name(self) -> str:
        self.left -= 1
        self.made += 1
        # Later nodes sort anywhere among earlier ones, as turns are given by name.
        return f"{self.draw(st.sampled_from('abcd'))}{self.made}"

    def plan(self, name: str = "", *, may_fail: bool = False, **fields: Any) -> NodePlan:
        keys = ["log", "seen", "sum"] if self.any_order else ["log", "seen", "sum", "oldest", "newest"]
        writes = self.draw(st.lists(st.sampled_from(keys), max_size=2, unique=True))
        if self.contested:
            writes.append("shared")
        if may_fail and self.draw(st.integers(0, 2)) == 0:
            fields |= {
                "fails_at": self.draw(st.integers(1, 2)),
                "failing": self.draw(st.integers(1, 3)),
                "permanent": self.draw(st.booleans()),
            }
        return NodePlan(
            name=name or self.name(),
            writes=("own", *writes),
            effect=self.draw(st.booleans()),
            forgets=self.draw(st.booleans()),
            **fields,
        )

    def node(self, plan: NodePlan, *, says: str = "", **fields: Any) -> str:
        attempts = self.draw(st.integers(1, 3))
        own = (f"own_{plan.name}", f"visits_{plan.name}")
        writes: tuple[str, ...] | None = None
        nullable: tuple[str, ...] = ()
        # Two branches that declare a write of the same key without a channel may not be built.
        if "shared" not in plan.writes and self.draw(st.booleans()):
            writes = (*own, *(key for key in plan.writes if key != "own"))
            nullable = own if plan.forgets else ()
        reads = self.draw(st.sampled_from((None, None, ("log", "number"), ("shared", "sum"))))
        self.nodes[plan.name] = NodeSpec(
            run=PlannedNode(plan),
            reads=reads,
            writes=writes,
            nullable=nullable,
            retry=RetryPolicy(max_attempts=attempts, delay_s=0.0),
            **fields,
        )
        self.lines.append(f"  node {plan} {attempts=} {reads=} {nullable=} {fields or ''} {says}")
        return plan.name

    def edge(self, source: str, target: str, when: Condition, **fields: Any) -> None:
        self.edges.append(EdgeSpec(source=source, target=target, when=when, **fields))
        self.lines.append(f"  edge {source} -> {target} {when} {fields or ''}")

    def fan_out_policy(self) -> FanOut:
        if self.any_order:
            return FanOut(on_failure="wait_all", branch_timeout_s=None)
        return FanOut(
            on_failure=self.draw(st.sampled_from(("fail_all", "continue_others", "wait_all"))),
            on_conflict=self.draw(st.sampled_from(("last_wins", "first_wins", "error"))),
            branch_timeout_s=None,
        )
