"""What every transcriber promises, checked on the real one and on the shipped fake."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.voice.clips import CLIPS
from voice.errors import AudioRefused, TranscriberUnavailable
from voice.scripted import ScriptedTranscriber
from voice.settings import VoiceSettings
from voice.transcriber import Recording, Transcriber
from voice.worker import WhisperTranscriber

SPOKEN = CLIPS["lj001-0002"]
SILENT = CLIPS["silence"]
NOT_AUDIO = b"#EXTM3U\nfile:///etc/passwd\n"


def scripted() -> ScriptedTranscriber:
    def key(data: bytes) -> str:
        return hashlib.sha256(data).hexdigest()

    return ScriptedTranscriber(
        by_hash={
            key(SPOKEN.data): SPOKEN.transcript,
            key(SILENT.data): "",
            key(NOT_AUDIO): AudioRefused("unknown_format", "That is not audio."),
        }
    )


@pytest.fixture(params=["scripted", pytest.param("whisper", marks=pytest.mark.models)])
async def transcriber(request: pytest.FixtureRequest) -> AsyncIterator[Transcriber]:
    settings: Any = request.getfixturevalue("settings") if request.param == "whisper" else None
    made: Transcriber = WhisperTranscriber(settings) if isinstance(settings, VoiceSettings) else scripted()
    yield made
    await made.close()


async def test_it_hears_refuses_and_closes(transcriber: Transcriber) -> None:
    assert transcriber.status() == "not started"
    await transcriber.warm_up()
    await transcriber.warm_up()
    assert transcriber.status() == "ready"

    spoken = await transcriber.transcribe(Recording(data=SPOKEN.data, language="en"))
    assert "modern" in " ".join(chunk.text for chunk in spoken.chunks)
    assert spoken.language == "en"
    assert all(chunk.start_s < chunk.end_s and 0 <= chunk.confidence <= 1 for chunk in spoken.chunks)

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
