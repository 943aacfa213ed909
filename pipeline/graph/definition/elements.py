"""The small parts of a graph: edges, conditions, policies, limits. Plain values that refer to no graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Literal

from pipeline.domain.frozen import dataclass
from pipeline.graph.definition.decisions import State
from pipeline.graph.definition.expressions import Expression

END = "end"
"""The target that means the end of a run; no node may have this name."""


@dataclass(frozen=True, slots=True)
class Always:
    """The edge is taken when no other edge is, whether the node succeeded or failed."""


@dataclass(frozen=True, slots=True)
class OnSuccess:
    """The edge is taken when the node succeeded. Several of them fan out."""


@dataclass(frozen=True, slots=True)
class OnFailure:
    """The edge is taken when the node failed for good, after its retries. Several of them fan out."""


@dataclass(frozen=True, slots=True)
class When:
    """The edge is taken when the node succeeded and `holds` is true; the first match in declaration order.

    A string is a safe expression over the node's output and the state; a function gets the state. An
    error in either counts as false and sends an event.
    """

    holds: str | Callable[[State], bool]
    expression: Expression | None = field(init=False, default=None, compare=False, repr=False)
    """The compiled form of a string; None for a function, and for a string that does not parse."""

    def __post_init__(self) -> None:
        if isinstance(self.holds, str):
            object.__setattr__(self, "expression", Expression.parse_or_none(self.holds))


@dataclass(frozen=True, slots=True)
class LlmDecide:
    """One question to the decider names the target among all edges of this kind at the node."""

    description: str
    """When to take this edge, as text for the decider."""


@dataclass(frozen=True, slots=True)
class Route:
    """A function chooses one of `targets`, or several to fan out to. It is its node's only edge."""

    choose: Callable[[State], str | tuple[str, ...]]
    targets: tuple[str, ...]


Condition = Always | OnSuccess | OnFailure | When | LlmDecide | Route


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeSpec:
    """An edge out of `source`. `target` is a node id or END, and empty for a `Route`."""

    source: str
    target: str = ""
    when: Condition = field(default_factory=Always)
    mapping: Mapping[str, str] = field(default_factory=dict)
    """What the target sees under another name this time: its key -> key of the source's output, else of
    the state. A missing source key is skipped."""
    fallback: bool = False
    """Taken, among the `LlmDecide` edges of a node, when the decider gives no usable answer."""

    def targets(self) -> tuple[str, ...]:
        """Every target of this edge."""
        return self.when.targets if isinstance(self.when, Route) else (self.target,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """The purpose of a graph, as text for the decider and for people."""

    description: str
    success_criteria: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one run. The counts include the execution that reaches them.

    Those of the outermost graph also apply to its subgraphs, whose limits apply only when they run alone.
    """

    max_steps: int = 200
    """Node executions in one run, skipped ones included (a total cap in addition to the consecutive one)."""
    max_consecutive: int = 40
    """Executions of the same node in a row."""
    max_seconds: float | None = None
    """Wall-clock deadline of one `run` or `resume` call."""
    outer_only: bool = False
    """Whether the executions inside subgraphs do not count towards `max_steps`."""
    decide_seconds: float = 30.0
    """Deadline of one question to the decider; the fallback edge is taken afterwards."""


FailurePolicy = Literal["fail_all", "continue_others", "wait_all", "fail_at_end"]
ConflictPolicy = Literal["last_wins", "first_wins", "error"]
JoinPolicy = Literal["nearest", "none"]
AfterGates = Literal["together", "in_turn"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FanOut:
    """How parallel branches fail, join and time out."""

    on_failure: FailurePolicy = "fail_all"
    on_conflict: ConflictPolicy = "last_wins"
    """For keys without a channel that several branches wrote, in the order in which they finished."""
    join: JoinPolicy = "nearest"
    """none: every branch runs to its own end, through nodes that others run as well."""
    after_gates: AfterGates = "together"
    """in_turn: what an open gate holds back continues after its answer, once the answered branch rests: one
    line of execution after the other, in the order in which they were held back. What is inside a
    subgraph when a gate opens ends first. The policy of the outermost graph counts."""
    branch_timeout_s: float | None = 300.0


ConversationMode = Literal["continuous", "isolated"]


Lifetime = Literal["session", "person"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A key of the state that outlives the run: the next run of the same session or person begins with it."""

    lives: Lifetime
    was: tuple[str, ...] = ()
    """Its names in earlier versions of the graph, newest first."""
