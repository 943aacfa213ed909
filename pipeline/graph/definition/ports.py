"""Ports that the caller of the engine implements: a log, a decider for `LlmDecide` edges, a phase hook."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from pipeline.domain.frozen import dataclass
from pipeline.graph.definition.decisions import ContextT, State
from pipeline.graph.definition.elements import ConversationMode, Goal


class RunLog(Protocol):
    """Appends a run's records: plain mappings that the engine never changes after it passed them.

    `Executor.resume` takes the records of one run, in order.
    """

    def append(self, record: Mapping[str, Any]) -> None:
        """Queue a record after all earlier ones. A crash may lose it until `barrier` has returned.

        A log may gather the records until the event loop's next turn and write them together.
        """
        ...

    async def barrier(self) -> None:
        """Return when every queued record is durable. Raises if any could not be written."""
        ...

    async def finish(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Take the run's last records: make everything durable, or leave these to the commit that follows."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One of the targets that an `LlmDecide` question offers."""

    target: str
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteQuestion:
    """Which target follows `node`? `output` is untrusted: it may quote users and tools."""

    goal: Goal | None
    node: str
    output: Mapping[str, Any]
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The decider's answer. A target that is no candidate counts as no answer."""

    target: str
    reasoning: str = ""


class Decider(Protocol):
    """Answers one question with one call to a model. After any exception the fallback is taken."""

    async def decide(self, question: RouteQuestion, context: Any) -> Choice:
        """Choose a candidate. `context` is the context of the run's nodes."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseTransition:
    """The run leaves one node for another."""

    mode: ConversationMode
    source: str
    targets: tuple[str, ...]
    """Several at a fan-out."""
    completed: tuple[str, ...]
    """Labels of the nodes executed so far, the source last."""
    outputs: Mapping[str, Any]
    """The update of the source."""


PhaseHook: TypeAlias = Callable[[PhaseTransition, State, ContextT], Mapping[str, Any]]
"""Prepares the conversation for the next node: returns an update of the state, empty for none. The update is
recorded with the step and so never computed twice. The hook must be quick and without effects."""
