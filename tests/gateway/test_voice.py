"""The parts of voice end together, whatever one of them does."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from gateway.voice import Voice
from voice.listener import Listener
from voice.scripted import ScriptedTranscriber
from voice.settings import VoiceSettings


class BrokenListener(Listener):
    async def close(self) -> None:
        raise OSError("something that nobody thought of")


async def test_a_part_that_fails_to_end_keeps_no_other_alive(caplog: pytest.LogCaptureFixture) -> None:
    listener = BrokenListener(VoiceSettings(model_dir=Path("/nowhere")))
    voice = Voice(transcriber=ScriptedTranscriber(), listener=listener, desk=None, speaker=None)
    with caplog.at_level(logging.ERROR):
        await voice.close()
    assert voice.transcriber is not None
    assert voice.transcriber.status() == "closed"
    assert [record.message for record in caplog.records] == ["a part of voice did not end cleanly"]
