"""The one door to faster-whisper: samples in, transcript out, on one thread. Blocking.

Runs in the worker process only. Silero's voice detector decides first whether anybody speaks;
Whisper never sees silence, hum or hiss, for which it would invent words.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from faster_whisper import WhisperModel
from faster_whisper.vad import VadOptions, get_speech_timestamps, get_vad_model

from voice.errors import TranscriberUnavailable
from voice.spans import SpeechSpans
from voice.speech import SAMPLE_RATE, DecodedAudio, SpeechChunk, Transcript

_VAD = VadOptions(threshold=0.5, min_speech_duration_ms=100, min_silence_duration_ms=1000, speech_pad_ms=300)

_WINDOW_S = 30.0
_TOKENS_PER_SECOND = 12
_TOKENS_FLOOR = 24

_MAX_COMPRESSION = 2.4
_MIN_LOG_PROBABILITY = -1.0
_MAX_NO_SPEECH = 0.6
_UNSURE_LOG_PROBABILITY = -0.6


def missing_files(model_dir: Path) -> tuple[str, ...]:
    """What a model folder lacks, by name; empty when it can be loaded."""
    missing = [
        name for name in ("model.bin", "config.json", "tokenizer.json") if not (model_dir / name).is_file()
    ]
    if not any((model_dir / name).is_file() for name in ("vocabulary.json", "vocabulary.txt")):
        missing.append("vocabulary.json or vocabulary.txt")
    return tuple(missing)


class WhisperEngine:
    """A loaded model. Construction takes about half a second and 200 MB for the base model."""

    def __init__(self, model_dir: Path, *, beam_size: int) -> None:
        missing = missing_files(model_dir)
        if missing:
            raise TranscriberUnavailable(
                f"The speech model is not installed: {model_dir} lacks {', '.join(missing)}. "
                "Run `parlour models get`."
            )
        try:
            self._model = WhisperModel(
                str(model_dir),
                device="cpu",
                compute_type="int8",
                cpu_threads=1,
                num_workers=1,
                local_files_only=True,
            )
        except Exception as error:
            raise TranscriberUnavailable(
                f"The speech model in {model_dir} cannot be loaded ({error}). Remove the folder and run "
                "`parlour models get`."
            ) from error
        self._beam_size = beam_size

    def warm_up(self) -> None:
        """Run the detector and the model once on a second of tone, so that the first note does not wait."""
        time = np.arange(SAMPLE_RATE, dtype=np.float32) / SAMPLE_RATE
        tone = (0.1 * np.sin(2 * np.pi * 220 * time)).astype(np.float32)
        get_vad_model()
        _speech_spans(tone)
        segments, _ = self._model.transcribe(
            tone, language="en", beam_size=1, temperature=0.0, max_new_tokens=4, without_timestamps=True
        )
        for _ in segments:
            pass

    def transcribe(self, audio: DecodedAudio, *, language: str | None) -> Transcript:
        """What is said in `audio`; no chunks where the detector or the checks find no speech.

        An unknown `language` code is ignored and the language detected.
        """
        spans = _speech_spans(audio.samples)
        if not spans:
            return _silent(audio)
        speech = np.concatenate([audio.samples[span["start"] : span["end"]] for span in spans])
        window_s = min(speech.size / SAMPLE_RATE, _WINDOW_S)
        known = language if language in self._model.supported_languages else None
        segments, info = self._model.transcribe(
            speech,
            language=known,
            beam_size=self._beam_size,
            temperature=0.0,
            condition_on_previous_text=False,
            compression_ratio_threshold=_MAX_COMPRESSION,
            log_prob_threshold=_MIN_LOG_PROBABILITY,
            no_speech_threshold=_MAX_NO_SPEECH,
            # A loop of invented words ends here instead of after 448 tokens.
            max_new_tokens=math.ceil(window_s * _TOKENS_PER_SECOND) + _TOKENS_FLOOR,
            vad_filter=False,
        )
        times = SpeechSpans([(span["start"] / SAMPLE_RATE, span["end"] / SAMPLE_RATE) for span in spans])
        chunks = tuple(_chunk(segment, times) for segment in segments if _is_believable(segment))
        if not chunks:
            return _silent(audio)
        return Transcript(
            chunks=chunks,
            language=info.language,
            language_probability=_unit(info.language_probability),
            audio_seconds=audio.seconds,
            truncated=audio.truncated,
        )


def _speech_spans(samples: Any) -> list[dict[str, int]]:
    """Where somebody speaks: `start` and `end` in samples."""
    spans: list[dict[str, int]] = get_speech_timestamps(samples, _VAD)
    return spans


def _is_believable(segment: Any) -> bool:
    """Whether a segment holds words rather than a loop or a guess over noise."""
    if not segment.text.strip() or segment.compression_ratio > _MAX_COMPRESSION:
        return False
    if segment.avg_logprob < _MIN_LOG_PROBABILITY:
        return False
    return not (segment.no_speech_prob > _MAX_NO_SPEECH and segment.avg_logprob < _UNSURE_LOG_PROBABILITY)


def _chunk(segment: Any, times: SpeechSpans) -> SpeechChunk:
    start_s, end_s = times.in_recording(segment.start, segment.end)
    return SpeechChunk(
        text=segment.text.strip(),
        start_s=start_s,
        end_s=end_s,
        confidence=_unit(math.exp(segment.avg_logprob)),
        no_speech_probability=_unit(segment.no_speech_prob),
    )


def _silent(audio: DecodedAudio) -> Transcript:
    return Transcript(
        chunks=(),
        language="",
        language_probability=0.0,
        audio_seconds=audio.seconds,
        truncated=audio.truncated,
    )


def _unit(value: float) -> float:
    return min(1.0, max(0.0, float(value)))
