"""The voice bench: the least run that has every figure, its picture, its stopwatch. It judges no figure."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE, create_subprocess_exec
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench import voice
from bench.voice_measure import Beside, Lateness, Spent, family, rss_mb, ticking
from bench.voice_plot import Bar, plot
from bench.voice_raw import Raw, RawTranscript, raw_recogniser
from bench.voice_work import full, tiny
from pipeline.domain.clock import SystemClock
from tests.support.models import require_models
from tests.voice.clips import CLIPS

_CLOCK = SystemClock()
_FIGURES = [
    "bench",
    *("ratio_3s", "ratio_5s", "ratio_11s", "ratio_60s", "ratio_120s"),
    *("wer_delta_clean", "wer_delta_5db"),
    *("nonspeech_cpu_ratio", "nonspeech_words"),
    *("makespan_ratio", "final_ratio", "loop_lag_p99_ms"),
]


class _Bare(Raw):
    """In the place of faster-whisper with its defaults, which takes seconds for each recording."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []

    @property
    def pid(self) -> int:
        return os.getpid()

    async def transcribe(self, data: bytes) -> RawTranscript:
        self.heard.append(data)
        return RawTranscript(text="in being comparatively modern", wall_s=1.0, cpu_s=2.0)


@pytest.mark.models
async def test_faster_whisper_answers_with_its_words_and_its_times(monkeypatch: pytest.MonkeyPatch) -> None:
    # By its own choice it has four threads, which wait busily for one another.
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    async with raw_recogniser(require_models() / "whisper-base") as raw:
        heard = await raw.transcribe(CLIPS["lj001-0002"].data)
    assert "modern" in heard.text
    assert min(heard.wall_s, heard.cpu_s) > 0


@pytest.mark.models
async def test_the_least_run_has_every_figure_and_a_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = _Bare()
    monkeypatch.setattr(voice, "raw_recogniser", lambda _models: nullcontext(bare))
    monkeypatch.setattr(
        voice, "_SETTINGS", replace(voice._SETTINGS, model_dir=require_models() / "whisper-base", workers=1)
    )
    picture = tmp_path / "voice.svg"
    report = await voice.run(work=tiny(), picture=picture)
    assert bare.heard
    figures = json.loads(report.text().splitlines()[-1])
    assert list(figures) == _FIGURES
    assert figures["bench"] == "voice"
    assert figures["nonspeech_words"] == 0
    assert all(figures[name] > 0 for name in _FIGURES if name.endswith("s") and name.startswith("ratio"))
    assert ElementTree.fromstring(picture.read_text("utf-8")).tag.endswith("svg")


def test_a_whole_run_hears_notes_of_the_lengths_that_it_names() -> None:
    work = full(lambda pcm, _kind: pcm)
    assert list(work.by_length) == ["3s", "5s", "11s"]
    assert list(work.long) == ["60s", "120s"]
    assert all(len(notes) >= 3 for notes in work.by_length.values())
    assert len(work.crowd) == len(set(work.crowd)) == 6
    assert work.rounds >= 3


def test_a_ratio_is_the_median_of_the_rounds_ratios() -> None:
    ours = [Spent(wall_s=wall, cpu_s=wall * 2, texts=()) for wall in (1.0, 2.0, 9.0)]
    raw = [Spent(wall_s=10.0, cpu_s=10.0, texts=())] * 3
    found = Beside(ours=ours, raw=raw)
    assert (found.wall_ratio, found.cpu_ratio) == (0.2, 0.4)
    assert (found.ours_s, found.raw_s) == (2.0, 10.0)


async def test_a_loop_that_is_held_up_is_late() -> None:
    late = Lateness()
    async with asyncio.timeout(30), ticking(late):
        await _CLOCK.sleep(0.02)
        held_up_since = _CLOCK.monotonic()
        while _CLOCK.monotonic() - held_up_since < 0.1:
            pass
        while late.p99_ms < 80:
            await _CLOCK.sleep(0.01)
    assert late.p99_ms >= 80


async def test_processes_started_by_processes_belong_to_the_family() -> None:
    child = await create_subprocess_exec(
        *(sys.executable, "-c", "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()'])"),
        stdin=PIPE,
    )
    try:
        async with asyncio.timeout(30):
            while len(list(family(child.pid))) != 1:
                await _CLOCK.sleep(0.01)
        assert set(family(child.pid)) < set(family(os.getpid()))
        assert rss_mb(child.pid) > 1
    finally:
        await child.communicate(b"\n")
    assert (list(family(child.pid)), rss_mb(child.pid)) == ([], 0.0), "it has ended"


def test_the_picture_tells_the_ratios_and_their_targets() -> None:
    bars = [Bar(label="a <b>", ratio=0.25, target=0.5, words="(1 s of 4 s)")]
    root = ElementTree.fromstring(plot(bars, title="A & B"))
    texts = [element.text for element in root.iter() if element.tag.endswith("text")]
    assert {"A & B", "a <b>", "0.25  (1 s of 4 s)", "Parlour", "target"} <= set(texts)


def test_a_picture_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="not negative"):
        plot((), title="")
