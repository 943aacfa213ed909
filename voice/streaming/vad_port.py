"""The voice activity detection port, and its shipped fake.

Not here: the model (`voice.streaming.vad_client`), and what the probabilities lead to
(`voice.streaming.segmenter`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from voice.errors import TranscriberUnavailable

OnProbabilities = Callable[[int, tuple[float, ...]], None]
"""Called with the number of the first frame, from 0, and the speech probabilities (0 to 1) of that frame and
the following ones; a frame is 512 samples of 16 kHz."""

FRAME_BYTES = 1024


class ActivityStream(Protocol):
    """One stream of audio."""

    on_lost: Callable[[], None] | None
    """Called once when probabilities end although the stream was not closed."""

    def feed(self, pcm: bytes) -> None:
        """Add audio: 16 kHz, mono, 16 bit little endian. Returns at once; of excess audio the oldest frames
        are dropped, and their probabilities are never delivered."""
        ...

    def close(self) -> None:
        """Stop judging."""
        ...


class ActivityDetector(Protocol):
    """Judges many streams at once."""

    async def open(self, on_probabilities: OnProbabilities) -> ActivityStream:
        """Begin a stream. Raises TranscriberUnavailable."""
        ...


class EnergyDetector:
    """The shipped fake: any audio louder than a whisper is a voice. Judges within `feed`.

    For tests, demonstrations and offline development.
    """

    def __init__(self) -> None:
        self.streams: list[EnergyStream] = []
        self.refusal = ""
        """If set, `open` refuses with this text."""

    async def open(self, on_probabilities: OnProbabilities) -> ActivityStream:
        if self.refusal:
            raise TranscriberUnavailable(self.refusal)
        stream = EnergyStream(on_probabilities)
        self.streams.append(stream)
        return stream


class EnergyStream:
    """One stream of the fake."""

    def __init__(self, on_probabilities: OnProbabilities) -> None:
        self.on_lost: Callable[[], None] | None = None
        self.closed = False
        self._on_probabilities = on_probabilities
        self._rest = b""
        self._frames = 0

    def feed(self, pcm: bytes) -> None:
        if self.closed:
            return
        sound = self._rest + pcm
        count = len(sound) // FRAME_BYTES
        self._rest = sound[count * FRAME_BYTES :]
        frames = [sound[at * FRAME_BYTES : (at + 1) * FRAME_BYTES] for at in range(count)]
        first, self._frames = self._frames, self._frames + count
        if frames:
            self._on_probabilities(first, tuple(_loudness(frame) for frame in frames))

    def close(self) -> None:
        self.closed = True

    def lose(self) -> None:
        """End as if the process had died."""
        self.closed = True
        if self.on_lost is not None:
            self.on_lost()


_LOUD = 1000.0


def _loudness(frame: bytes) -> float:
    samples = memoryview(frame).cast("h")
    mean = sum(map(abs, samples)) / len(samples)
    return min(1.0, mean / _LOUD)
