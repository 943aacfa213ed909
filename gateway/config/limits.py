"""Get the maximum length of prompts and answers: from the settings, else from the model's known limits.

Not here: applying the limits (`pipeline.agent.model_messages`).
"""

from __future__ import annotations

from gateway.config.settings import Settings
from pipeline.domain.frozen import dataclass
from pipeline.llm.backends import resolve_backend
from pipeline.llm.windows import ContextWindow, window_of

EMBEDDED = ContextWindow(context=4_096, answer=512)
UNKNOWN = ContextWindow(context=4_096, answer=1_024)
"""For a model that litellm's table does not have: the defaults of self-hosted servers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelLimits:
    """The limits in tokens, and as text where each comes from."""

    context_tokens: int
    context_from: str
    max_tokens: int
    max_from: str
    vision: bool
    """Whether the model can see pictures."""

    def words(self) -> str:
        """The limits as one line for people."""
        return (
            f"window {self.context_tokens} tokens ({self.context_from}), "
            f"longest answer {self.max_tokens} tokens ({self.max_from}), "
            f"{'sees' if self.vision else 'does not see'} pictures"
        )


def model_limits(settings: Settings, model: str | None = None) -> ModelLimits:
    """The limits of `model`, or of `llm.model`. For a hosted model without all three settings a file of
    3 MB is read; no library is loaded."""
    llm = settings.llm
    known, source = _known(settings, model or llm.model)
    context = known.context if llm.context_tokens is None else llm.context_tokens
    # A configured window that is smaller than the table's also limits the answer.
    answer = min(known.answer, max(1, context // 4)) if llm.max_tokens is None else llm.max_tokens
    return ModelLimits(
        context_tokens=context,
        context_from=source if llm.context_tokens is None else "llm.context_tokens",
        max_tokens=answer,
        max_from=source if llm.max_tokens is None else "llm.max_tokens",
        vision=known.vision if llm.vision is None else llm.vision,
    )


def _known(settings: Settings, model: str) -> tuple[ContextWindow, str]:
    if resolve_backend(model, settings.llm.api_base).kind in ("local", "scripted"):
        return EMBEDDED, "of the embedded model"
    llm = settings.llm
    if None not in (llm.context_tokens, llm.max_tokens, llm.vision):
        return UNKNOWN, ""
    found = window_of(model)
    if found is None:
        return UNKNOWN, "LiteLLM's table does not know the model"
    return found, "LiteLLM's table"
