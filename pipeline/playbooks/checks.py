"""Check a whole playbook: its trigger, its edges and handles, its places, and where a transfer may be.

Every mistake is reported, each at its node or edge. What has a mistake of form already is not compared
further than its id and subtype allow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, Final

from pipeline.domain.frozen import dataclass
from pipeline.graph.documents.fields import closest
from pipeline.playbooks.document import (
    INTO_LOOP,
    LOOP_BACK,
    NO,
    OUT_OF_LOOP,
    TRIGGERS,
    YES,
    Edge,
    Merge,
    Node,
    Playbook,
    Router,
    SubWorkflow,
    Transfer,
    body_of,
    title,
)
from pipeline.playbooks.node_kinds import texts_of
from pipeline.playbooks.templates import TRIGGER, node_named, places
from pipeline.workflows.mistakes import Mistake

MAX_DEPTH: Final = 4
"""Sub-workflows below each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedEdge:
    """An edge at its place in the document."""

    place: str
    edge: Edge


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPlaybook:
    """A document as far as it could be read."""

    kinds: Mapping[str, str]
    """Every node's subtype."""
    nodes: Mapping[str, Node]
    edges: tuple[PlacedEdge, ...]

    @property
    def known_edges(self) -> tuple[Edge, ...]:
        """The edges between nodes that there are."""
        ends = (placed.edge for placed in self.edges)
        return tuple(edge for edge in ends if edge.source in self.kinds and edge.target in self.kinds)


def whole_mistakes(read: ReadPlaybook) -> Iterator[Mistake]:
    """Every mistake of the whole document."""
    return chain(
        _triggers(read),
        chain.from_iterable(_edge(read, placed) for placed in read.edges),
        _repeated(read),
        chain.from_iterable(_places(read, node) for node in read.nodes.values()),
        _loops(read),
        _transfers(read),
    )


def _triggers(read: ReadPlaybook) -> Iterator[Mistake]:
    triggers = [name for name, kind in read.kinds.items() if kind in TRIGGERS]
    if not triggers:
        what = f"there is no trigger; add one node of a subtype such as {TRIGGERS[1]}"
        yield Mistake(field="nodes", what=what)
    for name in triggers[1:]:
        yield Mistake(node=name, field="subtype", what=f"is a second trigger beside {triggers[0]}; keep one")
    for name in triggers[:1]:
        if not any(edge.source == name for edge in read.known_edges):
            yield Mistake(node=name, what="nothing follows the trigger; connect it to the first step")


def _edge(read: ReadPlaybook, placed: PlacedEdge) -> Iterator[Mistake]:
    one, kinds = placed.edge, read.kinds
    for field, name in (("source", one.source), ("target", one.target)):
        if name not in kinds:
            what = f"there is no node {name!r}{closest(name, kinds)}"
            yield Mistake(connection=placed.place, field=field, what=what)
    if kinds.get(one.target) in TRIGGERS:
        yield Mistake(connection=placed.place, field="target", what="nothing leads to a trigger; remove it")
    into = ("", LOOP_BACK) if kinds.get(one.target) == "loop" else ("",)
    if one.target in kinds and one.into not in into:
        what = f"{one.into!r} is no handle of {one.target}; write input, or none"
        yield Mistake(connection=placed.place, field="targetHandle", what=what)
    known = _handles(read, one.source)
    if known is not None and not one.handle and kinds.get(one.source) == "loop":
        what = f"is missing; {one.source} has: {', '.join(known)}"
        yield Mistake(connection=placed.place, field="sourceHandle", what=what)
    if known is not None and one.handle and one.handle not in known:
        shown = ", ".join(known) or "none"
        what = f"{one.handle!r} is given, but {one.source} has: {shown}"
        yield Mistake(connection=placed.place, field="sourceHandle", what=what)
    if kinds.get(one.source) == "transfer":
        yield Mistake(connection=placed.place, field="source", what="nothing follows a transfer; remove it")


def _handles(read: ReadPlaybook, source: str) -> tuple[str, ...] | None:
    """The handles of a node; None if they are not known."""
    node = read.nodes.get(source)
    match read.kinds.get(source):
        case "condition":
            return (YES, NO)
        case "loop":
            return (INTO_LOOP, OUT_OF_LOOP)
        case "router":
            count = len(node.routes) if isinstance(node, Router) else 0
            return tuple(f"route-{at}" for at in range(count))
        case None:
            return None
        case _:
            return ("output",)


def _repeated(read: ReadPlaybook) -> Iterator[Mistake]:
    seen: set[Edge] = set()
    for placed in read.edges:
        if placed.edge in seen:
            yield Mistake(connection=placed.place, what="is given more than once; remove the others")
        seen.add(placed.edge)


def _places(read: ReadPlaybook, node: Node) -> Iterator[Mistake]:
    """Places that name no node, or several. Any other text in double braces stays as it is."""
    for field, tree in texts_of(node).items():
        for place in dict.fromkeys(place for text in _texts(tree) for place in places(text)):
            name, _, wanted = place.rpartition(".")
            if place == TRIGGER or wanted not in ("result", "threadId"):
                continue
            where = f"config.{field}"
            if node_named(name, read.nodes) is None:
                if name not in read.kinds:
                    names = [title(one) for one in read.nodes.values()]
                    what = f"{{{{{place}}}}} names no node{closest(name, names)}"
                    yield Mistake(node=node.id, field=where, what=what)
            elif sum(one.label == name for one in read.nodes.values()) > 1:
                what = f"{{{{{place}}}}} names several nodes; use the id of one"
                yield Mistake(node=node.id, field=where, what=what)


def _texts(tree: Any) -> Iterator[str]:
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, Mapping):
        yield from chain.from_iterable(_texts(one) for one in tree.values())
    elif isinstance(tree, list | tuple):
        yield from chain.from_iterable(_texts(one) for one in tree)


def _loops(read: ReadPlaybook) -> Iterator[Mistake]:
    for name, kind in read.kinds.items():
        if kind == "loop" and not any(
            (edge.source, edge.handle) == (name, INTO_LOOP) for edge in read.known_edges
        ):
            yield Mistake(
                node=name, what=f"nothing follows its handle {INTO_LOOP}; connect the steps to repeat"
            )


def _transfers(read: ReadPlaybook) -> Iterator[Mistake]:
    """A transfer ends everything else, so it is neither in a loop nor beside other branches."""
    for name, node in read.nodes.items():
        if isinstance(node, Transfer):
            yield from (Mistake(node=name, what=what) for what in _misplaced(name, read))


def misplaced(name: str, playbook: Playbook) -> bool:
    """Whether something else of the playbook may be at work when the node is reached."""
    edges = tuple(PlacedEdge(place="", edge=edge) for edge in playbook.edges)
    kinds = {one: node.subtype for one, node in playbook.nodes.items()}
    return any(_misplaced(name, ReadPlaybook(kinds=kinds, nodes=playbook.nodes, edges=edges)))


def _misplaced(name: str, read: ReadPlaybook) -> Iterator[str]:
    edges = read.known_edges
    if any(kind == "loop" and name in body_of(loop, edges) for loop, kind in read.kinds.items()):
        yield "is inside of a loop; lead out of the loop first"
    for source in read.kinds:
        for targets in _fan_outs(source, edges):
            if name in _beside(targets, read, edges):
                yield f"is in a branch behind {source}; merge the branches first"
                return


def _fan_outs(source: str, edges: tuple[Edge, ...]) -> list[list[str]]:
    """The targets that are followed together, where they are several."""
    own = [edge for edge in edges if edge.source == source and edge.into != LOOP_BACK]
    handles = {edge.handle for edge in own}
    found = [[edge.target for edge in own if edge.handle in ("", handle)] for handle in handles]
    return [targets for targets in found if len(targets) > 1]


def _beside(targets: list[str], read: ReadPlaybook, edges: tuple[Edge, ...]) -> set[str]:
    """What is reached from branches before a merge that waits for all of them."""
    joins = {
        name
        for name, node in read.nodes.items()
        if isinstance(node, Merge)
        and node.strategy == "wait-all"
        and all(name in _behind(target, edges, frozenset()) for target in targets)
    }
    return {name for target in targets for name in _behind(target, edges, frozenset(joins))}


def _behind(first: str, edges: tuple[Edge, ...], stops: frozenset[str]) -> set[str]:
    seen: set[str] = set()
    waiting = [first]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        if name not in stops:
            waiting += [edge.target for edge in edges if edge.source == name and edge.into != LOOP_BACK]
    return seen - stops


def nesting_mistakes(first: Playbook, others: Mapping[str, Playbook]) -> Iterator[Mistake]:
    """Sub-workflows that lead back to themselves or nest too deep, and transfers below branches."""
    for file in _files(first):
        below = _deepest(file, others, ())
        if below is None:
            yield Mistake(field="nodes", what=f"the sub-workflow {file} leads back to itself; remove one")
        elif below > MAX_DEPTH:
            what = f"the sub-workflow {file} has others below it, {below} levels in all; at most {MAX_DEPTH}"
            yield Mistake(field="nodes", what=what)
    if not any(_deepest(file, others, ()) is None for file in _files(first)):
        for node in first.nodes.values():
            if isinstance(node, SubWorkflow) and misplaced(node.id, first) and _leaves(node.workflow, others):
                yield Mistake(node=node.id, what=f"{node.workflow} has a transfer, which ends all branches")


def _files(playbook: Playbook) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(node.workflow for node in playbook.nodes.values() if isinstance(node, SubWorkflow))
    )


def _deepest(file: str, others: Mapping[str, Playbook], above: tuple[str, ...]) -> int | None:
    """The levels of sub-workflows from a file on; None where they lead in a circle."""
    if file in above:
        return None
    depths = [_deepest(below, others, (*above, file)) for below in _files(others[file])]
    return None if None in depths else 1 + max((depth for depth in depths if depth is not None), default=0)


def _leaves(file: str, others: Mapping[str, Playbook]) -> bool:
    own = others[file]
    return any(isinstance(node, Transfer) for node in own.nodes.values()) or any(
        _leaves(below, others) for below in _files(own)
    )
