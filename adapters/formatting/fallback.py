"""Show the text as written where formatting fails, within a bounded time.

Rendering runs on the event loop, which serves every chat. A rendering that fails or takes too long is
stopped, and its text is shown without formatting, by code that reads each character once.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

from adapters.formatting.rows import utf16

_log = logging.getLogger(__name__)

BUDGET_S = 5.0
"""Seconds of processor time per rendering. The longest parsed text takes less than a fifth of it."""
_WIDEST = 8
"""The most units per character, escaped and including the prefix of its line."""
_T = TypeVar("_T")


class RenderingTooSlow(Exception):
    """A rendering took more than its budget."""


def rendered(render: Callable[[], _T], instead: Callable[[], _T], *, budget_s: float = BUDGET_S) -> _T:
    """The result of `render`, or of `instead` if `render` fails or takes more processor time than
    `budget_s`."""
    try:
        with within(budget_s):
            return render()
    except Exception:  # noqa: BLE001 - a fault in a renderer must cost the formatting, not the answer
        _log.exception("a text could not be formatted; it is shown as it was written")
        return instead()


@contextmanager
def within(budget_s: float) -> Iterator[None]:
    """Raise RenderingTooSlow in the block after `budget_s` of the process's processor time. The
    interpreter interrupts only its main thread; in others, and within another budget, there is no limit."""
    if threading.current_thread() is not threading.main_thread() or _alarm.is_set:
        yield
        return
    _alarm.set(budget_s)
    try:
        yield
    finally:
        _alarm.end()


class _Alarm:
    """The process's timer of its processor time. Only the main thread uses it."""

    def __init__(self) -> None:
        self.is_set = False

    def set(self, budget_s: float) -> None:
        # The handler stays set: without one, a late signal would end the process.
        if signal.getsignal(signal.SIGVTALRM) != self._ring:
            signal.signal(signal.SIGVTALRM, self._ring)
        self.is_set = True
        signal.setitimer(signal.ITIMER_VIRTUAL, budget_s)

    def end(self) -> None:
        self.is_set = False
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)

    def _ring(self, _number: int, _frame: FrameType | None) -> None:
        if self.is_set:
            raise RenderingTooSlow("a rendering took too much processor time")


_alarm = _Alarm()


def plain_parts(text: str, *, limit: int, write: Callable[[str], str] = str) -> list[str]:
    """Cleaned `text` in parts of at most `limit` UTF-16 units, each with visible text and without blank
    lines. `write` escapes a line or a part of one, to at most eight units a character."""
    piece = limit // _WIDEST
    parts: list[str] = []
    part: list[str] = []
    used = 0
    for line in text.split("\n"):
        for start in range(0, len(line.rstrip()), piece):
            written = write(line[start : start + piece])
            size = utf16(written) + 1
            if part and used + size > limit:
                parts.append("".join(part))
                part, used = [], 0
            if part and start == 0:
                part.append("\n")
            part.append(written)
            used += size
    parts.append("".join(part))
    return [one for one in parts if one.strip()]
