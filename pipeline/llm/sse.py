"""Server-sent events, read as the bytes arrive: bytes in, the data of whole events out.

Event names, ids and retry times are skipped: a model's answer is in the data. It opens no connection.
"""

from __future__ import annotations

MAX_LINE_BYTES = 1_000_000
"""Far above any event of a model's answer; an endless line must not fill the memory."""
_BOM = b"\xef\xbb\xbf"


class EventTooLong(ValueError):
    """A line, or the data of one event, is longer than `MAX_LINE_BYTES`."""


class EventReader:
    """Reads one stream. `feed` it what arrives, in any pieces, and call `end` when nothing follows."""

    def __init__(self) -> None:
        self._rest = b""
        """The line that has no end yet."""
        self._data: list[bytes] = []
        """The data lines of the event that has no end yet."""
        self._size = 0
        self._started = False

    def feed(self, piece: bytes) -> list[bytes]:
        """The data of the events that `piece` completes. Raises EventTooLong."""
        buffer = self._rest + piece if self._rest else piece
        if not self._started:
            if len(buffer) < len(_BOM) and _BOM.startswith(buffer):
                self._rest = buffer
                return []
            buffer = buffer.removeprefix(_BOM)
            self._started = True
        if b"\r" in buffer:
            # A line ends with CR LF, LF or CR; a CR at the end of a piece may be half of the first.
            held = b"\r" if buffer.endswith(b"\r") else b""
            buffer = buffer[: len(buffer) - len(held)].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        else:
            held = b""
        lines = buffer.split(b"\n")
        self._rest = lines.pop() + held
        if len(self._rest) > MAX_LINE_BYTES:
            raise EventTooLong
        return self._events(lines)

    def end(self) -> list[bytes]:
        """The data of an event whose blank line never came."""
        lines = [self._rest.removesuffix(b"\r"), b""]
        self._rest = b""
        return self._events(lines)

    def _events(self, lines: list[bytes]) -> list[bytes]:
        """The data of the events that end among `lines`, which are whole."""
        found: list[bytes] = []
        data = self._data
        for line in lines:
            if line.startswith(b"data:"):
                data.append(line[6:] if line.startswith(b"data: ") else line[5:])
                self._size += len(line)
                if self._size > MAX_LINE_BYTES:
                    raise EventTooLong
            elif not line and data:
                found.append(data[0] if len(data) == 1 else b"\n".join(data))
                data.clear()
                self._size = 0
        return found
