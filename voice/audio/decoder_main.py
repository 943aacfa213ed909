"""The decoder process: recordings in, speech segments out, one recording after the other.

Started by `voice.audio.decoder_client` with `python -m`; never imported by the gateway. Untrusted files are
parsed here and nowhere else, by a process that can open no files or sockets and has a memory limit.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence

import numpy as np

from voice.audio.decoding import AudioBlocks, Block
from voice.audio.segmentation import Cutter
from voice.audio.segments import SpeechSegment
from voice.audio.vad import SileroModel, SpeechTracker, VoiceDetector
from voice.errors import AudioRefused, TranscriberUnavailable
from voice.transcript import SAMPLE_RATE
from voice.workers.frames import WorkerFrame, error_to_wire
from voice.workers.sandbox import Send, allow_cpu, die_with_parent, lock_down, take_over_pipes


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve jobs on stdin and stdout until the parent closes stdin or dies."""
    options = _parse(arguments)
    die_with_parent(options.parent_pid)
    requests, send = take_over_pipes(options.max_bytes)
    try:
        model = SileroModel()
    except TranscriberUnavailable as error:
        send(WorkerFrame(header={"kind": "unavailable", **error_to_wire(error)}))
        return 1
    _warm_up(model, options)
    lock_down()
    send(WorkerFrame(header={"kind": "ready"}))
    while True:
        request = requests.get()
        allow_cpu()
        _serve(request, model, options, send)


def _serve(request: WorkerFrame, model: SileroModel, options: argparse.Namespace, send: Send) -> None:
    """Answer with segments and exactly one final frame; an unexpected error ends the process."""
    job = request.header["job"]
    recording = _recording(request, options)
    segments = 0
    try:
        for segment in _segments(recording, model, min_seconds=options.min_seconds):
            header = {"kind": "piece", "job": job, "index": segment.index, "spans": segment.spans}
            send(WorkerFrame(header=header, body=segment.pcm))
            segments += 1
    except AudioRefused as error:
        send(WorkerFrame(header={"kind": "refused", "job": job, "final": True, **error_to_wire(error)}))
        return
    except MemoryError:
        # Caused by this file or by earlier ones: a fresh process shows which.
        raise SystemExit(1) from None
    end = {
        "kind": "decoded",
        "job": job,
        "final": True,
        "seconds": recording.samples / SAMPLE_RATE,
        "truncated": recording.truncated,
        "container": recording.container,
        "pieces": segments,
    }
    send(WorkerFrame(header=end))


def _segments(
    recording: AudioBlocks | _BareSamples, model: SileroModel, *, min_seconds: float
) -> Iterator[SpeechSegment]:
    """The speech segments of a recording, each as soon as it is certain. Raises AudioRefused."""
    detector, tracker, cutter = VoiceDetector(model), SpeechTracker(), Cutter()
    for block in recording:
        probabilities = detector.feed(block)
        cutter.feed(block.tobytes(), probabilities)
        for start, end in tracker.push(probabilities):
            yield from cutter.add(start, end)
    if recording.samples < min_seconds * SAMPLE_RATE:
        return
    probabilities = detector.finish()
    cutter.feed(b"", probabilities)
    for start, end in tracker.finish(probabilities, recording.samples):
        yield from cutter.add(start, end)
    yield from cutter.finish()


class _BareSamples:
    """Raw samples with the interface of `AudioBlocks`."""

    container = "pcm"

    def __init__(self, pcm: bytes, *, max_seconds: float) -> None:
        whole = np.frombuffer(pcm[: len(pcm) // 2 * 2], dtype="<i2")
        self._samples = whole[: int(max_seconds * SAMPLE_RATE)]
        self.samples = self._samples.size
        self.truncated = self._samples.size < whole.size

    def __iter__(self) -> Iterator[Block]:
        for start in range(0, self.samples, SAMPLE_RATE):
            yield self._samples[start : start + SAMPLE_RATE]


def _recording(request: WorkerFrame, options: argparse.Namespace) -> AudioBlocks | _BareSamples:
    if request.header["form"] == "pcm":
        return _BareSamples(request.body, max_seconds=options.max_seconds)
    return AudioBlocks(request.body, max_bytes=options.max_bytes, max_seconds=options.max_seconds)


def _warm_up(model: SileroModel, options: argparse.Namespace) -> None:
    """Run everything once: after the lockdown nothing can be loaded on first use."""
    tone = (8_000 * np.sin(np.arange(SAMPLE_RATE) / 12)).astype("<i2").tobytes()
    size = len(tone).to_bytes(4, "little")
    head = b"RIFF" + size + b"WAVEfmt \x10\0\0\0\x01\0\x01\0" + bytes.fromhex("44ac000088580100 02001000")
    for data in (head + b"data" + size + tone, b"fLaC" + bytes(64)):
        blocks = AudioBlocks(data, max_bytes=len(data), max_seconds=options.max_seconds)
        try:
            for _ in _segments(blocks, model, min_seconds=0.0):
                pass
        except AudioRefused as error:
            str(error)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="voice.audio.decoder_main", description=__doc__)
    parser.add_argument("--parent-pid", type=int, required=True)
    parser.add_argument("--max-bytes", type=int, required=True)
    parser.add_argument("--max-seconds", type=float, required=True)
    parser.add_argument("--min-seconds", type=float, required=True)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
