"""The shipped recogniser on real speech: what it hears of each recording, and every one that it mishears.

The suite has one recording for each behaviour; the tables are here. Each clip is heard in variants that no person can
tell apart, because processors round differently. The recordings are those of tests/data, public-domain speech in
English, so the figures say nothing about other languages, and little about other voices.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from faster_whisper import WhisperModel

from bench.report import ROOT, BenchUnavailable, table
from tests.voice.clips import CLIPS, NOISE, NOTE_TRANSCRIPT, NOTES, SPEECH, samples_of, wav
from tests.voice.notes import note
from tests.voice.sounds import music, pink_noise, quiet
from tests.voice.spoken_before import SPOKEN_BEFORE
from tests.voice.variants import variants
from voice.errors import NothingHeard
from voice.settings import TranscriptionSettings
from voice.transcriber import Recording
from voice.transcript import Transcript
from voice.transcription.engine_io import EngineJob
from voice.transcription.mel_window import Window
from voice.transcription.voice_note import VoiceIntake
from voice.transcription.whisper_engine import WhisperEngine, load_model
from voice.transcription.whisper_transcriber import WhisperTranscriber
from voice.wer import normalised_words, word_error_rate

MODEL = ROOT / "models" / "whisper-base"
VARIANTS = 3
CLEAR = "lj001-0004"
_DEADLINE_S = 300.0
_ALLOWED = 0.2
_REPEATED = "lv_0880"
_LONG_NOTE = ("jfk", "lj001-0004", "lv_0890", "lj001-0002", "lj001-0001")


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """One recording: what was said and what was heard."""

    part: str
    name: str
    said: str
    """Empty where no one speaks."""
    heard: str
    problem: str = ""
    """What is wrong besides the words: the language, the confidence or the times."""
    allowed: float = _ALLOWED

    @property
    def wrong(self) -> float:
        """The share of wrong words; of a recording without words, 1 where one was heard."""
        return word_error_rate(self.said, self.heard) if self.said else float(bool(self.heard))

    @property
    def good(self) -> bool:
        return self.wrong <= self.allowed and not self.problem

    @property
    def line(self) -> str:
        """The recording as a miss is shown."""
        why = self.problem or f"{self.wrong:.0%} of the words are wrong"
        return f"{self.part}, {self.name}: {why}: {self.heard!r} instead of {self.said!r}"


async def run(model: Path = MODEL) -> str:
    """The table, every miss and one line of JSON; about three minutes. Raises BenchUnavailable without the model."""
    if not (model / "model.bin").is_file():
        raise BenchUnavailable(f"{model} is missing: run `parlour models get`")
    settings = TranscriptionSettings(model_dir=model, deadline_floor_s=_DEADLINE_S, queue_limit=100)
    return report([*await _of_the_transcriber(settings), *await asyncio.to_thread(_of_the_engine, model)])


def report(found: Sequence[Heard]) -> str:
    """What is printed about these recordings."""
    parts = list(dict.fromkeys(one.part for one in found))
    rows = [_row(part, [one for one in found if one.part == part]) for part in parts]
    missed = [one.line for one in found if not one.good]
    lines = table(("", "recordings", "good", "words", "wrong words"), [*rows, _row("all", found)])
    shares = {part: round(_share([one for one in found if one.part == part]), 4) for part in parts}
    figures = {"eval": "transcription", "recordings": len(found), "good": round(_share(found), 4), **shares}
    misses = "\n".join((f"Misheard: {len(missed)}", *(f"  {line}" for line in missed)))
    return "\n\n".join(("\n".join(lines), misses, json.dumps(figures)))


def _row(name: str, found: Sequence[Heard]) -> tuple[str, ...]:
    words = [len(normalised_words(one.said)) for one in found]
    wrong = sum(one.wrong * count for one, count in zip(found, words, strict=True)) / max(1, sum(words))
    good = sum(one.good for one in found)
    return (name, str(len(found)), str(good), str(sum(words)), f"{wrong:.1%}")


def _share(found: Sequence[Heard]) -> float:
    return sum(one.good for one in found) / len(found) if found else 1.0


async def _of_the_transcriber(settings: TranscriptionSettings) -> list[Heard]:
    """Recordings through the public transcriber and its processes."""
    transcriber = WhisperTranscriber(settings)
    try:
        return [
            *await _clips(VoiceIntake(transcriber, settings)),
            *await _containers(VoiceIntake(transcriber, settings)),
            *await _notes(VoiceIntake(transcriber, settings)),
            *await _without_words(VoiceIntake(transcriber, settings)),
            *[one async for one in _with_pauses(transcriber)],
            *[one async for one in _said_twice(transcriber)],
            *await _long_note(transcriber),
        ]
    finally:
        await transcriber.close()


async def _clips(intake: VoiceIntake) -> list[Heard]:
    """Each clip in its variants; no language is named."""
    found = []
    for clip in SPEECH:
        for number, pcm in enumerate(variants(samples_of(clip), VARIANTS)):
            utterance = await intake.transcribe(Recording(data=wav(pcm)))
            problem = "" if utterance.language == "en" else f"taken for {utterance.language!r}"
            if not 0.4 < utterance.confidence <= 1.0:
                problem = f"a confidence of {utterance.confidence:.2f}"
            name = f"{clip.name}, variant {number}"
            found.append(
                Heard(part="clips", name=name, said=clip.transcript, heard=utterance.text, problem=problem)
            )
    return found


async def _containers(intake: VoiceIntake) -> list[Heard]:
    """The same sentence in every accepted container."""
    found = []
    for suffix, data in NOTES.items():
        utterance = await intake.transcribe(Recording(data=data, language="en"))
        found.append(Heard(part="containers", name=suffix, said=NOTE_TRANSCRIPT, heard=utterance.text))
    return found


async def _notes(intake: VoiceIntake) -> list[Heard]:
    """A clip as notes and sound files of the kinds that the channels bring, encoded now."""
    clip = CLIPS["lv_0890"]
    found = []
    for kind in ("ogg", "webm", "m4a", "wav", "mp3", "amr", "flac"):
        for number, pcm in enumerate(variants(samples_of(clip), VARIANTS)):
            text = (await intake.transcribe(Recording(data=note(pcm, kind)))).text
            found.append(
                Heard(part="notes", name=f"{kind}, variant {number}", said=clip.transcript, heard=text)
            )
    return found


async def _without_words(intake: VoiceIntake) -> list[Heard]:
    """Silence, noise, music, and a part of a word."""
    recordings = {clip.name: clip.data for clip in NOISE}
    recordings |= {"pink noise": wav(pink_noise()), "music": wav(music())}
    recordings["half a second of jfk"] = wav(samples_of(CLIPS["jfk"])[40_000:48_000])
    found = []
    for name, data in recordings.items():
        try:
            words = (await intake.transcribe(Recording(data=data))).text
        except NothingHeard:
            words = ""
        found.append(Heard(part="without words", name=name, said="", heard=words))
    return found


async def _with_pauses(transcriber: WhisperTranscriber) -> AsyncIterator[Heard]:
    """Two seconds of silence, a sentence, a pause, and the sentence again: heard whole, in its place in time."""
    clip = CLIPS[_REPEATED]
    for pause_s in (0.6, 5.0):
        pause = bytes(2 * round(16_000 * pause_s))
        for number, pcm in enumerate(variants(samples_of(clip), VARIANTS)):
            data = wav(bytes(2 * 16_000 * 2) + pcm + pause + pcm)
            transcript = await transcriber.transcribe(Recording(data=data, language="en"))
            yield Heard(
                part="pauses",
                name=f"{pause_s} s, variant {number}",
                said=f"{clip.transcript} {clip.transcript}",
                heard=_words(transcript),
                problem=_misplaced(transcript, last_from=6.0 + pause_s),
            )


def _misplaced(transcript: Transcript, *, last_from: float) -> str:
    if not transcript.chunks:
        return "nothing was heard"
    first, last = transcript.chunks[0].start_s, transcript.chunks[-1].end_s
    in_place = 1.0 < first < 3.0 and last_from < last <= transcript.audio_seconds
    return "" if in_place else f"heard from {first:.1f} s to {last:.1f} s"


async def _said_twice(transcriber: WhisperTranscriber) -> AsyncIterator[Heard]:
    """An open microphone that hears a sentence twice."""
    clip = CLIPS[_REPEATED]
    for number, pcm in enumerate(variants(samples_of(clip), VARIANTS)):
        data = pcm + quiet(0.6) + pcm
        live = Recording(data=data, form="pcm", urgency="final", language="en")
        yield Heard(
            part="said twice",
            name=f"variant {number}",
            said=f"{clip.transcript} {clip.transcript}",
            heard=_words(await transcriber.transcribe(live)),
        )


async def _long_note(transcriber: WhisperTranscriber) -> list[Heard]:
    """Clips one after the other, which are heard in several pieces."""
    clips = [CLIPS[name] for name in _LONG_NOTE]
    note = wav(bytes(32_000).join(samples_of(clip) for clip in clips))
    heard = _words(await transcriber.transcribe(Recording(data=note)))
    said = " ".join(clip.transcript for clip in clips)
    return [Heard(part="long note", name=" ".join(_LONG_NOTE), said=said, heard=heard, allowed=0.15)]


def _of_the_engine(model: Path) -> list[Heard]:
    """Speech without a file or a detector, as the recogniser's process gets it."""
    loaded = load_model(model)
    engine = WhisperEngine(loaded)
    plain = WhisperEngine(loaded, engine="plain")
    cramped = WhisperEngine(loaded, window=Window(floor=100, margin=0))
    return [
        *_beside(engine, model),
        *_together(engine),
        *_in_a_cramped_window(cramped),
        *_after_many_words("after many words", engine, VARIANTS),
        # The full window takes five times as long.
        *_after_many_words("after many words, plain", plain, 1),
        *_silences("past the detector", engine),
        *_silences("past the detector, plain", plain),
    ]


def _beside(engine: WhisperEngine, model: Path) -> list[Heard]:
    """As good as faster-whisper itself, with two words in a hundred to spare."""
    bare = WhisperModel(str(model), device="cpu", compute_type="int8", cpu_threads=1)
    found = []
    for clip in SPEECH:
        said = variants(samples_of(clip), VARIANTS)
        raw = [_raw_words(bare, pcm) for pcm in said]
        rate = sum(word_error_rate(clip.transcript, text) for text in raw) / len(raw)
        for number, heard in enumerate(_heard(engine, [_job(pcm) for pcm in said])):
            found.append(
                Heard(
                    part="beside faster-whisper",
                    name=f"{clip.name}, variant {number}",
                    said=clip.transcript,
                    heard=heard,
                    allowed=rate + 0.02,
                )
            )
    return found


def _raw_words(bare: WhisperModel, pcm: bytes) -> str:
    samples = np.frombuffer(pcm, dtype="<i2").astype(np.float32) / 32_768
    segments, _ = bare.transcribe(samples, language="en", beam_size=5, temperature=0.0)
    return " ".join(segment.text for segment in segments)


def _together(engine: WhisperEngine) -> list[Heard]:
    """Pieces that are heard in one batch."""
    jobs = [_job(samples_of(clip), beam_size=1) for clip in SPEECH]
    return [
        Heard(part="in one batch", name=clip.name, said=clip.transcript, heard=heard)
        for clip, heard in zip(SPEECH, _heard(engine, jobs), strict=True)
    ]


def _in_a_cramped_window(cramped: WhisperEngine) -> list[Heard]:
    """What looks wrong in a window that is too short is heard again in the full one."""
    clip = CLIPS["lj001-0002"]
    return [
        Heard(part="cramped window", name=f"variant {number}", said=clip.transcript, heard=heard, allowed=0.1)
        for number, pcm in enumerate(variants(samples_of(clip), VARIANTS))
        for heard in _heard(cramped, [_job(pcm)])
    ]


def _after_many_words(part: str, engine: WhisperEngine, count: int) -> list[Heard]:
    clip = CLIPS[CLEAR]
    jobs = [_job(pcm, prompt=SPOKEN_BEFORE, beam_size=1) for pcm in variants(samples_of(clip), count)]
    return [
        Heard(part=part, name=f"variant {number}", said=clip.transcript, heard=heard)
        for number, heard in enumerate(_heard(engine, jobs))
    ]


def _silences(part: str, engine: WhisperEngine) -> list[Heard]:
    """The dots that faster-whisper writes over silence are no words, and neither is what it makes of noise."""
    recordings = {clip.name: samples_of(clip) for clip in NOISE} | {"two seconds of silence": bytes(64_000)}
    return [
        Heard(part=part, name=name, said="", heard=heard)
        for name, pcm in recordings.items()
        for heard in _heard(engine, [_job(pcm, beam_size=1)])
    ]


def _job(pcm: bytes, *, prompt: str = "", beam_size: int = 5) -> EngineJob:
    return EngineJob(
        pcm=pcm, spans=((0.0, len(pcm) / 32_000),), language="en", prompt=prompt, beam_size=beam_size
    )


def _heard(engine: WhisperEngine, jobs: Sequence[EngineJob]) -> Iterable[str]:
    return [" ".join(chunk.text for chunk in piece.chunks) for piece in engine.transcribe(jobs)]


def _words(transcript: Transcript) -> str:
    return " ".join(chunk.text for chunk in transcript.chunks)
