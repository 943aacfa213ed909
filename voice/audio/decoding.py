"""Decode audio files to samples, block by block and from bytes only: never from a path or an address.

Runs in a child process. Every claim of a file is limited before it costs memory or time:
the container by magic bytes, the codec by an allow list that also applies while the demuxer probes,
the sample rate and channels per frame, the length while decoding, the damage by a count.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import av
import numpy as np
import numpy.typing as npt

from voice.audio.containers import Container, recognise
from voice.audio.limits import check_size
from voice.errors import AudioRefused
from voice.transcript import SAMPLE_RATE

Block = npt.NDArray[np.int16]

CODECS = frozenset(
    {
        "opus", "vorbis", "aac", "mp3", "mp3float", "flac", "alac", "amrnb", "amrwb", "speex",
        "pcm_u8", "pcm_s16le", "pcm_s24le", "pcm_s32le", "pcm_f32le", "pcm_alaw", "pcm_mulaw",
        "adpcm_ms", "adpcm_ima_wav",
    }
)  # fmt: skip
"""FFmpeg's names for the decoders that may run."""

_MIN_RATE, _MAX_RATE = 8_000, 96_000
_MAX_CHANNELS = 8
_MAX_DAMAGED_PACKETS = 50
_MAX_DECLARED = 4.0
"""A file that declares more than this many times the allowed length is rejected and not truncated."""
_DECLARING = frozenset({"ogg", "webm", "mp4", "flac"})
"""Containers that state their length. For AMR, AAC and MP3 FFmpeg guesses it from the first bitrate, and a
WAV that was written to a pipe states the largest possible number."""
_MICROSECONDS = 1_000_000

_DAMAGED = "I could not read that recording: the file is damaged. Please record it again."
_NO_AUDIO = "There is no sound in that file. Please send a voice note or an audio file."
_UNKNOWN = (
    "I cannot read that kind of file. Please send a voice note, audio as OGG, WebM, M4A, MP3, "
    "WAV, FLAC, AMR or AAC, or a video as MP4, MOV or WebM."
)


class AudioBlocks:
    """A file's first audio stream as 16 kHz mono samples of 16 bit. Iterate over it only once.

    Iterating raises AudioRefused: `too_large` over `max_bytes`, `too_long` for a file that declares a
    length far beyond `max_seconds`, `unknown_format` for a container or codec that is not accepted,
    `no_audio` without a single sample, `damaged` for anything else. MemoryError is passed on.
    """

    def __init__(self, data: bytes, *, max_bytes: int, max_seconds: float) -> None:
        self._data = data
        self._max_bytes = max_bytes
        self._max_seconds = max_seconds
        self.container = ""
        """`ogg`, `webm`, `mp4`, `mp3`, `wav`, `flac`, `amr` or `aac`."""
        self.samples = 0
        """Samples yielded so far."""
        self.truncated = False
        """Whether there was more than `max_seconds`."""

    def __iter__(self) -> Iterator[Block]:
        """Blocks of about a second, `max_seconds` in total. Raises AudioRefused."""
        check_size(len(self._data), max_bytes=self._max_bytes)
        if not self._data:
            raise AudioRefused("no_audio", _NO_AUDIO)
        container = recognise(self._data)
        if container is None:
            raise AudioRefused("unknown_format", _UNKNOWN)
        self.container = container.name
        try:
            yield from self._limited(_grouped(self._decoded(container)))
        except (AudioRefused, MemoryError):
            raise  # MemoryError may be caused by earlier files: a fresh process shows it
        except Exception as error:
            # Hostile files make the bindings raise UnicodeDecodeError, IndexError and more.
            raise AudioRefused("damaged", _DAMAGED) from error
        if not self.samples:
            raise AudioRefused("no_audio", _NO_AUDIO)

    def _limited(self, blocks: Iterator[Block]) -> Iterator[Block]:
        limit = int(self._max_seconds * SAMPLE_RATE)
        for block in blocks:
            kept = block[: limit - self.samples]
            self.samples += kept.size
            self.truncated = kept.size < block.size
            if kept.size:
                yield kept
            if self.truncated:
                return

    def _decoded(self, container: Container) -> Iterator[Block]:
        options = {"codec_whitelist": ",".join(sorted(CODECS)), "protocol_whitelist": ""}
        with av.open(
            io.BytesIO(self._data[container.offset :]),
            mode="r",
            format=container.demuxer,
            options=options,
            metadata_errors="ignore",
        ) as opened:
            if not opened.streams.audio:
                raise AudioRefused("no_audio", _NO_AUDIO)
            stream = opened.streams.audio[0]
            context = stream.codec_context
            if context is None or context.name not in CODECS:
                raise AudioRefused("unknown_format", _UNKNOWN)
            if container.name in _DECLARING and opened.duration is not None:
                _check_length(opened.duration / _MICROSECONDS, self._max_seconds)
            _check_shape(context.sample_rate, context.layout.nb_channels)
            context.thread_count = 1
            yield from _resampled(_joined(_frames(opened, stream)))


def _grouped(blocks: Iterator[Block]) -> Iterator[Block]:
    """The same samples in blocks of at least a second: the voice detector is cheaper on many frames."""
    waiting: list[Block] = []
    size = 0
    for block in blocks:
        waiting.append(block)
        size += block.size
        if size >= SAMPLE_RATE:
            yield np.concatenate(waiting)
            waiting, size = [], 0
    if size:
        yield np.concatenate(waiting)


def _frames(opened: Any, stream: Any) -> Iterator[Any]:
    """Decoded frames. Damaged packets are skipped; too many of them reject the file."""
    damaged = 0
    packets = opened.demux(stream)
    while True:
        try:
            packet = next(packets, None)
            if packet is None:
                return
            frames = packet.decode()
        except EOFError:
            return  # the file ends inside a packet: the samples before are valid
        except (av.FFmpegError, ValueError) as error:
            damaged += 1
            if damaged > _MAX_DAMAGED_PACKETS:
                raise AudioRefused("damaged", _DAMAGED) from error
            continue
        for frame in frames:
            _check_shape(frame.sample_rate, frame.layout.nb_channels)
            yield frame


def _joined(frames: Iterator[Any]) -> Iterator[Any]:
    """The same samples in fewer, longer frames: the cost is more per frame than per sample.

    A change of format inside the file starts a new frame.
    """
    fifo: Any = None
    shape: tuple[object, ...] = ()
    for frame in frames:
        seen = (frame.format.name, frame.layout.name, frame.sample_rate)
        if fifo is not None and (seen != shape or fifo.samples >= frame.sample_rate // 2):
            yield fifo.read()
            fifo = None
        if fifo is None:
            fifo, shape = av.AudioFifo(), seen
        frame.pts = None  # gaps and jumps in the file's timestamps must not become silence
        fifo.write(frame)
    if fifo is not None:
        yield fifo.read()


def _resampled(frames: Iterator[Any]) -> Iterator[Block]:
    """16-bit mono blocks at 16 kHz. A change of format inside the file starts a new resampler."""
    resampler: Any = None
    shape: tuple[object, ...] = ()
    for frame in frames:
        seen = (frame.format.name, frame.layout.name, frame.sample_rate)
        if resampler is None or seen != shape:
            if resampler is not None:
                yield from _arrays(resampler.resample(None))
            resampler = av.AudioResampler(format="s16", layout="mono", rate=SAMPLE_RATE)
            shape = seen
        yield from _arrays(resampler.resample(frame))
    if resampler is not None:
        yield from _arrays(resampler.resample(None))


def _arrays(frames: list[Any]) -> Iterator[Block]:
    for frame in frames:
        yield frame.to_ndarray().reshape(-1)


def _check_shape(rate: int, channels: int) -> None:
    if not (_MIN_RATE <= rate <= _MAX_RATE and 1 <= channels <= _MAX_CHANNELS):
        raise AudioRefused("damaged", _DAMAGED)


def _check_length(declared_s: float, max_seconds: float) -> None:
    if declared_s > _MAX_DECLARED * max_seconds:
        raise AudioRefused(
            "too_long",
            f"That recording is {_readable(declared_s)} long; I can listen to at most "
            f"{_readable(max_seconds)}. Please send a shorter one.",
        )


def _readable(seconds: float) -> str:
    for size, word in ((3600, "hour"), (60, "minute"), (1, "second")):
        count = round(seconds / size)
        if seconds >= 2 * size or (seconds >= size and seconds % size == 0):
            return f"{count} {word}" if count == 1 else f"{count} {word}s"
    return f"{seconds:.3g} seconds"
