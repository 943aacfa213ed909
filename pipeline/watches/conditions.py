"""A condition that is watched: a file, a page, a feed, a time, what is remembered, or a tool that reads.

Values only: what is compared is stored as evidence by the host, which also makes the checks.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final, Literal, get_args

from pipeline.domain.errors import InvalidInput
from pipeline.domain.frozen import dataclass
from pipeline.schedules.repetition import Repetition
from pipeline.schedules.shown import shown_repetition

ConditionKind = Literal["file", "page", "feed", "time", "memory", "tool", "tasks"]
"""`tasks` are the open tasks of the heartbeat's document."""
KINDS: Final[tuple[ConditionKind, ...]] = get_args(ConditionKind)
LEAST_S: Final[Mapping[ConditionKind, float]] = {
    "file": 60.0,
    "page": 300.0,
    "feed": 300.0,
    "time": 0.0,
    "memory": 60.0,
    "tool": 300.0,
    "tasks": 60.0,
}
"""The shortest time between two checks, in seconds."""
MAX_TARGET_CHARS: Final = 2_000
_DAY_S = 86_400.0
_SHOWN: Final[Mapping[ConditionKind, str]] = {
    "file": "the file {target}",
    "page": "the page {target}",
    "feed": "the feed {target}",
    "time": "{target}",
    "memory": "what is remembered about “{target}”",
    "tool": "the result of the tool {target}",
    "tasks": "open tasks of HEARTBEAT.md",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchCondition:
    """What is watched, and how often it is checked. Raises InvalidInput with readable words."""

    kind: ConditionKind
    target: str = ""
    """A path such as `own/list.txt`, an address, words, or the name of a tool."""
    arguments: str = ""
    """Of a tool: its arguments, a JSON object."""
    every_s: float = 0.0
    """Seconds between two checks; 0 for a time."""
    repetition: Repetition | None = None
    """Of a time."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InvalidInput(f"watch: there are {', '.join(KINDS)}, and no {self.kind}")
        if (self.kind == "time") != (self.repetition is not None):
            raise InvalidInput("watch: a time, and nothing else, has a repetition")
        if self.kind not in ("time", "tasks") and not self.target.strip():
            raise InvalidInput(f"watch: say which {self.kind}")
        if len(self.target) > MAX_TARGET_CHARS:
            raise InvalidInput(f"watch: the {self.kind} is longer than {MAX_TARGET_CHARS} characters")
        if self.kind in ("page", "feed") and not self.target.startswith(("https://", "http://")):
            raise InvalidInput("watch: an address begins with https:// or http://")
        least = LEAST_S[self.kind]
        if self.kind != "time" and not least <= self.every_s <= 366 * _DAY_S:
            words = f"{least / 60:.0f} minutes" if least > 60 else "minute"
            raise InvalidInput(f"watch: a {self.kind} is checked every {words} or less often")
        if self.arguments:
            _check_arguments(self.arguments)

    @property
    def shown(self) -> str:
        """What is watched and how often, in words for people."""
        if self.repetition is not None:
            return shown_repetition(self.repetition)
        what = _SHOWN[self.kind].format(target=self.target)
        return f"{what}, every {shown_interval(self.every_s)}"

    def plain(self) -> dict[str, Any]:
        """Plain data, for `from_plain`; empty values are left out."""
        plain: dict[str, Any] = {
            "kind": self.kind,
            "target": self.target,
            "arguments": self.arguments,
            "every_s": self.every_s,
            "repeats": None if self.repetition is None else self.repetition.plain(),
        }
        return {name: value for name, value in plain.items() if value}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> WatchCondition:
        """The condition of `plain`. Raises KeyError, TypeError, ValueError and InvalidInput."""
        repeats = plain.get("repeats")
        return cls(
            kind=plain["kind"],
            target=str(plain.get("target", "")),
            arguments=str(plain.get("arguments", "")),
            every_s=float(plain.get("every_s", 0.0)),
            repetition=None if repeats is None else Repetition.from_plain(repeats),
        )

    def next_check(self, now: float) -> float | None:
        """The Unix time of the check after `now`; None for a time that never comes again."""
        return now + self.every_s if self.repetition is None else self.repetition.next_after(now)


def shown_interval(seconds: float) -> str:
    """A number of seconds in words: `30 minutes`, `2 hours`, `1 day`."""
    for size, word in ((_DAY_S, "day"), (3_600.0, "hour"), (60.0, "minute")):
        if seconds >= size and seconds % size == 0:
            count = int(seconds // size)
            return f"{count} {word}" if count == 1 else f"{count} {word}s"
    return f"{seconds:g} seconds"


def digest(text: str | bytes) -> str:
    """A short hash, which is compared in place of the text."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return hashlib.sha256(data).hexdigest()[:24]


def _check_arguments(text: str) -> None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InvalidInput('watch: the arguments of a tool are a JSON object, such as {"zone": "UTC"}')
