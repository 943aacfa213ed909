"""Read a repetition in a person's words, in English, German, French and Spanish, or as a cron expression.

"every weekday at 9", "jeden zweiten Dienstag um 18 Uhr", "le premier lundi de chaque mois", "cada 2 horas".
What is not fully understood is refused, never guessed; the caller shows the result back before it counts.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from datetime import datetime

from pipeline.domain.errors import InvalidInput
from pipeline.domain.frozen import dataclass
from pipeline.domain.time_phrases import TimePhrase, whole_time
from pipeline.schedules.forms import DAY, DAYS, FORMS, NUMBERS, ORDINALS, PARTS
from pipeline.schedules.repetition import Repetition, checked

DAY_HOUR = 9
"""The hour of a repetition without a time of the day."""
MAX_CHARS = 120
_MOST_WORDS = 14
"""Of the words that name a repetition inside a text."""
_UNCLEAR = (
    "I do not understand when “{words}” is; say it as in “every weekday at 9:00”, “every first Monday of the"
    " month at 18:30” or “every 2 hours”"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """One form that the words have, and what is left of them: the time of the day."""

    form: str
    groups: dict[str, str]
    rest: str


def repetition_of(words: str, now: datetime) -> Repetition:
    """The repetition that `words` name and nothing else, from `now` on, which must have a zone. Raises
    InvalidInput with readable words."""
    said = " ".join(words.split())
    if not said or len(said) > MAX_CHARS:
        raise InvalidInput(_UNCLEAR.format(words=said[:MAX_CHARS]))
    zone, start = _zone(now), now.timestamp()
    expression = said.removeprefix("cron ").strip()
    if len(expression.split()) == 5 and re.match(r"[\d*]", expression):
        return checked(Repetition(start=start, zone=zone, cron=expression.upper()))
    found = _found(said)
    if found is None:
        raise InvalidInput(_UNCLEAR.format(words=said))
    interval = _interval_s(found)
    if interval:
        if found.rest:
            raise InvalidInput(_UNCLEAR.format(words=said))
        return checked(Repetition(start=start + interval, zone=zone, every_s=interval))
    hour, minute = _clock(found, said)
    cron = f"{minute} {hour} {_calendar(found, now)}"
    days = _count(found.groups["count"]) if found.form == "interval" else 1
    return checked(Repetition(start=start, zone=zone, cron=cron, weeks=_weeks(found), days=days))


def repeated_words(text: str) -> tuple[str, str] | None:
    """The words at the beginning or the end of a text that name a repetition, and the other words; None if
    there are none. The longest run of words counts."""
    words = text.split()
    for count in range(min(len(words), _MOST_WORDS), 0, -1):
        for part, other in ((words[:count], words[count:]), (words[-count:], words[:-count])):
            said = " ".join(part).strip(" ,:;.!?")
            if len(said) <= MAX_CHARS and _found(said) is not None:
                return said, " ".join(other).strip(" ,:;")
    return None


def _found(said: str) -> _Found | None:
    plain = _unmarked(said)
    for form, pattern in FORMS.items():
        # Before or behind the time of the day: "every Monday at 9", "at 9 every Monday".
        for whole in (
            rf"(?P<repeated>{pattern})(?![\w-])(?P<rest>.*)",
            rf"(?P<rest>.+?)[\s,]+(?P<repeated>{pattern})",
        ):
            match = re.fullmatch(whole, plain)
            if match is None:
                continue
            rest = said[match.start("rest") : match.end("rest")].strip(" ,")
            if rest and _time(rest) is None:
                continue
            groups = {name: value for name, value in match.groupdict().items() if value}
            return _Found(form=form, groups=groups, rest=rest)
    return None


def _unmarked(text: str) -> str:
    """The text in lower case and without accents, of the same length."""
    return "".join(unicodedata.normalize("NFD", char)[0].lower()[:1] or char for char in text)


def _time(rest: str) -> TimePhrase | None:
    """The time of the day that the words name, and nothing else."""
    found = whole_time(rest)
    if found is None or found.repeated or found.minutes is not None or found.days or found.date:
        return None
    return None if found.hour is None and found.part is None else found


def _clock(found: _Found, said: str) -> tuple[int, int]:
    phrase = _time(found.rest) if found.rest else None
    part = _part_hour(found.groups.get("part", ""))
    if phrase is None:
        return (DAY_HOUR if part is None else part), 0
    if phrase.hour is None:
        return (DAY_HOUR if phrase.part is None else phrase.part), 0
    half = phrase.part if phrase.part is not None else part
    later = half is not None and half >= 15 and phrase.hour < 12 and not phrase.half_day
    hour = phrase.hour + (12 if later else 0)
    if not 0 <= hour <= 23:
        raise InvalidInput(_UNCLEAR.format(words=said))
    return hour, phrase.minute


def _interval_s(found: _Found) -> float:
    """The interval in seconds; 0 for a repetition by the calendar. Days are counted by the calendar."""
    if found.form == "hourly":
        return 3_600.0
    if found.form != "interval" or "days_n" in found.groups:
        return 0.0
    return _count(found.groups["count"]) * (60.0 if "minutes" in found.groups else 3_600.0)


def _calendar(found: _Found, now: datetime) -> str:
    """Day of the month, month and day of the week, as cron writes them."""
    groups = found.groups
    match found.form:
        case "ordinal":
            nth = _place(groups["ordinal"], ORDINALS)
            day = _day(groups["ordinal_day"])
            return f"* * {day}L" if nth == len(ORDINALS) - 1 else f"* * {day}#{nth + 1}"
        case "day_of_month" | "month_day":
            return f"{groups.get('after_month') or groups.get('before_month') or now.day} * *"
        case "last_day":
            return "L * *"
        case "weekdays":
            return "* * 1-5"
        case "range":
            first, last = _day(groups["range_from"]), _day(groups["range_to"])
            # From Friday to Monday is over the end of cron's week.
            days = [(first + step) % 7 for step in range((last - first) % 7 + 1)]
            return "* * " + ",".join(str(day) for day in sorted(days))
        case "weekend":
            return "* * 0,6"
        case "other" | "every_weeks" | "weekly":
            named = next(
                (
                    value
                    for name, value in groups.items()
                    if name.startswith(("other_", "weeks_day", "weekly_day"))
                ),
                "",
            )
            return f"* * {_day(named) if named else now.isoweekday() % 7}"
        case "days":
            listed = re.findall(DAY, groups.get("days") or groups["bare_days"])
            return "* * " + ",".join(str(day) for day in sorted({_day(one) for one in listed}))
        case _:
            return "* * *"


def _weeks(found: _Found) -> int:
    if found.form == "other":
        return 2
    word = found.groups.get("weeks", "")
    return 1 if not word else 2 if word in ("other", "second", "zweite") else _count(word)


def _count(word: str) -> int:
    if word.isdigit():
        return int(word)
    return next(count for count, words in NUMBERS.items() if word in words.split())


def _day(word: str) -> int:
    return _place(word, DAYS)


def _part_hour(word: str) -> int | None:
    return next((hour for hour, words in PARTS.items() if word and re.fullmatch(words, word)), None)


def _place(word: str, patterns: Sequence[str]) -> int:
    return next(place for place, pattern in enumerate(patterns) if re.fullmatch(pattern, word))


def _zone(now: datetime) -> str:
    key = getattr(now.tzinfo, "key", "")
    return str(key) or "UTC"
