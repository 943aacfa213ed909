"""What a node is, and what it returns: an update of the state and a decision about where to go."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias

from typing_extensions import TypeAliasType, TypeVar

State: TypeAlias = Mapping[str, Any]
"""Plain JSON data, read-only all the way down (its lists are tuples); nodes return updates instead."""

ContextT = TypeVar("ContextT")
StateT = TypeVar("StateT", bound=Mapping[str, Any], default=State)

EndReason = Literal["completed", "waiting_for_user", "blocked"]


@dataclass(frozen=True, slots=True)
class Next:
    """Follow the node's edges."""


@dataclass(frozen=True, slots=True)
class End:
    """End the run here, whatever the edges say; inside a fan-out, end this branch."""

    reason: EndReason = "completed"


@dataclass(frozen=True, slots=True)
class Goto:
    """Jump to `node`; overrides the edges. Together with an update this is seed 1's Command."""

    node: str


@dataclass(frozen=True, slots=True)
class Continue:
    """Run the same node again; counts toward the limit of consecutive runs."""


@dataclass(frozen=True, slots=True)
class Revise:
    """Go back to the node's declared `reviser`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Open a gate and halt before anything downstream; the edges are followed once it is answered.

    The answer is in the state under `answers`, by node: its `choice`, `note` and `by`.
    """

    prompt: str = ""
    options: tuple[str, ...] = ()
    """The choices that are accepted; empty takes any text."""
    expires_s: float | None = None
    """Seconds until an answer comes too late; the node has failed then. None waits for ever."""


NodeDecision = Next | End | Goto | Continue | Revise | Pause


# A named tuple: every step makes one, and it costs a third of a frozen dataclass.
class NodeResult(NamedTuple):
    """A node's answer. `update` goes through the state's channels; a key without one is replaced."""

    update: Mapping[str, Any] = MappingProxyType({})
    decision: NodeDecision = Next()
    error: str = ""
    """Not empty: the node failed for this reason, its update is dropped, and it may be tried again."""
    permanent: bool = False
    """With `error`: trying again will not help."""


Node = TypeAliasType(
    "Node", Callable[[StateT, ContextT], Awaitable[NodeResult]], type_params=(ContextT, StateT)
)
"""A node is a plain async function of the state and the run's context."""


def decision_name(decision: NodeDecision) -> str:
    """The decision in words, for records, events and traces: `next`, `end`, `goto agent`, `pause` …"""
    match decision:
        case Goto(node=node):
            return f"goto {node}"
        case End(reason=reason) if reason != "completed":
            return f"end {reason}"
        case _:
            return type(decision).__name__.lower()
