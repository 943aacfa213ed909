"""The reader process: has each file of the gateway read by copies of itself.

Started by `gateway.reading.reader_client` with `python -m`; never imported by the gateway. This process loads
the libraries and never has a file in its memory. For each request it makes a copy that takes the file and
passes the answer on; that one makes the sandboxed copy that parses the file (`gateway.reading.isolation`).
Both end with the file, so nothing of it can reach the next.
"""

from __future__ import annotations

import argparse
import gc
import os
import select
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NoReturn

from gateway.reading import documents, pictures
from gateway.reading.failures import ReadingFailed
from gateway.reading.isolation import NoAnswer, in_isolation
from gateway.reading.limits import ReadingLimits
from gateway.reading.protocol import document_frame, failure_frame, picture_frame
from voice.workers.frames import WorkerFrame, read_frame
from voice.workers.sandbox import die_with_parent

_REQUESTS = 0
"""Standard input."""
_NO_REQUEST = 3
"""The exit code of a copy that found the end of the requests."""
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
    trial = WorkerFrame(header={"kind": "document", "name": "", "mime": ""}, body=_TRIAL)
    answer = _answered(trial, limits)
    if answer.header.get("kind") != "document":
        send(WorkerFrame(header={"kind": "unavailable", "detail": f"a trial failed: {answer.header}"[:500]}))
        return 1
    send(WorkerFrame(header={"kind": "ready"}))
    parent = os.getpid()
    while True:
        select.select([_REQUESTS], [], [])
        copy = os.fork()
        if copy == 0:
            _serve(limits, send, parent)
        _, status = os.waitpid(copy, 0)
        if status:
            return 0 if os.waitstatus_to_exitcode(status) == _NO_REQUEST else 1


def _serve(limits: ReadingLimits, send: Callable[[WorkerFrame], None], parent: int) -> NoReturn:
    """Take one request, send its answer and end the process. Runs in the copy that has the file."""
    code = 1
    try:
        die_with_parent(parent)
        # Takes no part of a later request: the gateway sends none before it has this answer.
        request = read_frame(os.fdopen(_REQUESTS, "rb"), max_body_bytes=limits.max_bytes)
        if request is None:
            code = _NO_REQUEST
        else:
            answer = _answered(request, limits)
            header = {**answer.header, "job": request.header["job"], "final": True}
            send(WorkerFrame(header=header, body=answer.body))
            code = 0
    finally:
        # Also after an exception: the copy must never return into the loop of its parent.
        os._exit(code)


def _answered(request: WorkerFrame, limits: ReadingLimits) -> WorkerFrame:
    """The answer of a sandboxed copy of this process, or why it gave none."""
    try:
        answer = in_isolation(
            partial(_read, request, limits), seconds=limits.seconds, extra_bytes=len(request.body)
        )
        # Details are written to the log, so they never come from a process that has parsed the file.
        return replace(answer, header={**answer.header, "detail": ""})
    except NoAnswer as error:
        name = "too_slow" if error.out_of_time else "crashed"
        return WorkerFrame(header={"kind": "unreadable", "name": name, "numbers": {}, "detail": str(error)})


def _read(request: WorkerFrame, limits: ReadingLimits) -> WorkerFrame:
    """Read the file. Runs in the sandboxed copy."""
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


def _take_over_output() -> Callable[[WorkerFrame], None]:
    """The function that sends an answer. Whatever a library prints goes to stderr."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)

    def send(frame: WorkerFrame) -> None:
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
