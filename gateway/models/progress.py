"""Show the progress of a long download: a bar on a terminal, occasional lines elsewhere."""

from __future__ import annotations

from typing import Protocol, TextIO

_BAR_CHARS = 24
_PLAIN_STEP_PERCENT = 10
_MEGABYTE = 1_000_000


class DownloadProgress(Protocol):
    """Receives the progress of downloads."""

    def update(self, name: str, source: str, done: int, total: int) -> None:
        """Report that `done` of `total` bytes of the file `name` have arrived; called often."""
        ...

    def note(self, text: str) -> None:
        """Print `text` on a separate line."""
        ...


def progress_on(stream: TextIO) -> DownloadProgress:
    """The progress display that fits `stream`."""
    return BarProgress(stream) if stream.isatty() else LineProgress(stream)


class BarProgress:
    """One line of a terminal, redrawn in place."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._drawn = ""

    def update(self, name: str, source: str, done: int, total: int) -> None:
        filled = _BAR_CHARS * done // max(total, 1)
        bar = "#" * filled + "-" * (_BAR_CHARS - filled)
        line = f"{name} [{bar}] {_figures(done, total)} from {source}"
        if line == self._drawn:
            return
        self._stream.write(f"\r{line.ljust(len(self._drawn))}")
        self._drawn = line
        if done >= total:
            self._end_line()
        self._stream.flush()

    def note(self, text: str) -> None:
        self._end_line()
        self._stream.write(f"{text}\n")
        self._stream.flush()

    def _end_line(self) -> None:
        if self._drawn:
            self._stream.write("\n")
            self._drawn = ""


class LineProgress:
    """A line about every ten percent, for logs and pipes."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._shown: tuple[str, str, int] | None = None

    def update(self, name: str, source: str, done: int, total: int) -> None:
        step = 100 * done // max(total, 1) // _PLAIN_STEP_PERCENT
        if self._shown == (name, source, step):
            return
        self._shown = (name, source, step)
        self.note(f"{name}: {_figures(done, total)} from {source}")

    def note(self, text: str) -> None:
        self._stream.write(f"{text}\n")
        self._stream.flush()


def megabytes(size: int) -> str:
    """`size` bytes as text, for example `491.4 MB`."""
    return f"{size / _MEGABYTE:.1f} MB"


def _figures(done: int, total: int) -> str:
    return f"{100 * done // max(total, 1):3d} % ({done / _MEGABYTE:.1f} of {megabytes(total)})"
