"""A token in the wrong place or cut short is reported at start: where it is, what it is, what is right."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.config import check_config
from gateway.config.token_formats import shape_problem
from gateway.runtime.crash_labels import LABELS
from tests.gateway.config.support import SECRETS, references, secrets_environ, variable
from tests.support.tables import each

EMPTY = Path("/dev/null")
TELEGRAM, SLACK, DISCORD = "channels.telegram", "channels.slack", "channels.discord"
GOOD = {name: value for name, value in SECRETS.items() if name != "channels.web.token"}

WRONG = [
    (f"{TELEGRAM}.token", "1001", "is a number alone, as if the token had been cut at its colon"),
    (f"{TELEGRAM}.token", "1001:tiger", "is not a Telegram bot's token, which is a number, a colon"),
    (f"{TELEGRAM}.token", f"bot{GOOD[f'{TELEGRAM}.token']}", 'starts with "bot"'),
    (f"{TELEGRAM}.token", f" {GOOD[f'{TELEGRAM}.token']}", "starts or ends with a space"),
    (f"{TELEGRAM}.token", GOOD[f"{SLACK}.bot_token"], "is a Slack token"),
    (f"{TELEGRAM}.webhook_secret", "tiger", "is shorter than 32 characters"),
    (f"{TELEGRAM}.webhook_secret", "t" * 31, "is shorter than 32 characters"),
    (f"{TELEGRAM}.webhook_secret", "t" * 257, "is longer than 256 characters"),
    (
        f"{TELEGRAM}.webhook_secret",
        "t" * 40 + "!",
        "is not 32 to 256 of the characters A-Z, a-z, 0-9, _ and -",
    ),
    (f"{TELEGRAM}.webhook_secret", "tïger" * 8, "is not 32 to 256 of the characters"),
    (f"{TELEGRAM}.webhook_secret", GOOD[f"{TELEGRAM}.token"], "has the form of a Telegram bot's token"),
    (f"{SLACK}.bot_token", "tiger", "is not a Slack bot token, which starts with xoxb-"),
    (f"{SLACK}.bot_token", "xoxb-tiger", "is not a Slack bot token, which starts with xoxb-"),
    (f"{SLACK}.bot_token", GOOD[f"{SLACK}.app_token"], "is a Slack app-level token (xapp-…)"),
    (f"{SLACK}.bot_token", "xoxp-tiger-tiger-burning", "is a token that acts for a person, not the bot's"),
    (f"{SLACK}.bot_token", "xoxe.xoxb-1-tiger-burning", "belongs to a Slack app with token rotation"),
    (f"{SLACK}.bot_token", GOOD[f"{SLACK}.signing_secret"], "has the form of a Slack signing secret"),
    (f"{SLACK}.app_token", GOOD[f"{SLACK}.bot_token"], "is a Slack bot token (xoxb-…)"),
    (f"{SLACK}.app_token", "tiger", "is not a Slack app-level token, which starts with xapp-"),
    (f"{SLACK}.signing_secret", GOOD[f"{SLACK}.bot_token"], "is a Slack bot token (xoxb-…)"),
    (f"{SLACK}.signing_secret", GOOD[f"{SLACK}.app_token"], "is a Slack app-level token (xapp-…)"),
    (f"{SLACK}.signing_secret", "tigertigertigertigertige", "is not a Slack signing secret"),
    (f"{DISCORD}.token", "tiger", "is not a Discord bot's token, which is three parts with dots"),
    (f"{DISCORD}.token", "tigers.burning.bright.forests", "is not a Discord bot's token"),
    (f"{DISCORD}.token", f"Bot {GOOD[f'{DISCORD}.token']}", 'starts with "Bot "'),
    (f"{DISCORD}.token", "mfa.tiger-tiger-burning-bright", "is a token that acts for a person"),
    (
        f"{DISCORD}.token",
        "tigertiger-tigertiger_tigertiger",
        "has the form of the application's client secret",
    ),
    (f"{DISCORD}.token", "0123456789abcdef" * 4, "is the application's public key"),
    (f"{DISCORD}.token", "80351110224678912", "is the application's id"),
    (f"{DISCORD}.token", GOOD[f"{TELEGRAM}.token"], "has the form of a Telegram bot's token"),
]


@each("name, value, what", WRONG)
def test_a_wrong_token_is_reported_at_its_setting_and_not_repeated(name: str, value: str, what: str) -> None:
    environ = secrets_environ(**{variable(name): value})
    written: list[str] = []

    code = check_config(EMPTY, environ, references(*GOOD), written.append, labels=LABELS)

    assert code == 2
    [line, count] = written
    assert line.startswith(f"{name}: {what}")
    assert "(referred to in the option --set); " in line
    assert value not in line
    assert count == "The configuration has 1 problem.\n"


@pytest.mark.parametrize("name", GOOD)
def test_every_other_channels_secret_is_noticed_in_place_of_a_token(name: str) -> None:
    undetectable = {(f"{TELEGRAM}.webhook_secret", other) for other in GOOD} - {
        (f"{TELEGRAM}.webhook_secret", f"{TELEGRAM}.token"),
        (f"{TELEGRAM}.webhook_secret", f"{DISCORD}.token"),
    }
    undetectable.add((f"{SLACK}.signing_secret", f"{TELEGRAM}.webhook_secret"))
    swapped = [other for other in GOOD if other != name and (name, other) not in undetectable]

    assert [other for other in swapped if shape_problem(name, GOOD[other]) is None] == []


@pytest.mark.parametrize("name", GOOD)
def test_a_secret_of_the_right_shape_is_taken(name: str) -> None:
    assert shape_problem(name, GOOD[name]) is None


def test_a_secret_of_no_platform_may_look_as_it_likes() -> None:
    assert shape_problem("llm.api_key", "t") is None


def test_all_wrong_tokens_come_at_once() -> None:
    written: list[str] = []

    check_config(
        EMPTY, dict.fromkeys(secrets_environ(), "tiger"), references(*GOOD), written.append, labels=LABELS
    )

    assert [line.partition(":")[0] for line in written[:-1]] == list(GOOD)
    assert "tiger" not in "".join(written)


def test_a_right_token_shows_as_its_reference_and_length() -> None:
    written: list[str] = []

    assert check_config(EMPTY, secrets_environ(), references(*GOOD), written.append, labels=LABELS) == 0

    [line] = [line for line in "".join(written).splitlines() if line.startswith("channels.discord.token")]
    assert line.endswith("env:CHANNELS_DISCORD_TOKEN (set, 43 characters)")


@pytest.mark.parametrize("name", ["channels.web.token", "server.metrics_token"])
@pytest.mark.parametrize(("value", "right"), [("t" * 15, False), ("t" * 16, True), ("t" * 501, False)])
def test_a_token_of_our_own_is_long_enough_that_no_one_guesses_it(name: str, value: str, right: bool) -> None:
    environ, written = {"KEY": value}, list[str]()

    code = check_config(EMPTY, environ, [f"{name}=env:KEY"], written.append, labels=LABELS)

    assert code == (0 if right else 2)
    assert right or written[0].startswith(f"{name}: is not 16 to 500 characters long")
