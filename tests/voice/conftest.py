"""Fixtures of the voice tests: the real model's folder and settings that use it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from voice.settings import TranscriptionSettings
from voice.transcription.whisper_transcriber import WhisperTranscriber

MODEL_DIR = Path(__file__).parents[2] / "models" / "whisper-base"


@pytest.fixture(scope="session")
def settings() -> TranscriptionSettings:
    """Settings with the real Whisper; fails, rather than skips, where it is not installed."""
    if not (MODEL_DIR / "model.bin").is_file():
        pytest.fail(f"the Whisper model is missing from {MODEL_DIR}: run `make models`", pytrace=False)
    return TranscriptionSettings(model_dir=MODEL_DIR)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def transcriber(settings: TranscriptionSettings) -> AsyncIterator[WhisperTranscriber]:
    """One for all modules that leave it as it is; `tests.support.scopes` names them. Their tests run on the
    session's event loop."""
    made = WhisperTranscriber(replace(settings, workers=1))
    await made.warm_up()
    yield made
    await made.close()
