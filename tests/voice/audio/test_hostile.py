"""Hundreds of broken and hostile files, through the real decoder."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.voice.clips import NOTES
from tests.voice.hostile import TEXTS, corpus
from voice.audio.decoder_client import Decoder
from voice.audio.segments import Decoded, SpeechSegment
from voice.errors import AudioRefused
from voice.settings import TranscriptionSettings

SETTINGS = TranscriptionSettings(
    model_dir=Path("no-model-is-needed"),
    max_seconds=60.0,  # of speech: several pieces
    recycle_after=10_000,  # the same process takes all that harms it
)
MEGABYTE = 1024 * 1024


@dataclass(slots=True)
class Watched:
    """What became of the files, and the most memory that a child was seen with."""

    outcomes: dict[str, Decoded | AudioRefused] = field(default_factory=dict)
    pieces: Counter[str] = field(default_factory=Counter)
    peak_bytes: int = 0
    lines: list[str] = field(default_factory=list)

    async def feed(self, decoder: Decoder, files: Iterator[tuple[str, bytes]]) -> None:
        for name, data in files:

            def take(piece: SpeechSegment, name: str = name) -> None:
                self.pieces[name] += 1
                assert piece.seconds <= 25.0

            try:
                self.outcomes[name] = await decoder.decode(data, on_segment=take)
            except AudioRefused as error:
                self.outcomes[name] = error
            self.peak_bytes = max([self.peak_bytes, *map(peak_bytes, decoder.pids)])


def peak_bytes(pid: int) -> int:
    """The most memory a process ever had resident."""
    return proc_number(pid, "status", "VmHWM:") * 1024


def proc_number(pid: int, file: str, row: str) -> int:
    """The first number in a row of a process's file; 0 once it is gone."""
    try:
        lines = Path(f"/proc/{pid}/{file}").read_text().splitlines()
    except OSError:
        return 0
    fields = [line.removeprefix(row).split() for line in lines if line.startswith(row)]
    return int(fields[0][0]) if fields else 0


@pytest.mark.skipif(sys.platform != "linux", reason="reads the kernel's account of the child")
async def test_every_hostile_file_ends_in_pieces_or_in_words() -> None:
    files = tuple(corpus())
    assert len({data for _, data in files}) >= 300
    watched = Watched()
    # The kernel ends a job after twenty seconds of work; a busy machine is given time to do them.
    decoder = Decoder(SETTINGS, on_line=watched.lines.append, deadline_s=120.0)
    try:
        queue = iter(files)
        async with asyncio.TaskGroup() as group:
            for _ in range(2):
                group.create_task(watched.feed(decoder, queue))
        assert (await decoder.decode(NOTES["oga"], on_segment=lambda piece: None)).segments == 1
    finally:
        await decoder.close()

    # No timeout and no dead child: feed would have raised anything but a refusal.
    assert set(watched.outcomes) == {name for name, _ in files}
    assert watched.lines == []
    assert 0 < watched.peak_bytes < 512 * MEGABYTE
    codes: Counter[str] = Counter()
    for name, outcome in watched.outcomes.items():
        if isinstance(outcome, AudioRefused):
            codes[outcome.code] += 1
            assert str(outcome).endswith("."), name
            assert "Please" in str(outcome), name
        else:
            codes["decoded"] += 1
            assert 0 < outcome.seconds <= SETTINGS.max_seconds, name
            assert watched.pieces[name] == outcome.segments, name
    assert set(codes) == {"decoded", "damaged", "no_audio", "too_long", "unknown_format"}
    assert codes["decoded"] > 50
    assert_bombs_are_defused(watched.outcomes)
    for name in TEXTS:
        outcome = watched.outcomes[name]
        assert isinstance(outcome, AudioRefused), name
        if name not in {"empty", "ones", "text"}:  # the last two begin as MP3 may
            assert outcome.code == "unknown_format", name


def assert_bombs_are_defused(outcomes: dict[str, Decoded | AudioRefused]) -> None:
    for name in ("bomb-ogg-declared-8h", "bomb-flac-declared-8h"):
        outcome = outcomes[name]
        assert isinstance(outcome, AudioRefused), name
        assert outcome.code == "too_long"
        assert "8 hours" in str(outcome)
    for name in ("bomb-amr-8h", "bomb-aac-long", "bomb-ogg-chained"):
        outcome = outcomes[name]
        assert isinstance(outcome, Decoded), name
        assert outcome.truncated
        assert outcome.seconds == SETTINGS.max_seconds
