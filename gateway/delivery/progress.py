"""Show progress while an answer is made: nothing, one changing line, or every step.

The lines are Markdown below a preview; the final answer never has them. Quoted text in a sentence about a
tool, names and reasons come from models, tools and their servers: they are shown as code, with hidden
characters made visible, and shortened.
"""

from __future__ import annotations

import re
from typing import Literal

from adapters.formatting.visible import visible
from pipeline.domain.events import (
    ActionCompleted,
    ActionProgress,
    ActionStarted,
    LlmToken,
    OtrBlocked,
    PipelineEvent,
    StepStarted,
    SubAgentCancelled,
    SubAgentCompleted,
    SubAgentFailed,
    SubAgentProgress,
    SubAgentSpawned,
    TurnStarted,
)
from pipeline.domain.tool_words import using

Verbosity = Literal["quiet", "normal", "detailed"]

CHANGE_S = 3.0
"""Minimum seconds between two changes of the line, so that it does not flicker."""
_LINE_CHARS = 120
_MOST_STEPS = 12
_SENTENCE = re.compile(r"([A-Za-z' -]*)“(.*)”", re.DOTALL)
_WORDS = re.compile(r"[A-Za-z' -]+")


class ProgressLines:
    """The progress lines of one answer."""

    def __init__(self, verbosity: Verbosity) -> None:
        self._verbosity = verbosity
        self._current = ""
        self._steps: list[str] = []
        self._begun: dict[str, str] = {}
        """The sentence of the newest call of each tool."""
        self.markdown = ""
        """The lines as they are now; empty for nothing."""

    def note(self, event: PipelineEvent) -> bool:
        """Record an event; returns whether the lines changed."""
        kind = type(event)
        if kind not in _NOTED or (kind is LlmToken and not self._current):
            return False
        before = self.markdown
        self._note(event)
        self.markdown = self._lines()
        return self.markdown != before

    def _lines(self) -> str:
        if self._verbosity == "quiet":
            return ""
        steps = self._steps if self._verbosity == "detailed" else []
        left_out = len(steps) - _MOST_STEPS
        lines = [f"… {left_out} earlier steps"] if left_out > 0 else []
        lines += steps[-_MOST_STEPS:]
        if self._current:
            lines.append(f"{self._current} …")
        return "  \n".join(lines)

    def _note(self, event: PipelineEvent) -> None:
        match event:
            case TurnStarted():
                self._current, self._steps, self._begun = "", [], {}
            case LlmToken():
                # The growing answer replaces the line.
                self._current = ""
            case ActionStarted(tool_name=name, summary=summary):
                self._current = self._begun[name] = _sentence(summary or using(name))
            case ActionProgress(tool_name=name, line=line):
                self._current = f"{self._begun.get(name) or _sentence(using(name))}: {_code(line)}"
            case ActionCompleted(tool_name=name, success=success, summary=summary):
                words = self._begun.pop(name, "") or _sentence(using(name))
                why = "" if success or not summary else f": {_code(summary)}"
                self._steps.append(f"{'✓' if success else '✗'} {words}{why}")
            case StepStarted(step=step):
                self._current = f"Step {_code(step)}"
                self._steps.append(f"· step {_code(step)}")
            case OtrBlocked():
                self._steps.append("✗ not done off the record")
            case _:
                self._note_sub_agent(event)

    def _note_sub_agent(self, event: PipelineEvent) -> None:
        match event:
            case SubAgentSpawned(name=name):
                self._current = f"Sub-agent {_code(name)} is at work"
            case SubAgentProgress(name=name, status=status):
                self._current = f"Sub-agent {_code(name)}: {_sentence(status)}"
            case SubAgentCompleted(name=name):
                self._steps.append(f"✓ sub-agent {_code(name)}")
            case SubAgentFailed(name=name):
                self._steps.append(f"✗ sub-agent {_code(name)}")
            case SubAgentCancelled(name=name):
                self._steps.append(f"✗ sub-agent {_code(name)} was stopped")
            case _:
                return


_NOTED = frozenset(
    {
        TurnStarted,
        LlmToken,
        ActionStarted,
        ActionProgress,
        ActionCompleted,
        OtrBlocked,
        StepStarted,
        SubAgentSpawned,
        SubAgentProgress,
        SubAgentCompleted,
        SubAgentFailed,
        SubAgentCancelled,
    }
)
"""Events that change the lines."""


def _sentence(text: str) -> str:
    """A sentence about a tool: its own text unchanged, its quoted text as code."""
    quoted = _SENTENCE.fullmatch(text)
    if quoted is not None:
        return f"{quoted[1]}{_code(quoted[2])}"
    return text if _WORDS.fullmatch(text) and len(text) <= _LINE_CHARS else _code(text)


def _code(text: str) -> str:
    """`text` on one line as code, so that Markdown in it has no effect."""
    line = visible(" ".join(text.split()))
    line = line if len(line) <= _LINE_CHARS else line[: _LINE_CHARS - 1] + "…"
    return f"`{line.replace('`', chr(0x2019))}`" if line else "`?`"
