"""Summarise a long conversation between its turns: the oldest messages become observations.

It works on a snapshot and changes nothing: the owner of the conversation applies the summary, if the
beginning is still the same. Not the node that keeps a prompt within the window (`compaction`).
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from pipeline.domain.clock import Clock
from pipeline.domain.conversation import Conversation, PastTurn, Summary
from pipeline.domain.errors import ModelError
from pipeline.domain.inert_text import inert
from pipeline.history.summarization import MAX_SUMMARY_TOKENS, ModelSummary, ask, cut_to_tokens
from pipeline.history.transcript import transcript
from pipeline.llm.client import LlmClient
from pipeline.redaction.redactor import Redactor

MAX_OBSERVATIONS = 8
MAX_ANSWER_TOKENS = 1_000
ATTEMPTS = 3
RETRY_S = 2.0
"""Seconds, multiplied by the number of the failed attempt."""
_FALLBACK_CHARS = 220
_OBSERVATION_CHARS = 400
_HEADS = {"high": "Critical context", "medium": "Key context", "low": "Background"}
_SIGNS = {"🔴": "high", "🟡": "medium", "⚪": "low"}

_TASK = (
    "You keep the notes of a conversation between a user and an assistant. Write down what the assistant must"
    ' still know later, as a JSON list of at most 8 objects {"priority": "high" or "medium" or "low",'
    ' "content": "one sentence"}: decisions, names, numbers, dates, wishes, open questions. high is for what'
    " would be wrong to forget. Keep what the earlier summary says as far as it still matters. Write in the"
    " language of the conversation. Answer with the JSON list alone."
)
_EARLIER = "Earlier summary:\n{summary}\n\nWhat was said since:\n{lines}"


def too_old(conversation: Conversation, above: int) -> tuple[PastTurn, ...]:
    """The oldest turns of a conversation of more than `above` messages, so that about half of `above` are
    left; never the newest turn, and none of a shorter conversation."""
    left = conversation.size
    if left <= above:
        return ()
    turns = conversation.turns
    old = 0
    while old < len(turns) - 1 and left > above // 2:
        left -= len(turns[old].messages)
        old += 1
    return turns[:old]


async def sum_up(
    conversation: Conversation,
    above: int,
    *,
    llm: LlmClient,
    clock: Clock,
    timeout_s: float,
    redactor: Redactor,
    spent: Callable[[ModelSummary], Awaitable[None]],
) -> Summary | None:
    """One summary of the turns that are too old, including the earlier summary; None without such turns.

    If the model's answers are unusable, the summary has the first words of the newest of those messages.
    Raises ModelError where the model gives no answer: then nothing should be replaced.
    """
    old = too_old(conversation, above)
    if not old:
        return None
    earlier = conversation.summary.text if conversation.summary is not None else ""
    lines = transcript(old)
    material = _EARLIER.format(summary=earlier, lines=lines) if earlier else lines
    observations: tuple[tuple[str, str], ...] = ()
    for attempt in range(1, ATTEMPTS + 1):
        try:
            said = await ask(
                llm,
                _TASK,
                material,
                max_tokens=MAX_ANSWER_TOKENS,
                timeout_s=timeout_s,
                clock=clock,
                redactor=redactor,
            )
        except ModelError as error:
            if attempt == ATTEMPTS or error.permanent:
                raise
        else:
            await spent(said)
            observations = observed(said.text)
            if observations:
                break
        if attempt < ATTEMPTS:
            await clock.sleep(RETRY_S * attempt)
    text = _written(observations) if observations else _first_words(earlier, old)
    return Summary(text=cut_to_tokens(text, MAX_SUMMARY_TOKENS), upto=old[-1].id)


def observed(answer: str) -> tuple[tuple[str, str], ...]:
    """The observations in a model's answer, as (priority, content); none where the answer is not the
    requested list."""
    found = answer[answer.find("[") : answer.rfind("]") + 1] if "[" in answer else ""
    try:
        listed = json.loads(found) if found else None
    except (ValueError, RecursionError):
        return ()
    if not isinstance(listed, list):
        return ()
    return tuple(one for item in listed[:MAX_OBSERVATIONS] if (one := _observation(item)))


def _observation(item: Any) -> tuple[str, str] | None:
    if not isinstance(item, dict) or not isinstance(item.get("content"), str):
        return None
    priority = str(item.get("priority", "low")).strip().lower()
    content = " ".join(inert(item["content"]).split())[:_OBSERVATION_CHARS]
    priority = _SIGNS.get(priority, priority)
    return (priority if priority in _HEADS else "low", content) if content else None


def _written(observations: Sequence[tuple[str, str]]) -> str:
    """The observations as text, the most important first, because a text that is too long loses its end."""
    parts = []
    for priority, head in _HEADS.items():
        if contents := [content for given, content in observations if given == priority]:
            parts.append("\n".join((f"{head}:", *(f"- {content}" for content in contents))))
    return "\n".join(parts)


def _first_words(earlier: str, old: Sequence[PastTurn]) -> str:
    """The summary without a model: the beginning of each message with its speaker."""
    asked = [turn.messages[0] for turn in old][-MAX_OBSERVATIONS:]
    words = (" ".join(inert(message.content).split())[:_FALLBACK_CHARS] for message in asked)
    lines = [f"- The user said: {one}" for one in words if one]
    kept = [cut_to_tokens(earlier, MAX_SUMMARY_TOKENS // 2)] if earlier else []
    return "\n".join((*kept, *lines)) or "- Nothing in words."
