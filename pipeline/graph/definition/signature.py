"""A short hash of the parts of a graph that a recorded run depends on.

A run is resumed only on a graph with the same signature. Timeouts, retries, limits, descriptions and
the goal are not part of it, so that an operator may change them between restarts. The node functions are
not part of it either, as no hash can compare them: change `version` when their meaning changes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from pipeline.graph.definition.elements import Condition, EdgeSpec, FanOut, Route, When
from pipeline.graph.definition.structure import GraphStructure, NodeSpec


def graph_signature(graph: GraphStructure[Any, Any]) -> str:
    """12 hex digits of SHA-256. Independent of the order of nodes; the order of edges matters."""
    canonical = json.dumps(_graph(graph), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:12]


def _graph(graph: GraphStructure[Any, Any]) -> dict[str, Any]:
    return {
        "name": graph.name,
        "version": graph.version,
        "entry": graph.entry,
        "entry_points": dict(graph.entry_points),
        "nodes": {node: _node(spec) for node, spec in graph.specs.items()},
        "edges": [_edge(edge) for edge in graph.edges],
        "terminals": sorted(graph.terminals),
        "pause_nodes": sorted(graph.pause_nodes),
        "channels": {key: channel.name for key, channel in graph.channels.items()},
        "fan_out": _fan_out(graph.fan_out),
    }


def _node(spec: NodeSpec[Any, Any]) -> dict[str, Any]:
    return {
        "subgraph": None if spec.subgraph is None else graph_signature(spec.subgraph),
        "reads": _names(spec.reads),
        "writes": _names(spec.writes),
        "nullable": _names(spec.nullable),
        "goes_to": _names(spec.goes_to),
        "reviser": spec.reviser,
        "event_loop": spec.event_loop,
        "max_visits": spec.max_visits,
        "fan_out": None if spec.fan_out is None else _fan_out(spec.fan_out),
    }


def _edge(edge: EdgeSpec) -> dict[str, Any]:
    return {
        "source": edge.source,
        "targets": list(edge.targets()),
        "kind": type(edge.when).__name__,
        "test": _test(edge.when),
        "mapping": dict(edge.mapping),
        "fallback": edge.fallback,
    }


def _test(condition: Condition) -> dict[str, str]:
    match condition:
        case When(holds=str() as text):
            return {"expression": text}
        case When(holds=function) | Route(choose=function):
            return {"function": _qualified_name(function)}
        case _:
            return {}


def _qualified_name(function: object) -> str:
    """The function's qualified name; for a callable object, that of its class."""
    return str(getattr(function, "__qualname__", type(function).__qualname__))


def _fan_out(policy: FanOut) -> list[str]:
    found: list[str] = [policy.on_failure, policy.on_conflict]
    # Left out by default, so that runs of earlier versions can be resumed.
    if policy.join != "nearest":
        found.append(policy.join)
    if policy.after_gates != "together":
        found.append(policy.after_gates)
    return found


def _names(names: Iterable[str] | None) -> list[str] | None:
    """The names sorted, as declarations are sets; None (anything) differs from an empty list."""
    return None if names is None else sorted(names)
