"""Read a playbook document, and those that it uses: from JSON to values, with every mistake at once.

Mistakes of form are found here, those of the whole in `checks`. A document without mistakes compiles and
runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, get_args

from pipeline.domain.errors import ParlourError
from pipeline.graph.definition.frozen_json import freeze
from pipeline.graph.documents.fields import Fields
from pipeline.graph.documents.json_text import parsed_json
from pipeline.playbooks.checks import PlacedEdge, ReadPlaybook, nesting_mistakes, whole_mistakes
from pipeline.playbooks.document import Edge, Node, Playbook, Starts, SubWorkflow, Transfer
from pipeline.playbooks.node_kinds import KINDS
from pipeline.workflows.mistakes import Mistake, WorkflowInvalid

MAX_NODES: Final = 200
MAX_OTHERS: Final = 20
"""Playbooks that one may use, those of others included."""
_MAX_ID = 120
_EDGES: Final = ("edges", "connections")
_LOOKS = ("x", "y", "position", "positionAbsolute", "width", "height", "selected", "dragging", "style")
_EDGE_LOOKS = ("id", "type", "animated", "style", "label", "markerEnd", "selected")

Open = Callable[[str], str]
"""The text of another playbook's file, named as in the document. Raises a ParlourError that says why not."""


def nothing_to_open(_file: str) -> str:
    """For a document that has no folder."""
    raise ParlourError("there is no folder to look for it")


def read_playbook(
    source: str | Mapping[str, Any], name: str = "playbook", open_other: Open = nothing_to_open
) -> Playbook:
    """The playbook of a JSON text, or of the mapping that was parsed from one, with all that it uses. Raises
    WorkflowInvalid with all mistakes."""
    playbook, mistakes = checked_playbook(source, name, open_other)
    if playbook is None:
        raise WorkflowInvalid(name, mistakes)
    return playbook


def checked_playbook(
    source: str | Mapping[str, Any], name: str = "playbook", open_other: Open = nothing_to_open
) -> tuple[Playbook | None, tuple[Mistake, ...]]:
    """The playbook, or None and every mistake of its document and of those that it uses."""
    first, mistakes = _checked_one(source, name)
    if first is None:
        return None, mistakes
    others: dict[str, Playbook] = {}
    found = list(_read_others(first, others, open_other))
    if not found:
        found = list(nesting_mistakes(first, others))
    return (None, tuple(found)) if found else (replace(first, others=others), ())


def _read_others(playbook: Playbook, others: dict[str, Playbook], open_other: Open) -> list[Mistake]:
    found: list[Mistake] = []
    for node in playbook.nodes.values():
        if not isinstance(node, SubWorkflow | Transfer) or node.workflow in others:
            continue
        file, place = node.workflow, "config.workflow"
        if len(others) == MAX_OTHERS:
            what = f"is one playbook too many; {MAX_OTHERS} may be used together"
            return [*found, Mistake(node=node.id, field=place, what=what)]
        try:
            text = open_other(file)
        except ParlourError as error:
            found.append(Mistake(node=node.id, field=place, what=f"{file}: {error}"))
            continue
        other, mistakes = _checked_one(text, file.removesuffix(".json").removesuffix(".playbook"))
        found += [Mistake(node=node.id, field=place, what=f"{file}: {one}") for one in mistakes]
        if other is not None:
            others[file] = other
            found += _read_others(other, others, open_other)
    return found


def _checked_one(source: str | Mapping[str, Any], name: str) -> tuple[Playbook | None, tuple[Mistake, ...]]:
    try:
        parsed = parsed_json(source, "the document") if isinstance(source, str) else source
        document = freeze(parsed, "the document")
    except ParlourError as error:
        return None, (Mistake(what=str(error)),)
    if not isinstance(document, Mapping):
        return None, (Mistake(what="the document must be a JSON object: { … }"),)
    reader = _Reader(document)
    mistakes = (*reader.mistakes, *whole_mistakes(reader.whole))
    if mistakes:
        return None, mistakes
    playbook = Playbook(
        name=reader.name or name,
        version=reader.version,
        starts=reader.starts,
        description=reader.description,
        nodes=reader.nodes,
        edges=tuple(placed.edge for placed in reader.placed),
    )
    return playbook, ()


class _Reader:
    """One document, and what was read of it so far."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.mistakes: list[Mistake] = []
        self.nodes: dict[str, Node] = {}
        self.kinds: dict[str, str] = {}
        """Every node's subtype by its id, those with mistakes included."""
        self.placed: list[PlacedEdge] = []
        problems: list[str] = []
        given = Fields(document, "", problems)
        self.name = given.text("name", default="")
        self.description = given.text("description", default="")
        self.starts = given.choice("startedBy", options=get_args(Starts), default="message")
        if self.starts == "agent" and not self.description:
            given.note("description", "is needed: the agent that starts the playbook reads it")
        given.raw("id", "createdAt", "updatedAt", "viewport", "metadata")
        version = given.raw("version")
        self.version = version if isinstance(version, str) else "1" if version is None else str(version)
        given.has(*_EDGES, "nodes")
        self._nodes(document.get("nodes"))
        self._edges(document)
        given.close()
        self.mistakes[:0] = [_placed(line) for line in problems]

    @property
    def whole(self) -> ReadPlaybook:
        """What the check of the whole needs."""
        return ReadPlaybook(kinds=self.kinds, nodes=self.nodes, edges=tuple(self.placed))

    def _nodes(self, listed: Any) -> None:
        if not isinstance(listed, tuple):
            self.mistakes.append(Mistake(field="nodes", what="expected a list of nodes"))
        elif len(listed) > MAX_NODES:
            self.mistakes.append(Mistake(field="nodes", what=f"has more than {MAX_NODES} nodes"))
        else:
            for at, given in enumerate(listed):
                self._node(f"nodes[{at}]", given)

    def _node(self, place: str, value: Any) -> None:
        if not isinstance(value, Mapping):
            self.mistakes.append(Mistake(node=place, what="expected an object"))
            return
        problems: list[str] = []
        given = Fields(value, "", problems)
        name, kind = given.text("id"), given.text("subtype")
        label = given.text("label", default="")
        given.has(*_LOOKS, "type", "category")
        if len(name) > _MAX_ID:
            given.note("id", f"is longer than {_MAX_ID} characters")
        if name in self.kinds:
            given.note("id", "another node has this id; ids must be unique")
        read = KINDS.get(kind)
        if kind and read is None:
            given.note("subtype", f"there is no subtype {kind!r}; there are {', '.join(KINDS)}")
        if name:
            self.kinds.setdefault(name, kind)
        config = given.parameters("config")
        if read is not None:
            node = read(name, label, kind, config)
            config.close()
            self.nodes.setdefault(name, node)
        given.close()
        self.mistakes += [_placed(line, node=name or place) for line in problems]

    def _edges(self, document: Mapping[str, Any]) -> None:
        named = [field for field in _EDGES if field in document]
        if len(named) > 1:
            self.mistakes.append(Mistake(field=named[1], what=f"says the same as {named[0]}; give one"))
        listed = document.get(named[0], ()) if named else ()
        if not isinstance(listed, tuple):
            self.mistakes.append(Mistake(field=named[0], what="expected a list of edges"))
            return
        for at, value in enumerate(listed):
            place = f"{named[0]}[{at}]"
            if isinstance(value, Mapping):
                self._edge(place, value)
            else:
                self.mistakes.append(Mistake(connection=place, what="expected an object"))

    def _edge(self, place: str, value: Mapping[str, Any]) -> None:
        problems: list[str] = []
        given = Fields(value, "", problems)
        source, target = given.text("source"), given.text("target")
        handle, into = given.optional_text("sourceHandle") or "", given.optional_text("targetHandle") or ""
        given.has(*_EDGE_LOOKS)
        given.close()
        place = f"{place} ({source or '?'} -> {target or '?'})"
        self.mistakes += [_placed(line, connection=place) for line in problems]
        if source and target:
            edge = Edge(source=source, target=target, handle=handle, into="" if into == "input" else into)
            self.placed.append(PlacedEdge(place=place, edge=edge))


def _placed(line: str, *, node: str = "", connection: str = "") -> Mistake:
    field, _, what = line.partition(": ")
    return Mistake(node=node, connection=connection, field=field, what=what)
