"""The screen above a line editor: prints rendered answers block by block, and one status line.
Only whole lines are printed, so that the line being typed stays intact."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Protocol

from adapters.console.editing import LineEditor
from adapters.console.markdown import finished_blocks, terminal_text
from adapters.console.screen import Screen, printable
from pipeline.domain.clock import Clock
from pipeline.domain.timeline import EntryRole

_BOLD, _NORMAL = "\x1b[1m", "\x1b[22m"


def open_live_screen(clock: Clock, *, bot_name: str, prompt: str) -> tuple[Screen, AsyncGenerator[str, None]]:
    """The screen of this process's terminal, and the lines typed there."""
    editor = LineEditor(prompt)
    return LiveScreen(editor, clock, bot_name=bot_name, prompt=prompt), editor.lines()


class Bottom(Protocol):
    """The needed part of the editor below the screen."""

    status: Callable[[], str]

    @property
    def columns(self) -> int: ...

    def write(self, text: str) -> None: ...

    def refresh(self) -> None: ...


class LiveScreen(Screen):
    """A Screen whose prompt is the editor's."""

    def __init__(self, editor: Bottom, clock: Clock, *, bot_name: str, prompt: str) -> None:
        super().__init__(editor.write, bot_name=bot_name, prompt=prompt)
        self._editor = editor
        self._clock = clock
        self._name = printable(bot_name)
        self._answering = ""
        self._received = ""
        self._shown = 0
        self._since: float | None = None
        editor.status = self._status

    def ask(self) -> None:
        """The editor shows the prompt itself."""

    def waiting(self, *, waits: bool) -> None:
        if not waits:
            self._since = None
        elif self._since is None:
            self._since = self._clock.monotonic()
        self._editor.refresh()

    def line(self, text: str) -> None:
        self._write(printable(text) + "\n")

    def earlier(self, role: EntryRole, text: str) -> None:
        if role == "assistant":
            self._print_answer(text, first=True)
        else:
            super().earlier(role, text)

    def token(self, message_id: str, text: str, offset: int) -> None:
        if self._answering != message_id:
            self._answering, self._received, self._shown = message_id, "", 0
        if offset != len(self._received):
            return
        self._received += text
        if "\n" in self._received[self._shown :]:
            finished = finished_blocks(self._received[self._shown :])
            if finished:
                self._show_part(self._shown + finished)
        self._editor.refresh()

    def answer(self, message_id: str, text: str) -> None:
        if self._answering != message_id or self._received.split() != text.split():
            # None of it, or another text, is on the screen.
            self._received, self._shown = text, 0
        self._show_part(len(self._received))
        self._answering = self._received = ""
        self._editor.refresh()

    def _show_part(self, end: int) -> None:
        part, first = self._received[self._shown : end], not self._shown
        self._shown = end
        if part.strip() or first:
            self._print_answer(part, first=first)

    def _print_answer(self, markdown: str, *, first: bool) -> None:
        before = f"{_BOLD}{self._name}:{_NORMAL} " if first else "\n"
        self._write(f"{before}{terminal_text(markdown)}\n")

    def _status(self) -> str:
        tail = self._received[self._shown :].rstrip("\n").rpartition("\n")[2]
        if self._answering and tail:
            words = printable(tail).replace("\t", " ")
            available = max(20, self._editor.columns - 4)
            words = words if self._shown else f"{self._name}: {words}"
            return words if len(words) <= available else f"… {words[-available:]}"
        if self._since is None:
            return ""
        return f"{self._name} is working · {self._clock.monotonic() - self._since:.0f} s"
