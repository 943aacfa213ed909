"""The protocol between the gateway's process and its workers: frames, and values as JSON.

A frame is two big-endian 32-bit lengths, a JSON object and raw bytes. The parent treats the workers'
output as untrusted: the decoder reads files from strangers.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from voice.errors import AudioRefusal, AudioRefused, TranscriberUnavailable, VoiceError

_LENGTHS = struct.Struct(">II")
MAX_HEADER_BYTES = 4 * 1024 * 1024
_MAX_SECONDS = 1e6

_REFUSALS: Mapping[str, AudioRefusal] = {
    "too_large": "too_large",
    "too_long": "too_long",
    "unknown_format": "unknown_format",
    "no_audio": "no_audio",
    "damaged": "damaged",
}


class BrokenFrame(ValueError):
    """The bytes are not valid frames; the stream cannot be read any further."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerFrame:
    """One message."""

    header: Mapping[str, Any]
    body: bytes = b""

    def encode(self) -> bytes:
        """The frame's bytes."""
        header = json.dumps(self.header).encode()
        return _LENGTHS.pack(len(header), len(self.body)) + header + self.body


class FrameReader:
    """Splits a stream that arrives in arbitrary parts into frames."""

    def __init__(self, *, max_body_bytes: int) -> None:
        self._max_body_bytes = max_body_bytes
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[WorkerFrame]:
        """The frames that `data` completes. Raises BrokenFrame."""
        self._buffer += data
        while len(self._buffer) >= _LENGTHS.size:
            header_length, body_length = _checked(bytes(self._buffer[: _LENGTHS.size]), self._max_body_bytes)
            end = _LENGTHS.size + header_length + body_length
            if len(self._buffer) < end:
                return
            header = bytes(self._buffer[_LENGTHS.size : _LENGTHS.size + header_length])
            body = bytes(self._buffer[_LENGTHS.size + header_length : end])
            del self._buffer[:end]
            yield WorkerFrame(header=_parsed(header), body=body)


def read_frame(stream: BinaryIO, *, max_body_bytes: int) -> WorkerFrame | None:
    """The next frame of a blocking stream; None at its end. Raises BrokenFrame."""
    lengths = stream.read(_LENGTHS.size)
    if len(lengths) < _LENGTHS.size:
        return None
    header_length, body_length = _checked(lengths, max_body_bytes)
    rest = stream.read(header_length + body_length)
    if len(rest) < header_length + body_length:
        return None
    return WorkerFrame(header=_parsed(rest[:header_length]), body=rest[header_length:])


def error_to_wire(error: VoiceError) -> dict[str, Any]:
    """Plain JSON data. Inverse of `error_from_wire`."""
    return {"code": error.code, "message": str(error), "detail": error.detail}


def error_from_wire(wire: Mapping[str, Any]) -> VoiceError:
    """The error reported by a worker: rejected audio, or otherwise a failure of the recogniser."""
    message = str(wire.get("message", ""))
    refusal = _REFUSALS.get(str(wire.get("code")))
    if refusal:
        return AudioRefused(refusal, message)
    return TranscriberUnavailable(message, detail=str(wire.get("detail", "")))


def checked_number(value: object, *, at_most: float = _MAX_SECONDS) -> float:
    """`value` as a finite number of at least 0. Raises BrokenFrame."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BrokenFrame("a number is missing")
    if not 0 <= value <= at_most:  # False for NaN
        raise BrokenFrame("a number is out of its bounds")
    return float(value)


def checked_count(value: object) -> int:
    """`value` as an integer of at least 0. Raises BrokenFrame."""
    if not isinstance(value, int) or checked_number(value) != value:
        raise BrokenFrame("a number is not whole")
    return value


def _checked(lengths: bytes, max_body_bytes: int) -> tuple[int, int]:
    header_length, body_length = _LENGTHS.unpack(lengths)
    if header_length > MAX_HEADER_BYTES or body_length > max_body_bytes:
        raise BrokenFrame(f"a frame of {header_length} + {body_length} bytes is larger than allowed")
    return header_length, body_length


def _parsed(header: bytes) -> Mapping[str, Any]:
    try:
        value = json.loads(header)
    except (ValueError, RecursionError) as error:  # the latter for deeply nested brackets
        raise BrokenFrame("a frame's header is not JSON") from error
    if not isinstance(value, dict):
        raise BrokenFrame("a frame's header is not an object")
    return value
