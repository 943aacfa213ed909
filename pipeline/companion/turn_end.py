"""The last node before the answer is delivered: the assistant's entry, and the answer as every graph has
it."""

from __future__ import annotations

from typing import Any

from pipeline.companion.state import (
    ANSWER,
    CRISIS,
    DIAGNOSTICS,
    HISTORY,
    RESPONSE,
    ROUTING,
    TRANSCRIPT,
)
from pipeline.graph.definition.decisions import NodeResult, State
from pipeline.runtime.context import RunContext
from pipeline.safety.replies import STATIC_REPLY


async def finalize_turn(state: State, context: RunContext) -> NodeResult:
    """Add the answer to `history` and `transcript`. An empty one is not added, and the turn ends without one.

    A crisis branch that left no response gives fixed words. What comes after this node delays no answer.
    """
    routing = state.get(ROUTING, {})
    text = str(state.get(RESPONSE, {}).get("text", "")).strip()
    if not text and (CRISIS not in state or routing.get("route") == "crisis"):
        text = STATIC_REPLY
    style = routing.get("response_style", "")
    entry = {"role": "assistant", "content": text, "response_style": style}
    update: dict[str, Any] = {
        ANSWER: {"status": "done", "answer": text, "updated_at": context.clock.now()},
        DIAGNOSTICS: {"response_style": style},
    }
    if text:
        update |= {HISTORY: [entry], TRANSCRIPT: [entry]}
    return NodeResult(update=update)
