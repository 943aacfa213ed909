"""Read the decoder process's messages: speech segments, and the end of a recording. Raises BrokenFrame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from voice.audio.segments import Decoded, SpeechSegment
from voice.workers.frames import BrokenFrame, WorkerFrame, checked_count, checked_number

_CONTAINERS = frozenset({"ogg", "webm", "mp4", "mp3", "wav", "flac", "amr", "aac", "pcm"})


def segment_from_wire(frame: WorkerFrame) -> SpeechSegment:
    """Read a speech segment. Raises BrokenFrame on anything that an intact decoder would not send."""
    header = frame.header
    if header.get("kind") != "piece" or not frame.body or len(frame.body) % 2:
        raise BrokenFrame("not a piece of speech")
    try:
        spans = tuple((checked_number(start), checked_number(end)) for start, end in header["spans"])
        index = checked_count(header["index"])
    except (KeyError, TypeError, ValueError) as error:
        raise BrokenFrame(f"not a piece of speech: {error!r}") from error
    times = [time for span in spans for time in span]
    if not times or times != sorted(times):
        raise BrokenFrame("a piece's spans are not in order")
    return SpeechSegment(index=index, pcm=frame.body, spans=spans)


def decoded_from_wire(wire: Mapping[str, Any], *, max_seconds: float) -> Decoded:
    """Read the end of a recording. Raises BrokenFrame."""
    try:
        decoded = Decoded(
            seconds=checked_number(wire["seconds"], at_most=max_seconds),
            truncated=wire["truncated"] is True,
            container=str(wire["container"]),
            segments=checked_count(wire["pieces"]),
        )
    except KeyError as error:
        raise BrokenFrame(f"not the end of a recording: {error!r}") from error
    if decoded.container not in _CONTAINERS:
        raise BrokenFrame("a container that is not accepted")
    return decoded
