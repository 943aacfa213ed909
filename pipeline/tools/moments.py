"""Parse a moment in a person's words: "tomorrow at 8 am", "am 3. Dezember um 9 Uhr", "dans une heure".

`pipeline.domain.time_phrases` splits the words; dateparser reads the names of days and dates. Only this
module imports dateparser, at the first date, in the calling thread.
"""

from __future__ import annotations

import importlib
import re
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from pipeline.domain.time_phrases import TimePhrase, whole_time
from pipeline.tools.tool import ToolFailed

DAY_HOUR = 9
"""The hour for a day without a time."""
_LANGUAGES = ["en", "de", "fr", "es"]
_LONGEST = 100
"""The most characters of the words for one moment."""
_NUMERIC = re.compile(r"(\d{1,2})([./])(\d{1,2})(?:[./](\d{2,4})?)?")
_ORDINAL = re.compile(r"(?<=\d)(?:st|nd|rd|th|er|\.)(?=\s|$)", re.IGNORECASE)
_BETWEEN = re.compile(r"\b(?:of|de|del)\b", re.IGNORECASE)
_YEAR = re.compile(r"\b\d{4}\b")
_UNCLEAR = "I do not understand the time “{words}”; say it as in “tomorrow at 8:00” or “2030-05-31 18:30”"
_REPEATED = "remind_me is for once, and “{words}” repeats: use repeat_for_me, or say one day and time"


def moment_of(words: str, now: datetime) -> datetime:
    """The moment after `now` that `words` name, in the zone of `now`, which must have one.

    A day without a time means 9:00; a time without a day means its next occurrence. Raises ToolFailed with
    a readable text for words that are not fully understood, for a time in the past, and for a repetition.
    """
    said = " ".join(words.split())
    phrase = whole_time(said) if len(said) <= _LONGEST else None
    if phrase is None:
        raise ToolFailed(_UNCLEAR.format(words=said[:_LONGEST]))
    if phrase.repeated:
        raise ToolFailed(_REPEATED.format(words=said))
    due = _of(phrase, said, now)
    if due.timestamp() <= now.timestamp():
        raise ToolFailed(f"that time is over: it is {now:%A %Y-%m-%d %H:%M} now")
    return due


def _of(phrase: TimePhrase, said: str, now: datetime) -> datetime:
    zone = now.tzinfo
    if phrase.minutes is not None and phrase.hour is None:
        return datetime.fromtimestamp(now.timestamp() + phrase.minutes * 60, zone)
    today = now.date()
    if phrase.minutes is not None:
        day: date | None = datetime.fromtimestamp(now.timestamp() + phrase.minutes * 60, zone).date()
    elif phrase.days is not None:
        day = today + timedelta(days=phrase.days)
    else:
        day = _date(phrase.date, said, today) if phrase.date else None
    hour, minute = _time_of(phrase)
    found = _at(day or today, hour, minute, zone)
    if day is None and found.timestamp() <= now.timestamp():
        found = _at(today + timedelta(days=1), hour, minute, zone)
    return found


def _at(day: date, hour: int, minute: int, zone: Any) -> datetime:
    return datetime(day.year, day.month, day.day, hour, minute, tzinfo=zone)


def _time_of(phrase: TimePhrase) -> tuple[int, int]:
    if phrase.hour is None:
        return (DAY_HOUR if phrase.part is None else phrase.part), 0
    later = phrase.part is not None and phrase.part >= 15 and phrase.hour < 12 and not phrase.half_day
    return phrase.hour + (12 if later else 0), phrase.minute


def _date(words: str, said: str, today: date) -> date:
    """The next day of that name or date. Raises ToolFailed if `words` name none."""
    numeric = _NUMERIC.fullmatch(words)
    if numeric is not None:
        return _numeric(numeric, said, today)
    text = _BETWEEN.sub(" ", _ORDINAL.sub("", words.rstrip(".")))
    base = datetime(today.year, today.month, today.day)  # noqa: DTZ001  # the library computes without zones
    settings = {"RELATIVE_BASE": base, "PREFER_DATES_FROM": "future", "PARSERS": _PARSERS}
    found = _dateparser().parse(text, languages=_LANGUAGES, settings=settings)
    if found is None:
        raise ToolFailed(_UNCLEAR.format(words=said))
    day = date(found.year, found.month, found.day)
    if not re.search(r"\d", text):
        # A weekday means its next occurrence and never today; the library may return today.
        return day if day > today else day + timedelta(days=7)
    if day < today and not _YEAR.search(text):
        day = _replaced(day, day.year + 1, said)
    return day


_PARSERS = ["relative-time", "absolute-time"]


def _numeric(match: re.Match[str], said: str, today: date) -> date:
    """A day and a month in figures. With a slash, both orders are usual: an ambiguous date is refused."""
    first, mark, second, year_words = match.groups()
    day, month = int(first), int(second)
    if mark == "/" and day <= 12 and day != month:
        if month <= 12:
            raise ToolFailed(
                f"“{match.group()}” can be two dates; write it as 2030-05-31 or with the month's name"
            )
        day, month = month, day
    year = today.year if not year_words else int(year_words) + (2_000 if len(year_words) == 2 else 0)
    try:
        found = date(year, month, day)
    except ValueError:
        raise ToolFailed(f"there is no such day as {match.group()}") from None
    return found if year_words or found >= today else _replaced(found, year + 1, said)


def _replaced(day: date, year: int, said: str) -> date:
    try:
        return day.replace(year=year)
    except ValueError:
        raise ToolFailed(_UNCLEAR.format(words=said)) from None


def _dateparser() -> Any:
    return importlib.import_module("dateparser")


def zone_of(name: str) -> ZoneInfo:
    """The zone of an IANA name, or of a city that one is named after. Reads the disk. Raises ToolFailed."""
    wanted = " ".join(name.split()).strip(" .!?")
    try:
        return ZoneInfo(wanted)
    except (KeyError, ValueError, OSError):
        pass
    zones = _cities()
    found = zones.get(wanted.casefold().replace(" ", "_"))
    if found is None:
        raise ToolFailed(f"there is no time zone {wanted[:_LONGEST]}; give one such as Europe/Berlin")
    return ZoneInfo(found)


_CITIES_IN_OTHER_WORDS = {
    "tokio": "Asia/Tokyo", "londres": "Europe/London", "pékin": "Asia/Shanghai", "pekín": "Asia/Shanghai",
    "peking": "Asia/Shanghai", "beijing": "Asia/Shanghai", "moskau": "Europe/Moscow",
    "moscou": "Europe/Moscow", "moscú": "Europe/Moscow", "rom": "Europe/Rome", "roma": "Europe/Rome",
    "wien": "Europe/Vienna", "vienne": "Europe/Vienna", "viena": "Europe/Vienna", "mailand": "Europe/Rome",
    "nueva_york": "America/New_York", "ny": "America/New_York", "nyc": "America/New_York",
    "san_francisco": "America/Los_Angeles", "zürich": "Europe/Zurich", "berlín": "Europe/Berlin",
    "münchen": "Europe/Berlin", "munich": "Europe/Berlin", "lisbonne": "Europe/Lisbon",
    "lissabon": "Europe/Lisbon", "lisboa": "Europe/Lisbon", "bruxelles": "Europe/Brussels",
    "brüssel": "Europe/Brussels", "kairo": "Africa/Cairo", "le_caire": "Africa/Cairo",
    "mumbai": "Asia/Kolkata", "delhi": "Asia/Kolkata", "india": "Asia/Kolkata", "athen": "Europe/Athens",
    "genf": "Europe/Zurich", "genève": "Europe/Zurich", "geneva": "Europe/Zurich", "ginebra": "Europe/Zurich",
    "washington": "America/New_York", "boston": "America/New_York", "seattle": "America/Los_Angeles",
    "barcelona": "Europe/Madrid", "parís": "Europe/Paris", "singapur": "Asia/Singapore",
    "germany": "Europe/Berlin", "japan": "Asia/Tokyo", "france": "Europe/Paris", "spain": "Europe/Madrid",
    "córdoba": "Europe/Madrid", "méxico": "America/Mexico_City", "ciudad_de_méxico": "America/Mexico_City",
}  # fmt: skip


def _cities() -> dict[str, str]:
    found = {name.rpartition("/")[2].casefold(): name for name in sorted(available_timezones())}
    return {**found, **_CITIES_IN_OTHER_WORDS}
