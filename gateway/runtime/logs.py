"""Configure logs: one structured line per event, with thread, message and run ids, and without secrets.

Redaction works on the finished line, so that it covers exceptions, libraries and URLs too.
"""

from __future__ import annotations

import functools
import logging
import sys
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from itertools import filterfalse
from typing import Any, Final, Literal, TextIO

import structlog

from pipeline.domain.json_text import encoder
from pipeline.redaction.redactor import Redactor

_OURS = ("gateway", "adapters", "pipeline", "voice")

_ACCEPT_ERROR = "socket.accept() out of system resource"
_ACCEPT_ERROR_EVERY_S = 60.0
_NO_DESCRIPTORS = (
    "no connection can be accepted: the file descriptors are used up; it is tried again every second. Raise "
    "the limit (LimitNOFILE under systemd) if this returns"
)
_STANDARD: Final = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}
"""The attributes of every record; the others came as `extra`."""

_LOOKED_AT = frozenset({"event", "thread_key"})
_WITHOUT_WORDS = _LOOKED_AT | {"level", "logger", "timestamp", "message_id", "run_id", "outcome", "seconds"}
"""What is made by this program alone in each line in which it is, but for those that are looked at."""

_ids: ContextVar[Mapping[str, str]] = ContextVar("ids in the lines of the log")


def bind_ids(**ids: str) -> None:
    """Put `ids` into each line that this task and its later children log, until `unbind_ids`."""
    _ids.set(ids)


def unbind_ids() -> None:
    """End what `bind_ids` began."""
    _ids.set({})


class _Formatter(logging.Formatter):
    """Formats a record, with the ids of its task and its traceback, and then redacts the line. `render` makes
    the line of an event; it is called as a processor of structlog."""

    def __init__(self, render: Callable[[None, str, dict[str, Any]], str], redactor: Redactor) -> None:
        super().__init__()
        self._render = render
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        level, given = record.levelname.lower(), record.__dict__
        event: dict[str, Any] = {
            "event": record.getMessage(),
            **_ids.get({}),
            "level": level,
            "logger": record.name,
            **{name: given[name] for name in filterfalse(_STANDARD.__contains__, given)},
            "timestamp": _timestamp(record.created),
        }
        if record.exc_info is not None and record.exc_info[0] is not None:
            event["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            event["stack_info"] = record.stack_info
        is_clean = self._is_clean(event)
        line = self._render(None, level, event)
        return line if is_clean else self._redactor.text(line)

    def _is_clean(self, event: dict[str, Any]) -> bool:
        """Whether the line of `event` certainly holds no secret, as that of each turn's end does: a third of
        its cost is to look through the line."""
        return (
            event.keys() <= _WITHOUT_WORDS
            and self._redactor.is_clean(event["event"])
            and self._redactor.is_clean(event.get("thread_key", ""))
        )


def _timestamp(at: float) -> str:
    """The Unix time in the form of ISO 8601, to the microsecond."""
    second, micros = divmod(round(at * 1e6), 1_000_000)
    return f"{_second(second)}.{micros:06d}Z"


@functools.lru_cache(maxsize=8)
def _second(second: int) -> str:
    """Cached: a busy gateway writes many lines a second."""
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")


_encode = encoder(ascii_only=True, nan=True, separators=(", ", ": "), default=repr)


def _as_json(_logger: None, _level: str, event: dict[str, Any]) -> str:
    """One line of JSON; what JSON cannot express is in the words of `repr`."""
    return "".join(_encode(event, 0))


class _LineHandler(logging.StreamHandler[TextIO]):
    """Writes lines in half the time of its base class, which takes two locks for each."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self.stream.write(self.format(record) + self.terminator)
            self.stream.flush()
        except RecursionError:
            raise
        except Exception:  # noqa: BLE001 - as its base class does
            self.handleError(record)


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
    # No line shows the place in the program, the thread or the process, and looking them up is a third of its
    # cost. These are the switches that the library documents for that.
    logging._srcfile = None  # noqa: SLF001 - see above
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    out = stream or sys.stderr
    as_json = style == "json" or (style == "auto" and not out.isatty())
    # Plain: the pretty tracebacks print local variables, which hold users' words and keys.
    render = (
        _as_json
        if as_json
        else structlog.dev.ConsoleRenderer(
            colors=out.isatty(), pad_event_to=24, exception_formatter=structlog.dev.plain_traceback
        )
    )
    handler = _LineHandler(out)
    handler.setFormatter(_Formatter(render, redactor))
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
