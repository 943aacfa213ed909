"""The forms of a repetition in four languages, as patterns on words without accents."""

from __future__ import annotations

from typing import Final

DAYS: Final = (
    r"sundays?|sonntage?s?|dimanches?|domingos?",
    r"mondays?|montage?s?|lundis?|lunes",
    r"tuesdays?|dienstage?s?|mardis?|martes",
    r"wednesdays?|mittwochs?|mittwoche|mercredis?|miercoles",
    r"thursdays?|donnerstage?s?|jeudis?|jueves",
    r"fridays?|freitage?s?|vendredis?|viernes",
    r"saturdays?|samstage?s?|sonnabende?s?|samedis?|sabados?",
)
"""By the numbers that cron gives them."""
DAY: Final = "(?:" + "|".join(DAYS) + ")"
ORDINALS: Final = (
    r"first|1st|ersten?|premier|1er|primer",
    r"second|2nd|zweiten?|deuxieme|2e|segundo",
    r"third|3rd|dritten?|troisieme|3e|tercer",
    r"fourth|4th|vierten?|quatrieme|4e|cuarto",
    r"last|letzten?|dernier|ultimo",
)
PARTS: Final = {
    8: r"mornings?|morgens?|matins?|mananas?",
    12: r"noons?|mittags?|midis?|mediodias?",
    15: r"afternoons?|nachmittags?|apres-midis?|tardes?",
    19: r"evenings?|abends?|soirs?",
    20: r"nights?|nachte?|noches?",
}
"""By the hour that a part of the day means."""
NUMBERS: Final = {
    2: "two zwei deux dos",
    3: "three drei trois tres",
    4: "four vier quatre cuatro",
    5: "five funf cinq cinco",
    6: "six sechs seis",
    10: "ten zehn dix diez",
    12: "twelve zwolf douze doce",
    15: "fifteen funfzehn quinze quince",
    20: "twenty zwanzig vingt veinte",
    30: "thirty dreissig trente treinta",
}

_AND = r"(?:\s*(?:,|&|\band\b|\bund\b|\bet\b|\by\b|\be\b)\s*)+"
_DAY_LIST = rf"{DAY}(?:{_AND}(?:on |every |the |le |les |el |los )?{DAY})*"
_TO = r"(?:to|through|till|until|-|bis|au|a|al|hasta)"
_NUMBER = r"(?:\d{1,3}|" + "|".join(" ".join(NUMBERS.values()).split()) + ")"
_MINUTE, _HOUR = r"minutes?|minuten?|minutos?", r"hours?|stunden?|heures?|horas?"
_A_DAY = r"days?|tage?n?|jours?|dias?"
_WEEK, _MONTH = r"weeks?|wochen?|semaines?|semanas?", r"months?|monate?n?s?|mois|mes(?:es)?"
_EVERY = r"(?:every|each|jede[nrsm]?|chaque|cada|tou(?:s|tes) les|tod[oa]s l[oa]s|alle)"
_ON = r"(?:on |at |am |an |le |les |el |los |the |dia )*"
_OF = rf"(?:(?:of|in|im|des|du|de|del|the|{_EVERY}) )*"
_NTH_DAY = r"(?:st|nd|rd|th|er|e|\.)?"
_PART = "|".join(PARTS.values())

FORMS: Final = {
    "ordinal": (
        rf"(?:{_EVERY} )?{_ON}(?P<ordinal>{'|'.join(ORDINALS)}) (?P<ordinal_day>{DAY}) {_OF}(?:{_MONTH})"
    ),
    "day_of_month": (
        rf"(?:{_EVERY} (?:{_MONTH})|monthly|monatlich|mensuellement|mensualmente)"
        rf"(?:,? {_ON}(?P<after_month>\d{{1,2}}){_NTH_DAY})?"
    ),
    "month_day": (
        rf"{_ON}(?P<before_month>\d{{1,2}}){_NTH_DAY} (?:of |in |du |de |del )*{_EVERY} (?:{_MONTH})"
    ),
    "last_day": rf"{_ON}(?:last day|letzten tag|dernier jour|ultimo dia) {_OF}(?:{_MONTH})",
    "weekdays": (
        rf"(?:{_EVERY} |on |an )?(?:weekdays?|working days?|workdays?|business days?)"
        rf"|(?:{_EVERY} |an )?(?:werktage?s?n?|wochentage?s?n?)|unter der woche"
        r"|en semaine|(?:tous les |chaque |les )?jours? (?:ouvrables?|ouvres?|de semaine)"
        r"|entre semana|(?:todos los |cada |los )?dias? (?:laborables?|habiles?)"
    ),
    "range": (
        rf"(?:{_EVERY} |from |on |von |du |de )?(?P<range_from>{DAY})\s*{_TO}\s*(?:el )?(?P<range_to>{DAY})"
    ),
    "weekend": rf"(?:{_EVERY} )?{_ON}(?:weekends?|wochenenden?|week-ends?|fin(?:es)? de semana)",
    "other": (
        rf"every (?:other|second|2nd) (?P<other_en>{DAY})|jeden zweiten (?P<other_de>{DAY})"
        rf"|tous les deux (?P<other_fr>{DAY})|un (?P<other_fr2>{DAY}) sur deux"
        rf"|cada dos (?P<other_es>{DAY})|un (?P<other_es2>{DAY}) si y otro no"
    ),
    "every_weeks": (
        rf"{_EVERY} (?P<weeks>other|second|zweite|{_NUMBER}) (?:{_WEEK})(?:,? {_ON}(?P<weeks_day>{DAY}))?"
    ),
    "weekly": (
        rf"(?:{_EVERY} (?:{_WEEK})|weekly|wochentlich|hebdomadairement|semanalmente)"
        rf"(?:,? {_ON}(?P<weekly_day>{DAY}))?"
    ),
    "day_part": rf"{_EVERY} (?P<part>{_PART})",
    "days": (
        rf"(?:{_EVERY}|immer|on|an jedem|les|los|every single) (?P<days>{_DAY_LIST})"
        rf"|(?P<bare_days>(?:mon|tues|wednes|thurs|fri|satur|sun)days(?:{_AND}{DAY})*"
        rf"|(?:mon|diens|donners|frei|sams|sonn)tags(?:{_AND}{DAY})*|mittwochs)"
    ),
    "daily": (
        r"(?:every|each)(?: single)? day|everyday|daily|jeden tag|(?:tag)?taglich"
        r"|tous les jours|chaque jour|quotidiennement|todos los dias|cada dia|a diario|diariamente"
    ),
    "interval": (
        rf"{_EVERY} (?P<count>{_NUMBER}) (?:(?P<minutes>{_MINUTE})|(?P<hours>{_HOUR})|(?P<days_n>{_A_DAY}))"
    ),
    "hourly": rf"{_EVERY} (?:{_HOUR})|hourly|stundlich|toutes les heures",
}
"""The patterns by the name of the form, in the order in which they are tried."""
