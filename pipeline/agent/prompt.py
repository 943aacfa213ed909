"""What the model is sent: system prompt, fitted history, the user's message exactly once, and what this
run has said and done since."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.agent.assembler import system_prompt
from pipeline.domain.chat import ChatMessage, ToolDefinition, estimate_tokens, message_from_plain
from pipeline.domain.conversation import Conversation
from pipeline.graph.decisions import State
from pipeline.history.view import shown
from pipeline.intake.budget import fit_history
from pipeline.intake.cleaning import clean_text
from pipeline.runtime.context import RunContext

EXCHANGE = "exchange"
"""The state's key for what the model and its tools have said in this run, as plain messages."""
LOADED = "loaded"
"""The state's key for the tool groups and skills that are loaded for this message."""

_SUMMARY = "[Previous conversation summary: {text}]"


def build_messages(
    context: RunContext, state: State, tools: Sequence[ToolDefinition] = ()
) -> tuple[ChatMessage, ...]:
    """The messages of one model call, system message first, with as much of the history as the model's
    window takes beside them, `tools` and the answer."""
    settings = context.settings
    skills = state.get(LOADED, {}).get("skills", ())
    system = ChatMessage(role="system", content=system_prompt(context, state, skills, tools=bool(tools)))
    said = ChatMessage(role="user", content=clean_text(context.text))
    exchange = [message_from_plain(plain) for plain in state.get(EXCHANGE, ())]
    conversation = shown(context.conversation, state)
    before = _summary_of(conversation)
    used = settings.max_answer_tokens + sum(message.tokens for message in (system, *before, said, *exchange))
    used += sum(_tool_tokens(tool) for tool in tools)
    kept = fit_history(conversation.turns, min(settings.token_ceiling, settings.context_tokens - used))
    return (system, *before, *(message for turn in kept for message in turn.messages), said, *exchange)


def _summary_of(conversation: Conversation) -> tuple[ChatMessage, ...]:
    if conversation.summary is None:
        return ()
    return (ChatMessage(role="system", content=_SUMMARY.format(text=conversation.summary.text)),)


def _tool_tokens(tool: ToolDefinition) -> int:
    return estimate_tokens(tool.name + tool.description + str(tool.parameters))
