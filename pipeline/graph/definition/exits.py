"""The edges of a node by kind, in declaration order: computed once when a graph is built."""

from __future__ import annotations

from pipeline.domain.frozen import dataclass
from pipeline.graph.definition.elements import (
    Always,
    EdgeSpec,
    LlmDecide,
    OnFailure,
    OnSuccess,
    Route,
    When,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exits:
    """A node's edges by kind, each group in declaration order."""

    route: Route | None = None
    conditional: tuple[EdgeSpec, ...] = ()
    decided: tuple[EdgeSpec, ...] = ()
    on_success: tuple[EdgeSpec, ...] = ()
    on_failure: tuple[EdgeSpec, ...] = ()
    always: tuple[EdgeSpec, ...] = ()
    plain: tuple[str, ...] | None = None
    """The targets after success, if they depend on nothing else and no edge to them has a mapping; otherwise
    None."""

    @classmethod
    def of(cls, edges: tuple[EdgeSpec, ...]) -> Exits:
        """Sort the edges of one node."""

        def kind(wanted: type) -> tuple[EdgeSpec, ...]:
            return tuple(edge for edge in edges if isinstance(edge.when, wanted))

        always, on_success = kind(Always), kind(OnSuccess)
        chosen = any(isinstance(edge.when, When | LlmDecide | Route) for edge in edges)
        return cls(
            route=next((edge.when for edge in edges if isinstance(edge.when, Route)), None),
            conditional=kind(When),
            decided=kind(LlmDecide),
            on_success=on_success,
            on_failure=kind(OnFailure),
            always=always,
            plain=None if chosen else _plain_targets(on_success or always),
        )


def _plain_targets(taken: tuple[EdgeSpec, ...]) -> tuple[str, ...] | None:
    if any(edge.mapping for edge in taken):
        return None
    return tuple(dict.fromkeys(edge.target for edge in taken))
