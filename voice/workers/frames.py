"""The language between the gateway's process and the worker: frames, and values as JSON.

A frame is two big-endian 32-bit lengths, a JSON object and raw bytes. The parent treats what comes
back as untrusted: the worker decodes files from strangers.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, BinaryIO

from voice.audio.segments import Decoded, Piece
from voice.errors import AudioRefusal, AudioRefused, TranscriberUnavailable, VoiceError
from voice.synthesis.synthesizer import SpokenAudio
from voice.transcript import SpeechChunk, Transcript

_LENGTHS = struct.Struct(">II")
MAX_HEADER_BYTES = 4 * 1024 * 1024
_MAX_CHUNK_CHARS = 10_000
"""Far more words than thirty seconds of speech hold."""
_MAX_SECONDS = 1e6
_MAX_WAVEFORM = 256
_CONTAINERS = frozenset({"ogg", "webm", "mp4", "mp3", "wav", "flac", "amr", "aac", "pcm"})
_LANGUAGE = re.compile(r"[a-z]{2,8}|")

_REFUSALS: Mapping[str, AudioRefusal] = {
    "too_large": "too_large",
    "too_long": "too_long",
    "unknown_format": "unknown_format",
    "no_audio": "no_audio",
    "damaged": "damaged",
}


class BrokenFrame(ValueError):
    """The bytes are not frames; the stream cannot be read any further."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One message."""

    header: Mapping[str, Any]
    body: bytes = b""

    def encode(self) -> bytes:
        """The frame's bytes."""
        header = json.dumps(self.header).encode()
        return _LENGTHS.pack(len(header), len(self.body)) + header + self.body


@dataclass(frozen=True, slots=True, kw_only=True)
class HeardPiece:
    """What the recogniser heard in one piece of a recording."""

    chunks: tuple[SpeechChunk, ...]
    """Times are seconds of the recording."""
    language: str
    """Empty where nobody spoke."""
    language_probability: float


class FrameReader:
    """Cuts a stream that arrives in arbitrary pieces into frames."""

    def __init__(self, *, max_body_bytes: int) -> None:
        self._max_body_bytes = max_body_bytes
        self._buffer = bytearray()

    def feed(self, piece: bytes) -> Iterator[Frame]:
        """The frames that `piece` completes. Raises BrokenFrame."""
        self._buffer += piece
        while len(self._buffer) >= _LENGTHS.size:
            header_length, body_length = _checked(bytes(self._buffer[: _LENGTHS.size]), self._max_body_bytes)
            end = _LENGTHS.size + header_length + body_length
            if len(self._buffer) < end:
                return
            header = bytes(self._buffer[_LENGTHS.size : _LENGTHS.size + header_length])
            body = bytes(self._buffer[_LENGTHS.size + header_length : end])
            del self._buffer[:end]
            yield Frame(header=_parsed(header), body=body)


def read_frame(stream: BinaryIO, *, max_body_bytes: int) -> Frame | None:
    """The next frame of a blocking stream; None at its end. Raises BrokenFrame."""
    lengths = stream.read(_LENGTHS.size)
    if len(lengths) < _LENGTHS.size:
        return None
    header_length, body_length = _checked(lengths, max_body_bytes)
    rest = stream.read(header_length + body_length)
    if len(rest) < header_length + body_length:
        return None
    return Frame(header=_parsed(rest[:header_length]), body=rest[header_length:])


def transcript_to_wire(transcript: Transcript) -> dict[str, Any]:
    """Plain JSON data. Inverse of `transcript_from_wire`."""
    return asdict(transcript)


def transcript_from_wire(wire: Mapping[str, Any]) -> Transcript:
    """Raises BrokenFrame on anything that `transcript_to_wire` could not have written."""
    try:
        return Transcript(
            chunks=tuple(
                SpeechChunk(
                    text=str(chunk["text"]),
                    start_s=float(chunk["start_s"]),
                    end_s=float(chunk["end_s"]),
                    confidence=float(chunk["confidence"]),
                    no_speech_probability=float(chunk["no_speech_probability"]),
                )
                for chunk in wire["chunks"]
            ),
            language=str(wire["language"]),
            language_probability=float(wire["language_probability"]),
            audio_seconds=float(wire["audio_seconds"]),
            truncated=bool(wire["truncated"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise BrokenFrame(f"not a transcript: {error!r}") from error


def heard_from_wire(wire: Mapping[str, Any], *, pieces: int) -> tuple[HeardPiece, ...]:
    """A recogniser's answer about so many pieces, in their order.

    Strict: raises BrokenFrame on anything that a sound recogniser would not say.
    """
    listed = wire.get("pieces")
    if wire.get("kind") != "heard" or not isinstance(listed, list) or len(listed) != pieces:
        raise BrokenFrame(f"not an answer about {pieces} pieces")
    try:
        return tuple(
            HeardPiece(
                chunks=tuple(_chunk(chunk) for chunk in piece["chunks"]),
                language=_language(piece["language"]),
                language_probability=_number(piece["language_probability"], at_most=1.0),
            )
            for piece in listed
        )
    except (KeyError, TypeError) as error:
        raise BrokenFrame(f"not an answer about pieces: {error!r}") from error


def piece_from_wire(frame: Frame) -> Piece:
    """A decoder's stretch of speech. Strict: raises BrokenFrame on what a sound decoder would not say."""
    header = frame.header
    if header.get("kind") != "piece" or not frame.body or len(frame.body) % 2:
        raise BrokenFrame("not a piece of speech")
    try:
        spans = tuple((_number(start), _number(end)) for start, end in header["spans"])
        index = _count(header["index"])
    except (KeyError, TypeError, ValueError) as error:
        raise BrokenFrame(f"not a piece of speech: {error!r}") from error
    times = [time for span in spans for time in span]
    if not times or times != sorted(times):
        raise BrokenFrame("a piece's spans are not in order")
    return Piece(index=index, pcm=frame.body, spans=spans)


def decoded_from_wire(wire: Mapping[str, Any], *, max_seconds: float) -> Decoded:
    """What a decoder says at a recording's end. Strict: raises BrokenFrame."""
    try:
        decoded = Decoded(
            seconds=_number(wire["seconds"], at_most=max_seconds),
            truncated=wire["truncated"] is True,
            container=str(wire["container"]),
            pieces=_count(wire["pieces"]),
        )
    except KeyError as error:
        raise BrokenFrame(f"not the end of a recording: {error!r}") from error
    if decoded.container not in _CONTAINERS:
        raise BrokenFrame("a container that is not accepted")
    return decoded


def probabilities_from_wire(wire: Mapping[str, Any], *, frames: Sequence[int]) -> list[tuple[float, ...]]:
    """A listener's answer about some streams, so many frames of each. Strict: raises BrokenFrame."""
    try:
        judged = [
            tuple(_number(one, at_most=1.0) for one in entry["probabilities"]) for entry in wire["streams"]
        ]
    except (KeyError, TypeError) as error:
        raise BrokenFrame(f"not an answer about streams: {error!r}") from error
    if [len(probabilities) for probabilities in judged] != list(frames):
        raise BrokenFrame("the listener did not answer for every frame")
    return judged


def spoken_from_wire(frame: Frame) -> SpokenAudio:
    """A speaker's voice message. Strict: raises BrokenFrame."""
    try:
        seconds, waveform = _number(frame.header["seconds"]), bytes.fromhex(frame.header["waveform"])
    except (KeyError, TypeError, ValueError) as error:
        raise BrokenFrame(f"not a voice message: {error!r}") from error
    if not frame.body.startswith(b"OggS") or len(waveform) > _MAX_WAVEFORM:
        raise BrokenFrame("not a voice message")
    return SpokenAudio(data=frame.body, seconds=seconds, waveform=waveform)


def error_to_wire(error: VoiceError) -> dict[str, Any]:
    """Plain JSON data. Inverse of `error_from_wire`."""
    return {"code": error.code, "message": str(error), "detail": error.detail}


def error_from_wire(wire: Mapping[str, Any]) -> VoiceError:
    """The error a worker reported: a refusal of the audio, or else a failure of the recogniser."""
    message = str(wire.get("message", ""))
    refusal = _REFUSALS.get(str(wire.get("code")))
    if refusal:
        return AudioRefused(refusal, message)
    return TranscriberUnavailable(message, detail=str(wire.get("detail", "")))


def _chunk(wire: Mapping[str, Any]) -> SpeechChunk:
    text, start_s, end_s = wire["text"], _number(wire["start_s"]), _number(wire["end_s"])
    if not isinstance(text, str) or len(text) > _MAX_CHUNK_CHARS or end_s < start_s:
        raise BrokenFrame("a chunk without words or with times that run backwards")
    return SpeechChunk(
        text=text,
        start_s=start_s,
        end_s=end_s,
        confidence=_number(wire["confidence"], at_most=1.0),
        no_speech_probability=_number(wire["no_speech_probability"], at_most=1.0),
    )


def _language(value: object) -> str:
    if not isinstance(value, str) or not _LANGUAGE.fullmatch(value):
        raise BrokenFrame("a language that is no code")
    return value


def _number(value: object, *, at_most: float = _MAX_SECONDS) -> float:
    """A finite number from 0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BrokenFrame("a number is missing")
    if not 0 <= value <= at_most:  # which no NaN is
        raise BrokenFrame("a number is out of its bounds")
    return float(value)


def _count(value: object) -> int:
    """A whole number from 0."""
    if not isinstance(value, int) or _number(value) != value:
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
    except (ValueError, RecursionError) as error:  # the latter for brackets in brackets in brackets
        raise BrokenFrame("a frame's header is not JSON") from error
    if not isinstance(value, dict):
        raise BrokenFrame("a frame's header is not an object")
    return value
