"""The transcriber that remembers: once per person, never a failure, and nothing hangs on the store."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

import pytest

from pipeline.domain.clock import ManualClock
from voice.errors import TranscriberBusy
from voice.transcriber import Growing, OnProgress, Recording, Waiting
from voice.transcript import Transcript
from voice.transcription.cached_transcriber import CachedTranscriber
from voice.transcription.scripted_transcriber import ScriptedProgress, ScriptedTranscriber

NOTE = Recording(data=b"note", speaker="ann")
DAY_S = 86_400.0


class MemoryTranscripts:
    """A dictionary behind the port."""

    def __init__(self) -> None:
        self.kept: dict[str, tuple[float, Mapping[str, Any]]] = {}
        self.broken = False

    async def transcript(self, key: str, *, newer_than: float) -> Mapping[str, Any] | None:
        self._complain()
        at, body = self.kept.get(key, (0.0, {}))
        return body if at > newer_than else None

    async def keep_transcript(self, key: str, body: Mapping[str, Any], *, at: float, limit: int) -> None:
        self._complain()
        self.kept[key] = (at, body)

    def _complain(self) -> None:
        if self.broken:
            raise OSError("the store is broken")


class Gated(ScriptedTranscriber):
    """Scripted, and hears only once `gate` is open."""

    gate: asyncio.Event

    async def transcribe(self, recording: Recording, *, on_progress: OnProgress | None = None) -> Transcript:
        self.begun += 1
        await self.gate.wait()
        return await super().transcribe(recording, on_progress=on_progress)

    begun = 0


def text(transcript: Transcript) -> str:
    return " ".join(chunk.text for chunk in transcript.chunks)


def cached(
    *answers: Any, store: MemoryTranscripts | None = None, clock: ManualClock | None = None, key: str = "base"
) -> tuple[CachedTranscriber, ScriptedTranscriber]:
    inner = ScriptedTranscriber(answers)
    return CachedTranscriber(
        inner, store or MemoryTranscripts(), clock or ManualClock(), settings_key=key
    ), inner


def gated(*answers: Any) -> tuple[CachedTranscriber, Gated]:
    inner = Gated(answers)
    inner.gate = asyncio.Event()
    return CachedTranscriber(inner, MemoryTranscripts(), ManualClock(), settings_key="base"), inner


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_the_same_recording_of_the_same_person_is_heard_once() -> None:
    transcriber, inner = cached("hello", "never said")
    first = await transcriber.transcribe(NOTE)
    assert await transcriber.transcribe(NOTE) == first
    assert (text(first), len(inner.calls)) == ("hello", 1)


@pytest.mark.parametrize(
    "other",
    [
        Recording(data=b"note", speaker="bob"),
        Recording(data=b"other", speaker="ann"),
        Recording(data=b"note", speaker="ann", language="de"),
    ],
)
async def test_another_person_recording_or_language_is_heard_again(other: Recording) -> None:
    transcriber, inner = cached("one", "two")
    assert text(await transcriber.transcribe(NOTE)) == "one"
    assert text(await transcriber.transcribe(other)) == "two"
    assert len(inner.calls) == 2


async def test_another_model_forgets_what_the_last_one_heard() -> None:
    store = MemoryTranscripts()
    await cached("base heard", store=store)[0].transcribe(NOTE)
    assert text(await cached("small heard", store=store, key="small")[0].transcribe(NOTE)) == "small heard"


async def test_after_a_week_it_is_heard_again() -> None:
    clock = ManualClock()
    transcriber, _ = cached("one", "two", clock=clock)
    await transcriber.transcribe(NOTE)
    await clock.advance(6.9 * DAY_S)
    assert text(await transcriber.transcribe(NOTE)) == "one"
    await clock.advance(0.2 * DAY_S)
    assert text(await transcriber.transcribe(NOTE)) == "two"


async def test_a_stored_transcript_holds_neither_the_speaker_nor_the_sound() -> None:
    store = MemoryTranscripts()
    await cached("hello", store=store)[0].transcribe(Recording(data=b"note", speaker="telegram:main:ann"))
    (key,) = store.kept
    assert "ann" not in str(store.kept)
    assert len(key) == 64


async def test_a_failure_is_not_kept() -> None:
    transcriber, _ = cached(TranscriberBusy(), "hello")
    with pytest.raises(TranscriberBusy):
        await transcriber.transcribe(NOTE)
    assert text(await transcriber.transcribe(NOTE)) == "hello"


async def test_live_sound_is_neither_looked_up_nor_kept() -> None:
    store = MemoryTranscripts()
    transcriber, _ = cached("one", "two", store=store)
    live = Recording(data=b"note", form="pcm", urgency="final")
    assert [text(await transcriber.transcribe(live)) for _ in range(2)] == ["one", "two"]
    assert store.kept == {}


async def test_two_who_ask_at_once_get_one_answer_and_both_see_it_coming() -> None:
    transcriber, inner = gated(ScriptedProgress(partials=("hel",), then="hello"))
    reported: list[list[Waiting | Growing]] = [[], []]
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(transcriber.transcribe(NOTE, on_progress=one.append)) for one in reported]
        await settled()
        inner.gate.set()
    assert [text(one.result()) for one in asked] == ["hello", "hello"]
    assert inner.begun == 1
    assert reported[0] == reported[1] != []


async def test_when_the_first_gives_up_the_second_takes_over() -> None:
    transcriber, inner = gated("hello")
    async with asyncio.TaskGroup() as group:
        first = group.create_task(transcriber.transcribe(NOTE))
        second = group.create_task(transcriber.transcribe(NOTE))
        await settled()
        first.cancel()
        await settled()
        inner.gate.set()
    assert first.cancelled()
    assert text(second.result()) == "hello"
    assert inner.begun == 2


async def test_a_failure_is_everybodys_who_asked_at_once() -> None:
    transcriber, inner = gated(TranscriberBusy())
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(outcome(transcriber)) for _ in range(2)]
        await settled()
        inner.gate.set()
    assert [type(one.result()) for one in asked] == [TranscriberBusy, TranscriberBusy]


async def outcome(transcriber: CachedTranscriber) -> Transcript | TranscriberBusy:
    try:
        return await transcriber.transcribe(NOTE)
    except TranscriberBusy as error:
        return error


async def test_a_broken_store_is_logged_and_the_words_still_come(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryTranscripts()
    store.broken = True
    transcriber, _ = cached("hello", store=store)
    with caplog.at_level(logging.WARNING, logger="voice.transcription.cached_transcriber"):
        assert text(await transcriber.transcribe(NOTE)) == "hello"
    assert "the store is broken" in caplog.text


async def test_an_unreadable_stored_transcript_is_transcribed_again(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryTranscripts()
    transcriber, _ = cached("one", "two", store=store)
    await transcriber.transcribe(NOTE)
    (key,) = store.kept
    store.kept[key] = (store.kept[key][0], {"chunks": "nonsense"})
    with caplog.at_level(logging.WARNING, logger="voice.transcription.cached_transcriber"):
        assert text(await transcriber.transcribe(NOTE)) == "two"
    assert "cannot be read" in caplog.text
