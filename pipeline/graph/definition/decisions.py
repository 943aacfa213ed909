"""The type of a node, and of its result: an update of the state and a decision about the next node."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias

from typing_extensions import TypeAliasType, TypeVar

from pipeline.domain.frozen import dataclass

State: TypeAlias = Mapping[str, Any]
"""Plain JSON data, deeply read-only (its lists are tuples); nodes return updates instead of changing it."""

ContextT = TypeVar("ContextT")
StateT = TypeVar("StateT", bound=Mapping[str, Any], default=State)

EndReason = Literal["completed", "waiting_for_user", "blocked"]
Asks = Literal["choice", "words", "nothing"]
"""What a gate asks for: one of its options, any words of the person, or nothing: it waits for its time."""


@dataclass(frozen=True, slots=True)
class Next:
    """Follow the node's edges."""


@dataclass(frozen=True, slots=True)
class End:
    """End the run here, ignoring the edges; inside a fan-out, end this branch."""

    reason: EndReason = "completed"


@dataclass(frozen=True, slots=True)
class Goto:
    """Jump to `node`, ignoring the edges. A node may return an update with it."""

    node: str


@dataclass(frozen=True, slots=True)
class Continue:
    """Run the same node again; counts toward the limit of consecutive runs."""


@dataclass(frozen=True, slots=True)
class Revise:
    """Go back to the node's declared `reviser`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Open a gate and halt before any later node; the edges are followed once it is answered.

    The state holds the answer under `answers`, by node: its `choice`, `note` and `by`.
    """

    prompt: str = ""
    options: tuple[str, ...] = ()
    """The accepted choices; empty accepts any text."""
    expires_s: float | None = None
    """Seconds until the gate expires and the node fails. None waits for ever."""
    allowed: tuple[str, ...] = ()
    """The users who may answer, as the host names them; empty for the author of the run's message."""
    notes: bool = False
    """The answer may have a note in the person's own words."""
    asks: Asks = "choice"
    resumes: bool = False
    """After `expires_s` the run continues along the edges, with an empty choice; the node does not fail."""
    worded: tuple[str, ...] = ()
    """The options that count only with a note."""


NodeDecision = Next | End | Goto | Continue | Revise | Pause


# A named tuple: every step builds one, and it costs a third of a frozen dataclass.
class NodeResult(NamedTuple):
    """A node's result. `update` is folded through the state's channels; a key without one is replaced."""

    update: Mapping[str, Any] = MappingProxyType({})
    decision: NodeDecision = Next()
    error: str = ""
    """Not empty: the node failed for this reason, its update is dropped, and it may be retried."""
    permanent: bool = False
    """With `error`: do not retry."""


Node = TypeAliasType(
    "Node", Callable[[StateT, ContextT], Awaitable[NodeResult]], type_params=(ContextT, StateT)
)
"""A node is a plain async function of the state and the run's context."""


def decision_name(decision: NodeDecision) -> str:
    """The decision as text, for records, events and traces: `next`, `end`, `goto agent`, `pause` …"""
    match decision:
        case Goto(node=node):
            return f"goto {node}"
        case End(reason=reason) if reason != "completed":
            return f"end {reason}"
        case _:
            return type(decision).__name__.lower()
