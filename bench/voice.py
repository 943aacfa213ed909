"""Hearing the recordings under tests/data, beside the bare recogniser with the same model and settings."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from faster_whisper import WhisperModel

from bench.report import ROOT, Report
from pipeline.domain.clock import SystemClock
from tests.voice.clips import SPEECH, Clip, samples_of
from voice.settings import VoiceSettings
from voice.transcriber import Recording
from voice.wer import normalised_words, word_error_rate
from voice.worker import WhisperTranscriber

_CLOCK = SystemClock()
_BYTES_A_SECOND = 32_000
_SETTINGS = VoiceSettings(model_dir=ROOT / "models" / "whisper-base")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Heard:
    clip: Clip
    ours_s: float
    bare_s: float
    ours_wer: float
    bare_wer: float

    @property
    def audio_s(self) -> float:
        """The recording's length."""
        return len(samples_of(self.clip)) / _BYTES_A_SECOND


async def run() -> Report:
    """Each recording twice, ours and bare, one after the other. Needs the Whisper model."""
    model = await asyncio.to_thread(_bare_model)
    transcriber = WhisperTranscriber(_SETTINGS)
    try:
        await transcriber.warm_up()
        await asyncio.to_thread(_transcribe_bare, model, SPEECH[0].data)
        heard = [await _hear(transcriber, model, clip) for clip in SPEECH]
    finally:
        await transcriber.close()
    ours, bare = sum(one.ours_s for one in heard), sum(one.bare_s for one in heard)
    audio = sum(one.audio_s for one in heard)
    figures = {
        "ratio": round(ours / bare, 2),
        "audio_s": round(audio, 1),
        "ours_s": round(ours, 2),
        "bare_s": round(bare, 2),
        "realtime_factor": round(ours / audio, 3),
        **_wer(heard),
    }
    total = ("all", f"{audio:.1f} s", f"{ours:.2f} s", f"{bare:.2f} s", f"{ours / bare:.2f}")
    rows = [
        (
            one.clip.name,
            f"{one.audio_s:.1f} s",
            f"{one.ours_s:.2f} s",
            f"{one.bare_s:.2f} s",
            f"{one.ours_s / one.bare_s:.2f}",
            f"{one.ours_wer:.0%}",
            f"{one.bare_wer:.0%}",
        )
        for one in heard
    ]
    return Report(
        bench="voice",
        title="voice: Whisper base, int8, one thread, beam 5, language not told",
        head=("recording", "length", "ours", "bare", "ratio", "WER", "bare WER"),
        rows=[*rows, (*total, f"{figures['wer']:.1%}", f"{figures['bare_wer']:.1%}")],
        notes=(
            "ours: a worker process, with decoding, voice detection and the checks against invented words",
            "bare: faster-whisper called in this process, on one thread, without voice detection",
        ),
        figures=figures,
    )


async def _hear(transcriber: WhisperTranscriber, model: Any, clip: Clip) -> _Heard:
    began = _CLOCK.monotonic()
    transcript = await transcriber.transcribe(Recording(data=clip.data))
    between = _CLOCK.monotonic()
    bare = await asyncio.to_thread(_transcribe_bare, model, clip.data)
    ended = _CLOCK.monotonic()
    ours = " ".join(chunk.text for chunk in transcript.chunks)
    return _Heard(
        clip=clip,
        ours_s=between - began,
        bare_s=ended - between,
        ours_wer=word_error_rate(clip.transcript, ours),
        bare_wer=word_error_rate(clip.transcript, bare),
    )


def _wer(heard: list[_Heard]) -> Mapping[str, float]:
    """Errors over all words, not the mean of the recordings' rates."""
    words = [len(normalised_words(one.clip.transcript)) for one in heard]
    ours = sum(one.ours_wer * count for one, count in zip(heard, words, strict=True))
    bare = sum(one.bare_wer * count for one, count in zip(heard, words, strict=True))
    return {"wer": round(ours / sum(words), 4), "bare_wer": round(bare / sum(words), 4)}


def _bare_model() -> Any:
    return WhisperModel(
        str(_SETTINGS.model_dir), device="cpu", compute_type="int8", cpu_threads=1, local_files_only=True
    )


def _transcribe_bare(model: Any, data: bytes) -> str:
    segments, _ = model.transcribe(io.BytesIO(data), beam_size=_SETTINGS.beam_size)
    return " ".join(segment.text for segment in segments)
