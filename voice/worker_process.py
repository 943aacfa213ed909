"""The recogniser's own program: pieces of speech in, words out, one job after the other, until stdin closes.

Started by `voice.child` with `python -m`; never imported by the gateway. Files from strangers are decoded
elsewhere (`voice.decoder_process`); here arrive bare samples.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import queue
import resource
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

from voice.errors import TranscriberUnavailable
from voice.hardware import chosen_device
from voice.jobs import PieceHeard, PieceJob
from voice.whisper import WhisperEngine
from voice.wire import Frame, error_to_wire, read_frame

_PR_SET_PDEATHSIG = 1
ADDRESS_SPACE_BYTES = 2 * 1024**3
_MAX_BODY_BYTES = 64 * 1024 * 1024

Send = Callable[[Frame], None]


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve jobs on stdin and stdout until the parent closes stdin or dies."""
    options = _parse(arguments)
    _die_with_parent(options.parent_pid)
    requests, send = _take_over_pipes()
    try:
        engine = _engine(options)
    except TranscriberUnavailable as error:
        send(Frame(header={"kind": "unavailable", **error_to_wire(error)}))
        return 1
    send(Frame(header={"kind": "ready"}))
    while True:
        send(_answer(requests.get(), engine))


def _engine(options: argparse.Namespace) -> WhisperEngine:
    device = chosen_device(options.device)
    if device == "cpu":  # CUDA reserves far more addresses than memory
        _limit_memory()
    return WhisperEngine(
        options.model_dir, engine=options.engine, device=device, compute_type=options.compute_type
    )


def _answer(request: Frame, engine: WhisperEngine) -> Frame:
    """The one, final answer to a request; an unforeseen error ends the process."""
    job = request.header["job"]
    if request.header["kind"] == "warm_up":
        engine.warm_up()
        return Frame(header={"kind": "warm", "job": job, "final": True})
    heard = engine.hear(list(_jobs(request)))
    pieces = [_to_wire(piece) for piece in heard]
    return Frame(header={"kind": "heard", "job": job, "final": True, "pieces": pieces})


def _jobs(request: Frame) -> Iterator[PieceJob]:
    offset = 0
    for piece in request.header["pieces"]:
        end = offset + piece["bytes"]
        yield PieceJob(
            pcm=request.body[offset:end],
            spans=tuple((float(start), float(end)) for start, end in piece["spans"]),
            language=piece["language"],
            likely_language=piece["likely"],
            prompt=piece["prompt"],
            beam_size=piece["beam"],
        )
        offset = end


def _to_wire(heard: PieceHeard) -> Mapping[str, Any]:
    return {
        "chunks": [asdict(chunk) for chunk in heard.chunks],
        "language": heard.language,
        "language_probability": heard.language_probability,
    }


def _take_over_pipes() -> tuple[queue.SimpleQueue[Frame], Send]:
    """The queue that requests arrive on, and the way to answer.

    Standard output is moved away, so that a library that prints cannot break the frames. A thread
    reads standard input, so that its end stops the process even in the middle of a job.
    """
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    requests: queue.SimpleQueue[Frame] = queue.SimpleQueue()
    stream = os.fdopen(os.dup(0), "rb")
    threading.Thread(target=_read_requests, args=(stream, requests), name="requests", daemon=True).start()

    def send(frame: Frame) -> None:
        data = memoryview(frame.encode())
        while data:
            data = data[answers.write(data) :]

    return requests, send


def _read_requests(stream: BinaryIO, requests: queue.SimpleQueue[Frame]) -> None:
    try:
        while (frame := read_frame(stream, max_body_bytes=_MAX_BODY_BYTES)) is not None:
            requests.put(frame)
    finally:
        os._exit(0)  # the parent is gone or speaks nonsense: nobody waits for the running job


def _die_with_parent(parent_pid: int) -> None:
    """Ask Linux to kill this process with its parent. Elsewhere the end of stdin does it."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent_pid:
            os._exit(0)


def _limit_memory() -> None:
    """Bound the address space: a process that grows fails here and harms nobody else."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = ADDRESS_SPACE_BYTES if hard == resource.RLIM_INFINITY else min(ADDRESS_SPACE_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="voice.worker_process", description=__doc__)
    parser.add_argument("--parent-pid", type=int, required=True)
    parser.add_argument("--model-dir", type=Path, required=True)
    parser.add_argument("--engine", choices=("fast", "plain"), default="fast")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--compute-type", default="auto")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
