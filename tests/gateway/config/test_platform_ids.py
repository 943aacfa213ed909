"""Who may write and who may not: lists of the platforms' own ids, checked one by one."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.config import Settings, load
from gateway.config.catalog import toml_value
from tests.gateway.config.support import problem_lines, references, secrets_environ
from tests.support.tables import each

EMPTY = Path("/dev/null")
TELEGRAM, DISCORD = "channels.telegram", "channels.discord"
TOKENS = references(
    f"{TELEGRAM}.token", "channels.slack.bot_token", "channels.slack.app_token", f"{DISCORD}.token"
)


def loaded(overrides: list[str]) -> Settings:
    return load(EMPTY, secrets_environ(), [*TOKENS, *overrides])


def lines(overrides: list[str]) -> list[str]:
    return problem_lines(EMPTY, secrets_environ(), [*TOKENS, *overrides])


def test_a_list_longer_than_a_thousand_is_refused() -> None:
    listed = [str(number) for number in range(1, 1002)]

    [line] = lines([f"{DISCORD}.deny={toml_value(listed)}"])

    assert line.startswith(f"{DISCORD}.deny: expected a list of up to 1000 ids, but a list of 1001 was given")


@pytest.mark.parametrize(
    ("channel", "entries"),
    [
        ("telegram", ["dm:1001", "room:-1002003", "room:-1002003/1001"]),
        ("slack", ["dm:U012AB3CD", "dm:W012AB3CD", "room:C024BE7LR", "room:G024BE7LR/U012AB3CD"]),
        ("discord", ["dm:80351110224678912", "room:41771983423143937", "room:41771983423143937/1"]),
    ],
)
def test_people_and_rooms_are_named_by_the_platforms_ids(channel: str, entries: list[str]) -> None:
    settings = loaded([f"channels.{channel}.allow={toml_value(entries)}"])

    assert getattr(settings.channels, channel).allow == tuple(entries)


@each(
    "channel, entry, what",
    [
        ("telegram", "1001", "is none of dm:USER, room:CHAT and room:CHAT/USER"),
        ("telegram", "user:1001", "is none of dm:USER, room:CHAT and room:CHAT/USER"),
        ("telegram", "DM:1001", "is none of dm:USER, room:CHAT and room:CHAT/USER"),
        ("telegram", "", "is none of dm:USER, room:CHAT and room:CHAT/USER"),
        ("telegram", "dm:", "holds something that is no id"),
        ("telegram", "dm:@ann", "holds something that is no id"),
        ("telegram", "dm:-1001", "holds something that is no id"),
        ("telegram", "dm:1001 ", "holds something that is no id"),
        ("telegram", "dm:1001/2", "holds something that is no id"),
        ("telegram", "room:1002003", "holds something that is no id"),
        ("telegram", "room:-1002003/", "holds something that is no id"),
        ("telegram", "room:-1002003/*", "holds something that is no id"),
        ("telegram", "room:/1001", "holds something that is no id"),
        ("telegram", "dm:\uff11\uff10\uff10\uff11", "holds something that is no id"),
        ("slack", "dm:ann", "holds something that is no id"),
        ("slack", "room:#general", "holds something that is no id"),
        ("slack", "room:U012AB3CD", "holds something that is no id"),
        ("discord", "dm:ann#1001", "holds something that is no id"),
        ("discord", "room:0", "holds something that is no id"),
    ],
)
def test_what_cannot_be_an_id_of_the_platform_is_refused_at_its_place(
    channel: str, entry: str, what: str
) -> None:
    good = {"telegram": "dm:1001", "slack": "dm:U012AB3CD", "discord": "dm:1001"}[channel]

    [line] = lines([f'channels.{channel}.allow=["{good}", "{entry}"]'])

    assert line.startswith(f"channels.{channel}.allow[1]: {what} (in the option --set); write ids: on ")


@pytest.mark.parametrize(
    ("channel", "entry"),
    [
        ("telegram", "dm:1001"),
        ("telegram", "-1002003"),
        ("telegram", "@ann"),
        ("slack", "C024BE7LR"),
        ("discord", "ann"),
    ],
)
def test_only_bare_ids_of_people_are_denied(channel: str, entry: str) -> None:
    [line] = lines([f'channels.{channel}.deny=["{entry}"]'])

    assert line.startswith(
        f"channels.{channel}.deny[0]: is not the bare id of a person (in the option --set)"
    )


@pytest.mark.parametrize("entry", ["dm:1001", "room:-1002003/1001"])
def test_no_one_is_allowed_and_denied_at_once(entry: str) -> None:
    [line] = lines([f'{TELEGRAM}.allow=["dm:7", "{entry}"]', f'{TELEGRAM}.deny=["1001"]'])

    assert line == (
        "channels.telegram.deny: names somebody whom channels.telegram.allow lets in (in the option --set); "
        "remove the person from one of the two"
    )


def test_a_person_may_be_denied_in_a_room_that_is_allowed() -> None:
    settings = loaded([f'{TELEGRAM}.allow=["room:-1002003"]', f'{TELEGRAM}.deny=["1001"]'])

    assert settings.channels.telegram.deny == ("1001",)
