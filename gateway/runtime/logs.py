"""Configure logs: one structured line per event, with thread, message and run ids, and without secrets.

Redaction works on the finished line, so that it covers exceptions, libraries and URLs too.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping
from typing import Any, Literal, TextIO

import structlog

from pipeline.redaction.redactor import Redactor

_OURS = ("gateway", "adapters", "pipeline", "voice")

_ACCEPT_ERROR = "socket.accept() out of system resource"
_ACCEPT_ERROR_EVERY_S = 60.0
_NO_DESCRIPTORS = (
    "no connection can be accepted: the file descriptors are used up; it is tried again every second. Raise "
    "the limit (LimitNOFILE under systemd) if this returns"
)


_ENCODER = json.JSONEncoder(default=repr)
"""Made once: `json.dumps` with a `default` would make one for each line."""


def _to_json(event: Mapping[str, Any], **_options: object) -> str:
    """One line of JSON; what JSON cannot express is in the words of `repr`."""
    return _ENCODER.encode(event)


class _RedactingFormatter(structlog.stdlib.ProcessorFormatter):
    """Formats a record, traceback included, and then redacts the line."""

    redactor: Redactor

    def format(self, record: logging.LogRecord) -> str:
        return self.redactor.text(super().format(record))


class _AcceptErrors(logging.Filter):
    """Passes one line a minute while no connection can be accepted; asyncio writes 128 a second, each with a
    traceback. The line says how many lines it replaces."""

    def __init__(self) -> None:
        super().__init__()
        self._said_at = float("-inf")
        self._left_out = 0

    def filter(self, record: logging.LogRecord) -> bool:
        if not record.getMessage().startswith(_ACCEPT_ERROR):
            return True
        if record.created - self._said_at < _ACCEPT_ERROR_EVERY_S:
            self._left_out += 1
            return False
        record.msg, record.args, record.exc_info = _NO_DESCRIPTORS, (), None
        record.__dict__["left_out"] = self._left_out
        self._said_at, self._left_out = record.created, 0
        return True


def configure_logging(
    *,
    level: str,
    style: Literal["auto", "json", "console"],
    redactor: Redactor,
    stream: TextIO | None = None,
) -> None:
    """Send the logs of this program and its libraries to `stream` (default: standard error)."""
    out = stream or sys.stderr
    as_json = style == "json" or (style == "auto" and not out.isatty())
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer(_to_json)
        if as_json
        # Plain: the pretty tracebacks print local variables, which hold users' words and keys.
        else structlog.dev.ConsoleRenderer(
            colors=out.isatty(), pad_event_to=24, exception_formatter=structlog.dev.plain_traceback
        )
    )
    exceptions = [structlog.processors.format_exc_info] if as_json else []
    formatter = _RedactingFormatter(
        foreign_pre_chain=shared,
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *exceptions, renderer],
    )
    formatter.redactor = redactor
    handler = logging.StreamHandler(out)
    handler.setFormatter(formatter)
    asyncios = logging.getLogger("asyncio")
    asyncios.filters[:] = [_AcceptErrors()]
    root = logging.getLogger()
    root.handlers[:] = [handler]
    chosen = logging.getLevelNamesMapping()[level.upper()]
    # Libraries log warnings only, at any configured level: their finer lines contain URLs, headers and whole
    # conversations.
    root.setLevel(max(chosen, logging.WARNING))
    for package in _OURS:
        logging.getLogger(package).setLevel(chosen)
