"""`parlour chat` in a real terminal: the line can be edited, answers come above it, and it is left as it was.

Covers: adapters/console/editing.py, adapters/console/live_screen.py.
"""

from __future__ import annotations

import os
import pty
import re
import select
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from tests.support.gateway_forks import fork_on_terminal

_LIMIT_S = 60.0
_UP, _LEFT, _CTRL_C, _CTRL_D = b"\x1b[A", b"\x1b[D", b"\x03", b"\x04"
_STYLE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]")


class Running(Protocol):
    """The process on a terminal."""

    @property
    def pid(self) -> int: ...

    def wait(self, limit_s: float, /) -> int:
        """The exit code, when it has ended."""
        ...


class Terminal:
    """A pseudo-terminal with `parlour chat` in it."""

    def __init__(self, master: int, process: Running) -> None:
        self._master = master
        self.process = process
        self.raw = ""

    @property
    def text(self) -> str:
        """Everything that was written, without styles and movements."""
        return _STYLE.sub("", self.raw)

    def type(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def until(self, words: str, times: int = 1) -> None:
        """Read until `words` were written `times` times. Raises AssertionError when they do not come."""
        while self.text.count(words) < times:
            assert self._read(_LIMIT_S), f"{words!r} did not come:\n{self.raw!r}"

    def asleep(self) -> None:
        """Wait until the process sleeps, which after a question means that it reads from the terminal.

        Python looks for signals before it calls `read`, which a signal interrupts only once it waits. One
        that arrives between the two is not seen until a key is pressed.
        """
        state = Path(f"/proc/{self.process.pid}/stat")
        while (now := _state_in(state)) != "S":
            assert now not in ("", "Z"), f"The process has ended:\n{self.raw!r}"
            os.sched_yield()

    def end(self) -> int:
        """The exit code, when the process has ended and all that it wrote is read."""
        code = self.process.wait(_LIMIT_S)
        while self._read(0.0):
            continue
        return code

    def _read(self, limit_s: float) -> bool:
        if not select.select([self._master], [], [], limit_s)[0]:
            return False
        try:
            chunk = os.read(self._master, 65_536)
        except OSError:
            return False
        self.raw += chunk.decode(errors="replace")
        return bool(chunk)


def _state_in(stat: Path) -> str:
    """The state of a process; empty when there is no such process any more."""
    try:
        return stat.read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return ""


@contextmanager
def chat(folder: Path, answer: str = "scripted:echo") -> Iterator[tuple[Terminal, int]]:
    """The terminal, and the descriptor whose settings are restored at the end."""
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (40, 100))
    settings = (f'llm.model="{answer}"', "voice.enabled=false", "agent.titles=false")
    process = fork_on_terminal(
        ["chat", *(part for one in settings for part in ("--set", one))],
        folder=folder,
        env={"PATH": "/usr/bin:/bin", "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"},
        terminal=slave,
    )
    try:
        yield Terminal(master, process), slave
    finally:
        process.close()
        os.close(master)
        os.close(slave)


def test_a_line_is_edited_and_taken_again_from_the_history(tmp_path: Path) -> None:
    with chat(tmp_path) as (terminal, slave):
        before = termios.tcgetattr(slave)
        terminal.until("you:")
        terminal.type(b"helo" + _LEFT + b"l\r")
        terminal.until("Parlour: You said: hello\r\n")
        terminal.type(_UP + b"\r")
        terminal.until("Parlour: You said: hello\r\n", times=2)
        assert "[A" not in terminal.text
        terminal.type(_CTRL_D)
        assert terminal.end() == 0
        assert termios.tcgetattr(slave) == before


def test_a_line_that_is_being_typed_survives_an_answer(tmp_path: Path) -> None:
    with chat(tmp_path, "scripted:echo:delay=0.3") as (terminal, slave):
        before = termios.tcgetattr(slave)
        terminal.until("you:")
        terminal.type(b"**first**\r")
        terminal.until("Parlour is working")
        terminal.type(b"half a li")
        terminal.until("Parlour: You said: first\r\n")
        assert "\x1b[1mfirst\x1b[22m" in terminal.raw
        terminal.type(b"ne\r")
        terminal.until("Parlour: You said: half a line\r\n")
        terminal.type(b"unsent" + _CTRL_C)
        assert terminal.end() == 0
        assert termios.tcgetattr(slave) == before
