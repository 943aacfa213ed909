"""The keys of the companion's state, and the rule of its nodes: an update has only what changes.

Of the conversation, `history` and `transcript` hold what this turn adds; the log keeps the turns before it,
and nodes read them from the run's context.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pipeline.domain.clock import Clock
from pipeline.domain.errors import TurnFailed
from pipeline.graph.definition.decisions import State
from pipeline.graph.definition.elements import Kept
from pipeline.graph.definition.reducers import Channel, append, merge
from pipeline.runtime.context import RunContext
from pipeline.runtime.workflow_context import WorkflowContext

MESSAGE: Final = "message"
SAID: Final = "said"
"""The person's own words of the message: none that they quote or forward."""
HISTORY: Final = "history"
TRANSCRIPT: Final = "transcript"
CRISIS: Final = "crisis"
"""The assessment of the crisis gate, as `plain_assessment` writes it."""
WORKING_MEMORY: Final = "working_memory"
MEMORY: Final = "memory"
PROGRESS: Final = "progress"
"""Kept for the session: `turn_count`, `crisis_level_max`, `exercise_type`, `exercise_step` and more."""
ROUTING: Final = "routing"
RESPONSE: Final = "response"
DIAGNOSTICS: Final = "diagnostics"
ANSWER: Final = "agent"
"""The state's key for the answer in every graph."""

CHANNELS: Final[Mapping[str, Channel]] = {
    HISTORY: append,
    TRANSCRIPT: append,
    PROGRESS: merge,
    ROUTING: merge,
    DIAGNOSTICS: merge,
}
KEPT: Final[Mapping[str, Kept]] = {PROGRESS: Kept(lives="session")}
"""An exercise's step is committed with the answer, so neither a restart nor a crash skips or repeats one."""


class NoWorkflow(TurnFailed):
    """The graph runs for an agent without memory and crisis gate, as a part of another graph would."""

    permanent = True

    def __init__(self) -> None:
        super().__init__(
            "no_workflow",
            "This graph works only as the graph of an agent: name it in agent.graph or agents.NAME.graph.",
            recoverable=False,
        )


class NoOwner(TurnFailed):
    """No owner is named whose memory a turn could use."""

    permanent = True

    def __init__(self) -> None:
        super().__init__("no_owner", "I do not know who you are, so I cannot answer.", recoverable=False)


def workflow_of(context: RunContext) -> WorkflowContext:
    """The dependencies of the turn. Raises NoWorkflow."""
    if context.workflow is None:
        raise NoWorkflow
    return context.workflow


def owner_of(context: RunContext) -> str:
    """The owner of the turn's memory. Raises NoOwner: a general owner would mix people."""
    scope = context.scope
    if not scope.owner or (scope.private and not scope.author.id):
        raise NoOwner
    return scope.owner


def milliseconds(clock: Clock, began: float) -> float:
    """The time since `began`, by the clock's `monotonic`, for diagnostics."""
    return round((clock.monotonic() - began) * 1_000, 2)


def progress_of(state: State) -> Mapping[str, Any]:
    """The session's progress so far."""
    found: Mapping[str, Any] = state.get(PROGRESS, {})
    return found
