"""What a node returns: an update of the state, and a decision about where to go."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

State = Mapping[str, Any]
"""Plain JSON data; nodes read it and return updates, they never write to it."""

ContextT = TypeVar("ContextT")


@dataclass(frozen=True, slots=True)
class Next:
    """Follow the node's edges."""


@dataclass(frozen=True, slots=True)
class End:
    """End the run here, whatever the edges say."""


@dataclass(frozen=True, slots=True)
class Goto:
    """Jump to `node`; overrides the edges."""

    node: str


@dataclass(frozen=True, slots=True)
class Continue:
    """Run the same node again; counts toward the limit of consecutive runs."""


NodeDecision = Next | End | Goto | Continue


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeResult:
    """A node's answer. `update` replaces the named keys of the state."""

    update: Mapping[str, Any] = field(default_factory=dict)
    decision: NodeDecision = field(default_factory=Next)


Node = Callable[[State, ContextT], Awaitable[NodeResult]]
"""A node is a plain async function of the state and the run's context."""


def decision_name(decision: NodeDecision) -> str:
    """The decision in words, for events and traces: `next`, `end`, `goto agent`, `continue`."""
    match decision:
        case Next():
            return "next"
        case End():
            return "end"
        case Goto(node=node):
            return f"goto {node}"
        case Continue():
            return "continue"
