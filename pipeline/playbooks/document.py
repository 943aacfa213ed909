"""A playbook as values: its nodes, its edges, and the playbooks that it uses.

Not here: how a document is read (`reading`) and checked (`checks`), and what a run does (`progress`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from typing import Any, Final, Literal

from pipeline.domain.frozen import dataclass
from pipeline.graph.definition.expressions import Expression

TRIGGERS: Final = ("calendar", "chat-app", "heartbeat", "sulla-desktop", "workbench", "chat-completions")
"""The subtypes of a trigger. All of them complete at once: a run begins where a message is."""
YES: Final = "condition-true"
NO: Final = "condition-false"
INTO_LOOP: Final = "loop-start"
LOOP_BACK: Final = "loop-back"
OUT_OF_LOOP: Final = "loop-exit"
DEFAULT_ITERATIONS: Final = 10
DEFAULT_SYSTEM_PROMPT: Final = "You are a helpful assistant."
TRIGGER_PLACE: Final = "{{trigger}}"

Mode = Literal["template", "llm"]
Strategy = Literal["wait-all", "first"]
Starts = Literal["message", "agent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """Where a run begins."""

    id: str
    label: str
    subtype: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaybookAgent:
    """One task for a sub-agent, with questions to the model before and after it."""

    id: str
    label: str
    subtype: str = "agent"
    system_prompt: str = DEFAULT_SYSTEM_PROMPT
    prompt: str = TRIGGER_PLACE
    before: str = ""
    """Not empty: the model writes the sub-agent's task by these words first."""
    after: str = ""
    """Not empty: the model judges the result by these words."""
    criteria: str = ""
    groups: tuple[str, ...] = ()
    """The tool groups that it may use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaybookToolCall:
    """One call of a tool."""

    id: str
    label: str
    subtype: str = "tool-call"
    tool: str
    group: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One route of a router."""

    label: str
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Router:
    """The model chooses one of the routes by its label."""

    id: str
    label: str
    subtype: str = "router"
    prompt: str = ""
    routes: tuple[Way, ...] = ()
    default: str = ""
    """The label of the route for an answer that names none; empty to fail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaybookCondition:
    """Chooses between two edges, by an expression or by a question to the model."""

    id: str
    label: str
    subtype: str = "condition"
    mode: Mode = "template"
    holds: Expression | None = None
    prompt: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaybookWait:
    """Waits for a time."""

    id: str
    label: str
    subtype: str = "wait"
    seconds: float
    message: str = ""
    """What the person reads when the wait begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """Repeats what follows its handle `loop-start`, while the condition holds and iterations are left."""

    id: str
    label: str
    subtype: str = "loop"
    max_iterations: int = DEFAULT_ITERATIONS
    mode: Mode = "template"
    holds: Expression | None = None
    """None without a question to the model: every iteration is made."""
    prompt: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallel:
    """Begins every edge out of it as a branch."""

    id: str
    label: str
    subtype: str = "parallel"


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """Joins branches."""

    id: str
    label: str
    subtype: str = "merge"
    strategy: Strategy = "wait-all"


@dataclass(frozen=True, slots=True, kw_only=True)
class SubWorkflow:
    """Runs another playbook and continues with its result."""

    id: str
    label: str
    subtype: str = "sub-workflow"
    workflow: str
    """The key of the playbook in `Playbook.others`."""
    input: str = TRIGGER_PLACE


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """Leaves this playbook and all above it, and begins another."""

    id: str
    label: str
    subtype: str = "transfer"
    workflow: str
    input: str = TRIGGER_PLACE


@dataclass(frozen=True, slots=True, kw_only=True)
class UserInput:
    """Asks the person and waits."""

    id: str
    label: str
    subtype: str = "user-input"
    prompt: str = "What do you say?"
    options: tuple[str, ...] = ()
    """Only these count; empty for any words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """Says something to the person."""

    id: str
    label: str
    subtype: str = "response"
    text: str = ""
    """Empty: the result of the node before."""


Node = (
    Trigger
    | PlaybookAgent
    | PlaybookToolCall
    | Router
    | PlaybookCondition
    | PlaybookWait
    | Loop
    | Parallel
    | Merge
    | SubWorkflow
    | Transfer
    | UserInput
    | Response
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """From a handle of a node to another node. Without a handle it is always followed."""

    source: str
    target: str
    handle: str = ""
    into: str = ""
    """`loop-back` for the way back into a loop."""


@dataclass(frozen=True, kw_only=True)
class Playbook:
    """A document without mistakes."""

    name: str
    nodes: Mapping[str, Node]
    edges: tuple[Edge, ...]
    version: str = "1"
    starts: Starts = "message"
    description: str = ""
    others: Mapping[str, Playbook] = field(default_factory=dict)
    """The playbooks that sub-workflows and transfers name, those of others included; set in the first."""

    @cached_property
    def trigger(self) -> Trigger:
        """The only trigger."""
        return next(node for node in self.nodes.values() if isinstance(node, Trigger))

    @cached_property
    def outgoing(self) -> Mapping[str, tuple[Edge, ...]]:
        """The edges out of each node, in the order of the document."""
        return {name: tuple(edge for edge in self.edges if edge.source == name) for name in self.nodes}

    @cached_property
    def bodies(self) -> Mapping[str, frozenset[str]]:
        """The nodes inside of each loop."""
        return {name: body_of(name, self.edges) for name in self.nodes if isinstance(self.nodes[name], Loop)}

    def followed(self, node: str, handle: str) -> tuple[Edge, ...]:
        """The edges that a run follows when a node has chosen `handle`; empty for none."""
        return tuple(edge for edge in self.outgoing[node] if edge.handle in ("", handle))

    def arrivals(self, merge: str) -> tuple[Edge, ...]:
        """The edges into a node."""
        return tuple(edge for edge in self.edges if edge.target == merge)

    def reached_from(self, node: str, *, inside: bool = False, without: str = "") -> frozenset[str]:
        """The nodes that a run can get to behind `node`, itself not counted, and not through `without`. From
        a loop that is `inside` an iteration only its exit counts."""
        first = self.outgoing[node]
        if inside:
            first = tuple(edge for edge in first if edge.handle != INTO_LOOP)
        return _spread((edge.target for edge in first if edge.into != LOOP_BACK), self.edges, without)


def body_of(loop: str, edges: tuple[Edge, ...]) -> frozenset[str]:
    """The nodes between the start of an iteration and its end."""
    first = (edge.target for edge in edges if (edge.source, edge.handle) == (loop, INTO_LOOP))
    return _spread((target for target in first if target != loop), edges, loop) - {loop}


def _spread(first: Any, edges: tuple[Edge, ...], without: str) -> frozenset[str]:
    seen: set[str] = set()
    waiting = [name for name in first if name != without]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        waiting += [
            edge.target
            for edge in edges
            if edge.source == name and edge.into != LOOP_BACK and edge.target != without
        ]
    return frozenset(seen)


def title(node: Node) -> str:
    """The name of a node for people."""
    return node.label or node.id
