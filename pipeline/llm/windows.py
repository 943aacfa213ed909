"""How much a model reads and writes, from the table that litellm brings: read without its code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pipeline.llm.prices import model_table

_ANSWER_SHARE = 4
"""At most a quarter of the window is kept for the answer: some models could fill the whole of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Tokens."""

    context: int
    """Of a prompt and its answer."""
    answer: int
    """The longest answer."""


def window_of(model: str) -> Window | None:
    """What the table says of litellm's `provider/name`; None where it has none. Reads a file of 3 MB."""
    table = model_table()
    for name in (model, model.partition("/")[2]):
        entry = table.get(name) if name else None
        if isinstance(entry, dict):
            context = _count(entry, "max_input_tokens") or _count(entry, "max_tokens")
            answer = _count(entry, "max_output_tokens") or _count(entry, "max_tokens")
            if context and answer:
                return Window(context=context, answer=max(1, min(answer, context // _ANSWER_SHARE)))
    return None


def _count(entry: dict[str, Any], name: str) -> int:
    """A count of tokens; 0 for none, and for what is no count."""
    try:
        return max(0, int(entry.get(name) or 0))
    except (TypeError, ValueError):
        return 0
