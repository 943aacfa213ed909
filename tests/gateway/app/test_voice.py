"""The parts of voice: they end together, whatever one of them does, and say whose fault it is."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from gateway.app.voice import Voice, build_transcriber
from gateway.config import load
from tests.voice.clips import CLIPS, samples_of, wav
from voice.errors import TranscriberUnavailable
from voice.settings import TranscriptionSettings
from voice.streaming.vad_client import VadClient
from voice.transcriber import Recording
from voice.transcription.scripted_transcriber import ScriptedTranscriber


class BrokenListener(VadClient):
    async def close(self) -> None:
        raise OSError("something that no one thought of")


async def test_a_part_that_fails_to_end_keeps_no_other_alive(caplog: pytest.LogCaptureFixture) -> None:
    listener = BrokenListener(TranscriptionSettings(model_dir=Path("/nowhere")))
    voice = Voice(transcriber=ScriptedTranscriber(), listener=listener, live=None, speaker=None)
    with caplog.at_level(logging.ERROR):
        await voice.close()
    assert voice.transcriber is not None
    assert voice.transcriber.status() == "closed"
    assert [record.message for record in caplog.records] == ["a part of voice did not end cleanly"]


async def test_a_key_that_is_gone_is_not_taken_for_a_service_that_is(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("sk-very-secret", encoding="ascii")
    key.chmod(0o600)
    service = ['voice.transcriber="openai/whisper-1"', 'voice.api_base="http://127.0.0.1:9/v1"']
    transcriber = build_transcriber(load(None, {}, [*service, f'voice.api_key="file:{key}"']))
    assert transcriber is not None
    key.unlink()
    try:
        with pytest.raises(TranscriberUnavailable, match="cannot be heard here") as caught:
            await transcriber.transcribe(Recording(data=wav(samples_of(CLIPS["lj001-0002"]))))
        assert "check voice.api_key" in caught.value.detail
        assert "key cannot be read" in transcriber.status()
    finally:
        await transcriber.close()
