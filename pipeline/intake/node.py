"""The first node of every run: cleans, flags, fits, and always goes on. It never calls a model.

Flags change nothing here. What follows from them is the settings' to say and `declining`'s to do; summing up
what does not fit is `pipeline.history`'s.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from pipeline.domain.chat import estimate_tokens
from pipeline.graph.definition.decisions import Next, NodeResult, State
from pipeline.history.compaction import FixedTokens, is_time, may_be_time
from pipeline.intake.budget import fit_history
from pipeline.intake.cleaning import clean_text
from pipeline.intake.confirmation import question
from pipeline.intake.injection import looks_injected
from pipeline.intake.quotes import own_words
from pipeline.intake.rate import too_fast
from pipeline.intake.silent_finish import refusal
from pipeline.intake.spam import looks_like_spam
from pipeline.runtime.context import RunContext


def intake_node(fixed_tokens: FixedTokens) -> Callable[[State, RunContext], Awaitable[NodeResult]]:
    """The node. `fixed_tokens` counts what of a prompt is no history: it is asked only of conversations for
    which it may be time to sum up their beginning."""

    async def intake(_state: State, context: RunContext) -> NodeResult:
        return _judged(context, fixed_tokens)

    return intake


def _judged(context: RunContext, fixed_tokens: FixedTokens) -> NodeResult:
    """Clean and judge the newest message, and count what of the history fits under the ceiling beside it.

    Updates `intake`. Of the message: `sanitized`, `rate_limited`, `rate_limit_reason`, `spam_detected`,
    `injection_detected` and `refused`, which is empty or the flag for which it is not answered. Of the
    history: `turns_kept`, `messages_evicted`, `tokens_before` and `tokens_after` (summary and newest message
    included), `long` (it is time to sum up its beginning), `summary_service_triggered` (there are more
    messages than are kept unsummarised). `relevance_scored` and `eviction_summarized` are false: the newest
    turns are kept whatever they are about, and what is left out is not summed up here.

    The history itself stays out of the state, so a record does not grow with it.
    """
    text = clean_text(context.text)
    reason = too_fast(context.received_at, context.arrivals)
    spam = looks_like_spam(own_words(text))
    refused = refusal(context.settings, too_fast=reason is not None, spam=spam)
    diagnostics: dict[str, Any] = {
        "sanitized": text != context.text,
        "rate_limited": reason is not None,
        "rate_limit_reason": reason,
        "spam_detected": spam,
        # In what came in: cleaning takes away what attacks hide behind.
        "injection_detected": looks_injected(context.text),
        "refused": refused,
        **_fitted(context, text),
    }
    if may_be_time(diagnostics["tokens_before"], context.settings):
        # All that a run knows by now: nothing is loaded or summed up yet.
        state = {"intake": diagnostics}
        diagnostics["long"] = is_time(context, state, fixed_tokens(context, state))
    # Nobody is asked what they meant by a message that is not answered, nor where a question would be kept.
    asks = None if refused or context.scope.mode == "otr" else question(context)
    return NodeResult(update={"intake": diagnostics}, decision=asks or Next())


def _fitted(context: RunContext, text: str) -> dict[str, int | bool]:
    """How the conversation stands to the ceiling, or to the window of a smaller model without the answer's
    room. The newest message stays even where it is larger alone."""
    conversation, settings = context.conversation, context.settings
    summary = conversation.summary
    fixed = estimate_tokens(text) + (0 if summary is None else estimate_tokens(summary.text))
    ceiling = min(settings.token_ceiling, settings.context_tokens - settings.max_answer_tokens)
    kept = fit_history(conversation.turns, ceiling - fixed)
    evicted = conversation.turns[: len(conversation.turns) - len(kept)]
    after = fixed + sum(turn.tokens for turn in kept)
    before = after + sum(turn.tokens for turn in evicted)
    return {
        "turns_kept": len(kept),
        "messages_evicted": sum(len(turn.messages) for turn in evicted),
        "tokens_before": before,
        "tokens_after": after,
        "long": False,  # known only when the rest of the prompt is
        "relevance_scored": False,
        "eviction_summarized": False,
        "summary_service_triggered": conversation.size + 1 > settings.summarise_above,
    }
