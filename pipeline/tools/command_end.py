"""How a command in a sandbox ended, as a value and in words for the model."""

from __future__ import annotations

import signal
from typing import Literal

from pipeline.domain.frozen import dataclass

Ending = Literal[
    "exit", "signal", "time", "processor", "memory", "output", "not_found", "not_started", "broken"
]
"""How a command ended: by itself, by a signal, at one of its limits, never started, or with its sandbox."""

_LIMITS: dict[Ending, str] = {
    "time": "It took longer than allowed (tools.shell.seconds) and was ended.",
    "processor": "It used more processor time than allowed (tools.shell.processor_seconds) and was ended.",
    "memory": "It used more memory than allowed (tools.shell.memory_mb), or than the machine has, and was "
    "ended.",
    "output": "It wrote more output than allowed (tools.shell.output_kb) and was ended.",
    "broken": "Its sandbox ended unexpectedly; the files are as they were before the command.",
}
_STARTS: dict[Ending, str] = {
    "not_found": "there is no such program in the sandbox, or it cannot be executed",
    "not_started": "the sandbox could not be prepared",
}
_LISTED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandEnd:
    """How a command ended."""

    ending: Ending
    status: int = 0
    """The exit status, or the number of the signal or of the error."""
    seconds: float = 0.0
    left_running: int = 0
    """The processes that were still running when the command itself had ended; they were killed."""
    disk_full: bool = False
    unkept: str = ""
    """Why the files are not kept, or why the command was not started; empty otherwise."""
    files: tuple[tuple[str, int], ...] = ()
    """Some of the kept files that are new or changed, by name: each path and its bytes."""

    @property
    def success(self) -> bool:
        """Whether the command ended by itself without reporting an error."""
        return self.ending == "exit" and self.status == 0

    @property
    def problem(self) -> str:
        """Why the command was not started; empty if it was."""
        why = _STARTS.get(self.ending, "")
        return f"{why}: {self.unkept}" if why and self.unkept else why

    @property
    def words(self) -> str:
        """A sentence about the end, and others about what a reader must know."""
        lines = [self._end()]
        if self.left_running:
            lines.append(f"{self.left_running} processes were still running then and were ended too.")
        if self.disk_full:
            lines.append("The disk of the conversation is full (tools.shell.disk_mb, tools.shell.files).")
        if self.unkept:
            lines.append(
                f"What it changed is not kept: {self.unkept}. The files are as they were before the command."
            )
        if self.files:
            shown = [f"{name} ({size} bytes)" for name, size in self.files[:_LISTED]]
            more = ["…"] if len(self.files) > _LISTED else []
            lines.append(f"New or changed files: {', '.join(shown + more)}")
        return "\n".join(lines)

    def _end(self) -> str:
        if self.ending == "exit":
            return f"Exit status {self.status} after {self.seconds:g} seconds."
        if self.ending == "signal":
            name = signal.strsignal(self.status) or "unknown"
            return f"Ended by signal {self.status} ({name}) after {self.seconds:g} seconds."
        return f"{_LIMITS.get(self.ending, '')} It ran for {self.seconds:g} seconds."
