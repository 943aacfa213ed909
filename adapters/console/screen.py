"""Print to the terminal: text made harmless, and each answer exactly once.

Not the conversation's state: adapter.py decides when a message is done.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

from adapters.formatting.plain import plain_text
from pipeline.domain.timeline import EntryRole

# Direction marks are kept: ordinary Hebrew and Arabic text needs them, and they force no reordering.
_BIDI_CONTROLS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def printable(text: str) -> str:
    """`text` with every character visible that a terminal would interpret or hide.

    Line ends and tabs are kept, carriage returns are removed; other control characters, direction overrides
    and lone surrogates are shown as escapes. Safe to apply to parts of a stream.
    """
    return "".join(_harmless(character) for character in text)


def _harmless(character: str) -> str:
    if character in "\n\t":
        return character
    if character == "\r":
        return ""
    if unicodedata.category(character) in ("Cc", "Cs") or character in _BIDI_CONTROLS:
        code = ord(character)
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
    return character


_DIM, _NORMAL = "\x1b[2m", "\x1b[22m"


class Screen:
    """Prints lines and streams through `write`, which takes text and may raise OSError."""

    def __init__(self, write: Callable[[str], None], *, bot_name: str, prompt: str) -> None:
        self._write = write
        self._bot_prefix = f"{printable(bot_name)}: " if prompt else ""
        self._prompt = prompt
        self._streaming: str | None = None
        self._streamed = ""
        self._prompt_open = False

    def ask(self) -> None:
        """Show the prompt, unless it is already shown or an answer is being printed."""
        if self._prompt and not self._prompt_open and self._streaming is None:
            self._write(self._prompt)
            self._prompt_open = True

    def typed(self) -> None:
        """The person ended a line: the prompt is no longer shown."""
        self._prompt_open = False

    def end_prompt(self) -> None:
        """End the line of an unused prompt: there is no more input."""
        if self._prompt_open:
            self._write("\n")
            self._prompt_open = False

    def waiting(self, *, waits: bool) -> None:
        """Show whether an answer is awaited; only on screens with a status line."""

    def line(self, text: str) -> None:
        """Print one separate line."""
        self._end_open_line()
        self._write(printable(text) + "\n")

    def earlier(self, role: EntryRole, text: str) -> None:
        """Print an entry of the earlier conversation, with its author before it."""
        if role == "assistant":
            self.line(self._bot_prefix + text)
        elif role == "user":
            self.line(self._prompt + text)
        else:
            self.line(plain_text(text) or "a new session begins")

    def aside(self, text: str) -> None:
        """Print one dim line about the work, also within an answer, which continues below it. Nothing on a
        non-interactive screen, so that a pipe gets only answers."""
        self._interject(f"{_DIM}{printable(text)}{_NORMAL}")

    def said(self, text: str) -> None:
        """Print the person's message from elsewhere, like `aside`."""
        self._interject(f"{self._prompt}{printable(text)}")

    def _interject(self, line: str) -> None:
        if not self._prompt:
            return
        if self._streaming is not None or self._prompt_open:
            self._write("\n")
        self._prompt_open = False
        self._write(f"{line}\n")

    def token(self, message_id: str, text: str, offset: int) -> None:
        """Print a part of the answer to `message_id`. A part out of order waits for the final text."""
        if self._streaming != message_id:
            self._end_open_line()
            self._streaming, self._streamed = message_id, ""
            self._write(self._bot_prefix)
        if offset == len(self._streamed):
            self._write(printable(text))
            self._streamed += text

    def answer(self, message_id: str, text: str) -> None:
        """Print the final answer, or only its line end when all of it except blank space was streamed."""
        if self._streaming == message_id and self._streamed.split() == text.split():
            self._streaming = None
            self._write("\n")
            return
        self.line(self._bot_prefix + text)

    def _end_open_line(self) -> None:
        if self._streaming is not None or self._prompt_open:
            self._write("\n")
        self._streaming = None
        self._prompt_open = False
