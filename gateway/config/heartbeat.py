"""The settings of the heartbeat and of what people have watched: [heartbeat]."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from gateway.config.chat_place import MAX_ID, MAX_NAME, ChatPlace
from gateway.config.section import Section, setting
from gateway.config.value_checks import check_quiet_hours, check_time_zone


class _Times(Section):
    """When, and by which agent."""

    enabled: bool = setting(
        default=False,
        description="Whether there are heartbeats: people can have pages, feeds, files and memory watched, "
        "and HEARTBEAT.md counts for the person whom channel, chat and user name (docs/guides/heartbeat.md).",
    )
    every_minutes: int = setting(
        30,
        "How often open tasks of HEARTBEAT.md are looked at, and watched pages, feeds and tools whose line "
        "does not say it, in minutes.",
        ge=1,
        le=1_440,
    )
    active_hours: Annotated[str, AfterValidator(check_quiet_hours)] = setting(
        "",
        "The hours of the day in which the lines of HEARTBEAT.md count; what falls outside waits for their "
        "begin. bot.quiet_hours hold too, also for what people watch. Empty: all hours.",
        example="08:00-22:00",
        expected="two times of the day, such as 08:00-22:00",
    )
    time_zone: Annotated[str | None, AfterValidator(check_time_zone)] = setting(
        None,
        "The time zone of HEARTBEAT.md, by its IANA name. When absent: bot.time_zone.",
        example="Europe/Berlin",
        expected="the name of a time zone",
    )
    agent: str | None = setting(
        None,
        "The agent that works for HEARTBEAT.md, which lies in its workspace. When absent: the default one.",
        example="default",
        min_length=1,
        max_length=64,
    )


class HeartbeatSettings(ChatPlace, _Times):
    """[heartbeat]: the bot acts by itself when a time comes or something that is watched changes."""

    channel: str | None = setting(
        None,
        "The channel of the private chat as whose person HEARTBEAT.md is worked on, with that person's "
        "rights, and which gets the results. When absent: HEARTBEAT.md is not read.",
        example="telegram",
        min_length=1,
        max_length=MAX_NAME,
    )
    chat: str | None = setting(
        None,
        "That private chat, by the platform's id; on the page, the conversation's.",
        example="123456789",
        min_length=1,
        max_length=MAX_ID,
    )
    user: str | None = setting(
        None,
        "That person, by the platform's id. When absent: the chat's id, which is the same on Telegram; on "
        "the page and in the terminal their owner.",
        example="123456789",
        min_length=1,
        max_length=MAX_ID,
    )
