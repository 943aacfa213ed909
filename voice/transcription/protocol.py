"""Read the recogniser's answers; read and write stored transcripts. JSON; a reader raises BrokenFrame."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from voice.transcript import SpeechChunk, Transcript
from voice.workers.frames import BrokenFrame, checked_number

_MAX_CHUNK_CHARS = 10_000
"""Far more words than thirty seconds of speech hold."""
_LANGUAGE = re.compile(r"[a-z]{2,8}|")


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscribedSegment:
    """The transcript of one segment of a recording."""

    chunks: tuple[SpeechChunk, ...]
    """Times are seconds of the recording."""
    language: str
    """Empty where there is no speech."""
    language_probability: float


def transcript_to_wire(transcript: Transcript) -> dict[str, Any]:
    """Plain JSON data. Inverse of `transcript_from_wire`."""
    return asdict(transcript)


def transcript_from_wire(wire: Mapping[str, Any]) -> Transcript:
    """Inverse of `transcript_to_wire`. Raises BrokenFrame on any other data."""
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


def segments_from_wire(wire: Mapping[str, Any], *, count: int) -> tuple[TranscribedSegment, ...]:
    """Read a recogniser's answer to a request of `count` segments, in their order.

    Raises BrokenFrame on anything that an intact recogniser would not send.
    """
    listed = wire.get("pieces")
    if wire.get("kind") != "heard" or not isinstance(listed, list) or len(listed) != count:
        raise BrokenFrame(f"not an answer about {count} pieces")
    try:
        return tuple(
            TranscribedSegment(
                chunks=tuple(_chunk(chunk) for chunk in segment["chunks"]),
                language=_language(segment["language"]),
                language_probability=checked_number(segment["language_probability"], at_most=1.0),
            )
            for segment in listed
        )
    except (KeyError, TypeError) as error:
        raise BrokenFrame(f"not an answer about pieces: {error!r}") from error


def _chunk(wire: Mapping[str, Any]) -> SpeechChunk:
    text, start_s, end_s = wire["text"], checked_number(wire["start_s"]), checked_number(wire["end_s"])
    if not isinstance(text, str) or len(text) > _MAX_CHUNK_CHARS or end_s < start_s:
        raise BrokenFrame("a chunk without words or with times that run backwards")
    return SpeechChunk(
        text=text,
        start_s=start_s,
        end_s=end_s,
        confidence=checked_number(wire["confidence"], at_most=1.0),
        no_speech_probability=checked_number(wire["no_speech_probability"], at_most=1.0),
    )


def _language(value: object) -> str:
    if not isinstance(value, str) or not _LANGUAGE.fullmatch(value):
        raise BrokenFrame("a language that is no code")
    return value
