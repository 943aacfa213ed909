"""Draw graphs as mermaid flowcharts, optionally with the path of a run."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from pipeline.domain.errors import GraphError
from pipeline.graph.definition.elements import (
    END,
    Always,
    EdgeSpec,
    LlmDecide,
    OnFailure,
    OnSuccess,
    Route,
    When,
)
from pipeline.graph.definition.structure import GraphStructure, NodeSpec
from pipeline.graph.documents.executed_path import START, Arrow, PathTracer
from pipeline.graph.documents.library import function_name
from pipeline.graph.documents.mermaid_text import identifier, label

_STYLES = {
    "join": "stroke-width:4px",
    "visited": "fill:#dbeafe,stroke:#1d4ed8,color:#111827",
    "waiting": "fill:#fef3c7,stroke:#b45309,color:#111827",
    "failed": "fill:#fee2e2,stroke:#b91c1c,color:#111827",
}
_MAX_NUMBERS = 6
"""Shown on one arrow, which a loop may have taken many times."""
_TAKEN = "stroke:#1d4ed8,stroke-width:3px"


def mermaid(
    graph: GraphStructure[Any, Any],
    *,
    path: Sequence[str] = (),
    open_gates: Collection[str] = (),
    failed: Collection[str] = (),
) -> str:
    """A flowchart of a validated graph, ending in a line break.

    `path`, `open_gates` and `failed` are labels of nodes as in `RunOutcome`; a path may end with END. The
    nodes and arrows of the path are coloured, and the arrows numbered in the order in which they were
    taken. Raises GraphError for a label that the graph does not have.
    """
    picture = _Picture(graph, path)
    for place in (*path, *open_gates, *failed):
        if place not in picture.places:
            raise GraphError(f"graph {graph.name}: the path names {place}, and the graph has no such node")
    tracer = PathTracer(picture.arrows, failed=failed, skippable=picture.skippable)
    tracer.along(path)
    colours = {
        "join": picture.joins,
        "visited": [place for place in tracer.reached if place not in failed and place not in open_gates],
        "waiting": [place for place in dict.fromkeys(open_gates) if place not in failed],
        "failed": list(dict.fromkeys(failed)),
    }
    lines = ["flowchart TD", *picture.lines]
    lines += [_arrow(arrow, tracer.numbers.get(at, ())) for at, arrow in enumerate(tracer.arrows)]
    for name, places in colours.items():
        if places:
            lines.append(f"    classDef {name} {_STYLES[name]}")
            lines.append(f"    class {','.join(map(_id, places))} {name}")
    if tracer.numbers:
        lines.append(f"    linkStyle {','.join(map(str, sorted(tracer.numbers)))} {_TAKEN}")
    return "\n".join(lines) + "\n"


class _Picture:
    """The declarations of a graph and its subgraphs as lines, and all arrows between them."""

    def __init__(self, graph: GraphStructure[Any, Any], path: Collection[str]) -> None:
        self._path = path
        self.lines: list[str] = []
        self.arrows: list[Arrow] = []
        self.places: set[str] = set()
        self.joins: list[str] = []
        self.skippable: list[str] = []
        self._draw(graph, "", "    ")

    def _draw(self, graph: GraphStructure[Any, Any], prefix: str, indent: str) -> None:
        joins = _joins(graph)
        for place, target in _entries(graph, prefix):
            shape = f"(({label('start')}))" if place == prefix + START else f">{label(_entry_name(place))}]"
            self.lines.append(f"{indent}{_id(place)}{shape}")
            self.arrows.append(Arrow(source=place, target=prefix + target))
        for node, spec in graph.specs.items():
            self._node(graph, node, spec, prefix, indent, joins.get(node, ()))
        self.places.add(prefix + END)
        # A run may end where no edge fires; then only its path shows the end.
        if prefix + END in self._path or any(END in targets for targets in graph.successors.values()):
            notes = _join_note(joins.get(END, ()))
            self.lines.append(f"{indent}{_id(prefix + END)}((({label('end', *notes)})))")
        self.joins += [prefix + node for node in joins]
        for node, spec in graph.specs.items():
            self.arrows += _arrows_from(graph, node, spec, prefix)

    def _node(
        self,
        graph: GraphStructure[Any, Any],
        node: str,
        spec: NodeSpec[Any, Any],
        prefix: str,
        indent: str,
        forks: Sequence[str],
    ) -> None:
        place = prefix + node
        self.places.add(place)
        notes = _join_note(forks)
        if spec.max_visits:
            notes.append(f"at most {spec.max_visits} visits" if spec.max_visits > 1 else "at most 1 visit")
            self.skippable.append(place)
        kinds = [
            ("terminal", ("([", "])"), node in graph.terminals),
            ("pause", ("{{", "}}"), node in graph.pause_nodes),
            ("event loop", ("[[", "]]"), spec.event_loop),
        ]
        held = [(word, shape) for word, shape, holds in kinds if holds]
        if spec.subgraph is not None:
            notes = [*(word for word, _ in held), *notes]
            title = node if spec.subgraph.name == node else f"{node}: {spec.subgraph.name}"
            self.lines.append(f"{indent}subgraph {_id(place)}[{label(title, *notes)}]")
            self._draw(spec.subgraph, f"{place}.", f"{indent}    ")
            self.lines.append(f"{indent}end")
            return
        left, right = held[0][1] if held else ("[", "]")
        notes = [*(word for word, _ in held[1:]), *notes]
        self.lines.append(f"{indent}{_id(place)}{left}{label(node, *notes)}{right}")


def _entries(graph: GraphStructure[Any, Any], prefix: str) -> Iterator[tuple[str, str]]:
    """Each entry as a place before its node."""
    yield prefix + START, graph.entry
    for name, node in graph.entry_points.items():
        yield f"{prefix}{START}:{name}", node


def _entry_name(place: str) -> str:
    return place.partition(f"{START}:")[2]


def _arrows_from(
    graph: GraphStructure[Any, Any], node: str, spec: NodeSpec[Any, Any], prefix: str
) -> Iterator[Arrow]:
    """As `GraphStructure.successors`, as arrows with labels."""
    source = prefix + node
    edges = () if node in graph.terminals else graph.edges_from(node)
    for edge in edges:
        for target in edge.targets():
            yield Arrow(
                source=source,
                target=prefix + target,
                words=_words(edge),
                after_failure=isinstance(edge.when, OnFailure),
            )
    jumps = [(target, "end" if target == END else "goto") for target in spec.goes_to or ()]
    jumps += [(spec.reviser, "revise")] if spec.reviser is not None else []
    for target, words in jumps:
        yield Arrow(source=source, target=prefix + target, words=words, dashed=True)
    if not edges and not jumps:
        yield Arrow(source=source, target=prefix + END)


def _words(edge: EdgeSpec) -> str:
    match edge.when:
        case Always():
            return "always"
        case OnSuccess():
            return "on success"
        case OnFailure():
            return "on failure"
        case When(holds=holds):
            return f"if {holds if isinstance(holds, str) else function_name(holds)}"
        case LlmDecide(description=description):
            return f"{'llm or fallback' if edge.fallback else 'llm'}: {description}"
        case Route(choose=choose):
            return function_name(choose)


def _joins(graph: GraphStructure[Any, Any]) -> dict[str, list[str]]:
    """Each join of edges that fan out, with the fan-out's nodes. Without routes, which choose at run time."""
    found: dict[str, list[str]] = {}
    for node, exits in graph.exits.items():
        groups = [exits.on_success, exits.on_failure, exits.always]
        groups += [(edge, *exits.on_success) for edge in (*exits.conditional, *exits.decided)]
        for group in groups:
            targets = tuple(dict.fromkeys(edge.target for edge in group))
            if len(targets) > 1 and (graph.specs[node].fan_out or graph.fan_out).join != "none":
                forks = found.setdefault(graph.joins.of(targets), [])
                forks += [node] if node not in forks else []
    return found


def _join_note(forks: Sequence[str]) -> list[str]:
    return [f"joins {', '.join(forks)}"] if forks else []


def _arrow(arrow: Arrow, numbers: Sequence[int]) -> str:
    line = "-.->" if arrow.dashed else "-->"
    shown = map(
        str, numbers if len(numbers) <= _MAX_NUMBERS else (*numbers[: _MAX_NUMBERS - 1], "…", numbers[-1])
    )
    counted = ", ".join(shown)
    words = " · ".join(part for part in (counted, arrow.words) if part)
    between = f"|{label(words)}|" if words else ""
    return f"    {_id(arrow.source)} {line}{between} {_id(arrow.target)}"


def _id(place: str) -> str:
    """The id of a place. Nodes, starts and entries have different prefixes, so that names never collide."""
    inside, start, name = place.partition(START)
    if not start:
        return identifier("n", *place.split("."))
    outer = inside.split(".")[:-1]
    return identifier("at", *outer, name[1:]) if name else identifier("start", *outer)
