"""A short real recording with its words, so that an installation can check its speech recognition.

The clip is from LibriVox's reading of "Sense and Sensibility" (Jane Austen), in the public domain.
"""

from __future__ import annotations

from importlib import resources

BUNDLED_TRANSCRIPT = "he was not an ill disposed young man"
"""What is said in the bundled clip."""


def bundled_clip() -> bytes:
    """The bytes of the bundled clip: WAV, 16 kHz mono, 2.99 s."""
    return resources.files("voice").joinpath("data", "doctor.wav").read_bytes()
