"""The reader process: takes files from the gateway and has each read by a sandboxed copy of itself.

Started by `gateway.reading.reader_client` with `python -m`; never imported by the gateway. This process
loads the libraries and parses nothing; see `gateway.reading.isolation` for the copies.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial

from gateway.reading import documents, pictures
from gateway.reading.failures import ReadingFailed
from gateway.reading.isolation import NoAnswer, in_isolation
from gateway.reading.limits import ReadingLimits
from gateway.reading.protocol import document_frame, failure_frame, picture_frame
from voice.workers.frames import Frame, read_frame
from voice.workers.sandbox import die_with_parent

_TRIAL = b"A trial that this process can be copied and the copy can read."


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve requests on stdin and stdout until the parent closes stdin or dies."""
    options = _parse(arguments)
    die_with_parent(options.parent_pid)
    limits = ReadingLimits(max_bytes=options.max_bytes, max_pages=options.max_pages, seconds=options.seconds)
    send = _take_over_output()
    pictures.prepare()
    documents.prepare()
    # The copies share these objects' memory as long as the collector does not touch them.
    gc.freeze()
    trial = Frame(header={"kind": "document", "name": "", "mime": ""}, body=_TRIAL)
    answer = _answered(trial, limits)
    if answer.header.get("kind") != "document":
        send(Frame(header={"kind": "unavailable", "detail": f"a trial failed: {answer.header}"[:500]}))
        return 1
    send(Frame(header={"kind": "ready"}))
    requests = os.fdopen(os.dup(0), "rb")
    while (request := read_frame(requests, max_body_bytes=limits.max_bytes)) is not None:
        answer = _answered(request, limits)
        header = {**answer.header, "job": request.header["job"], "final": True}
        send(Frame(header=header, body=answer.body))
    return 0


def _answered(request: Frame, limits: ReadingLimits) -> Frame:
    """The answer of a sandboxed copy of this process, or why it gave none."""
    try:
        return in_isolation(
            partial(_read, request, limits), seconds=limits.seconds, extra_bytes=len(request.body)
        )
    except NoAnswer as error:
        name = "too_slow" if error.out_of_time else "crashed"
        return Frame(header={"kind": "unreadable", "name": name, "numbers": {}, "detail": str(error)})


def _read(request: Frame, limits: ReadingLimits) -> Frame:
    """Read the file. Runs in the copy."""
    header = request.header
    try:
        if header["kind"] == "picture":
            picture = pictures.read_picture(
                request.body, max_side=header["max_side"], max_bytes=header["max_bytes"]
            )
            return picture_frame(picture)
        extracted = documents.read_document(
            request.body, name=header["name"], mime=header["mime"], limits=limits
        )
        return document_frame(extracted)
    except ReadingFailed as error:
        return failure_frame(error)
    except MemoryError:
        return failure_frame(ReadingFailed("too_much_memory"))


def _take_over_output() -> Callable[[Frame], None]:
    """The function that sends an answer. Whatever a library prints goes to stderr."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)

    def send(frame: Frame) -> None:
        answers.write(frame.encode())
        answers.flush()

    return send


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="gateway.reading.reader_main", description=__doc__)
    parser.add_argument("--parent-pid", type=int, required=True)
    parser.add_argument("--max-bytes", type=int, required=True)
    parser.add_argument("--max-pages", type=int, required=True)
    parser.add_argument("--seconds", type=int, required=True)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
