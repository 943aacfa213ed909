"""Piper in its process: understood when it speaks, and killed, stuck, cancelled, crowded, without a voice."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from tests.voice.voices import voices_dir
from voice.errors import SpeakerUnavailable
from voice.synthesis.piper_client import (
    QUEUE_LIMIT,
    PiperSpeaker,
    languages_of,
    voices_in,
)
from voice.synthesis.piper_main import PART_CHARACTERS, parts_of
from voice.transcriber import Recording
from voice.transcription.whisper_transcriber import WhisperTranscriber
from voice.wer import word_error_rate
from voice.workers.child import command
from voice.workers.frames import FrameReader

SENTENCE = "The parcel arrives tomorrow between nine and eleven in the morning."
PATIENCE_S = 120.0
"""The child steps back behind everybody else, and a busy machine has many of them."""
LONG = "This sentence is one of very many that are said one after the other. " * 20


@pytest.fixture
async def speaker() -> AsyncIterator[PiperSpeaker]:
    made = PiperSpeaker(voices_dir(), deadline_floor_s=PATIENCE_S)
    yield made
    await made.close()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def reading() -> AsyncIterator[PiperSpeaker]:
    """One for the tests that leave its process as it is."""
    made = PiperSpeaker(voices_dir(), deadline_floor_s=PATIENCE_S)
    yield made
    await made.close()


@asynccontextmanager
async def silent(folder: Path) -> AsyncIterator[PiperSpeaker]:
    """One whose process runs and has no voice that works: what loads no model costs a second less."""
    _voice(folder, "en_US-broken", {"language": {"code": "en_US"}})
    made = PiperSpeaker(folder, deadline_floor_s=PATIENCE_S)
    try:
        with pytest.raises(SpeakerUnavailable, match=r"en_US-broken .* cannot be loaded"):
            await made.speak("Yes.")
        yield made
    finally:
        await made.close()


@pytest.fixture
async def started(tmp_path: Path) -> AsyncIterator[PiperSpeaker]:
    async with silent(tmp_path) as made:
        yield made


def pid_of(speaker: PiperSpeaker) -> int:
    assert speaker.child_pid is not None
    return speaker.child_pid


@pytest.mark.models
@pytest.mark.asyncio(loop_scope="session")
async def test_what_is_said_can_be_understood(reading: PiperSpeaker, transcriber: WhisperTranscriber) -> None:
    spoken = await reading.speak(SENTENCE)
    heard = await transcriber.transcribe(Recording(data=spoken.data))
    words = " ".join(chunk.text for chunk in heard.chunks)
    assert heard.language == "en"
    assert word_error_rate("the parcel arrives tomorrow between 9 and 11 in the morning", words) <= 0.25


@pytest.mark.models
async def test_a_child_that_dies_fails_one_request_and_the_next_has_a_new_one(speaker: PiperSpeaker) -> None:
    await speaker.warm_up()
    first = pid_of(speaker)
    async with asyncio.TaskGroup() as group:
        saying = group.create_task(_words_of_failure(speaker, LONG))
        await asyncio.sleep(0)
        os.kill(first, signal.SIGKILL)
    assert "stopped while it was reading" in saying.result()
    assert speaker.status() == "not started"
    assert (await speaker.speak("Yes.")).seconds > 0.2
    assert pid_of(speaker) != first


async def test_a_caller_who_leaves_takes_the_work_along(started: PiperSpeaker) -> None:
    first = pid_of(started)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await started.speak(LONG)
    await started.close()
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)


@pytest.mark.models
async def test_a_text_that_takes_too_long_is_given_up() -> None:
    speaker = PiperSpeaker(voices_dir(), deadline_floor_s=0.0)
    try:
        # The model alone takes longer to load than one letter may take.
        with pytest.raises(SpeakerUnavailable, match="took too long"):
            await speaker.speak("A")
        assert speaker.child_pid is None
    finally:
        await speaker.close()


@pytest.mark.models
async def test_the_queue_is_bounded_and_close_ends_those_who_wait(speaker: PiperSpeaker) -> None:
    async with asyncio.TaskGroup() as group:
        waiting = [group.create_task(_words_of_failure(speaker, LONG)) for _ in range(QUEUE_LIMIT)]
        await asyncio.sleep(0)
        with pytest.raises(SpeakerUnavailable, match="Too many answers wait"):
            await speaker.speak("Yes.")
        await speaker.close()
    assert [task.result() for task in waiting] == ["The speaker is closed."] * QUEUE_LIMIT
    assert speaker.child_pid is None


async def test_no_secret_reaches_the_child(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    async with silent(tmp_path) as speaker:
        environment = await asyncio.to_thread(Path(f"/proc/{pid_of(speaker)}/environ").read_bytes)
    assert b"PYTHONUTF8" in environment
    assert b"sk-secret" not in environment


@pytest.mark.models
@pytest.mark.asyncio(loop_scope="session")
async def test_a_text_of_one_endless_sentence_does_not_grow_the_child(reading: PiperSpeaker) -> None:
    spoken = await reading.speak("word and " * 45)
    assert spoken.seconds > 10
    status = await asyncio.to_thread(Path(f"/proc/{pid_of(reading)}/status").read_text)
    peak_kb = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    assert peak_kb < 430_000, "as one part it takes 480 MB"


async def test_without_a_voice_the_words_say_what_to_run(tmp_path: Path) -> None:
    speaker = PiperSpeaker(tmp_path / "none")
    assert "parlour models get voice-en" in speaker.status()
    assert not speaker.speaks("en")
    for call in (speaker.speak("Yes."), speaker.warm_up()):
        with pytest.raises(SpeakerUnavailable, match="parlour models get voice-en"):
            await call
    await speaker.close()


async def test_a_voice_that_is_broken_is_named_and_its_process_lives(tmp_path: Path) -> None:
    async with silent(tmp_path) as speaker:
        assert speaker.child_pid is not None


def test_without_the_package_the_program_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "piper.py").write_text("raise ImportError('not installed')")
    here = str(Path(__file__).parents[3])
    with subprocess.Popen(
        command("voice.synthesis.piper_main", "--voices-dir", str(tmp_path)),
        env={"PYTHONPATH": f"{tmp_path}:{here}"},
        stdin=subprocess.PIPE,  # open to the end: a child whose stdin ends goes at once
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as run:
        assert run.stdout is not None
        said = run.stdout.read()
    (frame,) = FrameReader(max_body_bytes=0).feed(said)
    assert frame.header["kind"] == "unavailable"
    assert "pip install 'parlour[speech]'" in frame.header["message"]


def test_voices_are_found_by_language_and_what_is_no_voice_is_passed_over(tmp_path: Path) -> None:
    _voice(tmp_path, "de_DE-anna-low", {"language": {"code": "de_DE"}})
    _voice(tmp_path, "en_GB-zoe-low", {"language": {"code": "en_GB"}})
    _voice(tmp_path, "en_US-joe-medium", {"language": {"code": "en_US"}})
    _voice(tmp_path, "odd", {"language": "en"})
    (tmp_path / "half.onnx").write_bytes(b"")
    assert voices_in(tmp_path) == {"de": "de_DE-anna-low", "en": "en_GB-zoe-low"}
    assert PiperSpeaker(tmp_path).speaks("en-AU")
    assert languages_of(tmp_path) == {"de_DE-anna-low": "de", "en_GB-zoe-low": "en", "en_US-joe-medium": "en"}


async def test_the_preferred_voice_is_used_for_its_own_language_alone(tmp_path: Path) -> None:
    for name in ("de_DE-anna-low", "en_GB-zoe-low", "en_US-joe-medium"):
        _voice(tmp_path, name, {"language": {"code": name[:5]}})
    speaker = PiperSpeaker(tmp_path, deadline_floor_s=PATIENCE_S)
    try:
        for language, preferred, used in (
            ("en", "en_US-joe-medium", "en_US-joe-medium"),
            ("de", "en_US-joe-medium", "de_DE-anna-low"),
            ("en", "en_US-gone-low", "en_GB-zoe-low"),
            ("en", "", "en_GB-zoe-low"),
            ("en-US", "", "en_US-joe-medium"),
            ("en-AU", "", "en_GB-zoe-low"),
            ("en-US", "en_GB-zoe-low", "en_GB-zoe-low"),
        ):
            # The files are no models, and the refusal names the one that was loaded.
            with pytest.raises(SpeakerUnavailable, match=f"The voice {used} in"):
                await speaker.speak("Hello.", language=language, voice=preferred)
    finally:
        await speaker.close()


@pytest.mark.parametrize("text", [LONG, "word and " * 200, "x" * 1_000, "One.\nTwo, " * 90, "", " . "])
def test_pieces_are_short_and_leave_no_word_out(text: str) -> None:
    cut = list(parts_of(text))
    assert all(0 < len(piece) <= PART_CHARACTERS for piece in cut)
    assert "".join("".join(cut).split()) == "".join(text.split())


async def _words_of_failure(speaker: PiperSpeaker, text: str) -> str:
    try:
        await speaker.speak(text)
    except SpeakerUnavailable as error:
        return str(error)
    return "it was said"


def _voice(folder: Path, name: str, about: object) -> None:
    (folder / f"{name}.onnx").write_bytes(b"not a model")
    (folder / f"{name}.onnx.json").write_text(json.dumps(about))
