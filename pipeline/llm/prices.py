"""The prices of OpenAI's models, from litellm's price list: a data file, read without litellm's code.

Other endpoints report the cost of a call, or it is unknown.
"""

from __future__ import annotations

import importlib.util
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from pipeline.domain.frozen import dataclass

_FILE = "model_prices_and_context_window_backup.json"
_KEPT_MODELS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """US dollars per token."""

    prompt: float
    cached: float
    """For the beginning of a prompt that the provider has in its cache."""
    completion: float

    def of(self, *, prompt_tokens: int, cached_tokens: int, completion_tokens: int) -> float:
        """US dollars for one answer; `prompt_tokens` include `cached_tokens`."""
        cached = min(cached_tokens, prompt_tokens)
        return (
            (prompt_tokens - cached) * self.prompt
            + cached * self.cached
            + completion_tokens * self.completion
        )


@lru_cache(_KEPT_MODELS)
def price_of(model: str) -> Price | None:
    """The price of OpenAI's `model`; None without the model or the list. Reads a file of 3 MB, once for each
    model."""
    entry = model_table().get(model)
    if not isinstance(entry, dict) or entry.get("litellm_provider") != "openai":
        return None
    try:
        prompt, completion = entry["input_cost_per_token"], entry["output_cost_per_token"]
        cached = entry.get("cache_read_input_token_cost") or prompt
        return Price(prompt=float(prompt), cached=float(cached), completion=float(completion))
    except (KeyError, TypeError, ValueError):
        return None


def model_table() -> dict[str, Any]:
    """The entries of litellm's list by model name; empty without the list."""
    found = importlib.util.find_spec("litellm")
    folders = found.submodule_search_locations if found is not None else None
    try:
        listed = json.loads(Path(next(iter(folders or ())), _FILE).read_text(encoding="utf-8"))
    except (StopIteration, OSError, ValueError):
        return {}
    return listed if isinstance(listed, dict) else {}
