"""A worker process without a model: speaks the pool's protocol and does what the samples say, in plain text.

`hello` is heard as that; `die` ends the process; `die alone` does so unless it is in a batch; `once PATH`
ends the first process that meets it; `hang` never answers; `nonsense` breaks the protocol; `de hallo` is
German, and `de? so` perhaps. Each job is a line of the log: the texts in it, then the likely languages. With
`--never-warm` it hangs when it is to warm up, and logs its process id.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
from pathlib import Path
from typing import Any

from voice.workers.frames import WorkerFrame, read_frame


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--parent-pid", type=int)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--refuse-to-start", action="store_true")
    parser.add_argument("--never-warm", action="store_true")
    options = parser.parse_args()
    with options.log.open("a") as log:
        log.write("started\n")
    if options.refuse_to_start:
        send(
            WorkerFrame(
                header={"kind": "unavailable", "code": "transcriber_unavailable", "message": "No model."}
            )
        )
        return
    send(WorkerFrame(header={"kind": "ready"}))
    while (request := read_frame(sys.stdin.buffer, max_body_bytes=10_000_000)) is not None:
        if options.never_warm and request.header["kind"] == "warm_up":
            with options.log.open("a") as log:
                log.write(f"{os.getpid()}\n")
            threading.Event().wait()
        send(answer(request, options.log))


def answer(request: WorkerFrame, log: Path) -> WorkerFrame:
    job = request.header["job"]
    if request.header["kind"] == "warm_up":
        return WorkerFrame(header={"kind": "warm", "job": job, "final": True})
    pieces, texts, start = request.header["pieces"], [], 0
    for piece in pieces:
        texts.append(request.body[start : start + piece["bytes"]].rstrip(b"\0").decode())
        start += piece["bytes"]
    with log.open("a") as file:
        file.write("+".join(texts) + " " + ",".join(str(piece["likely"]) for piece in pieces) + "\n")
    heard = [obey(text, piece, len(pieces)) for text, piece in zip(texts, pieces, strict=True)]
    if "nonsense" in texts:
        heard = []
    return WorkerFrame(header={"kind": "heard", "job": job, "final": True, "pieces": heard})


def obey(text: str, piece: dict[str, Any], batch: int) -> dict[str, Any]:
    if text == "die" or (text == "die alone" and batch == 1):
        os._exit(3)
    if text == "hang":
        threading.Event().wait()
    if text.startswith("once "):
        marker = Path(text.removeprefix("once "))
        if not marker.exists():
            marker.touch()
            os._exit(3)
    (start, _), (_, end) = piece["spans"][0], piece["spans"][-1]
    language, _, rest = text.partition(" ")
    unsure = language == "de?" and piece["language"] is None
    foreign = language.rstrip("?") == "de"
    chunk = {
        "text": rest if foreign else text,
        "start_s": start,
        "end_s": end,
        "confidence": 0.9,
        "no_speech_probability": 0.0,
    }
    spoken = piece["language"] or ("de" if foreign else "en")
    return {"chunks": [chunk], "language": spoken, "language_probability": 0.5 if unsure else 0.9}


def send(frame: WorkerFrame) -> None:
    sys.stdout.buffer.write(frame.encode())
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
