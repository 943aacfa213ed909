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

    `turn_total_ms` counts from the arrival of the message. A crisis branch that left no response gives fixed
    words. What comes after this node delays no answer.
    """
    routing = state.get(ROUTING, {})
    text = str(state.get(RESPONSE, {}).get("text", "")).strip()
    if not text and (CRISIS not in state or routing.get("route") == "crisis"):
        text = STATIC_REPLY
    style = routing.get("response_style", "")
    entry = {"role": "assistant", "content": text, "response_style": style}
    now = context.clock.now()
    diagnostics: dict[str, Any] = {"response_style": style}
    if context.received_at:
        diagnostics["turn_total_ms"] = round(max(0.0, now - context.received_at) * 1_000, 2)
    update: dict[str, Any] = {
        ANSWER: {"status": "done", "answer": text, "updated_at": now},
        DIAGNOSTICS: diagnostics,
    }
    if text:
        update |= {HISTORY: [entry], TRANSCRIPT: [entry]}
    return NodeResult(update=update)
