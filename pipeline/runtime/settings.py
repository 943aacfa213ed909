"""The pipeline's settings, as plain values; the gateway reads them from its configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

DEFAULT_SYSTEM_PROMPT = "You are Parlour, a helpful assistant. Answer briefly, in the user's language."


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSettings:
    """Bounds and wording of every turn."""

    system_prompt: str = DEFAULT_SYSTEM_PROMPT
    bot_name: str = "Parlour"
    """Who the model is told it is."""
    time_zone: str = "UTC"
    """The IANA name of the zone of whoever named none of their own."""
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
    token_ceiling: int = 96_000
    """The most tokens of history, whatever the model's window (seed 0: MAX_TOKEN_BUDGET)."""
    summarise_above: int = 80
    """Messages; with more, the beginning is summarised in the background (seed 0: MAX_WINDOW_SIZE)."""
    compact_at: float = 0.7
    """The part of the context budget at which the beginning is summarised before the model is asked."""
    compact_to: float = 0.5
    """And to which: below `compact_at`, or every message would summarise once more."""
    stale_after_turns: int = 4
    """Tool results older than so many turns are shown as one line."""
    max_rounds: int = 25
    """Calls of the model with tool results, for one message; loading tools or skills counts twice."""
    max_retries: int = 2
    """Further attempts at the model for one message, over all its calls."""
    completion: Literal["declared", "implicit", "nudged"] = "implicit"
    """declared: the model is told to say DONE, BLOCKED or CONTINUE, and an answer that says none of them is
    done. nudged: it is asked once which of them it means (seed 0). implicit: it is told of none of them."""
    prompt: Literal["full", "brief"] = "brief"
    """How much a system prompt says besides what the operator wrote: small models repeat long ones."""
    spam: Literal["answer", "refuse"] = "answer"
    """What happens to a message that looks like spam."""
    too_fast: Literal["answer", "refuse"] = "answer"
    """What happens to a message that came too soon after others."""
    tool_answers: bool = False
    """Whether the answer is a tool's own sentence where it has one, and the model is not asked for words."""
    remember_facts: bool = False
    """Whether what lasts is written down for its author when the conversation is compacted."""
    link_hosts: tuple[str, ...] = ()
    """Hosts, in lower case, to which answers may link even when the conversation holds foreign text; their
    subdomains, too."""
