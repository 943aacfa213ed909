"""What the engine asks of whoever runs it: a log, a decider for `LlmDecide` edges, a hook between phases."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from pipeline.graph.definition.decisions import ContextT, State
from pipeline.graph.definition.elements import ConversationMode, Goal


class RunLog(Protocol):
    """A run's append-only records: plain mappings, which are never changed once they are handed over.

    The records of one run, in order, are what `Executor.resume` takes.
    """

    def append(self, record: Mapping[str, Any]) -> None:
        """Queue a record behind all earlier ones. It may be lost by a crash until `barrier` returned.

        A log may gather the records until the event loop's next turn, and write them together.
        """
        ...

    async def barrier(self) -> None:
        """Return when every queued record is durable; raise if any could not be written."""
        ...

    async def finish(self, records: Sequence[Mapping[str, Any]]) -> None:
        """The run's last records. Make everything durable, or leave these to the commit that follows."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One of the ways an `LlmDecide` question offers."""

    target: str
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Where to go after `node`. `output` is untrusted: it may quote users and tools."""

    goal: Goal | None
    node: str
    output: Mapping[str, Any]
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The decider's answer. A target that is no candidate is as good as no answer."""

    target: str
    reasoning: str = ""


class Decider(Protocol):
    """Answers one question with one call to a model. Whatever it raises means: take the fallback."""

    async def decide(self, question: Question, context: Any) -> Choice:
        """`context` is what the run's nodes are given."""
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
    """What the source has just written."""


PhaseHook: TypeAlias = Callable[[PhaseTransition, State, ContextT], Mapping[str, Any]]
"""Prepares the conversation for the next node: gives an update of the state, which is recorded with the
step and so never computed twice; empty for none. Quick, and without effects."""
