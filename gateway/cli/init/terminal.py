"""Ask a person in the terminal: lines, hidden lines, yes or no."""

from __future__ import annotations

import getpass
import sys
from typing import Protocol

from gateway.cli.graph import write_out


class Terminal(Protocol):
    """Where the questions are asked."""

    def say(self, text: str = "") -> None:
        """Print a line."""
        ...

    def ask(self, question: str) -> str:
        """What the person types, without spaces around it. Raises EOFError at the end of the input."""
        ...

    def ask_hidden(self, question: str) -> str:
        """As `ask`, for a line that is not shown."""
        ...


class RealTerminal:
    """The terminal of the process."""

    def say(self, text: str = "") -> None:
        write_out(f"{text}\n")
        sys.stdout.flush()

    def ask(self, question: str) -> str:
        return input(question).strip()

    def ask_hidden(self, question: str) -> str:
        return getpass.getpass(question).strip()


def confirmed(terminal: Terminal, question: str) -> bool:
    """Whether the person types yes; Enter alone means no."""
    return terminal.ask(f"{question} [y/N] ").lower() in ("y", "yes")
