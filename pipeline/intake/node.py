"""The intake node (`input_handler` in the seeds): every message passes it, and it goes on, after asking back
where a spoken one was hardly understood."""

from __future__ import annotations

from pipeline.domain.chat import ChatMessage
from pipeline.graph.decisions import Next, NodeResult, State
from pipeline.intake.budget import fit_history
from pipeline.intake.cleaning import clean_text
from pipeline.intake.confirming import question
from pipeline.runtime.context import RunContext


async def intake(_state: State, context: RunContext) -> NodeResult:
    """Clean the newest message and count what of the history the model will see.

    Updates `intake`: `sanitized`, `messages_kept`, `messages_evicted`, `tokens_before`,
    `tokens_after`. The history itself stays out of the state, so a record does not grow with it.
    """
    text = clean_text(context.text)
    kept = _window(context, text)
    return NodeResult(
        update={
            "intake": {
                "sanitized": text != context.text,
                "messages_kept": len(kept),
                "messages_evicted": len(context.history) - len(kept),
                "tokens_before": sum(message.tokens for message in context.history),
                "tokens_after": sum(message.tokens for message in kept),
            }
        },
        decision=question(context) or Next(),
    )


def _window(context: RunContext, text: str) -> tuple[ChatMessage, ...]:
    """The part of the history that fits beside the system prompt, `text` and room for the answer."""
    settings = context.settings
    reserved = settings.max_answer_tokens
    reserved += ChatMessage(role="system", content=settings.system_prompt).tokens
    reserved += ChatMessage(role="user", content=text).tokens
    return fit_history(context.history, settings.context_tokens - reserved)
