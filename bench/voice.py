"""Transcription beside faster-whisper with its defaults: the same model and recordings, in one run."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.report import ROOT, Report
from bench.voice_live import Finals, finals
from bench.voice_measure import Beside, Contest, Lateness, family, rss_mb
from bench.voice_plot import Bar, plot
from bench.voice_raw import Raw, raw_recogniser
from bench.voice_work import Said, Work, full
from voice.settings import TranscriptionSettings
from voice.transcription.whisper_transcriber import WhisperTranscriber
from voice.wer import normalised_words, word_error_rate

PLOT = ROOT / "build" / "bench-voice.svg"

_SETTINGS = TranscriptionSettings(model_dir=ROOT / "models" / "whisper-base", deadline_floor_s=300.0)
"""The bare recogniser has no deadline either: a busy machine spoils a round, and ends no run."""
_TARGETS = {
    "ratio_3s": 0.25,
    "ratio_5s": 0.30,
    "ratio_11s": 0.40,
    "ratio_60s": 0.50,
    "ratio_120s": 0.45,
    "wer_delta_clean": 0.5,
    "wer_delta_5db": 1.5,
    "nonspeech_cpu_ratio": 0.05,
    "nonspeech_words": 0,
    "makespan_ratio": 0.35,
    "final_ratio": 0.5,
    "loop_lag_p99_ms": 15,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wer:
    """Percent of all words, on both sides."""

    ours: float
    raw: float
    words: int

    @property
    def delta(self) -> float:
        return self.ours - self.raw


@dataclass(frozen=True, slots=True, kw_only=True)
class _Memory:
    """Megabytes, after all transcriptions."""

    gateway: float
    children: Sequence[float]
    raw: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    times: Mapping[str, Beside]
    """By length: `3s` … `120s`. A round is every note of that length."""
    counts: Mapping[str, int]
    clean: _Wer
    noisy: _Wer
    silent: Beside
    invented: int
    crowd: Beside
    late: Lateness
    finals: Finals
    memory: _Memory


async def run(*, work: Work | None = None, picture: Path = PLOT) -> Report:
    """Measure everything and write the plot. Needs the Whisper model."""
    work = work or full()
    async with raw_recogniser(_SETTINGS.model_dir) as raw:
        ours = WhisperTranscriber(_SETTINGS)
        try:
            await ours.warm_up()
            found = await _measure(work, ours, raw)
        finally:
            await ours.close()
    figures = _figures(found)
    _draw(found, picture)
    return Report(
        bench="voice",
        title="voice: Parlour's transcriber beside faster-whisper with its defaults; Whisper base, int8",
        head=("", "ours", "faster-whisper", "wall", "processor", "target"),
        rows=_rows(found, figures),
        notes=_notes(found, work, picture),
        figures=figures,
    )


async def _measure(work: Work, ours: WhisperTranscriber, raw: Raw) -> _Found:
    contest = Contest(ours, raw)
    notes = {**work.by_length, **{length: [said.note] for length, said in work.long.items()}}
    done: dict[tuple[bytes, ...], Beside] = {}

    async def compared(some: Sequence[bytes], rounds: int = 1) -> Beside:
        """The least work has the same note everywhere; it is compared once."""
        if tuple(some) not in done:
            done[tuple(some)] = await contest.compare(some, rounds=rounds)
        return done[tuple(some)]

    await compared([work.clean[0].note])  # warms both up
    times = {length: await compared(some, work.rounds) for length, some in notes.items()}
    clean = await compared([said.note for said in work.clean])
    noisy = await compared([said.note for said in work.noisy])
    silent = await compared(work.silent)
    crowd, late = await contest.at_once(work.crowd, rounds=work.rounds)
    return _Found(
        times=times,
        counts={length: len(some) for length, some in notes.items()},
        clean=_wer([*work.clean, *work.long.values()], [clean, *(times[length] for length in work.long)]),
        noisy=_wer(work.noisy, [noisy]),
        silent=silent,
        invented=sum(len(normalised_words(text)) for text in silent.ours[-1].texts),
        crowd=crowd,
        late=late,
        finals=await finals(ours, contest, work.sentence, settings=_SETTINGS, rounds=work.rounds),
        memory=_Memory(
            gateway=rss_mb(os.getpid()),
            children=[rss_mb(pid) for pid in family(os.getpid()) if pid != raw.pid],
            raw=rss_mb(raw.pid),
        ),
    )


def _wer(said: Sequence[Said], compared: Sequence[Beside]) -> _Wer:
    """Errors over all words, not the mean of the recordings' rates."""
    references = [one.transcript for one in said]
    words = [len(normalised_words(reference)) for reference in references]

    def percent(texts: Sequence[str]) -> float:
        rates = [word_error_rate(reference, text) for reference, text in zip(references, texts, strict=True)]
        return 100 * sum(rate * count for rate, count in zip(rates, words, strict=True)) / sum(words)

    return _Wer(
        ours=percent([text for one in compared for text in one.ours[-1].texts]),
        raw=percent([text for one in compared for text in one.raw[-1].texts]),
        words=sum(words),
    )


def _figures(found: _Found) -> dict[str, object]:
    return {
        **{f"ratio_{length}": round(one.wall_ratio, 3) for length, one in found.times.items()},
        "wer_delta_clean": round(found.clean.delta, 2),
        "wer_delta_5db": round(found.noisy.delta, 2),
        "nonspeech_cpu_ratio": round(found.silent.cpu_ratio, 3),
        "nonspeech_words": found.invented,
        "makespan_ratio": round(found.crowd.wall_ratio, 3),
        "final_ratio": round(found.finals.ratio, 3),
        "loop_lag_p99_ms": round(found.late.p99_ms, 1),
    }


def _rows(found: _Found, figures: Mapping[str, object]) -> list[tuple[str, ...]]:
    rows = [
        _timed(f"a note of {length[:-1]} s", one, f"ratio_{length}", each=found.counts[length])
        for length, one in found.times.items()
    ]
    rows += [
        _rate("word error rate, clean", found.clean, "wer_delta_clean"),
        _rate("word error rate, noise 5 dB below the speech", found.noisy, "wer_delta_5db"),
        _timed("without speech", found.silent, "nonspeech_cpu_ratio"),
        (
            "hallucinated words there",
            f"{found.invented}",
            f"{_words(found.silent.raw[-1].texts)}",
            "",
            "",
            "0",
        ),
        _timed("six notes of 5 s at once", found.crowd, "makespan_ratio"),
        (
            "live, end of speech to final",
            f"{found.finals.ours_s:.2f} s",
            f"{found.finals.fixed_pause_s:.2f} s",
            f"{found.finals.ratio:.2f}",
            "",
            f"{_TARGETS['final_ratio']:.2f}",
        ),
        ("event loop's delay during that, p99", f"{figures['loop_lag_p99_ms']} ms", "", "", "", "15 ms"),
    ]
    return rows


def _timed(label: str, one: Beside, figure: str, *, each: int = 1) -> tuple[str, ...]:
    return (
        label,
        f"{one.ours_s / each:.2f} s",
        f"{one.raw_s / each:.2f} s",
        f"{one.wall_ratio:.2f}",
        f"{one.cpu_ratio:.2f}",
        f"{_TARGETS[figure]:.2f}",
    )


def _rate(label: str, one: _Wer, figure: str) -> tuple[str, ...]:
    return label, f"{one.ours:.1f} %", f"{one.raw:.1f} %", "", "", f"{_TARGETS[figure]:+.1f} points"


def _words(texts: Sequence[str]) -> int:
    return sum(len(normalised_words(text)) for text in texts)


def _notes(found: _Found, work: Work, picture: Path) -> tuple[str, ...]:
    memory = found.memory
    children = ", ".join(f"{size:.0f}" for size in memory.children)
    shown = picture.relative_to(ROOT) if picture.is_relative_to(ROOT) else picture
    return (
        "ours: the public transcriber with its child processes, decoding and voice detection included",
        "faster-whisper: its call alone, in a separate process; beam 5, language detection, its threads",
        f"notes of a length, at once, live: medians of {work.rounds} rounds' ratios, sides in alternation",
        f"words: {found.clean.words} clean, {found.noisy.words} in noise (white and babble)",
        f"without speech: {len(work.silent)} recordings; the target is for processor time",
        "live, faster-whisper: a wait of 1.5 s, then its time for the sentence",
        f"live: {found.finals.reason!r} after {found.finals.partials:.0f} partials: {found.finals.text!r}",
        f"memory in MB: this process {memory.gateway:.0f}, its children {children}; bare {memory.raw:.0f}",
        f"the plot: {shown}",
    )


def _draw(found: _Found, picture: Path) -> None:
    shown = {
        **{f"ratio_{length}": (f"a note of {length[:-1]} s", one) for length, one in found.times.items()},
        "makespan_ratio": ("six notes of 5 s at once", found.crowd),
    }
    bars = [
        Bar(
            label=label,
            ratio=one.wall_ratio,
            target=_TARGETS[figure],
            words=_seconds(one.ours_s, one.raw_s, found.counts.get(figure.removeprefix("ratio_"), 1)),
        )
        for figure, (label, one) in shown.items()
    ]
    live, silent = found.finals, found.silent
    bars += [
        Bar(
            label="live: end of speech to final",
            ratio=live.ratio,
            target=_TARGETS["final_ratio"],
            words=_seconds(live.ours_s, live.fixed_pause_s, 1),
        ),
        Bar(
            label="without speech: processor time",
            ratio=silent.cpu_ratio,
            target=_TARGETS["nonspeech_cpu_ratio"],
            words=_seconds(silent.ours[-1].cpu_s, silent.raw[-1].cpu_s, 1),
        ),
    ]
    picture.parent.mkdir(parents=True, exist_ok=True)
    title = "Hearing: Parlour beside faster-whisper, the same model"
    picture.write_text(plot(bars, title=title), encoding="utf-8")


def _seconds(ours: float, raw: float, each: int) -> str:
    return f"({ours / each:.2f} s of {raw / each:.2f} s)"
