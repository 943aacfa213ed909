"""Logs: one structured line per event, with thread, message and run ids, and without secrets.

Redaction works on the finished line: known secret values first, then patterns, so that nothing an
exception, a library or a URL carries gets around it.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Callable, Iterable
from typing import Literal, TextIO

import structlog

_OURS = ("gateway", "adapters", "pipeline", "voice")
MASK = "[secret]"
_MIN_SECRET_CHARS = 6

_PATTERNS = re.compile(
    r"""
    (?<!\d)\d{6,12}:[A-Za-z0-9_-]{30,}         # Telegram bot tokens, also inside URLs
    | \bxox[a-z]-[A-Za-z0-9-]{10,}             # Slack tokens
    | \bxapp-[A-Za-z0-9-]{10,}
    | \bsk-[A-Za-z0-9_-]{16,}                  # model provider keys
    | (?<=[Bb]earer\ )[A-Za-z0-9._~+/=-]{12,}
    """,
    re.VERBOSE,
)


class Redactor:
    """Replaces secrets in text. `known` gives the configured values at the time of each call."""

    def __init__(self, known: Callable[[], Iterable[str]]) -> None:
        self._known = known

    def redact(self, text: str) -> str:
        """`text` with every known secret and everything that looks like one masked."""
        for secret in sorted(self._known(), key=len, reverse=True):
            if len(secret) >= _MIN_SECRET_CHARS:
                for form in _forms(secret):
                    text = text.replace(form, MASK)
        return _PATTERNS.sub(MASK, text)


def _forms(secret: str) -> set[str]:
    """The secret as it is, and as a JSON line spells it."""
    return {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}


class _RedactingFormatter(structlog.stdlib.ProcessorFormatter):
    """Formats a record, traceback included, and then redacts the line."""

    redactor: Redactor

    def format(self, record: logging.LogRecord) -> str:
        return self.redactor.redact(super().format(record))


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
        structlog.processors.JSONRenderer()
        if as_json
        # Plain: the pretty tracebacks print local variables, which hold what users wrote and keys.
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
    root = logging.getLogger()
    root.handlers[:] = [handler]
    chosen = logging.getLevelNamesMapping()[level.upper()]
    # The libraries only warn, whatever is asked of us: their finer lines carry URLs, headers and whole
    # conversations.
    root.setLevel(max(chosen, logging.WARNING))
    for package in _OURS:
        logging.getLogger(package).setLevel(chosen)
