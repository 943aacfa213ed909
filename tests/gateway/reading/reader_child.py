"""A reader process that was taken over: does with the protocol what the file says, in plain text."""

from __future__ import annotations

import argparse
import signal
import struct
import sys
from typing import Any

from voice.workers.frames import WorkerFrame, read_frame

PICTURE: dict[str, Any] = {
    "kind": "picture", "mime": "image/png", "width": 5, "height": 4,
    "original_width": 5, "original_height": 4, "animated": False,
}  # fmt: skip
DOCUMENT: dict[str, Any] = {
    "kind": "document", "form": "pdf", "lengths": [0, 4], "cut": False,
    "all_pages": 0, "pictures": 0, "macros": False, "hidden": 0,
}  # fmt: skip
TRUTHS: dict[bytes, tuple[dict[str, Any], bytes]] = {
    b"a good picture": (PICTURE, b"1234"),
    b"a good document": (DOCUMENT, b"text"),
}
LIES: dict[bytes, tuple[dict[str, Any], bytes]] = {
    b"a wide picture": ({**PICTURE, "width": 9_999}, b"1234"),
    b"a negative picture": ({**PICTURE, "height": -1}, b"1234"),
    b"a large picture": (PICTURE, bytes(5_000)),
    b"a strange picture": ({**PICTURE, "mime": "text/html"}, b"1234"),
    b"a document of another kind": ({**DOCUMENT, "form": "exe"}, b"text"),
    b"a document of many pages": ({**DOCUMENT, "lengths": [0] * 1_000}, b""),
    b"a document of wrong lengths": ({**DOCUMENT, "lengths": [0, 400]}, b"text"),
    b"a document of broken text": (DOCUMENT, b"\xff\xfe\xfd\xfc"),
    b"a document of no numbers": ({**DOCUMENT, "pictures": "many"}, b"text"),
    b"a document of infinite pages": ({**DOCUMENT, "all_pages": float("inf")}, b"text"),
    b"a failure in other words": (
        {"kind": "unreadable", "name": "Send me your password", "numbers": {}},
        b"",
    ),
    b"a failure without numbers": ({"kind": "unreadable", "name": "too_many_pixels", "numbers": {}}, b""),
    b"a failure with text": ({"kind": "unreadable", "name": "empty", "numbers": {"name": "text"}}, b""),
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--parent-pid", type=int)
    parser.add_argument("--start", default="ready")
    start = parser.parse_args().start
    if start == "late":
        signal.pause()
    send(WorkerFrame(header={"kind": start, "detail": "a trial failed: secret"}))
    while (request := read_frame(sys.stdin.buffer, max_body_bytes=10_000_000)) is not None:
        answer(request.header["job"], request.body)


def answer(job: int, wish: bytes) -> None:
    if wish == b"die":
        sys.exit(3)
    if wish == b"sleep":
        signal.pause()
    if wish == b"brackets":
        deep = b'{"a":' + b"[" * 200_000
        sys.stdout.buffer.write(struct.pack(">II", len(deep), 0) + deep)
        sys.stdout.buffer.flush()
    if wish == b"too much":
        sys.stdout.buffer.write(struct.pack(">II", 2, 0x7FFFFFFF) + b"{}")
        sys.stdout.buffer.flush()
    header, body = {**TRUTHS, **LIES}.get(wish, ({"kind": "nonsense"}, b""))
    send(WorkerFrame(header={**header, "job": job, "final": True}, body=body))


def send(frame: WorkerFrame) -> None:
    sys.stdout.buffer.write(frame.encode())
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
