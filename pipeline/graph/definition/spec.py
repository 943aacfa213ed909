"""A validated graph, and re-exports of every type needed to declare one."""

from __future__ import annotations

from functools import cached_property

from pipeline.domain.errors import GraphError
from pipeline.domain.frozen import dataclass
from pipeline.graph.definition.decisions import ContextT, StateT
from pipeline.graph.definition.elements import (
    END,
    Always,
    Condition,
    ConflictPolicy,
    EdgeSpec,
    FailurePolicy,
    FanOut,
    Goal,
    Kept,
    Limits,
    LlmDecide,
    OnFailure,
    OnSuccess,
    Route,
    When,
)
from pipeline.graph.definition.reducers import Channel, append, custom, first, last, merge
from pipeline.graph.definition.retry import RetryPolicy
from pipeline.graph.definition.signature import graph_signature
from pipeline.graph.definition.structure import GraphStructure, NodeSpec
from pipeline.graph.definition.validation import graph_problems

__all__ = [
    "END",
    "Always",
    "Channel",
    "Condition",
    "ConflictPolicy",
    "EdgeSpec",
    "FailurePolicy",
    "FanOut",
    "Goal",
    "GraphSpec",
    "Kept",
    "Limits",
    "LlmDecide",
    "NodeSpec",
    "OnFailure",
    "OnSuccess",
    "RetryPolicy",
    "Route",
    "When",
    "append",
    "custom",
    "first",
    "last",
    "merge",
]


@dataclass(frozen=True, kw_only=True)
class GraphSpec(GraphStructure[ContextT, StateT]):
    """A validated graph. Building one raises GraphError with all its mistakes."""

    def __post_init__(self) -> None:
        problems = graph_problems(self)
        if problems:
            raise GraphError(f"graph {self.name}: " + "; ".join(problems))

    @cached_property
    def signature(self) -> str:
        """A short hash of everything that a recorded run depends on."""
        return graph_signature(self)
