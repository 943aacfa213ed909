"""Build the inbox entries of heartbeats, and of the notice about a watch that cannot be checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from gateway.scheduling.heartbeat_document import DocumentFile
from gateway.scheduling.watch_checks import WatchFinding
from gateway.scheduling.watch_records import Watch
from gateway.storage.codec import new_entry
from gateway.storage.ports import NewEntry
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import ThreadKey, heartbeat_thread
from pipeline.domain.marking import marked
from pipeline.domain.messages import Announcement, HeartbeatDue
from pipeline.watches.conditions import digest

_MARK: Final = "watch"
_DAY_S: Final = 86_400
_HAPPENED: Final = "What has happened since the last heartbeat:\n\n{events}"
_EVENT: Final = "{number}. {what}{asked}\n{text}"
_ASKED: Final = "\nWhat you were asked to do then: {text}"
_FAILING: Final = (
    "I cannot check {what}: {problem}. I keep trying, and say nothing more about it until it works again. "
    "`/heartbeat` shows what is watched."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DueEntry:
    """A heartbeat, as an item and as an entry of the inbox."""

    item: HeartbeatDue
    entry: NewEntry


def heartbeat_entry(
    identity: str,
    events: Sequence[tuple[Watch, WatchFinding]],
    to: str,
    document: DocumentFile | None,
    now: float,
) -> DueEntry:
    """The heartbeat of that id for these events, all of one chat, whose results go to the chat `to`."""
    first = events[0][0]
    own = document is not None and document.own.thread == first.thread
    read = document.read if document is not None and own else None
    about_tasks = any(watch.condition.kind == "tasks" for watch, _ in events)
    item = HeartbeatDue(
        message_id=identity,
        native_id=identity,
        thread=heartbeat_thread(first.thread),
        author=first.author,
        received_at=now,
        text=_HAPPENED.format(events="\n\n".join(_shown(at, one) for at, one in enumerate(events, 1))),
        sources=tuple(dict.fromkeys(finding.source for _, finding in events if finding.source)),
        to=to,
        agent=first.agent,
        zone=first.zone,
        instructions="" if read is None else read.instructions,
        projects=() if read is None else read.projects,
        tasks=read.tasks if read is not None and about_tasks else (),
        private=first.private,
    )
    return DueEntry(item=item, entry=new_entry(item))


def failure_entry(watch: Watch, problem: str, to: str, now: float) -> NewEntry:
    """The line that tells a person that a watch fails: the same entry for every attempt to enqueue it."""
    # The same one for an attempt that is repeated after a crash, and another one after it worked again.
    identity = f"watch_{watch.id}_{int(now // _DAY_S)}_{digest(repr(sorted(watch.seen.items())))}"
    item = Announcement(
        message_id=identity,
        native_id=identity,
        thread=ThreadKey.decode(to),
        author=watch.author,
        received_at=now,
        text=_FAILING.format(what=watch.condition.shown, problem=problem.rstrip(".")),
        private=watch.private,
    )
    return replace(new_entry(item), dedupe_key=f"watch-failed:{identity}")


def _shown(number: int, event: tuple[Watch, WatchFinding]) -> str:
    watch, finding = event
    what = watch.condition.shown
    text = marked(_MARK, finding.text) if finding.source or watch.condition.kind in _READ else finding.text
    asked = _ASKED.format(text=watch.text) if watch.text else ""
    return _EVENT.format(number=number, what=what[0].upper() + what[1:], asked=asked, text=text)


_READ: Final = ("file", "page", "feed", "memory", "tool")
"""The kinds whose text is somebody's, and no instruction."""
