"""The first node of every run: cleans and flags the message, and in the conversation graph then fits the
history. It never calls a model.

The flags do not change the message. The settings decide what a flag leads to, `silent_finish` refuses
messages, and `pipeline.history` summarises the history that does not fit.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from pipeline.domain.chat import estimate_tokens
from pipeline.domain.conversation import Conversation, PastTurn
from pipeline.domain.messages import InboundMessage
from pipeline.graph.definition.decisions import Next, NodeResult, State
from pipeline.history.compaction import FixedTokens, is_time, may_be_time
from pipeline.intake.budget import MAX_BUDGET_TOKENS, fit_history
from pipeline.intake.cleaning import clean_text
from pipeline.intake.confirmation import question
from pipeline.intake.injection import looks_injected
from pipeline.intake.quotes import own_words
from pipeline.intake.rate import too_fast
from pipeline.intake.silent_finish import refusal
from pipeline.intake.spam import looks_like_spam
from pipeline.runtime.context import RunContext
from pipeline.runtime.settings import PipelineSettings

HISTORY_COUNTED = "turns_kept"
"""The key of `intake` that is there if the node has read the history."""
CRISIS_LEVEL = "crisis_level"
"""The key of `intake` that is there if the crisis gate found ambiguous words or severe distress."""


async def message_node(_state: State, context: RunContext) -> NodeResult:
    """Clean and check the newest message; reads no history.

    Updates `intake`: `sanitized`, `rate_limited`, `rate_limit_reason`, `spam_detected`, `injection_detected`
    and `refused`, which is empty or the flag for which the message is not answered; and `crisis_level` where
    the crisis gate found ambiguous words or severe distress.
    """
    diagnostics = _judged(context, clean_text(context.text))
    # No question for a message that is not answered.
    asks = None if diagnostics["refused"] else question(context)
    return NodeResult(update={"intake": diagnostics}, decision=asks or Next())


def intake_node(fixed_tokens: FixedTokens) -> Callable[[State, RunContext], Awaitable[NodeResult]]:
    """A node that does the same and, unless the message is refused, counts how much of the history fits under
    the ceiling with it. `fixed_tokens` counts the tokens of a prompt without its history; it is called only
    for conversations that may be long enough to summarise.

    It adds to `intake`: `turns_kept`, `messages_evicted`, `tokens_before` and `tokens_after` (summary and
    newest message included), `long` (it is time to sum up its beginning), `summary_service_triggered` (there
    are more messages than are kept unsummarised). `relevance_scored` and `eviction_summarized` are false: the
    newest turns are kept whatever their subject, and this node does not summarise what is left out. The
    history itself stays out of the state, so that a record does not grow with it.
    """

    async def intake(_state: State, context: RunContext) -> NodeResult:
        text = clean_text(context.text)
        diagnostics = _judged(context, text)
        if diagnostics["refused"]:
            return NodeResult(update={"intake": diagnostics})
        said = await context.history.conversation()
        diagnostics |= _fitted(said, context, text)
        if may_be_time(diagnostics["tokens_before"], context.settings):
            # The whole state at this point: no tools are loaded and no summary is made yet.
            state = {"intake": diagnostics}
            diagnostics["long"] = is_time(said, context, state, fixed_tokens(context, state))
        return NodeResult(update={"intake": diagnostics}, decision=question(context, sums_up=True) or Next())

    return intake


def refuses(settings: PipelineSettings, message: InboundMessage, arrivals: Sequence[float]) -> bool:
    """Whether a message is refused by itself; of a voice note, only its time is known."""
    if settings.too_fast != "refuse" and settings.spam != "refuse":
        return False
    reason = too_fast(message.received_at, arrivals)
    return bool(
        refusal(settings, too_fast=reason is not None, spam=looks_like_spam(clean_text(message.text)))
    )


def _judged(context: RunContext, text: str) -> dict[str, Any]:
    """What is known of the message alone; `text` is its cleaned text."""
    reason = too_fast(context.received_at, context.arrivals)
    # A file without words is no spam.
    spam = bool(text or not context.files) and looks_like_spam(own_words(text))
    refused = refusal(context.settings, too_fast=reason is not None, spam=spam)
    judged = {
        "sanitized": text != context.text,
        "rate_limited": reason is not None,
        "rate_limit_reason": reason,
        "spam_detected": spam,
        # Checked in the raw text: cleaning removes the disguises of attacks.
        "injection_detected": looks_injected(context.text),
        "refused": refused,
    }
    return judged | {CRISIS_LEVEL: context.crisis_level} if context.crisis_level else judged


def _fitted(conversation: Conversation, context: RunContext, text: str) -> dict[str, int | bool]:
    """Count the conversation against the ceiling, or against the window of a smaller model minus the answer's
    tokens. The newest message stays even where it alone exceeds that."""
    summary, settings = conversation.summary, context.settings
    fixed = (
        estimate_tokens(text)
        + context.file_tokens
        + (0 if summary is None else estimate_tokens(summary.text))
    )
    ceiling = min(settings.token_ceiling, settings.context_tokens - settings.max_answer_tokens)
    evicted: tuple[PastTurn, ...] = ()
    if conversation.tokens > min(ceiling - fixed, MAX_BUDGET_TOKENS):
        kept = fit_history(conversation.turns, ceiling - fixed)
        evicted = conversation.turns[: len(conversation.turns) - len(kept)]
    return {
        HISTORY_COUNTED: len(conversation.turns) - len(evicted),
        "messages_evicted": sum([len(turn.messages) for turn in evicted]),
        "tokens_before": fixed + conversation.tokens,
        "tokens_after": fixed + conversation.tokens - sum([turn.tokens for turn in evicted]),
        "long": False,  # known only when the rest of the prompt is
        "relevance_scored": False,
        "eviction_summarized": False,
        "summary_service_triggered": conversation.size + 1 > settings.summarise_above,
    }
