"""Check what is watched, without a model: compare it with what was seen last.

A check that finds what it found before costs a look: at the status of a file, at the version of a page. What
has changed is then read with the rights of its person, and its text is the evidence for the model.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from gateway.scheduling.watch_records import Watch
from pipeline.domain.clock import Clock
from pipeline.domain.errors import InvalidInput
from pipeline.domain.frozen import dataclass
from pipeline.memory.ports import MemoryBook, Question
from pipeline.tools.confine import inside, person_place, read_bytes
from pipeline.tools.folders import NO_STAMP, Place, Stamp
from pipeline.tools.tool import ToolFailed
from pipeline.tools.web_client import NOT_MODIFIED, GuardedWeb, WebFailed, WebPage
from pipeline.tools.web_text import read_page
from pipeline.watches.conditions import digest
from pipeline.watches.feed import FeedEntry, read_feed

EVIDENCE_CHARS: Final = 4_000
"""The most text of one event."""
_MOST_BYTES: Final = 2_000_000
_MOST_FACTS: Final = 20
_MOST_NEW: Final = 20
"""Entries of a feed, or facts, in one event."""
_OWN, _SHARED = "own", "shared"
_GONE: Final = "The file is no longer there."


class WatchFailed(Exception):
    """It cannot be checked now; the text says why, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchFinding:
    """What a check has found."""

    seen: Mapping[str, Any]
    """To keep, and compare the next check with."""
    text: str = ""
    """What has happened; empty for nothing."""
    source: str = ""
    """Where foreign text in it comes from; empty for none."""


class WatchRights(Protocol):
    """What checks may do for the person of a watch. `session` is that of the heartbeat which would tell of
    it: what is read labels that conversation."""

    def folder(self, watch: Watch) -> Path:
        """The workspace of the watch's agent."""
        ...

    def owner(self, watch: Watch) -> str:
        """The owner of the person's files and memory."""
        ...

    async def read_by_tool(
        self, watch: Watch, session: str, tool: str, arguments: Mapping[str, Any]
    ) -> tuple[str, str]:
        """What a tool that only reads returns, judged as every call: its text, and the source of foreign text
        in it. Raises WatchFailed."""
        ...

    async def may_fetch(self, watch: Watch, session: str) -> Callable[[str], bool]:
        """Whether a host may be fetched from. Raises WatchFailed if nothing may."""
        ...

    async def note_fetched(self, watch: Watch, session: str, text: str, source: str) -> None:
        """Label the conversation with a fetched text."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A watch after a check."""

    before: Watch
    after: Watch
    finding: WatchFinding | None
    """None if the check failed."""
    problem: str = ""

    @property
    def has_changed(self) -> bool:
        """Whether it has seen something else."""
        return self.after != self.before


class WatchChecks:
    """Makes the checks of every kind, but that of open tasks."""

    def __init__(
        self,
        *,
        clock: Clock,
        web: GuardedWeb,
        memories: MemoryBook,
        rights: WatchRights,
    ) -> None:
        self._clock = clock
        self._web = web
        self._memories = memories
        self._rights = rights

    async def check(self, watch: Watch, session: str) -> WatchFinding:
        """What there is, compared with what the watch has seen. The first check finds nothing new. Raises
        WatchFailed and StorageError."""
        try:
            match watch.condition.kind:
                case "time":
                    return self._time(watch)
                case "file":
                    return await self._file(watch, session)
                case "page":
                    return await self._page(watch, session)
                case "feed":
                    return await self._feed(watch, session)
                case "memory":
                    return await self._memory(watch)
                case "tool":
                    return await self._tool(watch, session)
                case other:
                    raise WatchFailed(f"nothing checks {other}")
        except (WebFailed, ToolFailed, InvalidInput) as error:
            raise WatchFailed(str(error).removeprefix("watch: ")) from error

    def _time(self, watch: Watch) -> WatchFinding:
        repetition, now = watch.condition.repetition, self._clock.now()
        last = None if repetition is None else repetition.last_until(now)
        if repetition is None or last is None:
            return WatchFinding(seen=watch.seen)
        # A time of the clock counts from the moment after it was asked for.
        before = repetition.start if repetition.cron else 0.0
        if last <= float(watch.seen.get("at", before)):
            return WatchFinding(seen=watch.seen)
        return WatchFinding(seen={"at": last}, text=f"The time has come: {watch.condition.shown}.")

    async def _file(self, watch: Watch, session: str) -> WatchFinding:
        place = self._place(watch)
        stamp = await asyncio.to_thread(_stamp, place)
        if watch.seen and tuple(watch.seen["stamp"]) == stamp:
            return WatchFinding(seen=watch.seen)
        if stamp == NO_STAMP:
            gone = {"stamp": list(NO_STAMP), "hash": "", "lines": 0}
            return WatchFinding(seen=gone, text=_GONE if watch.seen else "")
        data = await asyncio.to_thread(read_bytes, place, most_bytes=_MOST_BYTES)
        seen = {"stamp": list(stamp), "hash": digest(data), "lines": data.count(b"\n")}
        seen |= {"size": len(data)}
        if not watch.seen or watch.seen["hash"] == seen["hash"]:
            return WatchFinding(seen=seen)
        arguments: dict[str, Any] = {"path": watch.condition.target}
        if _is_appended(watch.seen, data):
            arguments["line"] = int(watch.seen["lines"]) + 1
        text, source = await self._rights.read_by_tool(watch, session, "read_file", arguments)
        return WatchFinding(seen=seen, text=text, source=source)

    def _place(self, watch: Watch) -> Place:
        """The file. Raises Refused for a path that leads elsewhere."""
        root, owner = self._rights.folder(watch), self._rights.owner(watch)
        first, *rest = PurePosixPath(watch.condition.target).parts
        if first == _SHARED and rest:
            return inside(Place(root, ("files",)), str(PurePosixPath(*rest)))
        if first == _OWN and rest:
            folder = person_place(root, owner)
            return inside(replace(folder, parts=(*folder.parts, "files")), str(PurePosixPath(*rest)))
        raise WatchFailed("a path begins with own/ or shared/")

    async def _page(self, watch: Watch, session: str) -> WatchFinding:
        page = await self._fetched(watch, session)
        if page is None:
            return WatchFinding(seen=watch.seen)
        read = await asyncio.to_thread(read_page, page, self._clock.monotonic)
        text = f"{read.title}\n{read.text}".strip()
        seen = {"etag": page.etag, "modified": page.modified, "hash": digest(text)}
        if not watch.seen or watch.seen["hash"] == seen["hash"]:
            return WatchFinding(seen=seen)
        return await self._found(watch, session, seen, text, "a watched page")

    async def _feed(self, watch: Watch, session: str) -> WatchFinding:
        page = await self._fetched(watch, session)
        if page is None:
            return WatchFinding(seen=watch.seen)
        entries = await asyncio.to_thread(read_feed, page.body)
        seen: dict[str, Any] = {
            "etag": page.etag,
            "modified": page.modified,
            "ids": [digest(one.id)[:12] for one in entries],
        }
        known = set(watch.seen.get("ids", ()))
        new = [one for one in entries if digest(one.id)[:12] not in known]
        if not watch.seen or not new:
            return WatchFinding(seen=seen)
        return await self._found(watch, session, seen, _listed(new), "a watched feed")

    async def _fetched(self, watch: Watch, session: str) -> WebPage | None:
        """The page; None if it is as it was."""
        address, headers = watch.condition.target, {}
        if etag := watch.seen.get("etag"):
            headers["If-None-Match"] = str(etag)
        elif modified := watch.seen.get("modified"):
            headers["If-Modified-Since"] = str(modified)
        may_reach = await self._rights.may_fetch(watch, session)
        if not may_reach(urlsplit(address).hostname or ""):
            raise WatchFailed("the security policy closes this address")
        page = await self._web.get(address, headers=headers, may_reach=may_reach)
        if page.status == NOT_MODIFIED and watch.seen:
            return None
        if page.status >= 300:
            raise WatchFailed(f"the server answers with status {page.status}")
        return page

    async def _found(
        self, watch: Watch, session: str, seen: Mapping[str, Any], text: str, source: str
    ) -> WatchFinding:
        text = _cut(text)
        await self._rights.note_fetched(watch, session, text, source)
        return WatchFinding(seen=seen, text=text, source=source)

    async def _memory(self, watch: Watch) -> WatchFinding:
        question = Question(text=watch.condition.target)
        facts = await self._memories.find_facts(self._rights.owner(watch), question, limit=_MOST_FACTS)
        shown = {one.id: one for one in facts if one.user_visible}
        seen = {"ids": sorted(shown)}
        new = [one for name, one in sorted(shown.items()) if name not in set(watch.seen.get("ids", ()))]
        if not watch.seen or not new:
            return WatchFinding(seen=seen)
        return WatchFinding(seen=seen, text="\n".join(f"- {one.evidence_quote}" for one in new[:_MOST_NEW]))

    async def _tool(self, watch: Watch, session: str) -> WatchFinding:
        condition = watch.condition
        arguments: Mapping[str, Any] = json.loads(condition.arguments) if condition.arguments else {}
        text, source = await self._rights.read_by_tool(watch, session, condition.target, arguments)
        seen = {"hash": digest(text)}
        if not watch.seen or watch.seen["hash"] == seen["hash"]:
            return WatchFinding(seen=seen)
        return WatchFinding(seen=seen, text=_cut(text), source=source)


def _stamp(place: Place) -> Stamp:
    status = place.status()
    return NO_STAMP if status is None else (status.st_mtime_ns, status.st_size)


def _is_appended(seen: Mapping[str, Any], data: bytes) -> bool:
    """Whether the file begins with all that was seen, a whole number of lines."""
    size = int(seen.get("size", 0))
    before = data[:size]
    return 0 < size < len(data) and before.endswith(b"\n") and digest(before) == seen["hash"]


def _listed(entries: list[FeedEntry]) -> str:
    lines = [f"- {one.title or one.id}{f' <{one.link}>' if one.link else ''}" for one in entries[:_MOST_NEW]]
    left = len(entries) - len(lines)
    return "\n".join([*lines, f"({left} more)"] if left else lines)


def _cut(text: str) -> str:
    return text if len(text) <= EVIDENCE_CHARS else f"{text[:EVIDENCE_CHARS].rstrip()} …(cut)"
