"""What MCP servers write to their stderr, as it arrives in the log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager


class Said(logging.Handler):
    """Notices in the log what servers say, and when one has said `hanging`."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.hanging = asyncio.Event()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(getattr(record, "line", ""))
        if self.lines[-1] == "hanging":
            self.hanging.set()


@contextmanager
def listening() -> Iterator[Said]:
    """To what servers of this process say."""
    handler, log = Said(), logging.getLogger("pipeline.tools.mcp_child")
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield handler
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
