"""The child process of the local model: llama.cpp's own HTTP server around one GGUF file.

`python -m pipeline.llm.local_child --model FILE` prints one line of JSON: {"port": N} when it serves, or
{"error": "…"} when it cannot. The first line of its input is the key that requests must have; the process
ends at the end of its input. It loads no other part of Parlour.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import signal
import sys
import threading
from collections.abc import Mapping
from urllib.parse import urlsplit

_PR_SET_PDEATHSIG = 1
_CACHE_MIB = 64
_ERRORS_ONLY = 0


def main() -> int:
    """Serve until the parent closes the input. Exit code 1: the model could not be loaded."""
    arguments = _parser().parse_args()
    _die_with_the_parent()
    announce = _take_stdout()
    key = sys.stdin.readline().strip()
    watcher = threading.Thread(target=_exit_at_end_of_input, name="stdin", daemon=True)
    watcher.start()
    try:
        port = _serve(arguments, key)
    except Exception as error:  # noqa: BLE001  # the parent reports every error of the native code
        _say(announce, {"error": " ".join(str(error).split()) or type(error).__name__})
        return 1
    _say(announce, {"port": port})
    watcher.join()
    return 0


def default_threads() -> int:
    """Compute threads for this machine.

    One thread on two cores: a second one would spin against other processes, which costs a factor of thirty
    on a busy machine.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return 1 if cores <= 2 else cores - 1


def _serve(arguments: argparse.Namespace, key: str) -> int:
    """Load the model and start the server's own threads. Returns the bound port."""
    import xllamacpp  # noqa: PLC0415  # 100 MB of native code, loaded after the parent watch has started

    params = xllamacpp.CommonParams()
    params.model.path = arguments.model
    params.model_alias = {"local"}
    params.n_parallel = arguments.slots
    # The server divides the context among its slots; each slot gets the whole configured context.
    params.n_ctx = arguments.context * arguments.slots
    params.n_gpu_layers = 0
    # It looks for how much of a model fits on graphics cards, which are not used: half of the loading time.
    params.fit_params = False
    for compute in (params.cpuparams, params.cpuparams_batch):
        compute.n_threads = arguments.threads or default_threads()
        compute.poll = 0  # no busy waiting between tokens
    params.hostnames = ["127.0.0.1"]
    params.port = arguments.port
    params.api_keys = [key] if key else []
    params.ui = False
    params.endpoint_slots = False
    params.cache_ram_mib = _CACHE_MIB
    params.verbosity = _ERRORS_ONLY
    server = xllamacpp.Server(params)
    _keep.append(server)
    port = urlsplit(str(server.listening_address)).port
    if port is None:
        raise RuntimeError(f"the server listens on an address without a port: {server.listening_address}")
    return port


_keep: list[object] = []
"""Keeps a reference: the server stops when its object is collected."""


def _take_stdout() -> int:
    """A private copy of stdout. From now on, native code that prints to stdout writes to stderr."""
    announce = os.dup(1)
    os.dup2(2, 1)
    return announce


def _say(announce: int, words: Mapping[str, object]) -> None:
    os.write(announce, json.dumps(words).encode() + b"\n")


def _exit_at_end_of_input() -> None:
    while sys.stdin.read(4096):
        pass
    os._exit(0)  # the server's native threads do not end by themselves


def _die_with_the_parent() -> None:
    """On Linux, end this process when the parent is killed, even while the model loads."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="pipeline.llm.local_child", description=__doc__)
    parser.add_argument("--model", required=True, help="the GGUF file")
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    parser.add_argument("--context", type=int, default=4096, help="tokens of each slot")
    parser.add_argument("--slots", type=int, default=2, help="answers generated at the same time")
    parser.add_argument("--threads", type=int, default=0, help="0: chosen for this machine")
    return parser


if __name__ == "__main__":
    sys.exit(main())
