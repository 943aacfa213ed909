"""What the steps of a run have read from elsewhere, also before a restart."""

from __future__ import annotations

from pipeline.agent.model_messages import exchanged
from pipeline.graph.definition.decisions import State
from pipeline.runtime.context import RunContext


def note_foreign_results(state: State, context: RunContext) -> None:
    """Note the foreign results of earlier tools in the turn's scope: call it before a step acts."""
    context.scope.foreign.read(exchanged(state))
