"""Fixtures of the voice tests: the real model's folder and settings that use it."""

from __future__ import annotations

from pathlib import Path

import pytest

from voice.settings import VoiceSettings

MODEL_DIR = Path(__file__).parents[2] / "models" / "whisper-base"


@pytest.fixture(scope="session")
def settings() -> VoiceSettings:
    """Settings with the real Whisper; fails, rather than skips, where it is not installed."""
    if not (MODEL_DIR / "model.bin").is_file():
        pytest.fail(f"the Whisper model is missing from {MODEL_DIR}: run `make models`", pytrace=False)
    return VoiceSettings(model_dir=MODEL_DIR)
