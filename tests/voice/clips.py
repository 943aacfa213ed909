"""The recordings under tests/data: real public-domain speech, and sounds that are not speech."""

from __future__ import annotations

import io
import json
import wave
from dataclasses import dataclass
from pathlib import Path

_DATA = Path(__file__).parents[1] / "data"
NOTES_DIR = _DATA / "voice-notes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Clip:
    """One recording of the manifest; `transcript` is empty where no one speaks."""

    name: str
    data: bytes
    transcript: str


def _load() -> dict[str, Clip]:
    entries = json.loads((_DATA / "speech" / "manifest.json").read_text())
    return {
        entry["id"]: Clip(
            name=entry["id"],
            data=(_DATA / "speech" / entry["file"]).read_bytes(),
            transcript=entry["transcript"],
        )
        for entry in entries
    }


CLIPS = _load()
SPEECH = tuple(clip for clip in CLIPS.values() if clip.transcript)
NOISE = tuple(clip for clip in CLIPS.values() if not clip.transcript)

NOTE_TRANSCRIPT: str = json.loads((NOTES_DIR / "manifest.json").read_text())["transcript"]
NOTES = {path.suffix[1:]: path.read_bytes() for path in sorted(NOTES_DIR.glob("voice.*"))}
"""The same sentence in every accepted container, by file suffix."""


def samples_of(clip: Clip) -> bytes:
    """The clip's raw samples: 16 bit, mono, 16 kHz."""
    with wave.open(io.BytesIO(clip.data), "rb") as file:
        return file.readframes(file.getnframes())


def wav(pcm: bytes, *, rate: int = 16_000, channels: int = 1, sample_bytes: int = 2) -> bytes:
    """A WAV file around raw samples."""
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(sample_bytes)
        file.setframerate(rate)
        file.writeframes(pcm)
    return buffer.getvalue()


def amr_bomb(hours: float) -> bytes:
    """A narrow-band AMR file of silence: 13 bytes for each 20 ms."""
    return b"#!AMR\n" + (b"\x04" + bytes(12)) * int(hours * 3600 * 50)
