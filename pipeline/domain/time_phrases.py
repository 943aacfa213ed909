"""Find the time phrases in a text: durations, days, parts of the day, clock times and repetitions, in English,
German, French and Spanish. `pipeline.tools.moments` turns them into a moment.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import field

from pipeline.domain.frozen import dataclass

_MOST_CHARS = 1_000
"""Length of the text that is searched."""

_NUMBERS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
    "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30, "forty": 40,
    "ein": 1, "eine": 1, "einer": 1, "einem": 1, "eins": 1, "zwei": 2, "drei": 3, "vier": 4, "fünf": 5,
    "sechs": 6, "sieben": 7, "acht": 8, "neun": 9, "zehn": 10, "elf": 11, "zwölf": 12, "fünfzehn": 15,
    "zwanzig": 20, "dreißig": 30, "vierzig": 40,
    "un": 1, "une": 1, "deux": 2, "trois": 3, "quatre": 4, "cinq": 5, "sept": 7, "huit": 8, "neuf": 9,
    "dix": 10, "onze": 11, "douze": 12, "quinze": 15, "vingt": 20, "trente": 30, "quarante": 40,
    "una": 1, "uno": 1, "dos": 2, "tres": 3, "cuatro": 4, "cinco": 5, "seis": 6, "siete": 7, "ocho": 8,
    "nueve": 9, "diez": 10, "once": 11, "doce": 12, "quince": 15, "veinte": 20, "treinta": 30,
    "cuarenta": 40,
}  # fmt: skip
_UNITS = (
    (re.compile(r"s|sec(?:ond)?s?|sekunden?|secondes?|segundos?"), 1 / 60),
    (re.compile(r"m|mins?|minutes?|minuten?|minutos?"), 1.0),
    (re.compile(r"h|hrs?|hours?|std|stunden?|heures?|horas?"), 60.0),
    (re.compile(r"days?|tage?n?|jours?|d[ií]as?"), 24 * 60.0),
    (re.compile(r"weeks?|wochen?|semaines?|semanas?"), 7 * 24 * 60.0),
)
_NAMED_DURATIONS = {
    15.0: r"(?:a )?quarter of an hour|(?:einer? )?viertelstunde|un quart d['’]heure|un cuarto de hora",
    30.0: r"half an hour|a half hour|(?:einer? )?halben? stunde|une demi[- ]heure|media hora",
    45.0: r"three quarters of an hour|(?:einer? )?dreiviertelstunde|trois quarts d['’]heure",
    90.0: r"an hour and a half|one and a half hours|(?:anderthalb|eineinhalb) stunden|une heure et demie"
    r"|una hora y media",
}
_DAYS = {
    "the day after tomorrow": 2, "day after tomorrow": 2, "tomorrow": 1, "today": 0,
    "übermorgen": 2, "morgen": 1, "heute": 0,
    "après-demain": 2, "après demain": 2, "demain": 1, "aujourd'hui": 0, "aujourd’hui": 0,
    "pasado mañana": 2, "mañana": 1, "hoy": 0,
}  # fmt: skip
_PARTS = {
    8: r"(?:in )?the morning|morning|früh|vormittags?|(?:du |le )?matin|(?:por|de|en) la mañana",
    12: r"(?:at )?noon|(?:am |zu )?mittags?|(?:à )?midi|(?:al? )?mediod[ií]a",
    15: r"(?:in )?the afternoon|this afternoon|afternoon|(?:am )?nachmittags?|(?:cet |l['’])?après-midi"
    r"|(?:por|de|en) la tarde|esta tarde",
    19: r"(?:in )?the evening|this evening|evening|(?:am )?abends?|(?:ce |le |du )?soir",
    20: r"tonight|night|(?:por|de|en) la noche|esta noche",
}
"""The hour that a part of the day means without a clock time."""
_WEEKDAY = (
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
    r"|(?:mon|diens|donners|frei|sams|sonn)tags?|mittwochs?|sonnabends?"
    r"|(?:lun|mar|mercre|jeu|vendre|same)dis?|dimanches?"
    r"|lunes|martes|mi[eé]rcoles|jueves|viernes|s[aá]bados?|domingos?"
)
_MONTH = (
    r"january|february|march|april|may|june|july|august|september|october|november|december"
    r"|jan|feb|mar|apr|jun|jul|aug|sept|sep|oct|nov|dec"
    r"|januar|februar|märz|mai|juni|juli|oktober|dezember|okt|dez"
    r"|janvier|février|mars|avril|juin|juillet|août|septembre|octobre|novembre|décembre"
    r"|enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre"
)
_N = r"(?:\d{1,4}|" + "|".join(sorted(_NUMBERS, key=len, reverse=True)) + ")"
_UNIT = (
    r"(?:seconds?|secs?|sekunden?|secondes?|segundos?|minutes?|minuten?|minutos?|mins?|hours?|hrs?|stunden?"
    r"|std|heures?|horas?|h|days?|tage?n?|jours?|d[ií]as?|weeks?|wochen?|semaines?|semanas?)"
)
_MONTHS_UNIT = r"(?:months?|monate?n?|mois|mes(?:es)?)"
_IN = r"(?:in|within|after|dans|en|dentro de|nach)\s+(?:about |etwa |circa |environ )?"
_AT = r"(?:at|by|around|um|gegen|ab|à|vers|a las?|sobre las?)"


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """`pattern` as whole words. Compiled on first use: all of them take 30 ms, which a start that reads no
    times saves."""
    return re.compile(rf"(?<!\w)(?:{pattern})(?!\w)", re.IGNORECASE)


_REPEATED = (
    rf"(?:every|each)(?: single| other)? (?:{_N} )?(?:{_UNIT}|{_MONTHS_UNIT}|year|morning|noon|afternoon"
    rf"|evening|night|weekday|weekend|{_WEEKDAY})|daily|hourly|weekly|monthly|yearly|on (?:mon|tues|wednes"
    r"|thurs|fri|satur|sun)days"
    rf"|jede[nrs]? (?:{_N} )?(?:{_UNIT}|{_MONTHS_UNIT}|jahr|morgen|mittag|abend|nacht|{_WEEKDAY})"
    rf"|alle (?:{_N} )(?:{_UNIT}|{_MONTHS_UNIT})|täglich|stündlich|wöchentlich|monatlich|jährlich"
    r"|(?:immer )?(?:mon|diens|donners|frei|sams|sonn)tags|mittwochs"
    rf"|chaque (?:{_UNIT}|{_MONTHS_UNIT}|an|année|matin|midi|soir|nuit|{_WEEKDAY})"
    rf"|tou(?:s|tes) les (?:{_N} )?(?:{_UNIT}|{_MONTHS_UNIT}|ans|matins|soirs|nuits|{_WEEKDAY})"
    rf"|cada (?:{_N} )?(?:{_UNIT}|{_MONTHS_UNIT}|año|mañana|tarde|noche|{_WEEKDAY})"
    rf"|tod[oa]s l[oa]s (?:{_UNIT}|{_MONTHS_UNIT}|años|mañanas|tardes|noches|{_WEEKDAY})"
    r"|a diario|diariamente|semanalmente|quotidiennement"
)
_NAMED = [(rf"(?:{_IN})(?:{words})", minutes) for minutes, words in _NAMED_DURATIONS.items()]
_DURATION = (
    rf"(?:{_IN})({_N})(?:[.,](\d))?\s*({_UNIT})(?:\s*(?:,|and|und|et|y)?\s*({_N})\s*({_UNIT}))?"
    rf"|({_N})\s+({_UNIT}) from now"
)
_DATE = (
    r"(?:on |am |el |le )?(?P<iso>\d{4}-\d{2}-\d{2})"
    r"|(?:on |am |el |le )?(?P<numbers>\d{1,2}[./]\d{1,2}(?:[./](?:\d{4}|\d{2})?)?)(?!\d)"
    rf"|(?:on |am |den |el |le |the )*(?P<dmy>\d{{1,2}}(?:st|nd|rd|th|er|\.)?\s*(?:of |de )?(?:{_MONTH})\.?"
    r"(?:,?\s*(?:de |del )?\d{4})?)"
    rf"|(?:on )?(?P<mdy>(?:{_MONTH})\.?\s+\d{{1,2}}(?:st|nd|rd|th)?(?:,?\s+\d{{4}})?)"
    rf"|{_IN}(?P<months>{_N}\s+{_MONTHS_UNIT})"
    rf"|(?:on |next |this |coming |am |(?:(?:am )?(?:nächsten|kommenden|diesen) )|le |ce |el |este |pr[oó]ximo )*"
    rf"(?P<weekday>{_WEEKDAY})(?: prochain| que viene| pr[oó]ximo)?"
)
_DAY = "|".join(sorted(_DAYS, key=len, reverse=True))
_PART = [(words, hour) for hour, words in _PARTS.items()]
_CLOCK = (
    rf"(?:{_AT}\s+)?(?P<h>\d{{1,2}})[:.](?P<m>\d{{2}})(?:\s*(?P<ap>[ap]\.?m\.?)|\s*uhr|\s*h(?:eures)?)?"
    rf"|(?:{_AT}\s+)?(?P<h2>\d{{1,2}}|{_N})\s*(?P<ap2>[ap]\.?m\.?)"
    rf"|(?:{_AT}\s+)?(?P<h3>{_N})\s*(?:uhr|h|heures?)(?:\s*(?P<m3>\d{{2}})|\s+(?P<frac3>et demie|et quart))?"
    r"|(?:at\s+)?(?P<past>half past|quarter past|quarter to)\s+"
    rf"(?P<h4>{_N})(?:\s*(?P<ap4>[ap]\.?m\.?))?"
    rf"|(?:um\s+)?(?P<de>halb|viertel nach|viertel vor)\s+(?P<h5>{_N})"
    rf"|(?:{_AT})\s+(?P<h6>{_N})(?:\s+(?P<frac6>y media|y cuarto|menos cuarto|et demie|et quart))?"
    r"(?:\s+(?:o['’]clock|en punto|horas))?"
    rf"|(?P<h7>{_N}) o['’]clock"
)
_HALVES = {
    "half past": 30, "quarter past": 15, "quarter to": -15, "halb": -30, "viertel nach": 15,
    "viertel vor": -15, "et demie": 30, "et quart": 15, "y media": 30, "y cuarto": 15, "menos cuarto": -15,
}  # fmt: skip
_MIDNIGHT = r"(?:at |um |à |a )?(?:midnight|mitternacht|minuit|medianoche)"
_BETWEEN = re.compile(r"[\s,]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class TimePhrase:
    """The time that one part of a text names."""

    text: str
    minutes: float | None = None
    """From now."""
    days: int | None = None
    """From today."""
    date: str = ""
    """A date or a weekday as written, without a preceding word."""
    hour: int | None = None
    minute: int = 0
    half_day: bool = False
    """The hour is on the 12-hour clock, with a.m. or p.m."""
    part: int | None = None
    """The hour of the part of the day: 8, 12, 15, 19 or 20."""
    repeated: bool = False
    spans: tuple[tuple[int, int], ...] = field(default=())
    """Its positions in the searched text, as (start, end)."""

    def without(self, text: str) -> str:
        """`text` without the phrase."""
        for start, end in reversed(self.spans):
            text = f"{text[:start].rstrip(' ,')} {text[end:].lstrip(' ,')}"
        return " ".join(text.split())


@dataclass(frozen=True, slots=True)
class _Segment:
    start: int
    end: int
    values: dict[str, object]


def find_time(text: str) -> TimePhrase | None:
    """The time that `text` names; None for none. Of several, the first that names more than a day, combined
    with a day at the text's end."""
    shown = text[:_MOST_CHARS]
    runs = list(_runs(shown))
    if not runs:
        return None
    chosen = next((run for run in runs if any(_names_time(segment) for segment in run)), runs[0])
    segments = list(chosen)
    last = runs[-1]
    ends = not shown[last[-1].end :].strip(" .!?")
    if last is not chosen and ends and not _keys(chosen) & _keys(last):
        segments += last
    return _phrase(shown, segments)


def whole_time(text: str) -> TimePhrase | None:
    """The time, if `text` consists of nothing else; None for other words or an unknown phrase."""
    found = find_time(text.strip())
    if found is None or found.without(text.strip()).strip(" .,!?"):
        return None
    return found


def _phrase(text: str, segments: list[_Segment]) -> TimePhrase:
    values: dict[str, object] = {}
    for segment in segments:
        values = {**segment.values, **values}
    words = " ".join(text[segment.start : segment.end] for segment in segments)
    spans = tuple((segment.start, segment.end) for segment in segments)
    return TimePhrase(text=words, spans=spans, **values)  # type: ignore[arg-type]  # the keys are its fields


def _names_time(segment: _Segment) -> bool:
    return bool(segment.values.keys() & {"minutes", "hour", "part", "repeated"})


def _keys(run: list[_Segment]) -> set[str]:
    found = {key for segment in run for key in segment.values}
    return found | ({"days", "date"} if found & {"days", "date", "minutes"} else set())


def _runs(text: str) -> Iterator[list[_Segment]]:
    """Runs of segments with nothing but blanks and commas between them."""
    run: list[_Segment] = []
    at = 0
    for word in re.finditer(r"\S+", text):
        # A segment may begin after a bracket or a quotation mark, never inside a word.
        start = word.start() + len(word.group()) - len(word.group().lstrip("(\"'“„«¡¿"))
        if start < at:
            continue
        segment = _segment(text, start)
        if segment is None:
            continue
        between = _BETWEEN.fullmatch(text, at, start)
        if run and (between is None or not _fits(run, segment)):
            yield run
            run = []
        run.append(segment)
        at = segment.end
    if run:
        yield run


def _fits(run: list[_Segment], segment: _Segment) -> bool:
    """Whether the segment belongs to the run: a second clock time is another time."""
    known = {key for one in run for key in one.values}
    if "part" in segment.values and "part" not in known:
        return True
    return not known & segment.values.keys()


def _segment(text: str, start: int) -> _Segment | None:
    for read in (_duration, _day, _time):
        found = read(text, start)
        if found is not None:
            return found
    return None


def _duration(text: str, start: int) -> _Segment | None:
    if (match := _compiled(_REPEATED).match(text, start)) is not None:
        return _Segment(start, match.end(), {"repeated": True})
    for pattern, minutes in _NAMED:
        if (match := _compiled(pattern).match(text, start)) is not None:
            return _Segment(start, match.end(), {"minutes": minutes})
    match = _compiled(_DURATION).match(text, start)
    return None if match is None else _Segment(start, match.end(), {"minutes": _minutes(match)})


def _day(text: str, start: int) -> _Segment | None:
    if (match := _compiled(_DATE).match(text, start)) is not None:
        return _Segment(start, match.end(), {"date": next(found for found in match.groups() if found)})
    # "por la mañana" is a part of the day, "mañana" alone is tomorrow.
    for pattern, hour in _PART:
        if (match := _compiled(pattern).match(text, start)) is not None:
            today = {"days": 0} if _of_today(match.group()) else {}
            return _Segment(start, match.end(), {"part": hour, **today})
    match = _compiled(_DAY).match(text, start)
    if match is None:
        return None
    return _Segment(start, match.end(), {"days": _DAYS[" ".join(match.group().lower().split())]})


def _time(text: str, start: int) -> _Segment | None:
    if (match := _compiled(_MIDNIGHT).match(text, start)) is not None:
        return _Segment(start, match.end(), {"hour": 0, "minute": 0})
    match = _compiled(_CLOCK).match(text, start)
    clock = None if match is None else _clock(match)
    return None if match is None or clock is None else _Segment(start, match.end(), clock)


def _of_today(words: str) -> bool:
    return words.lower().startswith(("this ", "tonight", "ce ", "cet ", "esta "))


def _number(words: str) -> int:
    return int(words) if words.isdigit() else _NUMBERS[words.lower()]


def _minutes(match: re.Match[str]) -> float:
    count, tenth, unit, more, more_unit, from_now, from_now_unit = match.groups()
    if from_now is not None:
        return _number(from_now) * _unit(from_now_unit)
    total = (_number(count) + (int(tenth) / 10 if tenth else 0)) * _unit(unit)
    return total + (_number(more) * _unit(more_unit) if more else 0)


def _unit(words: str) -> float:
    return next(minutes for pattern, minutes in _UNITS if pattern.fullmatch(words.lower()))


def _clock(match: re.Match[str]) -> dict[str, object] | None:
    """Hour and minute of a match; None if a clock cannot show them."""
    found = {name: value for name, value in match.groupdict().items() if value is not None}
    hour = _number(next(value for name, value in found.items() if name.startswith("h")))
    minute = int(found.get("m") or found.get("m3") or 0)
    half = next((found[name] for name in ("past", "de", "frac3", "frac6") if name in found), "")
    shift = _HALVES.get(half.lower(), 0)
    minute += shift
    if minute < 0:
        hour, minute = hour - 1, minute + 60
    mark = next((value.lower() for name, value in found.items() if name.startswith("ap")), "")
    if mark:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if mark.startswith("p") else 0)
    if not (0 <= hour <= 24 and 0 <= minute <= 59):
        return None
    return {"hour": hour % 24, "minute": minute, "half_day": bool(mark)}
