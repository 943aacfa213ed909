"""Recognise speech segments with faster-whisper, on one thread. Blocking.

The only module that imports it; runs in the worker process only. The segments come from a voice detector:
Whisper rarely gets silence, hum or hiss, for which it invents words. Not here: decoding files and VAD.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from faster_whisper import WhisperModel
from faster_whisper.tokenizer import Tokenizer
from faster_whisper.transcribe import get_suppressed_tokens

from voice.audio.spans import SpeechSpans
from voice.errors import TranscriberUnavailable
from voice.transcript import SAMPLE_RATE, Samples, SpeechChunk
from voice.transcription.device import Device, chosen_compute_type, chosen_device
from voice.transcription.engine_io import EngineJob, EngineResult
from voice.transcription.mel_window import (
    FRAMES_PER_SECOND,
    FULL,
    FULL_FRAMES,
    MAX_TOKENS,
    Decoding,
    Mel,
    Verdict,
    Window,
    batches,
    confidence,
    echoes,
    fitted,
    judge,
    prompt_token_limit,
    token_budget,
)

Engine = Literal["fast", "plain"]

_log = logging.getLogger(__name__)

_SURE_OF_LANGUAGE = 0.5
_MAX_PROMPT_TOKENS = MAX_TOKENS // 2 - 1
_CONTROL_TOKENS = 5
"""Start of the prompt, start of the transcript, language, task, no timestamps."""
_FITTED = Window()
_TRIED_FRAMES = 100
"""Of the window that shows whether the runtime takes less than the full one. A tenth of the least that speech
gets: it costs a tenth, and tells the same."""


_NOTHING = EngineResult(chunks=(), language="", language_probability=0.0, low=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Decoded:
    """One decoding and its assessment."""

    decoding: Decoding
    verdict: Verdict
    language: str
    language_probability: float


def missing_files(model_dir: Path) -> tuple[str, ...]:
    """The names of the files that a model folder lacks; empty when it can be loaded."""
    missing = [
        name for name in ("model.bin", "config.json", "tokenizer.json") if not (model_dir / name).is_file()
    ]
    if not any((model_dir / name).is_file() for name in ("vocabulary.json", "vocabulary.txt")):
        missing.append("vocabulary.json or vocabulary.txt")
    return tuple(missing)


def shortest_window(encode: Callable[[Mel], Any], bands: int) -> Window:
    """The fitted window where the runtime takes a short one, tested once on silence; else the full one.

    Raises TranscriberUnavailable where the runtime computes nothing at all.
    """
    frames = _TRIED_FRAMES
    try:
        shape = encode(np.zeros((1, bands, frames), dtype=np.float32)).shape
        if tuple(shape[:2]) == (1, frames // 2):
            return _FITTED
        reason = f"{frames} frames became {shape}"
    except (RuntimeError, ValueError) as error:
        reason = str(error)
    try:
        encode(np.zeros((1, bands, FULL_FRAMES), dtype=np.float32))
    except (RuntimeError, ValueError) as error:
        detail = f"The speech model cannot compute here ({error}). Set the recogniser's device to `cpu`."
        raise TranscriberUnavailable(detail=detail) from error
    _log.warning("short windows do not work here (%s): every piece takes Whisper's full window", reason)
    return FULL


def settled_language(ranking: Sequence[tuple[str, float]], likely: str | None) -> tuple[str, float]:
    """The most probable language of a ranking, or the likely one where none is probable."""
    best = ranking[0]
    expected = next((entry for entry in ranking if entry[0] == likely), best)
    return expected if best[1] < _SURE_OF_LANGUAGE else best


class WhisperEngine:
    """A way to hear with a loaded model, which several may share.

    `fast` fits Whisper's window to the speech, encodes it once for the language and the words, and tries
    once more with the full window where the words look wrong. `plain` is faster-whisper with its defaults,
    without its temperature fallback, which invents words over noise and has no bound on its cost.
    """

    def __init__(self, model: LoadedModel, *, engine: Engine = "fast", window: Window | None = None) -> None:
        self._model = model
        self._engine = engine
        self._tokenizers: dict[str, Tokenizer] = {}
        self._suppressed: list[int] = list(get_suppressed_tokens(self._tokenizer("en"), [-1]))
        if window is None:
            bands: int = self._model.feature_extractor.mel_filters.shape[0]
            working = shortest_window(self._model.encode, bands)
            window = working if engine == "fast" else FULL
        self._window = window

    @property
    def first_run_is_slow(self) -> bool:
        """Whether `warm_up` saves the first note some time: on a GPU. On the processor, the first run takes
        as long as the next."""
        return bool(self._model.model.device != "cpu")

    @property
    def encoder_passes(self) -> int:
        """Windows that the model encoded so far; each of a batch counts."""
        return self._model.passes

    def warm_up(self) -> None:
        """Run the model once on a second of tone."""
        time = np.arange(SAMPLE_RATE) / SAMPLE_RATE
        tone = (3000 * np.sin(2 * np.pi * 220 * time)).astype("<i2").tobytes()
        self.transcribe([EngineJob(pcm=tone, spans=((0.0, 1.0),), beam_size=1)])

    def transcribe(self, jobs: Sequence[EngineJob]) -> list[EngineResult]:
        """The words of each segment, in the order of `jobs`."""
        if self._engine == "plain":
            return [self._plain_opinion(job) for job in jobs]
        first: dict[int, _Decoded] = {}
        for batch in self._batches(jobs):
            first.update(
                zip(batch, self._decode([jobs[index] for index in batch], self._window), strict=True)
            )
        return [_result(job, self._second_opinion(job, first[index])) for index, job in enumerate(jobs)]

    def _batches(self, jobs: Sequence[EngineJob]) -> list[tuple[int, ...]]:
        """Which jobs to decode together: a search has one beam size and prompts of one length."""
        together: dict[int, list[int]] = {}
        for index, job in enumerate(jobs):
            if not job.prompt:
                together.setdefault(job.beam_size, []).append(index)
        groups: list[tuple[int, ...]] = [(index,) for index, job in enumerate(jobs) if job.prompt]
        for indices in together.values():
            frames = [
                self._window.frames(round(jobs[index].seconds * FRAMES_PER_SECOND)) for index in indices
            ]
            groups += [tuple(indices[place] for place in batch) for batch in batches(frames)]
        return groups

    def _second_opinion(self, job: EngineJob, first: _Decoded) -> _Decoded:
        """`first`; where its words look wrong, the better of it and one try with the full window."""
        frames = self._window.frames(round(job.seconds * FRAMES_PER_SECOND))
        may_differ = frames < FULL_FRAMES or job.prompt
        echoed = echoes(first.decoding.text, job.prompt)
        if (first.verdict in {"sure", "silent"} and not echoed) or not may_differ:
            return first
        (second,) = self._decode([replace(job, prompt="")], FULL)
        if echoed:
            return second
        if first.verdict == second.verdict == "unsure":
            return max(first, second, key=lambda one: one.decoding.log_probability)
        return first if second.verdict == "looped" else second

    def _decode(self, jobs: Sequence[EngineJob], window: Window) -> list[_Decoded]:
        """Encode and decode segments together; several must share a beam size and have no prompt."""
        mels = [self._model.feature_extractor(_samples(job))[:, :-1] for job in jobs]
        frames = window.frames(max(mel.shape[1] for mel in mels))
        encoded = self._model.encode(np.stack([fitted(mel, frames) for mel in mels]))
        languages = self._languages(jobs, encoded)
        prompts = [self._prompt(job, language) for job, (language, _) in zip(jobs, languages, strict=True)]
        budget = max(
            token_budget(job.seconds, prompt_tokens=len(prompts[0]), language=language)
            for job, (language, _) in zip(jobs, languages, strict=True)
        )
        results = self._model.model.generate(
            encoded,
            prompts,
            beam_size=jobs[0].beam_size,
            max_length=len(prompts[0]) + budget,
            return_scores=True,
            return_no_speech_prob=True,
            suppress_tokens=self._suppressed,
        )
        return [
            self._assess(result, job, budget, *language)
            for result, job, language in zip(results, jobs, languages, strict=True)
        ]

    def _languages(self, jobs: Sequence[EngineJob], encoded: Any) -> list[tuple[str, float]]:
        """Each segment's language and its probability: 1 where it was given."""
        known = [self._known(job) for job in jobs]
        if all(known):
            return [(language, 1.0) for language in known if language]
        detected = self._model.model.detect_language(encoded)
        return [
            (language, 1.0)
            if language
            else settled_language(
                [(token[2:-2], probability) for token, probability in ranking], job.likely_language
            )
            for language, job, ranking in zip(known, jobs, detected, strict=True)
        ]

    def _known(self, job: EngineJob) -> str | None:
        if not self._model.model.is_multilingual:
            return "en"
        return job.language if job.language in self._model.supported_languages else None

    def _tokenizer(self, language: str) -> Tokenizer:
        if language not in self._tokenizers:
            multilingual = self._model.model.is_multilingual
            self._tokenizers[language] = Tokenizer(
                self._model.hf_tokenizer, multilingual, task="transcribe", language=language
            )
        return self._tokenizers[language]

    def _prompt(self, job: EngineJob, language: str) -> list[int]:
        """The tokens that the answer continues. Without timestamps: that is faster and more accurate."""
        tokenizer = self._tokenizer(language)
        before: list[int] = []
        limit = prompt_token_limit(job.seconds, language=language, control_tokens=_CONTROL_TOKENS)
        if job.prompt and limit:
            before = [tokenizer.sot_prev, *tokenizer.encode(" " + job.prompt.strip())[-limit:]]
        return [*before, *tokenizer.sot_sequence, tokenizer.no_timestamps]

    def _assess(
        self, result: Any, job: EngineJob, budget: int, language: str, probability: float
    ) -> _Decoded:
        tokens = result.sequences_ids[0]
        decoding = Decoding(
            text=self._tokenizer(language).decode(tokens).strip(),
            tokens=len(tokens),
            # The score is the mean without the end-of-text token, which is as informative as any other token.
            log_probability=result.scores[0] * len(tokens) / (len(tokens) + 1),
            no_speech_probability=result.no_speech_prob,
        )
        verdict = judge(decoding, speech_s=job.seconds, language=language, budget=budget)
        return _Decoded(
            decoding=decoding, verdict=verdict, language=language, language_probability=probability
        )

    def _plain_opinion(self, job: EngineJob) -> EngineResult:
        first = self._transcribe_plain(job)
        echoed = echoes(" ".join(chunk.text for chunk in first.chunks), job.prompt)
        return self._transcribe_plain(replace(job, prompt="")) if echoed else first

    def _transcribe_plain(self, job: EngineJob) -> EngineResult:
        samples = _samples(job)
        language, probability = self._known(job), 1.0
        if language is None:
            _, _, ranking = self._model.detect_language(samples)
            language, probability = settled_language(ranking, job.likely_language)
        before = _CONTROL_TOKENS + (_MAX_PROMPT_TOKENS if job.prompt else 0)
        segments, _ = self._model.transcribe(
            samples,
            language=language,
            beam_size=job.beam_size,
            temperature=0.0,
            condition_on_previous_text=False,
            initial_prompt=job.prompt.strip() or None,
            max_new_tokens=token_budget(job.seconds, prompt_tokens=before, language=language),
        )
        times = SpeechSpans(job.spans)
        chunks: list[SpeechChunk] = []
        low = False
        for segment in segments:
            decoding = Decoding(
                text=segment.text.strip(),
                tokens=len(segment.tokens),
                log_probability=segment.avg_logprob,
                no_speech_probability=segment.no_speech_prob,
            )
            verdict = judge(decoding, speech_s=job.seconds, language=language)
            if verdict in {"sure", "unsure"}:
                chunks.append(_chunk(decoding, verdict, times.in_recording(segment.start, segment.end)))
                low = low or verdict == "unsure"
        if not chunks:
            return _NOTHING
        return EngineResult(
            chunks=tuple(chunks), language=language, language_probability=_unit(probability), low=low
        )


class LoadedModel(WhisperModel):  # type: ignore[misc]  # faster_whisper ships no type information
    """faster-whisper's model with a count of encoded windows."""

    passes = 0

    def encode(self, features: Any) -> Any:
        self.passes += features.shape[0] if features.ndim == 3 else 1
        return super().encode(features)


def load_model(model_dir: Path, *, device: Device = "auto", compute_type: str = "auto") -> LoadedModel:
    """The model of a folder. Takes about half a second and 200 MB for the base model.
    Raises TranscriberUnavailable."""
    missing = missing_files(model_dir)
    if missing:
        raise TranscriberUnavailable(
            detail=f"The speech model is not installed: {model_dir} lacks {', '.join(missing)}. "
            "Run `parlour models get`."
        )
    where = chosen_device(device)
    arithmetic = chosen_compute_type(compute_type, where)
    try:
        # One thread and one search at a time: a second thread is 10 % faster for a third more work,
        # and the machine's other cores belong to the other workers.
        return LoadedModel(
            str(model_dir),
            device=where,
            compute_type=arithmetic,
            cpu_threads=1,
            num_workers=1,
            local_files_only=True,
        )
    except Exception as error:
        raise TranscriberUnavailable(
            detail=f"The speech model in {model_dir} cannot be loaded ({error}). Remove the folder and run "
            "`parlour models get`."
        ) from error


def _samples(job: EngineJob) -> Samples:
    return np.frombuffer(job.pcm, dtype="<i2").astype(np.float32) / np.float32(32768)


def _result(job: EngineJob, decoded: _Decoded) -> EngineResult:
    if decoded.verdict in {"silent", "looped"}:
        return _NOTHING
    times = (job.spans[0][0], job.spans[-1][1])
    return EngineResult(
        chunks=(_chunk(decoded.decoding, decoded.verdict, times),),
        language=decoded.language,
        language_probability=_unit(decoded.language_probability),
        low=decoded.verdict == "unsure",
        tokens=decoded.decoding.tokens,
    )


def _chunk(decoding: Decoding, verdict: Verdict, times: tuple[float, float]) -> SpeechChunk:
    start_s, end_s = times
    return SpeechChunk(
        text=decoding.text,
        start_s=start_s,
        end_s=end_s,
        confidence=_unit(confidence(decoding, verdict)),
        no_speech_probability=_unit(decoding.no_speech_probability),
    )


def _unit(value: float) -> float:
    return min(1.0, max(0.0, float(value)))
