"""Ask the speaker to confirm a transcript of low confidence, and the sender of a long or forwarded voice note
what to do with it.

The question is a gate of the run, so it is durable, single use, and only the speaker can answer it.
"""

from __future__ import annotations

from pipeline.domain.messages import Speech
from pipeline.graph.definition.decisions import End, NodeResult, Pause, State
from pipeline.runtime.context import RunContext

SEND, EDIT, RETRY = "Send", "Edit", "Retry"
ANSWER, TRANSCRIPT, SUMMARY = "Answer it", "Only the transcript", "Sum it up"
_CONTINUES = frozenset({SEND, ANSWER, SUMMARY})
_ASKED = "I heard: “{words}”"
_ASKED_WHOLE = "I heard:\n\n{words}"
"""For a note with a quote, a caption or a mark, which quotation marks must not enclose."""
_CHOOSE = "The voice note says:\n\n{words}\n\nWhat shall I do with it?"
_EXPIRES_S = 24 * 3600.0
_EDIT_WORDS = "Send me the corrected words. This is what I heard, to copy:\n\n{fenced}"
_TRANSCRIPT_WORDS = "The transcript is above. I did nothing else with it."
_RETRY_WORDS = "Please say it again, a little slower and closer to the microphone."


def question(context: RunContext, *, sums_up: bool = False) -> Pause | None:
    """The question to the speaker; None for typed text, for a transcript that needs none, and off the record,
    where it would be stored. `sums_up`: whether the graph writes a summary when SUMMARY is chosen."""
    speech, settings = context.speech, context.settings
    if speech is None or context.scope.mode == "otr":
        return None
    words = context.text.strip()
    options: tuple[str, ...]
    if speech.confidence < settings.confirm_below:
        asked, options = _ASKED_WHOLE if "\n" in words else _ASKED, (SEND, EDIT, RETRY)
    elif _is_to_choose(speech, settings.choose_from_s):
        asked, options = _CHOOSE, (ANSWER, TRANSCRIPT, SUMMARY) if sums_up else (ANSWER, TRANSCRIPT)
    else:
        return None
    return Pause(prompt=asked.format(words=words), options=options, expires_s=_EXPIRES_S)


def wants_summary(state: State) -> bool:
    """Whether the sender of a voice note chose a summary of it."""
    answer = state.get("answers", {}).get("intake")
    return answer is not None and answer["choice"] == SUMMARY


def _is_to_choose(speech: Speech, choose_from_s: float) -> bool:
    return bool(choose_from_s) and (speech.forwarded or speech.seconds >= choose_from_s)


def after_intake(state: State) -> str:
    """The conditional edge after the intake: to the agent, through `compact` for a long conversation, unless
    the message is refused, or its sender does not want it answered."""
    found = state.get("intake", {})
    if found.get("refused"):
        return "declined"
    answer = state.get("answers", {}).get("intake")
    if answer is not None and answer["choice"] not in _CONTINUES:
        return "set_aside"
    return "compact" if found.get("long") else "agent"


async def set_aside(state: State, context: RunContext) -> NodeResult:
    """End the turn without the agent: after a transcript, or with instructions on how to correct or repeat
    the message."""
    choice = state["answers"]["intake"]["choice"]
    if choice == EDIT:
        words = _EDIT_WORDS.format(fenced=_fenced(context.text.strip()))
    else:
        words = _TRANSCRIPT_WORDS if choice == TRANSCRIPT else _RETRY_WORDS
    return NodeResult(update={"agent": {"status": "done", "answer": words}}, decision=End())


def _fenced(text: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"
