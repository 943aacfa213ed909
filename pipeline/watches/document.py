"""Read HEARTBEAT.md: the operator's standing instructions, open tasks, times, and what is watched.

    ## Garden
    - [ ] find out when to plant tomatoes
    - `0 9 * * 1-5` — sum up what is new
    - watch https://example.org/news every 2 hours — tell me about road works

Every other line is an instruction. A line that cannot be read is reported and left out.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

from pipeline.domain.errors import InvalidInput
from pipeline.domain.frozen import dataclass
from pipeline.watches.conditions import WatchCondition, digest
from pipeline.watches.words import Intervals, condition_of

MAX_CHARS: Final = 20_000
MAX_LINES: Final = 200
"""Of times and watches; further ones are reported."""
_HEADING = re.compile(r"#{1,6}\s+(?P<name>\S.*?)\s*$")
_TASK = re.compile(r"\s*[-*]\s+\[(?P<done>[ xX])\]\s+(?P<task>\S.*?)\s*$")
_WATCH = re.compile(r"\s*[-*]\s+watch\s+(?P<what>\S.*?)\s*$", re.IGNORECASE)
_TIME = re.compile(r"\s*[-*]\s+`(?P<when>[^`]+)`\s*(?P<rest>.*?)\s*$")
_BEFORE_TEXT = re.compile(r"\s+(?:—|--)\s+")
_DASH = re.compile(r"^\s*(?:—|-{1,2}|:)\s*")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchLine:
    """A line that says what is watched, or a time, and what is then done."""

    id: str
    """The same as long as the line is the same."""
    condition: WatchCondition
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatDocument:
    """What HEARTBEAT.md says."""

    instructions: str = ""
    """The lines that are neither tasks nor watches, with their headings."""
    projects: tuple[str, ...] = ()
    """The headings of the second level and below."""
    tasks: tuple[str, ...] = ()
    """The open ones."""
    watches: tuple[WatchLine, ...] = ()
    problems: tuple[str, ...] = ()
    """One line for each that cannot be read, with its number."""


def read_document(text: str, now: datetime, intervals: Intervals) -> HeartbeatDocument:
    """The document; its times are in the zone of `now`. Longer texts than `MAX_CHARS` are cut."""
    kept: list[str] = []
    projects: list[str] = []
    tasks: list[str] = []
    watches: dict[str, WatchLine] = {}
    problems: list[str] = []
    plain = _COMMENT.sub(_only_line_ends, text[:MAX_CHARS])
    for number, line in enumerate(plain.splitlines(), 1):
        if (task := _TASK.match(line)) is not None:
            if task["done"] == " ":
                tasks.append(task["task"])
            continue
        if (parts := _parts(line)) is not None:
            try:
                one = _watch(line, parts, now, intervals, room=MAX_LINES - len(watches))
                watches[one.id] = one
            except InvalidInput as error:
                problems.append(f"line {number}: {str(error).removeprefix('watch: ')}")
            continue
        heading = _HEADING.match(line)
        if heading is not None and line.startswith("##"):
            projects.append(heading["name"])
        kept.append(line.rstrip())
    return HeartbeatDocument(
        instructions="\n".join(kept).strip(),
        projects=tuple(projects),
        tasks=tuple(tasks),
        watches=tuple(watches.values()),
        problems=tuple(problems),
    )


def _parts(line: str) -> tuple[str, str] | None:
    """What is watched or when, and what is then done; None for another line."""
    if (watch := _WATCH.match(line)) is not None:
        what, *rest = _BEFORE_TEXT.split(watch["what"], maxsplit=1)
        return what, rest[0] if rest else ""
    if (time := _TIME.match(line)) is not None:
        return time["when"], _DASH.sub("", time["rest"])
    return None


def _watch(line: str, parts: tuple[str, str], now: datetime, intervals: Intervals, *, room: int) -> WatchLine:
    if not room:
        raise InvalidInput(f"watch: there are more than {MAX_LINES} of them")
    what, text = parts
    condition = condition_of(what, now, intervals)
    name = digest(" ".join(line.split()))[:12]
    return WatchLine(id=f"line_{name}", condition=condition, text=text or "Say what is new.")


def _only_line_ends(comment: re.Match[str]) -> str:
    return "\n" * comment[0].count("\n")
