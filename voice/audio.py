"""Audio files to samples, from bytes only: never from a path or an address.

Runs in the worker process. Everything a file may claim is bounded before it costs memory or time:
the container by magic bytes, the codec by an allow list that also holds while the demuxer probes,
the sample rate and channels per frame, the length while decoding, the damage by a count.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import av
import numpy as np

from voice.containers import Container, recognise
from voice.errors import AudioRefused
from voice.limits import check_size
from voice.speech import SAMPLE_RATE, DecodedAudio, Samples

CODECS = frozenset(
    {
        "opus", "vorbis", "aac", "mp3", "mp3float", "flac", "alac", "amrnb", "amrwb", "speex",
        "pcm_u8", "pcm_s16le", "pcm_s24le", "pcm_s32le", "pcm_f32le", "pcm_alaw", "pcm_mulaw",
        "adpcm_ms", "adpcm_ima_wav",
    }
)  # fmt: skip
"""FFmpeg's names of the decoders that may run."""

_MIN_RATE, _MAX_RATE = 8_000, 96_000
_MAX_CHANNELS = 8
_MAX_DAMAGED_PACKETS = 50

_DAMAGED = "I could not read that recording: the file is damaged. Please record it again."
_NO_AUDIO = "There is no sound in that file. Please send a voice note or an audio file."
_UNKNOWN = (
    "I cannot read that kind of file. Please send a voice note, or audio as OGG, WebM, M4A, MP3, "
    "WAV, FLAC, AMR or AAC."
)


def decode(data: bytes, *, max_bytes: int, max_seconds: float) -> DecodedAudio:
    """The first `max_seconds` of the first audio stream in `data`, as 16 kHz mono.

    Raises AudioRefused: `too_large` over `max_bytes`, `unknown_format` for a container or codec
    that is not accepted, `no_audio` without a single sample, `damaged` for anything else.
    """
    check_size(len(data), max_bytes=max_bytes)
    if not data:
        raise AudioRefused("no_audio", _NO_AUDIO)
    container = recognise(data)
    if container is None:
        raise AudioRefused("unknown_format", _UNKNOWN)
    limit = int(max_seconds * SAMPLE_RATE)
    try:
        samples = _decode_stream(data[container.offset :], container, limit)
    except AudioRefused:
        raise
    except Exception as error:
        # Hostile files make the bindings raise UnicodeDecodeError, IndexError and more.
        raise AudioRefused("damaged", _DAMAGED) from error
    if not samples.size:
        raise AudioRefused("no_audio", _NO_AUDIO)
    kept = samples[:limit]
    return DecodedAudio(
        samples=kept,
        seconds=kept.size / SAMPLE_RATE,
        truncated=samples.size > limit,
        container=container.name,
    )


def _decode_stream(data: bytes, container: Container, limit: int) -> Samples:
    """Up to a little more than `limit` samples, so that the caller sees that there were more."""
    options = {"codec_whitelist": ",".join(sorted(CODECS)), "protocol_whitelist": ""}
    with av.open(
        io.BytesIO(data), mode="r", format=container.demuxer, options=options, metadata_errors="ignore"
    ) as opened:
        if not opened.streams.audio:
            raise AudioRefused("no_audio", _NO_AUDIO)
        stream = opened.streams.audio[0]
        context = stream.codec_context
        if context is None or context.name not in CODECS:
            raise AudioRefused("unknown_format", _UNKNOWN)
        _check_shape(context.sample_rate, context.layout.nb_channels)
        blocks: list[Any] = []
        total = 0
        for block in _resampled(_frames(opened, stream)):
            blocks.append(block)
            total += block.size
            if total > limit:
                break
    if not blocks:
        return np.zeros(0, dtype=np.float32)
    return np.concatenate(blocks).astype(np.float32) / np.float32(32768.0)


def _frames(opened: Any, stream: Any) -> Iterator[Any]:
    """Decoded frames. A damaged packet is skipped; too many of them refuse the file."""
    damaged = 0
    packets = opened.demux(stream)
    while True:
        try:
            packet = next(packets, None)
            if packet is None:
                return
            frames = packet.decode()
        except EOFError:
            return  # the file ends inside a packet: what came before is sound
        except (av.FFmpegError, ValueError) as error:
            damaged += 1
            if damaged > _MAX_DAMAGED_PACKETS:
                raise AudioRefused("damaged", _DAMAGED) from error
            continue
        for frame in frames:
            _check_shape(frame.sample_rate, frame.layout.nb_channels)
            yield frame


def _resampled(frames: Iterator[Any]) -> Iterator[Any]:
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
        frame.pts = None  # gaps and jumps in the file's clock must not become silence
        yield from _arrays(resampler.resample(frame))
    if resampler is not None:
        yield from _arrays(resampler.resample(None))


def _arrays(frames: list[Any]) -> Iterator[Any]:
    for frame in frames:
        yield frame.to_ndarray().reshape(-1)


def _check_shape(rate: int, channels: int) -> None:
    if not (_MIN_RATE <= rate <= _MAX_RATE and 1 <= channels <= _MAX_CHANNELS):
        raise AudioRefused("damaged", _DAMAGED)
