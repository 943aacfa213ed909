"""HEARTBEAT.md of the person whom the configuration names: read again when it changes."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from gateway.scheduling.watch_records import Watch
from pipeline.domain.clock import Clock
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Author
from pipeline.schedules.quiet_hours import QuietHours
from pipeline.tools.confine import read_text
from pipeline.tools.folders import Place
from pipeline.tools.tool import ToolFailed
from pipeline.watches.conditions import WatchCondition
from pipeline.watches.document import MAX_CHARS, HeartbeatDocument, read_document
from pipeline.watches.words import Intervals

_log = logging.getLogger(__name__)

FILE: Final = "HEARTBEAT.md"
TASKS: Final = "tasks"
"""The id of the watch for open tasks."""
_MOST_BYTES: Final = 4 * MAX_CHARS


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnHeartbeat:
    """The heartbeat that the configuration describes."""

    thread: ThreadKey
    """The private chat of its person."""
    author: Author
    agent: str
    """Empty for the default one."""
    folder: Path
    """The workspace with the document."""
    zone: str
    every_s: float
    outside: QuietHours | None = None
    """The hours in which it does not run; None for none."""


class DocumentFile:
    """The document, as it was read last."""

    def __init__(self, own: OwnHeartbeat, clock: Clock) -> None:
        self.own = own
        self.read = HeartbeatDocument()
        self._clock = clock
        self._place = Place(own.folder, (FILE,))
        self._stamp: tuple[int, int] | None = None

    async def changed(self) -> bool:
        """Read the document if it has changed. Whether it has. A file that cannot be read counts as empty,
        and the log says why."""
        stamp = await asyncio.to_thread(self._status)
        if stamp == self._stamp:
            return False
        self._stamp = stamp
        text = "" if stamp == (0, 0) else await asyncio.to_thread(self._text)
        now = datetime.fromtimestamp(self._clock.now(), ZoneInfo(self.own.zone))
        self.read = read_document(text, now, Intervals(usual_s=self.own.every_s))
        for problem in self.read.problems:
            _log.warning("a line of HEARTBEAT.md is left out", extra={"reason": problem})
        return True

    def watches(self) -> tuple[Watch, ...]:
        """What it wants to be watched, and its open tasks."""
        own, now = self.own, self._clock.now()
        tasks = Watch(
            id=TASKS,
            condition=WatchCondition(kind="tasks", every_s=own.every_s),
            text="",
            thread=own.thread,
            author=own.author,
            agent=own.agent,
            zone=own.zone,
            from_document=True,
            seen={"at": now},
        )
        lines = self.read.watches
        return (
            tasks,
            *(replace(tasks, id=one.id, condition=one.condition, text=one.text, seen={}) for one in lines),
        )

    def _status(self) -> tuple[int, int]:
        try:
            status = self._place.status()
        except ToolFailed:
            status = None
        return (0, 0) if status is None else (status.st_mtime_ns, status.st_size)

    def _text(self) -> str:
        try:
            return read_text(self._place, most_bytes=_MOST_BYTES)
        except ToolFailed as error:
            _log.warning("HEARTBEAT.md cannot be read", extra={"reason": str(error)})
            return ""
