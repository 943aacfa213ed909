"""The settings of the bot's identity, and of the times that hold for everybody."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from gateway.config.section import Section, setting
from gateway.config.value_checks import check_name, check_quiet_hours, check_time_zone


class BotSettings(Section):
    """[bot]: the bot's identity."""

    name: Annotated[str, AfterValidator(check_name)] = setting(
        "Parlour", "The bot's name, as people see it.", min_length=1, max_length=64
    )
    called: tuple[Annotated[str, AfterValidator(check_name)], ...] = setting(
        (),
        "Other names that the bot listens to in voice notes of rooms, as people say them.",
        example=["Parlor", "Jeeves"],
        expected="a list of up to 20 names",
        max_length=20,
        strict=False,
    )
    time_zone: Annotated[str | None, AfterValidator(check_time_zone)] = setting(
        None,
        "The time zone of people who have not set one, by its IANA name: for reminders, and for the date in "
        "the prompt. When absent: this machine's. People set their own by writing “my time zone is "
        "Europe/Paris”.",
        example="Europe/Berlin",
        expected="the name of a time zone",
    )
    quiet_hours: Annotated[str, AfterValidator(check_quiet_hours)] = setting(
        "",
        "Hours in which nothing that repeats is said or answered; it waits for their end. They hold in the "
        "time zone of each schedule. Empty: none.",
        example="22:00-07:00",
        expected="two times of the day, such as 22:00-07:00",
    )
    system_prompt: str = setting(
        "You are a helpful assistant. Answer briefly and in the language of the user's message.",
        "The instruction that the model gets before every conversation.",
        min_length=1,
        max_length=20_000,
    )
