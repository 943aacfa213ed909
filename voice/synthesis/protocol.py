"""Read the speech synthesis process's answers. Strict: raises BrokenFrame."""

from __future__ import annotations

from voice.synthesis.synthesizer import SpokenAudio
from voice.workers.frames import BrokenFrame, WorkerFrame, checked_number

_MAX_WAVEFORM = 256


def spoken_from_wire(frame: WorkerFrame) -> SpokenAudio:
    """Read a voice message. Raises BrokenFrame."""
    try:
        seconds, waveform = checked_number(frame.header["seconds"]), bytes.fromhex(frame.header["waveform"])
    except (KeyError, TypeError, ValueError) as error:
        raise BrokenFrame(f"not a voice message: {error!r}") from error
    if not frame.body.startswith(b"OggS") or len(waveform) > _MAX_WAVEFORM:
        raise BrokenFrame("not a voice message")
    return SpokenAudio(data=frame.body, seconds=seconds, waveform=waveform)
