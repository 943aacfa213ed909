"""The real voice as tests use it: really there, or a failure that says what to run."""

from __future__ import annotations

from pathlib import Path

import pytest

from voice.synthesis.piper_client import voices_in

_VOICES_DIR = Path(__file__).parents[2] / "models" / "voices"


def voices_dir() -> Path:
    """The folder of the real voice; fails, rather than skips, where it is missing."""
    if "en" not in voices_in(_VOICES_DIR):
        pytest.fail(
            f"the voice is missing from {_VOICES_DIR}: run `parlour models get voice-en`", pytrace=False
        )
    return _VOICES_DIR
