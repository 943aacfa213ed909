"""A decoder that was taken over: does with the protocol what the file says, in plain text."""

from __future__ import annotations

import argparse
import struct
import sys
from typing import Any

from voice.workers.frames import WorkerFrame, read_frame

SOUND = {"seconds": 1.0, "truncated": False, "container": "ogg", "pieces": 1}
LIES: dict[bytes, dict[str, Any]] = {b"endless": {"seconds": float("inf")}}
PIECES: dict[bytes, dict[str, Any]] = {b"infinite index": {"index": float("inf")}}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--parent-pid", type=int)
    parser.parse_args()
    send(WorkerFrame(header={"kind": "ready"}))
    while (request := read_frame(sys.stdin.buffer, max_body_bytes=10_000_000)) is not None:
        answer(request.header["job"], request.body)


def answer(job: int, wish: bytes) -> None:
    piece = {"kind": "piece", "job": job, "index": 0, "spans": [[0.0, 1.0]]}
    if wish == b"brackets":
        header = b'{"a":' + b"[" * 200_000
        sys.stdout.buffer.write(struct.pack(">II", len(header), 0) + header)
        sys.stdout.buffer.flush()
    while wish == b"flood":
        send(WorkerFrame(header=piece, body=bytes(30 * 32_000)))
        piece["index"] = int(str(piece["index"])) + 1
    send(
        WorkerFrame(
            header={**piece, **PIECES.get(wish, {})}, body=bytes(1_048_576 if wish == b"long" else 32_000)
        )
    )
    send(WorkerFrame(header={"kind": "decoded", "job": job, "final": True, **SOUND, **LIES.get(wish, {})}))


def send(frame: WorkerFrame) -> None:
    sys.stdout.buffer.write(frame.encode())
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
