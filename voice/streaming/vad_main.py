"""The VAD process: speech probabilities for many live streams, as the audio arrives.

Started by `voice.streaming.vad_client` with `python -m`; never imported by the gateway. Not here: what pauses
mean (`voice.streaming.segmenter`), and recognition.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from voice.audio.vad import FRAME, SileroModel, VoiceDetector
from voice.errors import TranscriberUnavailable
from voice.workers.frames import WorkerFrame, error_to_wire
from voice.workers.sandbox import allow_cpu, die_with_parent, lock_down, take_over_pipes

_DIGITS = 4
"""Decimal places of a probability on the wire."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve requests on stdin and stdout until the parent closes stdin or dies."""
    options = _parse(arguments)
    die_with_parent(options.parent_pid)
    requests, send = take_over_pipes(options.max_bytes)
    try:
        model = SileroModel()
    except TranscriberUnavailable as error:
        send(WorkerFrame(header={"kind": "unavailable", **error_to_wire(error)}))
        return 1
    tone = (8_000 * np.sin(np.arange(2 * FRAME) / 12)).astype(np.int16)
    VoiceDetector(model).feed(tone)
    lock_down()
    send(WorkerFrame(header={"kind": "ready"}))
    streams: dict[int, VoiceDetector] = {}
    while True:
        request = requests.get()
        allow_cpu()
        answer = _judge(request, streams, model)
        send(
            WorkerFrame(
                header={"kind": "heard", "job": request.header["job"], "final": True, "streams": answer}
            )
        )


def _judge(
    request: WorkerFrame, streams: dict[int, VoiceDetector], model: SileroModel
) -> list[dict[str, Any]]:
    """The probabilities of each stream's new frames. A stream is created by its first frames."""
    for stream_id in request.header["ended"]:
        streams.pop(stream_id, None)
    answer: list[dict[str, Any]] = []
    position = 0
    for entry in request.header["streams"]:
        end = position + entry["bytes"]
        detector = streams.setdefault(entry["id"], VoiceDetector(model))
        probabilities = detector.feed(np.frombuffer(request.body[position:end], dtype="<i2"))
        answer.append({"id": entry["id"], "probabilities": [round(p, _DIGITS) for p in probabilities]})
        position = end
    return answer


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="voice.streaming.vad_main", description=__doc__)
    parser.add_argument("--parent-pid", type=int, required=True)
    parser.add_argument("--max-bytes", type=int, required=True)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
