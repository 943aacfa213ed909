"""Write a graph as a JSON document for `read_graph`. Fields at their defaults are left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from pipeline.graph.definition.decisions import ContextT, StateT
from pipeline.graph.definition.elements import (
    Always,
    Condition,
    EdgeSpec,
    LlmDecide,
    OnFailure,
    OnSuccess,
    Route,
    When,
)
from pipeline.graph.definition.frozen_json import thaw
from pipeline.graph.definition.retry import RetryPolicy
from pipeline.graph.definition.structure import GraphStructure, NodeSpec
from pipeline.graph.documents.fields import Fields
from pipeline.graph.documents.library import (
    BUILT_IN_CHANNELS,
    BUILT_IN_ERRORS,
    NodeLibrary,
    function_name,
    name_in,
)


def graph_document(
    graph: GraphStructure[ContextT, StateT], library: NodeLibrary[ContextT, StateT] | None = None
) -> dict[str, Any]:
    """The graph as plain JSON data, without fields at their defaults.

    Functions, channels and error types are written as their name in `library`, else as their own name. A
    subgraph that is not in the library is written in full.
    """
    names = library or NodeLibrary[ContextT, StateT]()
    document: dict[str, Any] = {"name": graph.name}
    if graph.version != "1":
        document["version"] = graph.version
    if graph.goal is not None:
        document["goal"] = {"description": graph.goal.description, **_changed(graph.goal)}
    document["entry"] = graph.entry
    written = {
        "entry_points": dict(graph.entry_points),
        "terminals": list(graph.terminals),
        "pause_nodes": list(graph.pause_nodes),
        "conversation": graph.conversation if graph.conversation != "continuous" else None,
        "limits": _changed(graph.limits),
        "fan_out": _changed(graph.fan_out),
        "channels": {
            key: name_in(BUILT_IN_CHANNELS, channel, name_in(names.channels, channel, channel.name))
            for key, channel in graph.channels.items()
        },
        "keep": {
            key: {"lives": kept.lives, "was": list(kept.was)} if kept.was else kept.lives
            for key, kept in graph.keep.items()
        },
    }
    document |= {name: value for name, value in written.items() if value}
    document["nodes"] = [_node(name, spec, names) for name, spec in graph.specs.items()]
    if graph.edges:
        document["edges"] = [_edge(edge, names) for edge in graph.edges]
    return document


def _node(
    name: str, spec: NodeSpec[ContextT, StateT], names: NodeLibrary[ContextT, StateT]
) -> dict[str, Any]:
    written: dict[str, Any] = {"id": name}
    if spec.kind:
        return written | _of_kind(spec, names)
    if spec.run is not None:
        written["run"] = name_in(names.nodes, spec.run, function_name(spec.run))
    if spec.subgraph is not None:
        known = name_in(names.subgraphs, spec.subgraph, "")
        written["subgraph"] = known or graph_document(spec.subgraph, names)
    return written | _policies(spec, NodeSpec[ContextT, StateT](), names)


def _of_kind(spec: NodeSpec[ContextT, StateT], names: NodeLibrary[ContextT, StateT]) -> dict[str, Any]:
    """The kind, its parameters, and what differs from what the kind makes of them."""
    written: dict[str, Any] = {"run": spec.kind}
    if spec.parameters:
        written["with"] = thaw(dict(spec.parameters))
    make = names.kinds.get(spec.kind)
    usual = NodeSpec[ContextT, StateT]() if make is None else make(Fields(spec.parameters, "", []))
    return written | _policies(spec, usual, names)


def _policies(
    spec: NodeSpec[ContextT, StateT],
    usual: NodeSpec[ContextT, StateT],
    names: NodeLibrary[ContextT, StateT],
) -> dict[str, Any]:
    written = _changed(spec, ("run", "subgraph", "retry", "fan_out", "kind", "parameters"), usual)
    if spec.retry != usual.retry:
        written["retry"] = _retry(spec.retry, names)
    if spec.fan_out is not None:
        written["fan_out"] = _changed(spec.fan_out)
    return written


def _retry(policy: RetryPolicy, names: NodeLibrary[ContextT, StateT]) -> dict[str, Any]:
    written = _changed(policy, leave_out=("retry_on",))
    if policy.retry_on != RetryPolicy().retry_on:
        written["retry_on"] = [
            name_in(BUILT_IN_ERRORS, error, name_in(names.errors, error, error.__name__))
            for error in policy.retry_on
        ]
    return written


def _edge(edge: EdgeSpec, names: NodeLibrary[ContextT, StateT]) -> dict[str, Any]:
    written: dict[str, Any] = {"source": edge.source}
    if edge.target:
        written["target"] = edge.target
    if not isinstance(edge.when, Always):
        written["when"] = _condition(edge.when, names)
    return written | _changed(edge, leave_out=("source", "target", "when"))


def _condition(condition: Condition, names: NodeLibrary[ContextT, StateT]) -> str | dict[str, Any]:
    match condition:
        case Always():
            return "always"
        case OnSuccess():
            return "on_success"
        case OnFailure():
            return "on_failure"
        case When(holds=str() as text):
            return {"if": text}
        case When(holds=function):
            return {"call": name_in(names.conditions, function, function_name(function))}
        case LlmDecide(description=description):
            return {"llm_decide": description}
        case Route(choose=choose, targets=targets):
            return {"route": name_in(names.routes, choose, function_name(choose)), "targets": list(targets)}


def _changed(value: Any, leave_out: tuple[str, ...] = (), usual: Any = None) -> dict[str, Any]:
    """The fields of a dataclass that are not as in `usual`, by default not at their default, as JSON data."""
    written = {}
    for part in fields(value):
        given = getattr(value, part.name)
        default = part.default_factory() if callable(part.default_factory) else part.default
        expected = default if usual is None else getattr(usual, part.name)
        if part.name not in leave_out and given != expected:
            written[part.name] = thaw(dict(given) if isinstance(given, Mapping) else given)
    return written
