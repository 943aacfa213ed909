"""The sizes of models' windows and answers, and which models see pictures: from litellm's table, read without
litellm's code."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from pipeline.domain.frozen import dataclass
from pipeline.llm.prices import model_table

_ANSWER_SHARE = 4
"""At most a quarter of the window is reserved for the answer: some models could fill it whole."""
_KEPT_MODELS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextWindow:
    """The limits of a model, in tokens."""

    context: int
    """The most of a prompt and its answer together."""
    answer: int
    """The most of an answer."""
    vision: bool = False
    """Whether the model can see pictures."""


@lru_cache(_KEPT_MODELS)  # a start asks several times for each agent
def window_of(model: str) -> ContextWindow | None:
    """The table's limits for litellm's `provider/name`; None without an entry. Reads a file of 3 MB, once
    for each model.

    A name without an entry is looked up without its providers, one after the other: a model such as
    `openrouter/openai/gpt-5` is in the table under its plain name.
    """
    table = model_table()
    for name in _names(model):
        entry = table.get(name)
        if isinstance(entry, dict):
            context = _count(entry, "max_input_tokens") or _count(entry, "max_tokens")
            answer = _count(entry, "max_output_tokens") or _count(entry, "max_tokens")
            if context and answer:
                most = max(1, min(answer, context // _ANSWER_SHARE))
                return ContextWindow(
                    context=context, answer=most, vision=entry.get("supports_vision") is True
                )
    return None


def _names(model: str) -> Iterator[str]:
    # Both providers of litellm reach the same models; the table has those of one.
    name = model.replace("ollama_chat/", "ollama/", 1)
    while name:
        yield name
        name = name.partition("/")[2]


def _count(entry: dict[str, Any], name: str) -> int:
    """A count of tokens; 0 for a missing or invalid value."""
    try:
        return max(0, int(entry.get(name) or 0))
    except (TypeError, ValueError):
        return 0
