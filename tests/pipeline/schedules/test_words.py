"""Repetitions in people's words, in four languages, and the words that show them back."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from pipeline.domain.errors import InvalidInput
from pipeline.schedules.shown import shown_repetition, shown_times
from pipeline.schedules.words import repeated_words, repetition_of
from tests.support.tables import each

NOW = datetime(2026, 11, 27, 15, 0, tzinfo=ZoneInfo("Europe/Berlin"))
"""A Friday."""


@each(
    "words, shown, first",
    [
        ("every weekday at 9", "every Monday to Friday at 09:00", "Monday 2026-11-30 09:00"),
        ("at 9 every weekday", "every Monday to Friday at 09:00", "Monday 2026-11-30 09:00"),
        ("um 9 Uhr jeden Werktag", "every Monday to Friday at 09:00", "Monday 2026-11-30 09:00"),
        ("entre semana a las 7:30", "every Monday to Friday at 07:30", "Monday 2026-11-30 07:30"),
        ("du lundi au vendredi à 9h", "every Monday to Friday at 09:00", "Monday 2026-11-30 09:00"),
        (
            "friday to monday at 8",
            "every Monday, Friday, Saturday and Sunday at 08:00",
            "Saturday 2026-11-28 08:00",
        ),
        ("jeden zweiten Dienstag", "every 2 weeks on Tuesday at 09:00", "Tuesday 2026-12-01 09:00"),
        ("every other Tuesday at 7:30 pm", "every 2 weeks on Tuesday at 19:30", "Tuesday 2026-12-01 19:30"),
        ("un mardi sur deux à 18h", "every 2 weeks on Tuesday at 18:00", "Tuesday 2026-12-01 18:00"),
        ("cada dos martes a las 18", "every 2 weeks on Tuesday at 18:00", "Tuesday 2026-12-01 18:00"),
        (
            "jeden zweiten Dienstag im Monat um 18 Uhr",
            "on the second Tuesday of every month at 18:00",
            "Tuesday 2026-12-08 18:00",
        ),
        (
            "every first Monday of the month at 18:30",
            "on the first Monday of every month at 18:30",
            "Monday 2026-12-07 18:30",
        ),
        (
            "le premier lundi de chaque mois à 9h30",
            "on the first Monday of every month at 09:30",
            "Monday 2026-12-07 09:30",
        ),
        (
            "el último viernes de cada mes a las 10",
            "on the last Friday of every month at 10:00",
            "Friday 2026-12-25 10:00",
        ),
        ("every month on the 15th at 12:00", "on day 15 of every month at 12:00", "Tuesday 2026-12-15 12:00"),
        ("am 1. jedes Monats um 10 Uhr", "on day 1 of every month at 10:00", "Tuesday 2026-12-01 10:00"),
        ("cada mes el 5 a las 9", "on day 5 of every month at 09:00", "Saturday 2026-12-05 09:00"),
        (
            "on the last day of every month",
            "on the last day of every month at 09:00",
            "Monday 2026-11-30 09:00",
        ),
        ("every day", "every day at 09:00", "Saturday 2026-11-28 09:00"),
        ("every evening at 8", "every day at 20:00", "Friday 2026-11-27 20:00"),
        ("jeden Morgen um 7", "every day at 07:00", "Saturday 2026-11-28 07:00"),
        ("tous les jours à midi", "every day at 12:00", "Saturday 2026-11-28 12:00"),
        ("jeden Tag um halb neun", "every day at 08:30", "Saturday 2026-11-28 08:30"),
        ("every 3 days at 10", "every 3 days at 10:00", "Saturday 2026-11-28 10:00"),
        ("cada 2 horas", "every 2 hours", "Friday 2026-11-27 17:00"),
        ("alle 15 Minuten", "every 15 minutes", "Friday 2026-11-27 15:15"),
        ("toutes les heures", "every hour", "Friday 2026-11-27 16:00"),
        ("montags und donnerstags um 8", "every Monday and Thursday at 08:00", "Monday 2026-11-30 08:00"),
        ("todos los lunes a las 8 de la mañana", "every Monday at 08:00", "Monday 2026-11-30 08:00"),
        ("every 2 weeks on friday at 16:00", "every 2 weeks on Friday at 16:00", "Friday 2026-11-27 16:00"),
        ("every weekend at 11", "every Saturday and Sunday at 11:00", "Saturday 2026-11-28 11:00"),
        ("0 9 * * 1-5", "every Monday to Friday at 09:00", "Monday 2026-11-30 09:00"),
        ("cron 15 9,12 * * mon", "cron 15 9,12 * * MON", "Monday 2026-11-30 09:15"),
    ],
)
def test_a_repetition_is_read_and_shown_back(words: str, shown: str, first: str) -> None:
    found = repetition_of(words, NOW)
    assert shown_repetition(found).removesuffix(" (Europe/Berlin)") == shown
    assert shown_times(found, NOW.timestamp(), 1) == first


@each(
    "words, why",
    [
        ("", "do not understand"),
        ("every blue moon", "do not understand"),
        ("tomorrow at 9", "do not understand"),
        ("every day at 25", "do not understand"),
        ("every day at 9 with milk", "do not understand"),
        ("every 3 minutes", "shorter than 5 minutes"),
        ("* * * * *", "more often than every 5 minutes"),
        ("0 9 30 2 *", "cron expression is wrong"),
        ("99 9 * * *", "cron expression is wrong: Bad minute"),
        ("0 0 29 2 MON#5 *", "do not understand"),
        ("x" * 500, "do not understand"),
    ],
)
def test_what_is_not_understood_whole_is_refused_in_words(words: str, why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        repetition_of(words, NOW)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("every weekday at 9 tell me the news", ("every weekday at 9", "tell me the news")),
        ("stretch every Monday at 10", ("every Monday at 10", "stretch")),
        ("chaque jour à 9h de boire", ("chaque jour à 9h", "de boire")),
        ("tell me a joke", None),
        ("a good day to you", None),
    ],
)
def test_a_repetition_is_found_at_either_end_of_a_text(text: str, found: tuple[str, str] | None) -> None:
    assert repeated_words(text) == found
