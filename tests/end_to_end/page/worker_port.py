"""Where the gateways of the page's tests listen."""

from __future__ import annotations

import functools
import os

from tests.support.gateway_process import free_port


def worker_port() -> int:
    """The port of this worker's gateways: with one origin, a tab keeps its process and its scripts. Not for a
    constant of a module, which all workers would share."""
    return _port_of(os.getpid())


def port_setting() -> str:
    """The gateway's setting for `worker_port`."""
    return f"server.port={worker_port()}"


@functools.cache
def _port_of(_process: int) -> int:
    return free_port()
