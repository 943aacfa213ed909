"""Where the gateways of the page's tests listen."""

from __future__ import annotations

import functools

from tests.support.gateway_process import free_port


@functools.cache
def worker_port() -> int:
    """The port of this worker's gateways: with one origin, a tab keeps its process and its scripts."""
    return free_port()
