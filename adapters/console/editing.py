"""The terminal of an interactive user: an editable line with a history, below the output.

prompt_toolkit manages the line, the terminal's raw mode and the keys.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Callable

from prompt_toolkit import PromptSession
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import InMemoryHistory

_REFRESH_S = 0.5


class LineEditor:
    """The prompt at the bottom of the terminal, and the text above it.

    The history is not saved: a file would keep what is said off the record.
    """

    def __init__(self, prompt: str) -> None:
        self._prompt = prompt
        self.status: Callable[[], str] = str
        """Returns one line to show above the prompt; empty for none."""
        self._session: PromptSession[str] = PromptSession(self._message, history=InMemoryHistory())
        self._timer: asyncio.TimerHandle | None = None

    async def lines(self) -> AsyncGenerator[str, None]:
        """The lines ended with Enter, until Ctrl-D. Ctrl-C interrupts the process."""
        # Raw also between the prompts: a key pressed there would otherwise have another meaning.
        with self._session.input.raw_mode():
            while True:
                try:
                    # The process handles signals and failed tasks itself.
                    line = await self._session.prompt_async(handle_sigint=False, set_exception_handler=False)
                except EOFError:
                    return
                except KeyboardInterrupt:
                    os.kill(os.getpid(), signal.SIGINT)
                    return
                yield line

    def write(self, text: str) -> None:
        """Print whole lines above the prompt, at once. Raises OSError."""
        app, output = self._session.app, self._session.output
        prompting = app.is_running and not app.is_done
        if prompting:
            app.renderer.erase()
        output.write_raw(text)
        output.flush()
        if prompting:
            app.invalidate()

    def refresh(self) -> None:
        """Show the changed `status`, and again every half second while it is not empty."""
        if self._session.app.is_running:
            self._session.app.invalidate()
        if self._timer is None and self.status():
            self._timer = asyncio.get_running_loop().call_later(_REFRESH_S, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self.refresh()

    @property
    def columns(self) -> int:
        """The width of the terminal in characters."""
        return self._session.output.get_size().columns

    def _message(self) -> StyleAndTextTuples:
        status = "" if self._session.app.is_done else self.status()
        above: StyleAndTextTuples = [("fg:ansibrightblack", f"{status}\n")] if status else []
        return [*above, ("", self._prompt)]
