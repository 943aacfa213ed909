"""What the model is sent: system prompt, fitted history, and the user's message exactly once."""

from __future__ import annotations

from pipeline.domain.chat import ChatMessage
from pipeline.intake.cleaning import clean_text
from pipeline.intake.node import window
from pipeline.runtime.context import RunContext

# In a bracket behind the instructions: as a sentence of its own, the embedded model answers by
# repeating it.
_SPOKEN_NOTE = "(Voice input: words may be misheard.)"


def build_messages(context: RunContext) -> tuple[ChatMessage, ...]:
    """The messages of one model call, system message first."""
    text = clean_text(context.text)
    system = context.settings.system_prompt
    if context.spoken:
        system = f"{system} {_SPOKEN_NOTE}"
    return (
        ChatMessage(role="system", content=system),
        *window(context, text),
        ChatMessage(role="user", content=text),
    )
