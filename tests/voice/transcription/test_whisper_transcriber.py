"""The real transcriber over real processes: killed, cancelled, closed, missing its model, growing.

What its pool does with queues and deadlines is in test_pool.py.
"""

from __future__ import annotations

import asyncio
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.voice.clips import CLIPS, Clip, amr_bomb, samples_of, wav
from voice.errors import NOT_WORKING, TranscriberUnavailable
from voice.settings import TranscriptionSettings
from voice.transcriber import Growing, Recording, Waiting
from voice.transcript import Transcript
from voice.transcription.whisper_transcriber import WhisperTranscriber
from voice.wer import word_error_rate

pytestmark = pytest.mark.models

in_one_loop = pytest.mark.asyncio(loop_scope="module")
"""Of the tests that share `whisper`."""

SHORT = CLIPS["lj001-0002"]
OTHER = CLIPS["lv_0880"]


def of_one_recogniser(settings: TranscriptionSettings) -> WhisperTranscriber:
    """A transcriber with a queue for one recording."""
    return WhisperTranscriber(
        replace(settings, queue_limit=1, language="en", beam_size=1, workers=1, deadline_floor_s=60.0)
    )


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whisper(settings: TranscriptionSettings) -> AsyncIterator[WhisperTranscriber]:
    """A transcriber whose only recogniser is up. What a test does to it is over when the test ends."""
    transcriber = of_one_recogniser(settings)
    await transcriber.warm_up()
    yield transcriber
    await transcriber.close()
    assert transcriber.pids == ()


def pid_of(transcriber: WhisperTranscriber) -> int:
    (pid,) = transcriber.recogniser_pids
    return pid


def error_rate(reference: str, transcript: Transcript) -> float:
    return word_error_rate(reference, " ".join(chunk.text for chunk in transcript.chunks))


async def outcome(
    transcriber: WhisperTranscriber, data: bytes, **options: Any
) -> Transcript | TranscriberUnavailable:
    try:
        return await transcriber.transcribe(Recording(data=data, **options))
    except TranscriberUnavailable as error:
        return error


async def until(holds: Callable[[], bool]) -> None:
    """Return when `holds()`; the test's own time limit is the safety net."""
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - what it waits for happens in another process
            await asyncio.sleep(0.01)


async def settled() -> None:
    """Let the tasks that were just started run up to where they wait for a process."""
    for _ in range(10):
        await asyncio.sleep(0)


def live(clip: Clip) -> Recording:
    """As live speech arrives: without a file around it, so no decoder comes between."""
    return Recording(data=samples_of(clip), form="pcm", urgency="final")


def environment_of(pid: int) -> set[str]:
    """The names of a process's environment variables."""
    entries = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return {entry.partition(b"=")[0].decode() for entry in entries if entry}


def ends(process: int) -> bool:
    """Whether the process behind a pidfd ends within a minute; closes the pidfd."""
    try:
        return bool(select.select([process], [], [], 60.0)[0])
    finally:
        os.close(process)


@in_one_loop
async def test_a_recogniser_killed_in_the_middle_of_a_job_costs_no_one_the_words(
    whisper: WhisperTranscriber,
) -> None:
    first = pid_of(whisper)
    reported: list[object] = []
    os.kill(first, signal.SIGSTOP)
    async with asyncio.TaskGroup() as group:
        job = group.create_task(whisper.transcribe(live(SHORT)))
        await settled()
        waiting = group.create_task(
            whisper.transcribe(Recording(data=OTHER.data), on_progress=reported.append)
        )
        await until(lambda: bool(reported))
        os.kill(first, signal.SIGKILL)
    assert error_rate(SHORT.transcript, job.result()) < 0.2
    assert error_rate(OTHER.transcript, waiting.result()) < 0.2
    assert isinstance(reported[0], Waiting)
    assert reported[0].ahead == 1
    assert reported[0].eta_s > 0
    assert pid_of(whisper) != first


@in_one_loop
async def test_a_cancelled_jobs_answer_is_never_anothers(whisper: WhisperTranscriber) -> None:
    first = pid_of(whisper)
    os.kill(first, signal.SIGSTOP)
    async with asyncio.TaskGroup() as group:
        unwanted = group.create_task(whisper.transcribe(live(SHORT)))
        await settled()
        unwanted.cancel()
    os.kill(first, signal.SIGCONT)
    assert unwanted.cancelled()
    assert error_rate(OTHER.transcript, await whisper.transcribe(Recording(data=OTHER.data))) < 0.2
    assert pid_of(whisper) == first


@in_one_loop
async def test_a_long_note_grows_from_its_beginning_and_takes_nothing_back(
    whisper: WhisperTranscriber,
) -> None:
    clips = [SHORT, CLIPS["lv_0890"], OTHER]
    pause = bytes(32_000)
    note = wav(pause.join(samples_of(clip) for clip in clips))
    reported: list[Waiting | Growing] = []
    # One recogniser: the beginning is heard first. Of several, a later piece's may be the quicker.
    transcript = await whisper.transcribe(Recording(data=note), on_progress=reported.append)
    assert error_rate(" ".join(clip.transcript for clip in clips), transcript) < 0.15
    grown = [progress for progress in reported if isinstance(progress, Growing)]
    whole = " ".join(chunk.text for chunk in transcript.chunks)
    assert grown
    assert all(whole.startswith(progress.text) and progress.text != whole for progress in grown)
    assert [progress.covered_s for progress in grown] == sorted({progress.covered_s for progress in grown})
    starts = [chunk.start_s for chunk in transcript.chunks]
    assert starts == sorted(starts)


@in_one_loop
async def test_live_sound_is_heard_without_a_decoder(whisper: WhisperTranscriber) -> None:
    transcript = await whisper.transcribe(live(SHORT))
    assert error_rate(SHORT.transcript, transcript) < 0.2
    partial = Recording(data=samples_of(SHORT), form="pcm", urgency="partial")
    assert error_rate(SHORT.transcript, await whisper.transcribe(partial)) < 0.3
    assert (await whisper.transcribe(Recording(data=b"", form="pcm", urgency="final"))).chunks == ()


async def test_closing_fails_the_jobs_that_wait_and_leaves_no_process(
    settings: TranscriptionSettings,
) -> None:
    whisper = of_one_recogniser(settings)
    await whisper.warm_up()
    processes = [os.pidfd_open(pid) for pid in whisper.pids]
    os.kill(pid_of(whisper), signal.SIGSTOP)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(outcome(whisper, SHORT.data))
        waiting = group.create_task(outcome(whisper, OTHER.data))
        await settled()
        await whisper.close()
    assert isinstance(running.result(), TranscriberUnavailable)
    assert isinstance(waiting.result(), TranscriberUnavailable)
    assert whisper.pids == ()
    assert len(processes) == 2
    assert all(map(ends, processes))


async def test_closing_while_the_model_loads_leaves_no_process(settings: TranscriptionSettings) -> None:
    transcriber = WhisperTranscriber(settings)
    async with asyncio.TaskGroup() as group:
        job = group.create_task(outcome(transcriber, samples_of(SHORT), form="pcm", urgency="final"))
        await settled()
        assert transcriber.status() == "loading"
        await transcriber.close()
    assert isinstance(job.result(), TranscriberUnavailable)
    assert transcriber.pids == ()


async def test_a_missing_model_is_named_to_the_operator_with_the_command_that_brings_it(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "whisper-base"
    transcriber = WhisperTranscriber(TranscriptionSettings(model_dir=folder, workers=1))
    try:
        with pytest.raises(TranscriberUnavailable) as caught:
            await transcriber.warm_up()
        detail = caught.value.detail
        assert "`parlour models get`" in detail
        assert str(folder) in detail
        assert "model.bin" in detail
        assert str(caught.value) == NOT_WORKING
        assert not caught.value.permanent
        assert transcriber.status() == detail
    finally:
        await transcriber.close()


async def test_a_damaged_model_is_named_and_works_once_it_is_replaced(
    settings: TranscriptionSettings, tmp_path: Path
) -> None:
    for name in ("config.json", "tokenizer.json", "vocabulary.txt"):
        shutil.copy(settings.model_dir / name, tmp_path / name)
    model = tmp_path / "model.bin"
    model.write_bytes(b"not a model")
    transcriber = WhisperTranscriber(
        TranscriptionSettings(model_dir=tmp_path, language="en", beam_size=1, workers=1)
    )
    try:
        with pytest.raises(TranscriberUnavailable) as caught:
            await transcriber.transcribe(Recording(data=SHORT.data))
        assert str(caught.value) == NOT_WORKING
        assert f"The speech model in {tmp_path} cannot be loaded (" in caught.value.detail
        model.unlink()
        model.symlink_to((settings.model_dir / "model.bin").resolve())
        assert error_rate(SHORT.transcript, await transcriber.transcribe(Recording(data=SHORT.data))) < 0.2
        assert transcriber.status() == "ready"
    finally:
        await transcriber.close()


@in_one_loop
async def test_the_recogniser_sees_no_secret_and_may_take_two_gigabytes(whisper: WhisperTranscriber) -> None:
    pid = pid_of(whisper)
    assert environment_of(pid) == {
        "HF_HUB_OFFLINE",
        "OMP_NUM_THREADS",
        "MALLOC_ARENA_MAX",
        "ORT_DISABLE_TELEMETRY",
        "PYTHONUTF8",
        "PYTHONPATH",
    }
    assert resource.prlimit(pid, resource.RLIMIT_AS)[0] == 2 * 1024**3


@in_one_loop
async def test_hours_of_silence_are_heard_as_five_minutes_of_nothing(whisper: WhisperTranscriber) -> None:
    transcript = await whisper.transcribe(Recording(data=amr_bomb(hours=6)))
    assert transcript.truncated
    assert transcript.audio_seconds == 300.0
    assert transcript.chunks == ()


@pytest.mark.crash
def test_every_process_dies_with_a_killed_parent_even_when_it_is_busy(
    settings: TranscriptionSettings,
) -> None:
    program = textwrap.dedent(
        f"""
        import asyncio, pathlib
        from tests.voice.clips import CLIPS
        from voice.settings import TranscriptionSettings
        from voice.transcriber import Recording
        from voice.transcription.whisper_transcriber import WhisperTranscriber

        async def main():
            model_dir = pathlib.Path({str(settings.model_dir)!r})
            transcriber = WhisperTranscriber(TranscriptionSettings(model_dir=model_dir, workers=1))
            await transcriber.warm_up()
            async with asyncio.TaskGroup() as group:
                group.create_task(transcriber.transcribe(Recording(data=CLIPS["jfk"].data)))
                await asyncio.sleep(0)
                print(*transcriber.pids, flush=True)

        asyncio.run(main())
        """
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        processes = [os.pidfd_open(int(pid)) for pid in parent.stdout.readline().split()]
        parent.kill()
        assert len(processes) == 2
        assert all(map(ends, processes))
