"""Parse server-sent events as the bytes arrive: bytes in, the data of whole events out.

Event names, ids and retry times are skipped: a model's answer is in the data.
"""

from __future__ import annotations

MAX_LINE_BYTES = 1_000_000
"""Far longer than any event of a model's answer; an endless line must not fill the memory."""
_BOM = b"\xef\xbb\xbf"


class EventTooLong(ValueError):
    """A line, or the data of one event, is longer than `MAX_LINE_BYTES`."""


class SseReader:
    """Parses one stream. Pass all bytes to `feed`, in any chunks, and call `end` after the last."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        """The chunks of the incomplete line."""
        self._rest_size = 0
        self._data: list[bytes] = []
        """The data lines of the incomplete event."""
        self._data_size = 0
        self._started = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """The data of the events that `chunk` completes. Raises EventTooLong."""
        self._rest.append(chunk)
        self._rest_size += len(chunk)
        if b"\n" not in chunk and b"\r" not in chunk and not self._rest[0].endswith(b"\r"):
            if self._rest_size > MAX_LINE_BYTES:
                raise EventTooLong
            return []
        buffer = self._rest[0] if len(self._rest) == 1 else b"".join(self._rest)
        if not self._started:
            buffer = buffer.removeprefix(_BOM)
            self._started = True
        held = b""
        if b"\r" in buffer:
            # A line ends with CR LF, LF or CR; a CR at the end of a chunk may be half of CR LF.
            held = b"\r" if buffer.endswith(b"\r") else b""
            buffer = buffer[: len(buffer) - len(held)].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = buffer.split(b"\n")
        rest = lines.pop() + held
        self._rest = [rest] if rest else []
        self._rest_size = len(rest)
        if len(rest) > MAX_LINE_BYTES:
            raise EventTooLong
        return self._events(lines)

    def end(self) -> list[bytes]:
        """The data of a last event without its blank line."""
        rest = b"".join(self._rest)
        self._rest.clear()
        if not self._started:
            rest = rest.removeprefix(_BOM)
        return self._events([rest.removesuffix(b"\r"), b""])

    def _events(self, lines: list[bytes]) -> list[bytes]:
        """The data of the events that end in `lines`, which are whole lines."""
        found: list[bytes] = []
        data = self._data
        for line in lines:
            if line.startswith(b"data:"):
                data.append(line[6:] if line.startswith(b"data: ") else line[5:])
                self._data_size += len(line)
                if self._data_size > MAX_LINE_BYTES:
                    raise EventTooLong
            elif not line and data:
                found.append(data[0] if len(data) == 1 else b"\n".join(data))
                data.clear()
                self._data_size = 0
        return found
