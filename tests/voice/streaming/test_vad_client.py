"""Live streams judged frame by frame."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.voice.clips import CLIPS, samples_of
from voice.audio.vad import FRAME, SileroModel, VoiceDetector
from voice.errors import TranscriberUnavailable
from voice.settings import TranscriptionSettings
from voice.streaming.vad_client import VadClient

SETTINGS = TranscriptionSettings(model_dir=Path("no-model-is-needed"))
JFK = samples_of(CLIPS["jfk"])[: 9 * 32_000]
FRAME_BYTES = 2 * FRAME


@pytest.fixture
async def listener() -> AsyncIterator[VadClient]:
    listener = VadClient(SETTINGS)
    yield listener
    await listener.close()


class Heard:
    """What one stream received, and a way to wait for so many frames."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.probabilities: list[float] = []
        self._more = asyncio.Event()

    def take(self, first: int, probabilities: tuple[float, ...]) -> None:
        self.starts.append(first)
        self.probabilities += probabilities
        self._more.set()

    async def frames(self, count: int) -> list[float]:
        async with asyncio.timeout(30):
            while len(self.probabilities) < count:
                self._more.clear()
                await self._more.wait()
        return self.probabilities


def expected(pcm: bytes) -> list[float]:
    return list(VoiceDetector(SileroModel()).feed(np.frombuffer(pcm, dtype="<i2")))


async def test_a_stream_gets_what_a_recording_of_it_would_get(listener: VadClient) -> None:
    heard = Heard()
    stream = await listener.open(heard.take)
    for start in range(0, len(JFK), 3_001):  # odd: not even samples are whole
        stream.feed(JFK[start : start + 3_001])
    probabilities = await heard.frames(len(JFK) // FRAME_BYTES)
    assert probabilities == pytest.approx(expected(JFK), abs=1e-3)
    assert max(probabilities) > 0.9
    assert min(probabilities) < 0.1
    assert stream.dropped == 0


async def test_a_stream_that_fails_takes_no_other_with_it(
    listener: VadClient, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(first: int, probabilities: tuple[float, ...]) -> None:
        raise RuntimeError("no one is there")

    heard = Heard()
    streams = [await listener.open(fail), await listener.open(heard.take)]
    for _ in range(2):
        for stream in streams:
            stream.feed(bytes(4 * FRAME_BYTES))
    assert len(await heard.frames(8)) == 8
    assert "could not take" in caplog.text


async def test_streams_do_not_hear_each_other(listener: VadClient) -> None:
    pcms = [
        JFK[: 40 * FRAME_BYTES],
        bytes(40 * FRAME_BYTES),
        samples_of(CLIPS["lj001-0004"])[: 40 * FRAME_BYTES],
    ]
    heards = [Heard() for _ in pcms]
    streams = [await listener.open(heard.take) for heard in heards]
    for start in range(0, 40 * FRAME_BYTES, 5_000):
        for stream, pcm in zip(streams, pcms, strict=True):
            stream.feed(pcm[start : start + 5_000])
        await asyncio.sleep(0)
    for heard, pcm in zip(heards, pcms, strict=True):
        assert await heard.frames(40) == pytest.approx(expected(pcm), abs=1e-3)
        assert heard.starts == sorted(heard.starts)
    assert len(listener.pids) == 1


async def test_more_than_ten_seconds_of_backlog_lose_their_beginning(listener: VadClient) -> None:
    heard = Heard()
    stream = await listener.open(heard.take)
    stream.feed(bytes(600 * FRAME_BYTES) + JFK[: 10 * FRAME_BYTES])
    kept = 10 * 16_000 // FRAME
    await heard.frames(kept)
    assert stream.dropped == (610 - kept) * FRAME
    assert heard.starts[0] == 610 - kept
    assert len(heard.probabilities) == kept


async def test_a_closed_stream_is_informed_nothing_more(listener: VadClient) -> None:
    closed, other = Heard(), Heard()
    stream = await listener.open(closed.take)
    second = await listener.open(other.take)
    stream.feed(JFK[: 20 * FRAME_BYTES])
    stream.close()
    stream.close()
    stream.feed(JFK)
    second.feed(JFK[: 20 * FRAME_BYTES])
    await other.frames(20)
    assert closed.probabilities == []


async def test_a_child_that_dies_ends_its_streams_and_the_next_one_starts_another(
    listener: VadClient,
) -> None:
    lost = asyncio.Event()
    stream = await listener.open(Heard().take)
    stream.on_lost = lost.set
    (pid,) = listener.pids
    os.kill(pid, signal.SIGKILL)
    async with asyncio.timeout(30):
        await lost.wait()
    stream.feed(JFK)
    heard = Heard()
    second = await listener.open(heard.take)
    second.feed(JFK[: 5 * FRAME_BYTES])
    await heard.frames(5)
    assert listener.pids not in {(), (pid,)}


async def test_the_child_is_replaced_between_streams_after_its_share_of_them() -> None:
    listener = VadClient(replace(SETTINGS, recycle_after=1))
    try:
        first = await listener.open(Heard().take)
        (pid,) = listener.pids
        await listener.open(Heard().take)
        assert listener.pids == (pid,), "streams are open, so it stays"
        first.close()
    finally:
        await listener.close()
    again = VadClient(replace(SETTINGS, recycle_after=1))
    try:
        (await again.open(Heard().take)).close()
        (pid,) = again.pids
        await again.open(Heard().take)
        assert again.pids not in {(), (pid,)}
    finally:
        await again.close()


async def test_closing_ends_streams_and_child_and_refuses_new_ones(listener: VadClient) -> None:
    lost: list[bool] = []
    stream = await listener.open(Heard().take)
    stream.on_lost = lambda: lost.append(True)
    stream.feed(JFK)
    (pid,) = listener.pids
    await listener.close()
    assert lost == []
    assert listener.pids == ()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(TranscriberUnavailable, match="shutting down"):
        await listener.open(Heard().take)
