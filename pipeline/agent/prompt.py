"""What the model is sent: system prompt, fitted history, the user's message exactly once, and what this
run has said and done since."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.domain.chat import ChatMessage, ToolDefinition, estimate_tokens, message_from_plain
from pipeline.domain.messages import Speech
from pipeline.graph.decisions import State
from pipeline.history.view import shown
from pipeline.intake.budget import fit_history
from pipeline.intake.cleaning import clean_text
from pipeline.runtime.context import RunContext

EXCHANGE = "exchange"
"""The state's key for what the model and its tools have said in this run, as plain messages."""

# In a bracket behind the instructions: as a sentence of its own, the embedded model answers by
# repeating it.
_SPOKEN_NOTE = "(Voice input{how}: words may be misheard.)"
_SUMMARY = "[Previous conversation summary: {text}]"


def build_messages(
    context: RunContext, state: State, tools: Sequence[ToolDefinition] = ()
) -> tuple[ChatMessage, ...]:
    """The messages of one model call, system message first, with as much of the history as the model's
    window takes beside them, `tools` and the answer."""
    settings = context.settings
    system = ChatMessage(role="system", content=_system(context))
    said = ChatMessage(role="user", content=clean_text(context.text))
    exchange = [message_from_plain(plain) for plain in state.get(EXCHANGE, ())]
    conversation = shown(context.conversation, state)
    before: tuple[ChatMessage, ...] = ()
    if conversation.summary is not None:
        before = (ChatMessage(role="system", content=_SUMMARY.format(text=conversation.summary.text)),)
    used = settings.max_answer_tokens + sum(message.tokens for message in (system, *before, said, *exchange))
    used += sum(_tool_tokens(tool) for tool in tools)
    kept = fit_history(conversation.turns, settings.context_tokens - used)
    return (system, *before, *(message for turn in kept for message in turn.messages), said, *exchange)


def _tool_tokens(tool: ToolDefinition) -> int:
    return estimate_tokens(tool.name + tool.description + str(tool.parameters))


def _system(context: RunContext) -> str:
    system = context.settings.system_prompt
    if context.speech is not None:
        system = f"{system} {_SPOKEN_NOTE.format(how=_how_it_was_heard(context.speech))}"
    return system


def _how_it_was_heard(speech: Speech) -> str:
    """Language and confidence, as far as they are known. A language is a code of the recogniser's: two or
    three letters, so it can carry nothing else into the prompt."""
    parts = []
    if speech.language.isalpha() and speech.language.isascii() and len(speech.language) <= 3:
        parts.append(f" in {speech.language}")
    if speech.confidence < 1.0:
        parts.append(f", confidence {max(0.0, speech.confidence):.0%}")
    return "".join(parts)
