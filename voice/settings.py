"""The settings of the ears, as a value. Not here: where they are read from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class VoiceSettings:
    """Limits and choices for hearing voice notes. Raises ValueError, naming the field."""

    model_dir: Path
    """A folder with a converted Whisper model: model.bin, config.json, tokenizer.json, vocabulary.*."""
    max_bytes: int = 20 * 1024 * 1024
    """Larger files are refused unread."""
    max_seconds: float = 300.0
    """Audio beyond this is left out, and the utterance says that it is truncated."""
    min_seconds: float = 0.3
    """Shorter recordings hold no words."""
    queue_limit: int = 16
    """Recordings that may wait while others are being heard."""
    queue_seconds: float = 600.0
    """Seconds of speech that may wait altogether."""
    deadline_floor_s: float = 45.0
    """Each piece of a recording gets its own length in seconds of working time, and at least this: what hangs
    is ended, what is only slow is not. A small board needs about a second for a second of speech."""
    language: str | None = None
    """A language code such as `en`; None lets the model detect it for each recording."""
    beam_size: int = 5
    engine: Literal["fast", "plain"] = "fast"
    """`fast` fits Whisper's window to the speech; `plain` is faster-whisper as it comes."""
    workers: int = 0
    """Recognising processes, one thread each; 0 chooses by the machine: two, or one on a single core."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    compute_type: str = "auto"
    """Of CTranslate2; `auto` is int8 on a processor and float16 on a GPU."""
    recycle_after: int = 500
    """Recordings after which a process is replaced by a fresh one."""

    def __post_init__(self) -> None:
        for name in (
            "max_bytes",
            "max_seconds",
            "queue_seconds",
            "deadline_floor_s",
            "beam_size",
            "recycle_after",
        ):
            if getattr(self, name) <= 0:
                raise ValueError(f"voice: {name} must be greater than zero")
        for name in ("min_seconds", "queue_limit", "workers"):
            if getattr(self, name) < 0:
                raise ValueError(f"voice: {name} must not be negative")
        if self.min_seconds >= self.max_seconds:
            raise ValueError("voice: min_seconds must be smaller than max_seconds")
