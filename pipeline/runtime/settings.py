"""The pipeline's settings, as plain values; the gateway reads them from its configuration."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_SYSTEM_PROMPT = "You are Parlour, a helpful assistant. Answer briefly, in the user's language."


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSettings:
    """Bounds and wording of every turn."""

    system_prompt: str = DEFAULT_SYSTEM_PROMPT
    max_answer_tokens: int = 512
    temperature: float = 0.2
    llm_timeout_s: float = 120.0
    turn_timeout_s: float = 180.0
    context_tokens: int = 4096
    """The model's window: system prompt, history, message and answer together."""
    confirm_below: float = 0.5
    """Spoken words that were heard with less confidence are shown to their speaker before anything is done
    with them; 0 never asks."""
    called: tuple[str, ...] = ()
    """Names that the bot listens to in voice notes that were not addressed to it by the platform's means."""
