"""Limits of the shipped child processes that a busy machine reaches, longer in tests.

The process of the voice steps back behind all others and loads its model with the first answer. The shipped
limit for that is right for a person who waits, and tests of the limit itself give their own.
"""

from __future__ import annotations

from functools import partial

import pytest

from voice.synthesis.piper_client import PiperSpeaker

_PATIENCE_S = 300.0


def install(patch: pytest.MonkeyPatch) -> None:
    """Wait longer in this process and in those that it forks, until `patch` is undone."""
    patch.setattr("gateway.app.voice.PiperSpeaker", partial(PiperSpeaker, deadline_floor_s=_PATIENCE_S))
