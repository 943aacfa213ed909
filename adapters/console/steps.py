"""Describe a step of the work on an answer in one line, for a terminal. Most events have none."""

from __future__ import annotations

from pipeline.domain.events import (
    ActionCompleted,
    ActionStarted,
    OtrBlocked,
    PipelineEvent,
    SubAgentCancelled,
    SubAgentCompleted,
    SubAgentFailed,
    SubAgentSpawned,
)
from pipeline.domain.tool_words import tool_words, using

_MOST_CHARS = 160


def step_words(event: PipelineEvent) -> str:
    """The line; empty where there is none. A successful call needs no second line."""
    match event:
        case ActionStarted(tool_name=name, summary=summary):
            words = summary or using(name)
        case ActionCompleted(tool_name=name, success=False, summary=summary):
            words = f"{tool_words(name)} was not done" + (f": {summary}" if summary else "")
        case OtrBlocked(reason=reason):
            words = f"off the record: {reason}"
        case SubAgentSpawned(name=name, task=task):
            words = f"{name} begins: {task}"
        case SubAgentCompleted(name=name):
            words = f"{name} is done"
        case SubAgentFailed(name=name, reason=reason):
            words = f"{name} could not finish: {reason}"
        case SubAgentCancelled(name=name):
            words = f"{name} was stopped"
        case _:
            return ""
    line = " ".join(words.split())
    line = line if len(line) <= _MOST_CHARS else line[: _MOST_CHARS - 1] + "…"
    return f"  · {line}"
