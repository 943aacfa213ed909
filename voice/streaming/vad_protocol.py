"""Read the answers of the voice activity detection process. Strict: raises BrokenFrame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from voice.workers.frames import BrokenFrame, checked_number


def probabilities_from_wire(wire: Mapping[str, Any], *, frames: Sequence[int]) -> list[tuple[float, ...]]:
    """The probabilities of each stream; `frames` is the expected number per stream. Raises BrokenFrame."""
    try:
        judged = [
            tuple(checked_number(one, at_most=1.0) for one in entry["probabilities"])
            for entry in wire["streams"]
        ]
    except (KeyError, TypeError) as error:
        raise BrokenFrame(f"not an answer about streams: {error!r}") from error
    if [len(probabilities) for probabilities in judged] != list(frames):
        raise BrokenFrame("the listener did not answer for every frame")
    return judged
