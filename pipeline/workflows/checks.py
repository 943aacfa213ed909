"""Check a whole workflow: its start, its connections, their handles, its sub-agents, and whether it can run.

Every mistake is reported, each at its node or connection. What has a mistake of form already is not compared
further than its id and type allow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Final

from pipeline.domain.frozen import dataclass
from pipeline.graph.documents.fields import closest
from pipeline.workflows.document import (
    DECISIONS,
    NOTE,
    OTHERWISE,
    Connection,
    If,
    Node,
    WorkflowAgent,
    WorkflowApproval,
    places,
)
from pipeline.workflows.mistakes import Mistake

MAX_DEPTH: Final = 4
"""Sub-agents below each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedConnection:
    """A connection at its place in the document."""

    place: str
    connection: Connection
    into: str
    """The handle at its target; empty where none is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadDocument:
    """A document as far as it could be read."""

    kinds: Mapping[str, str]
    """Every node's type."""
    nodes: Mapping[str, Node]
    connections: tuple[PlacedConnection, ...]

    def routes(self, source: str) -> list[Connection]:
        """The connections that a run follows from a node."""
        return [
            placed.connection
            for placed in self.connections
            if placed.connection.source == source and not placed.connection.delegates
        ]


def whole_mistakes(read: ReadDocument) -> Iterator[Mistake]:
    """Every mistake of the whole document."""
    return chain(
        _starts(read),
        chain.from_iterable(_connection(read, placed) for placed in read.connections),
        _repeated(read),
        _delegation(read),
        chain.from_iterable(_places(read, node) for node in read.nodes.values()),
        _readiness(read),
    )


def _starts(read: ReadDocument) -> Iterator[Mistake]:
    starts = [name for name, kind in read.kinds.items() if kind == "start"]
    if not starts:
        yield Mistake(field="nodes", what="there is no start node; add exactly one node of the type start")
    for name in starts[1:]:
        yield Mistake(node=name, field="type", what=f"is a second start beside {starts[0]}; keep one of them")


def _connection(read: ReadDocument, placed: PlacedConnection) -> Iterator[Mistake]:
    one, kinds = placed.connection, read.kinds
    for field, name in (("source", one.source), ("target", one.target)):
        if name not in kinds:
            what = f"there is no node {name!r}{closest(name, kinds)}"
            yield Mistake(connection=placed.place, field=field, what=what)
    if placed.into not in ("", "input"):
        yield Mistake(
            connection=placed.place,
            field="targetHandle",
            what=f"{placed.into!r} is no handle; write input, or none",
        )
    if one.delegates:
        return
    if kinds.get(one.target) == "start":
        yield Mistake(connection=placed.place, field="target", what="nothing leads to a start; remove it")
    known = _handles(read, one.source)
    if known is not None and one.handle not in known:
        shown = ", ".join(handle or "none" for handle in known) or "it has none"
        given = repr(one.handle) if one.handle else "nothing"
        yield Mistake(
            connection=placed.place,
            field="sourceHandle",
            what=f"{given} is given, but {one.source} has: {shown}",
        )


def _handles(read: ReadDocument, source: str) -> tuple[str, ...] | None:
    """The handles of a node that a run can leave by; None if they are not known."""
    match read.kinds.get(source):
        case "start" | "agent":
            return ("",)
        case "approval":
            return DECISIONS
        case "if":
            node = read.nodes.get(source)
            count = len(node.conditions) if isinstance(node, If) else 0
            return (*(f"condition-{at}" for at in range(count)), OTHERWISE)
        case _:
            return None


def _repeated(read: ReadDocument) -> Iterator[Mistake]:
    seen: set[Connection] = set()
    for placed in read.connections:
        if placed.connection in seen:
            yield Mistake(connection=placed.place, what="is given more than once; remove the others")
        seen.add(placed.connection)


def _delegation(read: ReadDocument) -> Iterator[Mistake]:
    """The constraints on sub-agents (3.3)."""
    parents: dict[str, str] = {}
    in_run = {end for placed in read.connections if not placed.connection.delegates for end in _ends(placed)}
    for placed in read.connections:
        one = placed.connection
        if not one.delegates:
            continue
        for field, name in (("source", one.source), ("target", one.target)):
            if read.kinds.get(name, "agent") != "agent":
                what = f"{name} is no agent; only agents have and are sub-agents"
                yield Mistake(connection=placed.place, field=field, what=what)
        source = read.nodes.get(one.source)
        if isinstance(source, WorkflowAgent) and not source.delegates:
            yield Mistake(
                node=one.source,
                field="data.tools.subagents",
                what=f"must be true, as {one.target} is its sub-agent",
            )
        if one.source == one.target:
            yield Mistake(connection=placed.place, what="an agent cannot be its own sub-agent; remove it")
        elif parents.setdefault(one.target, one.source) != one.source:
            what = f"{one.target} is a sub-agent of {parents[one.target]} already; it can have one parent"
            yield Mistake(connection=placed.place, field="target", what=what)
        if one.target in in_run:
            what = f"{one.target} is a sub-agent, so no other connection may begin or end at it"
            yield Mistake(connection=placed.place, field="target", what=what)
    yield from _deep(parents)


def _ends(placed: PlacedConnection) -> tuple[str, str]:
    return placed.connection.source, placed.connection.target


def _deep(parents: Mapping[str, str]) -> Iterator[Mistake]:
    """Sub-agents in a circle, each circle once, and those too deep."""
    in_circle: set[str] = set()
    for child in parents:
        above, seen = child, [child]
        while above in parents and parents[above] not in seen and parents[above] != above:
            above = parents[above]
            seen.append(above)
        back = parents.get(above)
        if back is not None and back != above:
            circle = seen[seen.index(back) :]
            if not in_circle & set(circle):
                names = " -> ".join((*reversed(circle), circle[-1]))
                yield Mistake(
                    node=circle[-1], what=f"its sub-agents lead back to it ({names}); remove one connection"
                )
            in_circle |= set(circle)
        elif len(seen) == MAX_DEPTH + 2:
            yield Mistake(
                node=child, what=f"is a sub-agent below {MAX_DEPTH} others; the most is {MAX_DEPTH} levels"
            )


def _places(read: ReadDocument, node: Node) -> Iterator[Mistake]:
    """Places for notes in texts that belong to no approval."""
    texts: dict[str, str] = {}
    if isinstance(node, WorkflowAgent):
        texts = {"data.systemPrompt": node.system_prompt, "data.userPrompt": node.user_prompt}
    elif isinstance(node, WorkflowApproval):
        texts = {"data.prompt": node.prompt}
    for field, text in texts.items():
        for place in places(text):
            if place.startswith(NOTE) and read.kinds.get(place.removeprefix(NOTE)) != "approval":
                yield Mistake(node=node.id, field=field, what=f"{{{{{place}}}}} names no approval")


def _readiness(read: ReadDocument) -> Iterator[Mistake]:
    starts = [name for name, kind in read.kinds.items() if kind == "start"]
    for name in starts[:1]:
        if not read.routes(name):
            yield Mistake(node=name, what="nothing follows the start; connect it to the first step")
    for name in _reachable(read, starts[:1]):
        kind, routes = read.kinds.get(name), read.routes(name)
        node = read.nodes.get(name)
        if kind == "if" and isinstance(node, If):
            if not node.conditions and not any(way.handle == OTHERWISE for way in routes):
                what = "has no condition and no connection from false, so nothing can follow it"
                yield Mistake(node=name, field="data.conditions", what=what)
        elif kind == "approval" and not routes:
            yield Mistake(node=name, what="nothing follows an approval or a rejection; connect at least one")


def _reachable(read: ReadDocument, starts: list[str]) -> list[str]:
    seen: dict[str, None] = {}
    waiting = list(starts)
    while waiting:
        name = waiting.pop()
        if name not in seen and name in read.kinds:
            seen[name] = None
            waiting += [way.target for way in read.routes(name)]
    return list(seen)
