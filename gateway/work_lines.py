"""What is shown of the work on an answer while it is made: nothing, one changing line, or every step.

Markdown below a preview, or nothing; the final answer never has it. Names and summaries come from models,
tools and their servers: they stand as code, with nothing hidden in them, and are cut.
"""

from __future__ import annotations

from typing import Literal

from adapters.formatting.visible import visible
from pipeline.domain.events import (
    ActionCompleted,
    ActionStarted,
    LlmToken,
    OtrBlocked,
    PipelineEvent,
    SubAgentCancelled,
    SubAgentCompleted,
    SubAgentFailed,
    SubAgentProgress,
    SubAgentSpawned,
    TurnStarted,
)

Verbosity = Literal["quiet", "normal", "detailed"]

CHANGE_S = 3.0
"""The least time between two changes of the line: a channel is no log."""
_LINE_CHARS = 120
_MOST_STEPS = 12


class WorkLines:
    """The work on one answer."""

    def __init__(self, verbosity: Verbosity) -> None:
        self._verbosity = verbosity
        self._current = ""
        self._steps: list[str] = []

    def note(self, event: PipelineEvent) -> bool:
        """Take note of an event; whether there may be something else to show now."""
        before = self.markdown
        self._note(event)
        return self.markdown != before

    @property
    def markdown(self) -> str:
        """The lines as they are now; empty for nothing."""
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
                self._current, self._steps = "", []
            case LlmToken():
                # The answer goes on, and speaks for itself.
                self._current = ""
            case ActionStarted(tool_name=name, summary=summary):
                self._current = f"Using {_code(f'{name}: {summary}' if summary else name)}"
            case ActionCompleted(tool_name=name, success=success, summary=summary):
                mark = "✓" if success else "✗"
                self._steps.append(f"{mark} {_code(f'{name}: {summary}' if summary else name)}")
            case OtrBlocked():
                self._steps.append("✗ not done off the record")
            case _:
                self._note_sub_agent(event)

    def _note_sub_agent(self, event: PipelineEvent) -> None:
        match event:
            case SubAgentSpawned(name=name):
                self._current = f"Sub-agent {_code(name)} is at work"
            case SubAgentProgress(name=name, status=status):
                self._current = f"Sub-agent {_code(name)}: {_code(status)}"
            case SubAgentCompleted(name=name):
                self._steps.append(f"✓ sub-agent {_code(name)}")
            case SubAgentFailed(name=name):
                self._steps.append(f"✗ sub-agent {_code(name)}")
            case SubAgentCancelled(name=name):
                self._steps.append(f"✗ sub-agent {_code(name)} was stopped")
            case _:
                return


def _code(text: str) -> str:
    """`text` on one line as code: no Markdown in it counts."""
    line = visible(" ".join(text.split()))
    line = line if len(line) <= _LINE_CHARS else line[: _LINE_CHARS - 1] + "…"
    return f"`{line.replace('`', chr(0x2019))}`" if line else "`?`"
