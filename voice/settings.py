"""The settings of speech recognition, as a value. Not here: where they are read from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptionSettings:
    """Limits and choices for transcribing voice notes. Raises ValueError, naming the field."""

    model_dir: Path
    """A folder with a converted Whisper model: model.bin, config.json, tokenizer.json, vocabulary.*."""
    max_bytes: int = 20 * 1024 * 1024
    """Larger files are rejected unread."""
    max_seconds: float = 300.0
    """Later audio is ignored, and the utterance says that it is truncated."""
    min_seconds: float = 0.3
    """Shorter recordings contain no words."""
    queue_limit: int = 16
    """The most recordings that wait while others are transcribed."""
    queue_seconds: float = 600.0
    """The most seconds of speech that wait in total."""
    deadline_floor_s: float = 45.0
    """Each segment of a recording gets its own length in seconds of working time, and at least this: a
    request that hangs is ended, a slow one is not. A small board needs about a second for a second of
    speech."""
    language: str | None = None
    """A language code such as `en`; None lets the model detect it for each recording."""
    beam_size: int = 5
    engine: Literal["fast", "plain"] = "fast"
    """`fast` fits Whisper's window to the speech; `plain` is faster-whisper with its defaults."""
    workers: int = 0
    """Recogniser processes, one thread each; 0 chooses by the machine: two, or one on a single core."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    compute_type: str = "auto"
    """CTranslate2's number format; `auto` is int8 on a processor and float16 on a GPU."""
    recycle_after: int = 500
    """Jobs after which a process is replaced by a fresh one."""

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
