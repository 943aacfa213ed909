"""The pipeline's settings, as plain values; the gateway reads them from its configuration."""

from __future__ import annotations

from typing import Literal

from pipeline.domain.frozen import dataclass

DEFAULT_SYSTEM_PROMPT = "You are Parlour, a helpful assistant. Answer briefly, in the user's language."


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSettings:
    """Limits and wording of every turn."""

    system_prompt: str = DEFAULT_SYSTEM_PROMPT
    bot_name: str = "Parlour"
    """The name of the bot in the model's prompt."""
    language: str = ""
    """The English name of the language to answer in, unless the user writes in another; empty for none."""
    time_zone: str = "UTC"
    """The IANA name of the time zone for people who named none."""
    max_answer_tokens: int = 512
    temperature: float = 0.2
    llm_timeout_s: float = 120.0
    turn_timeout_s: float = 180.0
    context_tokens: int = 4096
    """The model's window: system prompt, history, message and answer together."""
    confirm_below: float = 0.5
    choose_from_s: float = 120.0
    """Spoken words transcribed with less confidence are first shown to their speaker for confirmation; 0
    never asks."""
    called: tuple[str, ...] = ()
    """Names of the bot that make it answer a voice note which the platform did not address to it."""
    vision: bool = False
    """Whether the model can see pictures."""
    pictures_shown: int = 4
    """The most pictures of a conversation that the model is shown, the newest; those of the newest message
    are always shown."""
    token_ceiling: int = 96_000
    """The most tokens of history, whatever the model's window."""
    summarise_above: int = 80
    """Messages; with more, the beginning is summarised in the background."""
    compact_at: float = 0.7
    """The share of the context budget above which the beginning is summarised before the model is called."""
    compact_to: float = 0.5
    """The share that remains; below `compact_at`, or every message would cause another summary."""
    stale_after_turns: int = 4
    """Tool results older than this many turns are shown as one line."""
    max_rounds: int = 25
    """Calls of the model with tool results, for one message; loading tools or skills counts twice."""
    max_retries: int = 2
    """Further attempts at the model for one message, over all its calls."""
    completion: Literal["declared", "implicit", "nudged"] = "implicit"
    """declared: the prompt asks the model for DONE, BLOCKED or CONTINUE, and an answer without any counts as
    done. nudged: the model is asked once which one it means. implicit: the prompt names none."""
    prompt: Literal["full", "brief"] = "brief"
    """How much the system prompt adds to the operator's text: small models repeat long prompts."""
    spam: Literal["answer", "refuse"] = "answer"
    """What happens to a message that looks like spam."""
    too_fast: Literal["answer", "refuse"] = "answer"
    """What happens to a message that arrives too soon after others."""
    judges: bool = True
    """The model can judge what is said, by a form. The embedded one is too small: it is not asked."""
    tool_answers: bool = False
    """Whether a tool's own sentence, if it has one, is the answer, without another call of the model."""
    remember_facts: bool = False
    """Whether lasting facts about the author are stored when the conversation is compacted."""
    link_hosts: tuple[str, ...] = ()
    """Hosts, in lower case, to which answers may link even in a conversation with foreign text; includes
    their subdomains."""
