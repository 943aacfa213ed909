"""A time that repeats: by a cron expression in a time zone, or by an interval.

Changes of the clock are handled as Debian's cron does (cronsim): what falls into the hour that is left out
happens right after it; what falls into the hour that comes twice happens once, unless it repeats within it.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from pipeline.domain.errors import InvalidInput
from pipeline.domain.frozen import dataclass

MIN_INTERVAL_S: Final = 300.0
"""The shortest time between two occurrences; a shorter one would fill a chat."""
_SAMPLE: Final = 64
"""Occurrences that are looked at for the shortest interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repetition:
    """When something happens again and again, from `start` on."""

    start: float
    """Unix time from which it counts; nothing happens before it."""
    zone: str = "UTC"
    """The IANA name of the zone of `cron`."""
    cron: str = ""
    """Five fields: minute, hour, day of the month, month, day of the week. Empty for an interval."""
    weeks: int = 1
    """Of `cron`: only in every so many weeks, counted from that of the first occurrence."""
    days: int = 1
    """Of `cron`: only on every so many days, counted from that of the first occurrence."""
    every_s: float = 0.0
    """The interval in seconds, without a cron expression."""

    def __post_init__(self) -> None:
        if bool(self.cron) == bool(self.every_s):
            raise InvalidInput("schedule: give either a cron expression or an interval")
        if self.every_s and self.every_s < MIN_INTERVAL_S:
            raise InvalidInput(f"schedule: the interval is shorter than {MIN_INTERVAL_S / 60:.0f} minutes")
        if self.weeks < 1 or self.days < 1:
            raise InvalidInput("schedule: weeks and days must be 1 or more")

    def next_after(self, at: float) -> float | None:
        """The first occurrence after a Unix time; None if there is none in the next 50 years."""
        if self.every_s:
            steps = max(0, int((at - self.start) // self.every_s) + 1)
            found = self.start + steps * self.every_s
            return found if found > at else found + self.every_s
        return next(self._counted(self._occurrences(max(at, self.start - 1))), None)

    def last_until(self, at: float) -> float | None:
        """The last occurrence up to and at a Unix time; None if there was none since the start."""
        if at < self.start:
            return None
        if self.every_s:
            return self.start + int((at - self.start) // self.every_s) * self.every_s
        # One second later, because the library leaves its own start out.
        for found in self._counted(self._occurrences(at + 1, reverse=True)):
            if found <= at:
                return found if found >= self.start else None
        return None

    def plain(self) -> dict[str, Any]:
        """Plain data, for `from_plain`."""
        return {
            "start": self.start,
            "zone": self.zone,
            "cron": self.cron,
            "weeks": self.weeks,
            "days": self.days,
            "every_s": self.every_s,
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Repetition:
        """The repetition of `plain`. Raises KeyError, TypeError, ValueError and InvalidInput."""
        return cls(
            start=float(plain["start"]),
            zone=str(plain["zone"]),
            cron=str(plain["cron"]),
            weeks=int(plain["weeks"]),
            days=int(plain["days"]),
            every_s=float(plain["every_s"]),
        )

    def _counted(self, found: Iterator[float]) -> Iterator[float]:
        """Of the occurrences those in weeks and on days that count."""
        if self.weeks == self.days == 1:
            yield from found
            return
        first = next(self._occurrences(self.start - 1), None)
        if first is None:
            return
        begun = _day_number(first, self.zone)
        for one in found:
            day = _day_number(one, self.zone)
            weeks = (day - day % 7 - begun + begun % 7) // 7
            if weeks % self.weeks == 0 and (day - begun) % self.days == 0:
                yield one

    def _occurrences(self, at: float, *, reverse: bool = False) -> Iterator[float]:
        begin = datetime.fromtimestamp(at, ZoneInfo(self.zone))
        for found in _cronsim().CronSim(self.cron, begin, reverse=reverse):
            yield found.timestamp()


def checked(repetition: Repetition) -> Repetition:
    """The same. Raises InvalidInput with readable words for an unknown zone, a wrong expression, one that
    never comes, and one that comes more often than every 5 minutes."""
    try:
        ZoneInfo(repetition.zone)
    except (KeyError, ValueError, OSError):
        raise InvalidInput(f"schedule: there is no time zone {repetition.zone[:64]}") from None
    if repetition.every_s:
        return repetition
    if len(repetition.cron.split()) != 5:
        raise InvalidInput("schedule: a cron expression has five fields, as in 0 9 * * 1-5")
    try:
        found = _cronsim().CronSim(
            repetition.cron, datetime.fromtimestamp(repetition.start, ZoneInfo(repetition.zone))
        )
        times = [one.timestamp() for one, _ in zip(found, range(_SAMPLE), strict=False)]
    except _cronsim().CronSimError as error:
        raise InvalidInput(f"schedule: the cron expression is wrong: {error}") from None
    if not times:
        raise InvalidInput("schedule: this time never comes")
    if any(later - earlier < MIN_INTERVAL_S for earlier, later in itertools.pairwise(times)):
        raise InvalidInput(f"schedule: it comes more often than every {MIN_INTERVAL_S / 60:.0f} minutes")
    return repetition


def _day_number(at: float, zone: str) -> int:
    """The number of that time's day in its zone; Mondays are divisible by 7."""
    return datetime.fromtimestamp(at, ZoneInfo(zone)).toordinal() - 1


def _cronsim() -> Any:
    """The library, loaded at the first schedule."""
    return importlib.import_module("cronsim")
