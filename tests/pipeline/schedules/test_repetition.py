"""Times that repeat: the next and the last one, over changes of the clock, and quiet hours."""

from __future__ import annotations

import itertools
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.domain.errors import InvalidInput
from pipeline.schedules.quiet_hours import QuietHours
from pipeline.schedules.repetition import Repetition, checked

ZONE = "Europe/Berlin"


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(ZONE)).timestamp()


def local(moment: float | None) -> str:
    return "" if moment is None else f"{datetime.fromtimestamp(moment, ZoneInfo(ZONE)):%Y-%m-%d %H:%M}"


def following(repetition: Repetition, moment: float, count: int) -> list[str]:
    found = []
    for _ in range(count):
        moment = repetition.next_after(moment) or 0.0
        found.append(local(moment))
    return found


def test_a_time_in_the_hour_that_is_left_out_comes_right_after_it() -> None:
    repetition = Repetition(start=at("2027-03-26T08:00"), zone=ZONE, cron="30 2 * * *")
    assert following(repetition, repetition.start, 3) == [
        "2027-03-27 02:30",
        "2027-03-28 03:00",
        "2027-03-29 02:30",
    ]


def test_a_time_in_the_hour_that_comes_twice_comes_once() -> None:
    repetition = Repetition(start=at("2027-10-30T08:00"), zone=ZONE, cron="30 2 * * *")
    assert following(repetition, repetition.start, 3) == [
        "2027-10-31 02:30",
        "2027-11-01 02:30",
        "2027-11-02 02:30",
    ]


def test_the_wall_clock_counts_over_a_change_of_the_clock() -> None:
    repetition = Repetition(start=at("2027-03-26T10:00"), zone=ZONE, cron="0 9 * * *")
    times = [at(text.replace(" ", "T")) for text in following(repetition, repetition.start, 3)]
    assert [later - earlier for earlier, later in itertools.pairwise(times)] == [
        23 * 3_600,
        24 * 3_600,
    ]


def test_every_second_week_counts_from_the_first_time_on() -> None:
    repetition = Repetition(start=at("2027-03-24T08:00"), zone=ZONE, cron="0 9 * * 2,5", weeks=2)
    assert following(repetition, repetition.start, 4) == [
        "2027-03-26 09:00",
        "2027-04-06 09:00",
        "2027-04-09 09:00",
        "2027-04-20 09:00",
    ]
    assert local(repetition.last_until(at("2027-04-05T09:00"))) == "2027-03-26 09:00"


def test_every_third_day_counts_over_the_end_of_a_month() -> None:
    repetition = Repetition(start=at("2027-01-28T08:00"), zone=ZONE, cron="0 9 * * *", days=3)
    assert following(repetition, repetition.start, 3) == [
        "2027-01-28 09:00",
        "2027-01-31 09:00",
        "2027-02-03 09:00",
    ]


@given(
    cron=st.sampled_from(("0 9 * * *", "30 2 * * *", "0 */6 * * 1-5", "15 8 L * *", "0 18 * * 2#2", "")),
    weeks=st.sampled_from((1, 2)),
    days=st.integers(min_value=0, max_value=800),
    seconds=st.integers(min_value=0, max_value=86_399),
)
def test_the_last_time_is_the_one_before_the_next(cron: str, weeks: int, days: int, seconds: int) -> None:
    start = at("2026-11-27T15:00")
    weeks = weeks if cron else 1
    repetition = Repetition(start=start, zone=ZONE, cron=cron, weeks=weeks, every_s=0.0 if cron else 5_400.0)
    now = start + days * 86_400 + seconds
    last, following_one = repetition.last_until(now), repetition.next_after(now)
    assert following_one is not None
    assert following_one > now
    assert repetition.last_until(following_one) == following_one
    if last is not None:
        assert start <= last <= now
        assert repetition.next_after(last) == following_one
    assert Repetition.from_plain(repetition.plain()) == repetition


@pytest.mark.parametrize(
    ("moment", "spoken"),
    [
        ("2027-03-26T21:59", "2027-03-26 21:59"),
        ("2027-03-26T22:00", "2027-03-27 07:00"),
        ("2027-03-27T03:00", "2027-03-27 07:00"),
        ("2027-03-27T07:00", "2027-03-27 07:00"),
        ("2027-03-28T01:30", "2027-03-28 07:00"),
    ],
)
def test_what_falls_into_quiet_hours_waits_for_their_end(moment: str, spoken: str) -> None:
    assert local(QuietHours.parsed("22:00-07:00").over_at(at(moment), ZONE)) == spoken


@pytest.mark.parametrize("text", ["", "22-7", "22:00", "25:00-07:00", "22:00-22:00", "22:61-07:00"])
def test_quiet_hours_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="quiet hours"):
        QuietHours.parsed(text)


def test_a_repetition_without_a_time_or_in_no_zone_is_refused() -> None:
    with pytest.raises(InvalidInput, match="either a cron expression or an interval"):
        Repetition(start=0.0)
    with pytest.raises(InvalidInput, match="no time zone"):
        checked(Repetition(start=0.0, zone="Mars/Base", cron="0 9 * * *"))
