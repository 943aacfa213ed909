"""The child process of the local model: llama.cpp's own HTTP server around one GGUF file.

`python -m pipeline.llm.local_child --model FILE` prints one line of JSON when it serves, {"port": N},
or why it cannot, {"error": "…"}. The first line of its input is the key that requests must carry; the
end of its input is the end of the process. It loads no other part of Parlour and knows no messages.
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
    """Serve until the parent goes away. Exit code 1: the model could not be loaded."""
    arguments = _parser().parse_args()
    _die_with_the_parent()
    announce = _take_stdout()
    key = sys.stdin.readline().strip()
    watcher = threading.Thread(target=_exit_at_end_of_input, name="stdin", daemon=True)
    watcher.start()
    try:
        port = _serve(arguments, key)
    except Exception as error:  # noqa: BLE001  # whatever the native code raises is the parent's to tell
        _say(announce, {"error": " ".join(str(error).split()) or type(error).__name__})
        return 1
    _say(announce, {"port": port})
    watcher.join()
    return 0


def default_threads() -> int:
    """Compute threads for this machine.

    One on two cores: a second would spin against whatever else runs there, which costs a factor of
    thirty when the machine is busy.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return 1 if cores <= 2 else cores - 1


def _serve(arguments: argparse.Namespace, key: str) -> int:
    """Load the model and start the server's own threads; the bound port."""
    import xllamacpp  # noqa: PLC0415  # 100 MB of native code, loaded after the parent watch stands

    params = xllamacpp.CommonParams()
    params.model.path = arguments.model
    params.model_alias = {"local"}
    params.n_parallel = arguments.slots
    # The server divides the context among its slots; each shall have the whole of what was asked for.
    params.n_ctx = arguments.context * arguments.slots
    params.n_gpu_layers = 0
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
"""The server stops when its object is collected."""


def _take_stdout() -> int:
    """A private copy of stdout; native code that prints goes to stderr from now on."""
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
    """On Linux also a parent that is killed takes this process along, even while it loads."""
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
