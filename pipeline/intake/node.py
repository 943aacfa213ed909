"""The first node of every run: cleans, fits, and always goes on. It never calls a model."""

from __future__ import annotations

from pipeline.graph.decisions import Next, NodeResult, State
from pipeline.intake.budget import fit_history
from pipeline.intake.cleaning import clean_text
from pipeline.intake.confirming import question
from pipeline.runtime.context import RunContext


async def intake(_state: State, context: RunContext) -> NodeResult:
    """Clean the newest message and count what of the history the run will see.

    Updates `intake`: `sanitized`, `turns_kept`, `messages_evicted`, `tokens_before`,
    `tokens_after`. The history itself stays out of the state, so a record does not grow with it.
    """
    text = clean_text(context.text)
    turns = context.conversation.turns
    kept = fit_history(turns, context.settings.token_ceiling)
    evicted = turns[: len(turns) - len(kept)]
    after = sum(turn.tokens for turn in kept)
    return NodeResult(
        update={
            "intake": {
                "sanitized": text != context.text,
                "turns_kept": len(kept),
                "messages_evicted": sum(len(turn.messages) for turn in evicted),
                "tokens_before": after + sum(turn.tokens for turn in evicted),
                "tokens_after": after,
            }
        },
        decision=question(context) or Next(),
    )
