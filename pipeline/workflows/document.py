"""A workflow as values: nodes, connections, and what a person decides at an approval.

Not here: how a document is read and checked (`reading`), and what a run does (`compiling`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any, Final, Literal

from pipeline.domain.frozen import dataclass

PREVIOUS: Final = "PREVIOUS_OUTPUT"
"""The place for the output of the node before: `{{PREVIOUS_OUTPUT}}` in a text."""
MESSAGE: Final = "MESSAGE"
"""The place for the message that began the run."""
NOTE: Final = "NOTE:"
"""Before the id of an approval: the place for the note with which a person has answered it."""
_PLACE: Final = re.compile(r"\{\{(PREVIOUS_OUTPUT|MESSAGE|NOTE:[^{}]+)\}\}")
DEFAULT_SYSTEM_PROMPT: Final = "You are a helpful assistant."
DEFAULT_QUESTION: Final = "Please approve or reject this step."
SUBAGENT: Final = "subagent"
"""The handle of an agent from which a connection makes a tool of another agent."""
OTHERWISE: Final = "false"
"""The handle of an if for what no condition matches."""

Decision = Literal["approve", "reject"]
DECISIONS: Final[tuple[Decision, ...]] = ("approve", "reject")
EDIT: Final = "edit"
"""The answer to an editable approval that approves another text, which follows the word."""
Operator = Literal["equal", "contains"]
Effort = Literal["none", "minimal", "low", "medium", "high"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Where a run begins. Its output is `initial_input`, or the message if that is empty."""

    id: str
    initial_input: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowAgent:
    """One task for the model, without the conversation."""

    id: str
    name: str = ""
    system_prompt: str = DEFAULT_SYSTEM_PROMPT
    user_prompt: str = ""
    """Empty: the previous output."""
    model: str = ""
    effort: Effort = "low"
    groups: tuple[str, ...] = ()
    """The tool groups that it may use."""
    delegates: bool = False
    """It may have sub-agents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One condition of an if."""

    operator: Operator
    value: str

    def matches(self, text: str) -> bool:
        """Whether `text` matches, without case and the space around both. An empty value never does."""
        wanted, given = self.value.strip().lower(), text.strip().lower()
        if not wanted:
            return False
        return wanted in given if self.operator == "contains" else wanted == given


@dataclass(frozen=True, slots=True, kw_only=True)
class If:
    """Chooses by the previous output: the first condition that matches."""

    id: str
    conditions: tuple[Comparison, ...] = ()

    def handle(self, text: str) -> str:
        """The handle that the previous output `text` leads to."""
        for at, condition in enumerate(self.conditions):
            if condition.matches(text):
                return f"condition-{at}"
        return OTHERWISE


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowApproval:
    """Waits for a person, who approves or rejects."""

    id: str
    prompt: str = DEFAULT_QUESTION
    approvers: tuple[str, ...] = ()
    """Who may decide, each as `channel:user` or `channel:account:user`; empty for who began the run."""
    expires_s: float | None = None
    editable: bool = False
    """Who decides may put another text in place of what is to be approved."""


Node = Start | WorkflowAgent | If | WorkflowApproval


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """From a handle of a node to another node. `handle` is empty for the only output of a start or agent."""

    source: str
    target: str
    handle: str = ""

    @property
    def delegates(self) -> bool:
        """Whether it makes a tool and is no way of the run."""
        return self.handle == SUBAGENT


@dataclass(frozen=True, kw_only=True)
class Workflow:
    """A document without mistakes."""

    name: str
    nodes: Mapping[str, Node]
    connections: tuple[Connection, ...]
    version: str = "1"

    @cached_property
    def start(self) -> Start:
        """The only start."""
        return next(node for node in self.nodes.values() if isinstance(node, Start))

    def targets(self, source: str, handle: str = "") -> tuple[str, ...]:
        """Where a run goes from a handle, in the order of the document."""
        return self._targets.get((source, handle), ())

    @cached_property
    def _targets(self) -> Mapping[tuple[str, str], tuple[str, ...]]:
        found: dict[tuple[str, str], list[str]] = {}
        for one in self.connections:
            found.setdefault((one.source, one.handle), []).append(one.target)
        return {way: tuple(targets) for way, targets in found.items()}

    def subagents(self, agent: str) -> tuple[WorkflowAgent, ...]:
        """The agents that are tools of `agent`."""
        return self._subagents.get(agent, ())

    @cached_property
    def _subagents(self) -> Mapping[str, tuple[WorkflowAgent, ...]]:
        found: dict[str, list[WorkflowAgent]] = {}
        for one in self.connections:
            if one.delegates and isinstance(below := self.nodes[one.target], WorkflowAgent):
                found.setdefault(one.source, []).append(below)
        return {agent: tuple(below) for agent, below in found.items()}

    @cached_property
    def approvals(self) -> tuple[str, ...]:
        """The ids of all approvals."""
        return tuple(name for name, node in self.nodes.items() if isinstance(node, WorkflowApproval))

    @cached_property
    def reached(self) -> tuple[str, ...]:
        """The nodes that a run can reach, the start first."""
        seen: dict[str, None] = {}
        waiting = [self.start.id]
        while waiting:
            node = waiting.pop()
            if node not in seen:
                seen[node] = None
                following = [
                    one.target for one in self.connections if one.source == node and not one.delegates
                ]
                waiting += reversed(following)
        return tuple(seen)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalVerdict:
    """A person's answer to an approval."""

    decision: Decision
    note: str = ""


def verdict_of(given: Any) -> ApprovalVerdict | None:
    """The answer in a text, or in an object with `decision` and `note`; None for anything but exactly approve
    or reject, without case: such an answer does not count."""
    said: Any = given
    note: Any = ""
    if isinstance(given, Mapping):
        said, note = given.get("decision"), given.get("note", "")
    word = said.strip().lower() if isinstance(said, str) else ""
    for decision in DECISIONS:
        if word == decision:
            return ApprovalVerdict(decision=decision, note=note if isinstance(note, str) else "")
    return None


def filled(text: str, values: Mapping[str, str]) -> str:
    """`text` with the values in their places; a place without a value is empty. Values
    are taken literally: what looks like a place or a pattern in one of them stays as it is."""
    if "{{" not in text:
        return text
    return _PLACE.sub(lambda place: values.get(place[1], ""), text)


@lru_cache(maxsize=1024)
def places(text: str) -> tuple[str, ...]:
    """The places in `text`, each once. Cached: the texts are those of documents."""
    return tuple(dict.fromkeys(_PLACE.findall(text)))
