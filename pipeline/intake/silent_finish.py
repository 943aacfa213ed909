"""Refuse a message that came too fast or looks like spam, where the settings say so.

The author gets a notice each time, because a message without a reply looks lost. In a flood only the first
notice is long.
"""

from __future__ import annotations

from typing import Literal

from pipeline.graph.definition.decisions import End, NodeResult, State
from pipeline.intake.rate import refused_lately
from pipeline.runtime.context import RunContext
from pipeline.runtime.settings import PipelineSettings

Refused = Literal["", "too_fast", "spam"]

_TOO_FAST = (
    "Your messages come faster than I can answer them, so I left this one out. "
    "Please wait ten seconds and send it again."
)
_TOO_FAST_AGAIN = "Left out: too fast."
_SPAM = "This looks like spam, so I left it out. If you meant it, please say it in other words."


def refusal(settings: PipelineSettings, *, too_fast: bool, spam: bool) -> Refused:
    """The flag for which a message is refused; empty where it is answered."""
    if too_fast and settings.too_fast == "refuse":
        return "too_fast"
    return "spam" if spam and settings.spam == "refuse" else ""


async def declined(state: State, context: RunContext) -> NodeResult:
    """The node for a refused message: gives a notice instead of an answer."""
    update = {"agent": {"status": "done", "answer": _words(state, context)}}
    return NodeResult(update=update, decision=End())


def _words(state: State, context: RunContext) -> str:
    if state["intake"]["refused"] == "spam":
        return _SPAM
    return _TOO_FAST_AGAIN if refused_lately(context.received_at, context.arrivals) else _TOO_FAST
