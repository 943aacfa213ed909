"""What the model is sent: system prompt, fitted history, and the user's message exactly once."""

from __future__ import annotations

from pipeline.domain.chat import ChatMessage
from pipeline.intake.cleaning import clean_text
from pipeline.runtime.context import RunContext

# In a bracket behind the instructions: as a sentence of its own, the embedded model answers by
# repeating it.
_SPOKEN_NOTE = "(Voice input: words may be misheard.)"


def build_messages(context: RunContext, messages_kept: int) -> tuple[ChatMessage, ...]:
    """The messages of one model call, system message first, with the newest `messages_kept` of the
    history, as the intake node counted them."""
    text = clean_text(context.text)
    system = context.settings.system_prompt
    if context.spoken:
        system = f"{system} {_SPOKEN_NOTE}"
    return (
        ChatMessage(role="system", content=system),
        *context.history[max(0, len(context.history) - messages_kept) :],
        ChatMessage(role="user", content=text),
    )
