"""What every transcriber promises, checked on the real ones and on the shipped fake."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.domain.clock import ManualClock
from tests.support.transcription_server import SEGMENT, VERBOSE, Behaviour, FakeTranscriptionServer
from tests.voice.clips import CLIPS, samples_of
from tests.voice.transcription.test_cached_transcriber import MemoryTranscripts
from voice.audio.decoder_client import Decoder
from voice.errors import AudioRefused, TranscriberUnavailable
from voice.settings import TranscriptionSettings
from voice.transcriber import Recording, Transcriber
from voice.transcription.cached_transcriber import CachedTranscriber
from voice.transcription.remote_transcriber import EndpointTranscriber
from voice.transcription.scripted_transcriber import ScriptedTranscriber
from voice.transcription.whisper_transcriber import WhisperTranscriber

SPOKEN = CLIPS["lj001-0002"]
SILENT = CLIPS["silence"]
NOT_AUDIO = b"#EXTM3U\nfile:///etc/passwd\n"


def scripted() -> ScriptedTranscriber:
    def key(data: bytes) -> str:
        return hashlib.sha256(data).hexdigest()

    return ScriptedTranscriber(
        by_hash={
            key(SPOKEN.data): SPOKEN.transcript,
            key(samples_of(SPOKEN)): SPOKEN.transcript,
            key(SILENT.data): "",
            key(NOT_AUDIO): AudioRefused("unknown_format", "That is not audio."),
        }
    )


@asynccontextmanager
async def behind_an_address() -> AsyncIterator[Transcriber]:
    """The endpoint's transcriber, with a service that hears the spoken clip in whatever it is sent."""
    settings = TranscriptionSettings(model_dir=Path("/nowhere"), deadline_floor_s=60.0)
    async with FakeTranscriptionServer() as server:
        segment = {**SEGMENT, "text": SPOKEN.transcript}
        heard = Behaviour(body={**VERBOSE, "text": SPOKEN.transcript, "segments": [segment]})
        server.script.extend([heard, heard])
        yield EndpointTranscriber(
            "openai/whisper-1",
            api_base=server.api_base,
            api_key=None,
            settings=settings,
            decoder=Decoder(settings),
        )


@pytest.fixture(params=["scripted", "cached", "endpoint", pytest.param("whisper", marks=pytest.mark.models)])
async def transcriber(request: pytest.FixtureRequest) -> AsyncIterator[Transcriber]:
    async with AsyncExitStack() as stack:
        made: Transcriber
        if request.param == "whisper":
            made = WhisperTranscriber(replace(request.getfixturevalue("settings"), workers=1))
        elif request.param == "endpoint":
            made = await stack.enter_async_context(behind_an_address())
        elif request.param == "cached":
            made = CachedTranscriber(scripted(), MemoryTranscripts(), ManualClock(), settings_key="scripted")
        else:
            made = scripted()
        yield made
        await made.close()


async def test_it_hears_files_and_bare_sound_refuses_and_closes(transcriber: Transcriber) -> None:
    assert transcriber.status() == "not started"
    await transcriber.warm_up()
    await transcriber.warm_up()
    assert transcriber.status() == "ready"

    spoken = await transcriber.transcribe(Recording(data=SPOKEN.data, language="en"))
    assert "modern" in " ".join(chunk.text for chunk in spoken.chunks)
    assert spoken.language == "en"
    assert all(chunk.start_s < chunk.end_s and 0 <= chunk.confidence <= 1 for chunk in spoken.chunks)

    live = Recording(data=samples_of(SPOKEN), form="pcm", urgency="final", language="en")
    assert "modern" in " ".join(chunk.text for chunk in (await transcriber.transcribe(live)).chunks)

    silent = await transcriber.transcribe(Recording(data=SILENT.data))
    assert (silent.chunks, silent.language) == ((), "")

    with pytest.raises(AudioRefused) as caught:
        await transcriber.transcribe(Recording(data=NOT_AUDIO))
    assert caught.value.code == "unknown_format"
    assert transcriber.status() == "ready"

    await transcriber.close()
    await transcriber.close()
    assert transcriber.status() == "closed"
    with pytest.raises(TranscriberUnavailable):
        await transcriber.transcribe(Recording(data=SPOKEN.data))
    with pytest.raises(TranscriberUnavailable):
        await transcriber.warm_up()
