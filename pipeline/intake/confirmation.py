"""Ask the speaker to confirm a transcript of low confidence: "I heard: …", and three answers.

The question is a gate of the run, so it is durable, single use, and only the speaker can answer it.
"""

from __future__ import annotations

from pipeline.graph.definition.decisions import End, NodeResult, Pause, State
from pipeline.runtime.context import RunContext

SEND, EDIT, RETRY = "Send", "Edit", "Retry"
_ASKED = "I heard: “{words}”"
_ASKED_WHOLE = "I heard:\n\n{words}"
"""For a note with a quote, a caption or a mark, which quotation marks must not enclose."""
_EXPIRES_S = 24 * 3600.0
_EDIT_WORDS = "Send me the corrected words. This is what I heard, to copy:\n\n{fenced}"
_RETRY_WORDS = "Please say it again, a little slower and closer to the microphone."


def question(context: RunContext) -> Pause | None:
    """The question to the speaker; None for typed text, for a transcript of enough confidence, and off the
    record, where it would be stored."""
    speech, least = context.speech, context.settings.confirm_below
    if speech is None or speech.confidence >= least or context.scope.mode == "otr":
        return None
    words = context.text.strip()
    asked = _ASKED_WHOLE if "\n" in words else _ASKED
    return Pause(
        prompt=asked.format(words=words),
        options=(SEND, EDIT, RETRY),
        expires_s=_EXPIRES_S,
    )


def after_intake(state: State) -> str:
    """The conditional edge after the intake: to the agent, through `compact` for a long conversation, unless
    the message is refused, or its speaker rejected the transcript."""
    found = state.get("intake", {})
    if found.get("refused"):
        return "declined"
    answer = state.get("answers", {}).get("intake")
    if answer is not None and answer["choice"] != SEND:
        return "set_aside"
    return "compact" if found.get("long") else "agent"


async def set_aside(state: State, context: RunContext) -> NodeResult:
    """End the turn with instructions on how to correct or repeat the message."""
    choice = state["answers"]["intake"]["choice"]
    words = _EDIT_WORDS.format(fenced=_fenced(context.text.strip())) if choice == EDIT else _RETRY_WORDS
    return NodeResult(update={"agent": {"status": "done", "answer": words}}, decision=End())


def _fenced(text: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"
