"""Read a workflow document: from JSON to values, with every mistake at once.

Mistakes of form (fields, types, words) are found here, those of the whole (routes, handles, sub-agents) in
`checks`. A document without mistakes compiles and runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, get_args

from pipeline.domain.errors import GraphError
from pipeline.graph.definition.frozen_json import freeze
from pipeline.graph.documents.fields import Fields
from pipeline.graph.documents.json_text import parsed_json
from pipeline.workflows.checks import PlacedConnection, ReadDocument, whole_mistakes
from pipeline.workflows.document import (
    DEFAULT_QUESTION,
    DEFAULT_SYSTEM_PROMPT,
    Comparison,
    Connection,
    Effort,
    If,
    Node,
    Operator,
    Start,
    Workflow,
    WorkflowAgent,
    WorkflowApproval,
)
from pipeline.workflows.mistakes import Mistake, WorkflowInvalid
from pipeline.workflows.normalising import CONNECTIONS, SOURCE_HANDLE, normalised

MAX_NODES: Final = 500
MAX_TEXT: Final = 50_000
"""Characters of a prompt."""
_MAX_ID = 120
_WEB: Final = "web"
"""The tool group of `web_search`."""
_NODE_LOOKS = ("x", "y", "position", "positionAbsolute", "width", "height", "selected", "dragging", "style")
_DATA_LOOKS = ("label", "title", "description", "collapsed", "viewMode", "color")
"""Fields of editors that a run does not use."""


def read_workflow(source: str | Mapping[str, Any], name: str = "workflow") -> Workflow:
    """The workflow of a JSON text, or of the mapping that was parsed from one, in the form of today or an
    older one. `name` is used where the document has none. Raises WorkflowInvalid with all mistakes."""
    workflow, mistakes = checked(source, name)
    if workflow is None:
        raise WorkflowInvalid(name, mistakes)
    return workflow


def checked(
    source: str | Mapping[str, Any], name: str = "workflow"
) -> tuple[Workflow | None, tuple[Mistake, ...]]:
    """The workflow, or None and every mistake of its document."""
    try:
        parsed = parsed_json(source, "the document") if isinstance(source, str) else source
        document = freeze(normalised(parsed) if isinstance(parsed, Mapping) else parsed, "the document")
    except GraphError as error:
        return None, (Mistake(what=str(error)),)
    if not isinstance(document, Mapping):
        return None, (Mistake(what="the document must be a JSON object: { … }"),)
    reader = _Reader(document)
    mistakes = tuple(reader.mistakes) + tuple(whole_mistakes(reader.whole))
    if mistakes:
        return None, mistakes
    return (
        Workflow(
            name=reader.name or name,
            version=reader.version,
            nodes=reader.nodes,
            connections=tuple(placed.connection for placed in reader.placed),
        ),
        (),
    )


class _Reader:
    """One document, and what was read of it so far."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.mistakes: list[Mistake] = []
        self.nodes: dict[str, Node] = {}
        self.kinds: dict[str, str] = {}
        """Every node's type by its id, those with mistakes included."""
        self.placed: list[PlacedConnection] = []
        problems: list[str] = []
        given = Fields(document, "", problems)
        self.name = given.text("name", default="")
        given.raw("id", "description", "createdAt", "updatedAt", "viewport", "metadata")
        self.version = self._version(given)
        given.has(*CONNECTIONS, "nodes")
        self._nodes(document.get("nodes"))
        self._connections(document)
        given.close()
        self.mistakes[:0] = [_placed(line) for line in problems]

    @property
    def whole(self) -> ReadDocument:
        """What the check of the whole needs."""
        return ReadDocument(kinds=self.kinds, nodes=self.nodes, connections=tuple(self.placed))

    def _version(self, given: Fields) -> str:
        version = given.raw("version")
        return version if isinstance(version, str) else "1" if version is None else str(version)

    def _nodes(self, listed: Any) -> None:
        if not isinstance(listed, tuple):
            self.mistakes.append(Mistake(field="nodes", what="expected a list of nodes"))
            return
        if len(listed) > MAX_NODES:
            self.mistakes.append(Mistake(field="nodes", what=f"has more than {MAX_NODES} nodes"))
            return
        for at, given in enumerate(listed):
            self._node(f"nodes[{at}]", given)

    def _node(self, place: str, value: Any) -> None:
        if not isinstance(value, Mapping):
            self.mistakes.append(Mistake(node=place, what="expected an object"))
            return
        problems: list[str] = []
        given = Fields(value, "", problems)
        name, kind = given.text("id"), given.text("type")
        for look in _NODE_LOOKS:
            given.has(look)
        label = name or place
        if len(name) > _MAX_ID:
            given.note("id", f"is longer than {_MAX_ID} characters")
        if name in self.kinds:
            given.note("id", "another node has this id; ids must be unique")
        read = _KINDS.get(kind)
        if kind and read is None:
            given.note("type", f"there is no type {kind!r}; there are {', '.join(_KINDS)}")
        if name:
            self.kinds.setdefault(name, kind)
        data = given.parameters("data")
        if read is not None:
            for look in _DATA_LOOKS:
                data.has(look)
            node = read(name, data)
            data.close()
            self.nodes.setdefault(name, node)
        given.close()
        self.mistakes += [_placed(line, node=label) for line in problems]

    def _connections(self, document: Mapping[str, Any]) -> None:
        named = [field for field in CONNECTIONS if field in document]
        if len(named) > 1:
            self.mistakes.append(Mistake(field=named[1], what=f"says the same as {named[0]}; give one"))
        listed = document.get(named[0], ()) if named else ()
        if not isinstance(listed, tuple):
            self.mistakes.append(Mistake(field=named[0], what="expected a list of connections"))
            return
        for at, value in enumerate(listed):
            place = f"{named[0]}[{at}]"
            if not isinstance(value, Mapping):
                self.mistakes.append(Mistake(connection=place, what="expected an object"))
                continue
            self._connection(place, value)

    def _connection(self, place: str, value: Mapping[str, Any]) -> None:
        problems: list[str] = []
        given = Fields(value, "", problems)
        source, target = given.text("source", "from"), given.text("target", "to")
        handle = given.optional_text(*SOURCE_HANDLE) or ""
        into = given.optional_text("targetHandle", "target_handle") or ""
        for look in ("id", "type", "animated", "style", "label", "markerEnd", "selected"):
            given.has(look)
        given.close()
        place = f"{place} ({source or '?'} -> {target or '?'})"
        self.mistakes += [_placed(line, connection=place) for line in problems]
        if source and target:
            # The only output of a start and of an agent has a name in some documents.
            plain = "" if handle == "output" and self.kinds.get(source) in ("start", "agent") else handle
            connection = Connection(source=source, target=target, handle=plain)
            self.placed.append(PlacedConnection(place=place, connection=connection, into=into))


def _placed(line: str, *, node: str = "", connection: str = "") -> Mistake:
    field, _, what = line.partition(": ")
    return Mistake(node=node, connection=connection, field=field, what=what)


def _start(name: str, data: Fields) -> Start:
    return Start(id=name, initial_input=_long(data, "initialInput", "initial_input"))


def _agent(name: str, data: Fields) -> WorkflowAgent:
    tools = data.inner("tools")
    groups: list[str] = []
    delegates = False
    if tools is not None:
        if tools.flag("web_search", "webSearch"):
            groups.append(_WEB)
        delegates = tools.flag("subagents")
        groups += [group for group in tools.texts("groups") if group not in groups]
        tools.close()
    return WorkflowAgent(
        id=name,
        name=data.text("agentName", "name", default=""),
        system_prompt=_long(data, "systemPrompt", "system_prompt") or DEFAULT_SYSTEM_PROMPT,
        user_prompt=_long(data, "userPrompt", "user_prompt"),
        model=data.text("model", default=""),
        effort=data.choice("reasoningEffort", "reasoning_effort", options=get_args(Effort), default="low"),
        groups=tuple(groups),
        delegates=delegates,
    )


def _if(name: str, data: Fields) -> If:
    found: list[Comparison] = []
    for one in data.inner_list("conditions"):
        one.has("id", "label")
        operator = one.choice("operator", options=get_args(Operator), default="equal")
        value = one.text("value", default="")
        one.close()
        found.append(Comparison(operator=operator, value=value))
    return If(id=name, conditions=tuple(found))


def _approval(name: str, data: Fields) -> WorkflowApproval:
    approvers = data.texts("approvers")
    for at, one in enumerate(approvers):
        if not 2 <= len([part for part in one.split(":") if part]) <= 3:
            data.note(f"approvers[{at}]", "write channel:user or channel:account:user, as in telegram:4711")
    expires = data.optional_number("expiresSeconds", "expires_s", default=None)
    if expires is not None and not expires > 0:
        data.note("expiresSeconds", "must be above 0, or left out to wait for ever")
    prompt = _long(data, "prompt", "message") or DEFAULT_QUESTION
    editable = data.flag("editable")
    return WorkflowApproval(id=name, prompt=prompt, approvers=approvers, expires_s=expires, editable=editable)


def _long(data: Fields, *names: str) -> str:
    text = data.text(*names, default="")
    if len(text) > MAX_TEXT:
        data.note(names[0], f"is longer than {MAX_TEXT} characters")
    return text


_KINDS: Final[Mapping[str, Callable[[str, Fields], Node]]] = {
    "start": _start,
    "agent": _agent,
    "if": _if,
    "approval": _approval,
}
