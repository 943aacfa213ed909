"""Show a repetition back in words, derived from what will happen and not from what was said."""

from __future__ import annotations

from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from pipeline.schedules.repetition import Repetition

_DAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_NTH: Final = ("first", "second", "third", "fourth", "fifth")
_WORKDAYS, _WEEKEND = {1, 2, 3, 4, 5}, {0, 6}


def shown_repetition(repetition: Repetition) -> str:
    """Such as `every Monday to Friday at 09:00 (Europe/Berlin)`; for what has no simple words, the cron
    expression."""
    if repetition.every_s:
        return f"every {_interval(repetition.every_s)}"
    minute, hour, day, month, weekday = repetition.cron.split()
    when = _when(day, weekday, repetition) if month == "*" else None
    if when is None or not (minute.isdigit() and hour.isdigit()):
        return f"cron {repetition.cron} ({repetition.zone})"
    return f"{when} at {int(hour):02}:{int(minute):02} ({repetition.zone})"


def shown_times(repetition: Repetition, now: float, count: int = 3) -> str:
    """The next times, such as `Monday 2026-11-30 09:00`, in the repetition's zone."""
    times: list[str] = []
    at: float | None = now
    while at is not None and len(times) < count:
        at = repetition.next_after(at)
        if at is not None:
            times.append(f"{datetime.fromtimestamp(at, ZoneInfo(repetition.zone)):%A %Y-%m-%d %H:%M}")
    return ", ".join(times)


def _when(day: str, weekday: str, repetition: Repetition) -> str | None:
    if day != "*":
        if weekday != "*":
            return None
        if day == "L":
            return "on the last day of every month"
        return f"on day {int(day)} of every month" if day.isdigit() else None
    if "#" in weekday:
        name, _, nth = weekday.partition("#")
        return f"on the {_NTH[int(nth) - 1]} {_DAYS[int(name)]} of every month"
    if weekday.endswith("L"):
        return f"on the last {_DAYS[int(weekday[:-1])]} of every month"
    days = _weekdays(weekday)
    if days is None:
        return None
    if repetition.days > 1:
        return f"every {repetition.days} days"
    if repetition.weeks > 1:
        return f"every {repetition.weeks} weeks on {_listed(days)}"
    return "every day" if len(days) == len(_DAYS) else f"every {_listed(days)}"


def _weekdays(field: str) -> set[int] | None:
    if field == "*":
        return set(range(7))
    if field == "1-5":
        return set(_WORKDAYS)
    parts = field.split(",")
    return {int(part) % 7 for part in parts} if all(part.isdigit() for part in parts) else None


def _listed(days: set[int]) -> str:
    if days == _WORKDAYS:
        return "Monday to Friday"
    if days == _WEEKEND:
        return "Saturday and Sunday"
    # The week begins with Monday, as in the words of most people who say several days.
    names = [_DAYS[day] for day in sorted(days, key=lambda day: (day - 1) % 7)]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _interval(seconds: float) -> str:
    for name, size in (("hour", 3_600), ("minute", 60)):
        if seconds % size == 0:
            count = int(seconds // size)
            return name if count == 1 else f"{count} {name}s"
    return f"{seconds:.0f} seconds"
