"""What the model is sent: system prompt, fitted history, and the user's message exactly once."""

from __future__ import annotations

from pipeline.domain.chat import ChatMessage
from pipeline.domain.messages import Speech
from pipeline.intake.cleaning import clean_text
from pipeline.runtime.context import RunContext

# In a bracket behind the instructions: as a sentence of its own, the embedded model answers by
# repeating it.
_SPOKEN_NOTE = "(Voice input{how}: words may be misheard.)"


def build_messages(context: RunContext, messages_kept: int) -> tuple[ChatMessage, ...]:
    """The messages of one model call, system message first, with the newest `messages_kept` of the
    history, as the intake node counted them."""
    text = clean_text(context.text)
    system = context.settings.system_prompt
    if context.speech is not None:
        system = f"{system} {_SPOKEN_NOTE.format(how=_how_it_was_heard(context.speech))}"
    return (
        ChatMessage(role="system", content=system),
        *context.history[max(0, len(context.history) - messages_kept) :],
        ChatMessage(role="user", content=text),
    )


def _how_it_was_heard(speech: Speech) -> str:
    """Language and confidence, as far as they are known. A language is a code of the recogniser's: two or
    three letters, so it can carry nothing else into the prompt."""
    parts = []
    if speech.language.isalpha() and speech.language.isascii() and len(speech.language) <= 3:
        parts.append(f" in {speech.language}")
    if speech.confidence < 1.0:
        parts.append(f", confidence {max(0.0, speech.confidence):.0%}")
    return "".join(parts)
