"""Not answering a message, because it came too fast or looks like spam and the settings say so.

Whoever wrote it is told each time, because a message that ends without a word looks lost. Of a flood only the
first is told at length.
"""

from __future__ import annotations

from typing import Literal

from pipeline.graph.definition.decisions import End, NodeResult, State
from pipeline.intake.rate import told_lately
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
    """By which of its flags a message is refused; empty where it is answered all the same."""
    if too_fast and settings.too_fast == "refuse":
        return "too_fast"
    return "spam" if spam and settings.spam == "refuse" else ""


async def declined(state: State, context: RunContext) -> NodeResult:
    """The node behind a refused message: one line instead of an answer."""
    update = {"agent": {"status": "done", "answer": _words(state, context)}}
    return NodeResult(update=update, decision=End())


def _words(state: State, context: RunContext) -> str:
    if state["intake"]["refused"] == "spam":
        return _SPAM
    return _TOO_FAST_AGAIN if told_lately(context.received_at, context.arrivals) else _TOO_FAST
