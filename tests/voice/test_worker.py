"""The worker process: killed, stuck, cancelled, crowded, missing its model, losing its parent."""

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
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.voice.clips import CLIPS, amr_bomb
from voice.errors import AudioRefused, TranscriberBusy, TranscriberUnavailable, TranscriptionTimeout
from voice.settings import VoiceSettings
from voice.speech import Transcript
from voice.transcriber import Recording
from voice.wer import word_error_rate
from voice.worker import WhisperTranscriber

pytestmark = pytest.mark.models

SHORT = CLIPS["lj001-0002"]
OTHER = CLIPS["lv_0880"]
NOT_AUDIO = b"GIF89a"


@pytest.fixture
async def whisper(settings: VoiceSettings) -> AsyncIterator[WhisperTranscriber]:
    """A transcriber whose worker is up."""
    transcriber = WhisperTranscriber(
        VoiceSettings(model_dir=settings.model_dir, queue_limit=1, language="en", beam_size=1)
    )
    await start_worker(transcriber)
    yield transcriber
    await transcriber.close()


async def start_worker(transcriber: WhisperTranscriber) -> None:
    """The quickest job there is: a file that is refused."""
    with pytest.raises(AudioRefused):
        await transcriber.transcribe(Recording(data=NOT_AUDIO))


def pid_of(transcriber: WhisperTranscriber) -> int:
    pid = transcriber.worker_pid
    assert pid is not None
    return pid


def error_rate(reference: str, transcript: Transcript) -> float:
    return word_error_rate(reference, " ".join(chunk.text for chunk in transcript.chunks))


async def outcome(transcriber: WhisperTranscriber, data: bytes) -> Transcript | TranscriberUnavailable:
    try:
        return await transcriber.transcribe(Recording(data=data))
    except TranscriberUnavailable as error:
        return error


async def until_sent() -> None:
    """Let the tasks that were just started run up to where they wait for the worker."""
    for _ in range(5):
        await asyncio.sleep(0)


def environment_of(pid: int) -> set[str]:
    """The names of a process's environment variables."""
    entries = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return {entry.partition(b"=")[0].decode() for entry in entries if entry}


def ends(process: int) -> bool:
    """Whether the process behind a pidfd ends within twenty seconds; closes the pidfd."""
    try:
        return bool(select.select([process], [], [], 20.0)[0])
    finally:
        os.close(process)


async def test_a_worker_killed_in_the_middle_of_a_job_fails_that_job_alone(
    whisper: WhisperTranscriber,
) -> None:
    first = pid_of(whisper)
    os.kill(first, signal.SIGSTOP)
    async with asyncio.TaskGroup() as group:
        job = group.create_task(outcome(whisper, SHORT.data))
        await until_sent()
        os.kill(first, signal.SIGKILL)
    error = job.result()
    assert isinstance(error, TranscriberUnavailable)
    assert "send the recording again" in str(error)
    assert not error.permanent
    assert whisper.status() == "not started"
    assert error_rate(SHORT.transcript, await whisper.transcribe(Recording(data=SHORT.data))) < 0.2
    assert pid_of(whisper) != first


async def test_a_stuck_worker_is_killed_at_the_deadline_and_the_next_job_works(
    settings: VoiceSettings,
) -> None:
    transcriber = WhisperTranscriber(VoiceSettings(model_dir=settings.model_dir, deadline_floor_s=2.0))
    try:
        await start_worker(transcriber)
        stuck = os.pidfd_open(pid_of(transcriber))
        os.kill(pid_of(transcriber), signal.SIGSTOP)
        with pytest.raises(TranscriptionTimeout, match="took too long") as caught:
            await transcriber.transcribe(Recording(data=SHORT.data))
        assert not caught.value.permanent
        assert transcriber.worker_pid is None
        assert ends(stuck)
        await start_worker(transcriber)
    finally:
        await transcriber.close()


async def test_a_long_recording_gets_its_own_length_as_its_deadline(settings: VoiceSettings) -> None:
    brief = VoiceSettings(model_dir=settings.model_dir, deadline_floor_s=0.5, language="en")
    transcriber = WhisperTranscriber(brief)
    try:
        transcript = await transcriber.transcribe(Recording(data=CLIPS["jfk"].data))
    finally:
        await transcriber.close()
    assert transcript.audio_seconds == 11.0
    assert error_rate(CLIPS["jfk"].transcript, transcript) < 0.2


async def test_a_cancelled_job_stops_working_and_its_answer_is_never_anothers(
    whisper: WhisperTranscriber,
) -> None:
    first = pid_of(whisper)
    process = os.pidfd_open(first)
    os.kill(first, signal.SIGSTOP)
    async with asyncio.TaskGroup() as group:
        unwanted = group.create_task(whisper.transcribe(Recording(data=SHORT.data)))
        await until_sent()
        unwanted.cancel()
    assert unwanted.cancelled()
    assert ends(process)
    assert error_rate(OTHER.transcript, await whisper.transcribe(Recording(data=OTHER.data))) < 0.2


async def test_a_job_cancelled_in_the_queue_leaves_the_running_one_alone(whisper: WhisperTranscriber) -> None:
    first = pid_of(whisper)
    os.kill(first, signal.SIGSTOP)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(whisper.transcribe(Recording(data=SHORT.data)))
        waiting = group.create_task(whisper.transcribe(Recording(data=OTHER.data)))
        await until_sent()
        waiting.cancel()
        os.kill(first, signal.SIGCONT)
    assert waiting.cancelled()
    assert error_rate(SHORT.transcript, running.result()) < 0.2
    assert pid_of(whisper) == first


async def test_a_full_queue_refuses_at_once_and_those_who_wait_are_served_in_order(
    whisper: WhisperTranscriber,
) -> None:
    os.kill(pid_of(whisper), signal.SIGSTOP)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(whisper.transcribe(Recording(data=SHORT.data)))
        waiting = group.create_task(whisper.transcribe(Recording(data=OTHER.data)))
        await until_sent()
        with pytest.raises(TranscriberBusy, match="Too many recordings"):
            await whisper.transcribe(Recording(data=SHORT.data))
        os.kill(pid_of(whisper), signal.SIGCONT)
    assert error_rate(SHORT.transcript, running.result()) < 0.2
    assert error_rate(OTHER.transcript, waiting.result()) < 0.2


async def test_closing_fails_the_jobs_that_wait_and_leaves_no_process(whisper: WhisperTranscriber) -> None:
    process = os.pidfd_open(pid_of(whisper))
    os.kill(pid_of(whisper), signal.SIGSTOP)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(outcome(whisper, SHORT.data))
        waiting = group.create_task(outcome(whisper, OTHER.data))
        await until_sent()
        await whisper.close()
    assert isinstance(running.result(), TranscriberUnavailable)
    assert isinstance(waiting.result(), TranscriberUnavailable)
    assert ends(process)


async def test_closing_while_the_model_loads_leaves_no_process(settings: VoiceSettings) -> None:
    transcriber = WhisperTranscriber(settings)
    async with asyncio.TaskGroup() as group:
        job = group.create_task(outcome(transcriber, SHORT.data))
        await until_sent()
        assert transcriber.status() == "loading"
        await transcriber.close()
    assert isinstance(job.result(), TranscriberUnavailable)
    assert transcriber.worker_pid is None


async def test_a_missing_model_is_named_with_the_command_that_brings_it(tmp_path: Path) -> None:
    folder = tmp_path / "whisper-base"
    transcriber = WhisperTranscriber(VoiceSettings(model_dir=folder))
    try:
        with pytest.raises(TranscriberUnavailable, match="parlour models get") as caught:
            await transcriber.warm_up()
        assert str(folder) in str(caught.value)
        assert "model.bin" in str(caught.value)
        assert not caught.value.permanent
        assert transcriber.status() == str(caught.value)
    finally:
        await transcriber.close()


async def test_a_damaged_model_is_named_and_works_once_it_is_replaced(
    settings: VoiceSettings, tmp_path: Path
) -> None:
    for name in ("config.json", "tokenizer.json", "vocabulary.txt"):
        shutil.copy(settings.model_dir / name, tmp_path / name)
    model = tmp_path / "model.bin"
    model.write_bytes(b"not a model")
    transcriber = WhisperTranscriber(VoiceSettings(model_dir=tmp_path, language="en", beam_size=1))
    try:
        with pytest.raises(TranscriberUnavailable, match="cannot be loaded"):
            await transcriber.transcribe(Recording(data=SHORT.data))
        model.unlink()
        model.symlink_to((settings.model_dir / "model.bin").resolve())
        assert error_rate(SHORT.transcript, await transcriber.transcribe(Recording(data=SHORT.data))) < 0.2
        assert transcriber.status() == "ready"
    finally:
        await transcriber.close()


async def test_the_worker_sees_no_secret_and_may_take_two_gigabytes(whisper: WhisperTranscriber) -> None:
    pid = pid_of(whisper)
    assert environment_of(pid) == {
        "HF_HUB_OFFLINE",
        "OMP_NUM_THREADS",
        "MALLOC_ARENA_MAX",
        "PYTHONUTF8",
        "PYTHONPATH",
    }
    assert resource.prlimit(pid, resource.RLIMIT_AS)[0] == 2 * 1024**3


async def test_hours_of_silence_are_heard_as_five_minutes_of_nothing(whisper: WhisperTranscriber) -> None:
    transcript = await whisper.transcribe(Recording(data=amr_bomb(hours=6)))
    assert transcript.truncated
    assert transcript.audio_seconds == 300.0
    assert transcript.chunks == ()


@pytest.mark.crash
def test_the_worker_dies_with_a_killed_parent_even_when_it_is_busy(settings: VoiceSettings) -> None:
    program = textwrap.dedent(
        f"""
        import asyncio, pathlib
        from tests.voice.clips import CLIPS
        from voice.settings import VoiceSettings
        from voice.worker import WhisperTranscriber

        async def main():
            model_dir = pathlib.Path({str(settings.model_dir)!r})
            transcriber = WhisperTranscriber(VoiceSettings(model_dir=model_dir))
            await transcriber.warm_up()
            async with asyncio.TaskGroup() as group:
                group.create_task(transcriber.transcribe(Recording(data=CLIPS["jfk"].data)))
                for _ in range(5):
                    await asyncio.sleep(0)
                print(transcriber.worker_pid, flush=True)

        asyncio.run(main())
        """
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        worker = os.pidfd_open(int(parent.stdout.readline()))
        parent.kill()
        assert ends(worker)
