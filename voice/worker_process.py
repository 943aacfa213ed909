"""The worker's own program: decodes and transcribes, one job after the other, until stdin closes.

Started by `voice.child` with `python -m`; never imported by the gateway. Everything that touches
a stranger's file happens here, so that a decoder's bug or a bomb's memory stays here.
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
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

from voice.audio import decode
from voice.errors import TranscriberUnavailable, VoiceError
from voice.speech import Transcript
from voice.whisper import WhisperEngine
from voice.wire import Frame, error_to_wire, read_frame, transcript_to_wire

_PR_SET_PDEATHSIG = 1
ADDRESS_SPACE_BYTES = 2 * 1024**3

Send = Callable[[Frame], None]


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve jobs on stdin and stdout until the parent closes stdin or dies."""
    options = _parse(arguments)
    _die_with_parent(options.parent_pid)
    _limit_memory()
    requests, send = _take_over_pipes(options.max_bytes)
    try:
        engine = WhisperEngine(options.model_dir, beam_size=options.beam_size)
    except TranscriberUnavailable as error:
        send(Frame(header={"kind": "unavailable", **error_to_wire(error)}))
        return 1
    send(Frame(header={"kind": "ready"}))
    while True:
        _serve(requests.get(), engine, options, send)


def _serve(request: Frame, engine: WhisperEngine, options: argparse.Namespace, send: Send) -> None:
    """Answer one request with exactly one final frame; an unforeseen error ends the process."""
    job = request.header["job"]
    if request.header["kind"] == "warm_up":
        engine.warm_up()
        send(Frame(header={"kind": "warm", "job": job, "final": True}))
        return
    try:
        audio = decode(request.body, max_bytes=options.max_bytes, max_seconds=options.max_seconds)
        send(Frame(header={"kind": "decoded", "job": job, "seconds": audio.seconds}))
        if audio.seconds < options.min_seconds:
            transcript = Transcript(
                chunks=(), language="", language_probability=0.0, audio_seconds=audio.seconds
            )
        else:
            transcript = engine.transcribe(audio, language=request.header["language"])
    except VoiceError as error:
        send(Frame(header={"kind": "refused", "job": job, "final": True, **error_to_wire(error)}))
        return
    send(Frame(header={"kind": "transcript", "job": job, "final": True, **transcript_to_wire(transcript)}))


def _take_over_pipes(max_body_bytes: int) -> tuple[queue.SimpleQueue[Frame], Send]:
    """The queue that requests arrive on, and the way to answer.

    Standard output is moved away, so that a library that prints cannot break the frames. A thread
    reads standard input, so that its end stops the process even in the middle of a job.
    """
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    requests: queue.SimpleQueue[Frame] = queue.SimpleQueue()
    stream = os.fdopen(os.dup(0), "rb")
    reader = threading.Thread(
        target=_read_requests, args=(stream, requests, max_body_bytes), name="requests", daemon=True
    )
    reader.start()

    def send(frame: Frame) -> None:
        data = memoryview(frame.encode())
        while data:
            data = data[answers.write(data) :]

    return requests, send


def _read_requests(stream: BinaryIO, requests: queue.SimpleQueue[Frame], max_body_bytes: int) -> None:
    try:
        while (frame := read_frame(stream, max_body_bytes=max_body_bytes)) is not None:
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
    """Bound the address space: a file that makes a decoder grow fails here and harms nobody else."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = ADDRESS_SPACE_BYTES if hard == resource.RLIM_INFINITY else min(ADDRESS_SPACE_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="voice.worker_process", description=__doc__)
    parser.add_argument("--parent-pid", type=int, required=True)
    parser.add_argument("--model-dir", type=Path, required=True)
    parser.add_argument("--beam-size", type=int, required=True)
    parser.add_argument("--max-bytes", type=int, required=True)
    parser.add_argument("--max-seconds", type=float, required=True)
    parser.add_argument("--min-seconds", type=float, required=True)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
