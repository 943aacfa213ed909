"""Read what is to be watched from a line of words: `file own/list.txt`, `https://…`, `memory coffee`.

What is not fully understood is refused, never guessed; the caller shows the result back before it counts.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

from pipeline.domain.errors import InvalidInput
from pipeline.domain.frozen import dataclass
from pipeline.schedules.words import repetition_of
from pipeline.watches.conditions import LEAST_S, ConditionKind, WatchCondition

HOW: Final = (
    "say it as in “file own/list.txt”, “https://example.org/news every 2 hours”, “feed https://…”, “memory"
    " coffee”, “tool about” or “every weekday at 9”"
)
_EVERY = re.compile(
    r"\s+every\s+(?:(?P<count>\d{1,4})\s+)?(?P<unit>minute|hour|day)s?\s*$",
    re.IGNORECASE,
)
_SECONDS: Final = {"minute": 60.0, "hour": 3_600.0, "day": 86_400.0}
_NAMED: Final[dict[str, ConditionKind]] = {
    "file": "file",
    "page": "page",
    "feed": "feed",
    "memory": "memory",
    "tool": "tool",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervals:
    """How often is checked where the words do not say."""

    usual_s: float = 1_800.0

    def of(self, kind: ConditionKind) -> float:
        """Seconds between two checks: files and memory cost next to nothing."""
        return LEAST_S[kind] if kind in ("file", "memory") else max(self.usual_s, LEAST_S[kind])


def condition_of(words: str, now: datetime, intervals: Intervals) -> WatchCondition:
    """The condition that `words` name and nothing else; a time begins at `now`, which must have a zone.
    Raises InvalidInput with readable words."""
    said = words.strip().strip("`").strip()
    first, _, rest = said.partition(" ")
    kind = _NAMED.get(first.casefold().rstrip(":"))
    if kind is None and said.startswith(("https://", "http://")):
        kind, rest = "page", said
    if kind is None:
        return _time(said, now)
    target, every_s = _split(rest, kind, intervals)
    arguments = ""
    if kind == "tool":
        target, _, arguments = target.partition(" ")
    if kind in ("page", "feed") and len(target.split()) > 1:
        raise InvalidInput(f"watch: I do not understand “{target[:80]}”; {HOW}")
    return WatchCondition(kind=kind, target=target.strip(), arguments=arguments.strip(), every_s=every_s)


def _split(rest: str, kind: ConditionKind, intervals: Intervals) -> tuple[str, float]:
    """What is watched, and the seconds between two checks."""
    found = _EVERY.search(f" {rest}")
    if found is None:
        return rest.strip(), intervals.of(kind)
    every_s = int(found["count"] or 1) * _SECONDS[found["unit"].lower()]
    return f" {rest}"[: found.start()].strip(), every_s


def _time(said: str, now: datetime) -> WatchCondition:
    try:
        return WatchCondition(kind="time", target=said, repetition=repetition_of(said, now))
    except InvalidInput as error:
        why = str(error).removeprefix("schedule: ")
        raise InvalidInput(f"watch: {why}, or what is watched: {HOW}") from None
