"""The channels that post on somebody else's server: on with a token alone, refused without what is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from gateway.config import Settings, load
from tests.gateway.config.support import SECRETS, problem_lines, references, secrets_environ, variable
from tests.support.tables import each

EMPTY = Path("/dev/null")
TELEGRAM, SLACK, DISCORD = "channels.telegram", "channels.slack", "channels.discord"
WEBHOOK = [
    *references(f"{TELEGRAM}.token", f"{TELEGRAM}.webhook_secret"),
    f"{TELEGRAM}.mode=webhook",
    f"{TELEGRAM}.webhook_url=https://bot.example.org/telegram",
    'server.public_origins=["https://bot.example.org"]',
]
SOCKET = references(f"{SLACK}.bot_token", f"{SLACK}.app_token")
HTTP = [*references(f"{SLACK}.bot_token", f"{SLACK}.signing_secret"), f"{SLACK}.mode=http"]


def loaded(overrides: Sequence[str], environ: Mapping[str, str] | None = None) -> Settings:
    return load(EMPTY, environ or secrets_environ(), overrides)


def lines(overrides: Sequence[str], environ: Mapping[str, str] | None = None) -> list[str]:
    return problem_lines(EMPTY, environ or secrets_environ(), overrides)


def without(overrides: Sequence[str], name: str) -> list[str]:
    return [override for override in overrides if not override.startswith(f"{name}=")]


def active(settings: Settings) -> list[str]:
    return [one.channel for one in settings.channels.accounts() if one.settings.active]


def test_no_channel_runs_without_a_token() -> None:
    assert active(Settings()) == []


@pytest.mark.parametrize(
    ("overrides", "name"),
    [
        (references(f"{TELEGRAM}.token"), "telegram"),
        (SOCKET, "slack"),
        (references(f"{DISCORD}.token"), "discord"),
        (WEBHOOK, "telegram"),
        (HTTP, "slack"),
    ],
)
def test_a_channel_runs_with_nothing_but_its_tokens(overrides: list[str], name: str) -> None:
    assert active(loaded(overrides)) == [name]


@pytest.mark.parametrize("channel", ["telegram", "slack", "discord"])
def test_a_channel_with_a_token_can_be_turned_off(channel: str) -> None:
    names = [name for name in SECRETS if name.startswith(f"channels.{channel}.")]

    settings = loaded([*references(*names), f"channels.{channel}.enabled=false"])

    assert active(settings) == []


def test_the_settings_name_every_secret_of_a_channel() -> None:
    settings = loaded(references(*SECRETS))

    assert {name: reference.resolve() for name, reference in settings.secret_refs().items()} == SECRETS


@pytest.mark.parametrize(
    ("overrides", "missing", "cause"),
    [
        (WEBHOOK, f"{TELEGRAM}.token", f"other settings of [{TELEGRAM}] are"),
        (WEBHOOK, f"{TELEGRAM}.webhook_url", f'{TELEGRAM}.mode is "webhook"'),
        (WEBHOOK, f"{TELEGRAM}.webhook_secret", f'{TELEGRAM}.mode is "webhook"'),
        (SOCKET, f"{SLACK}.bot_token", f"other settings of [{SLACK}] are"),
        (SOCKET, f"{SLACK}.app_token", f'{SLACK}.mode is "socket"'),
        (HTTP, f"{SLACK}.bot_token", f"other settings of [{SLACK}] are"),
        (HTTP, f"{SLACK}.signing_secret", f'{SLACK}.mode is "http"'),
    ],
)
def test_a_channel_without_what_its_mode_needs_is_refused(
    overrides: list[str], missing: str, cause: str
) -> None:
    [line] = lines(without(overrides, missing))

    assert line.startswith(f"{missing}: is not set, but {cause}")


@pytest.mark.parametrize(
    ("channel", "key"), [("telegram", "token"), ("slack", "bot_token"), ("discord", "token")]
)
def test_a_section_without_its_token_is_refused_instead_of_left_out(channel: str, key: str) -> None:
    [line] = lines([f"channels.{channel}.previews=false"])

    assert line.startswith(
        f"channels.{channel}.{key}: is not set, but other settings of [channels.{channel}]"
    )
    assert f"set channels.{channel}.enabled to false" in line


def test_what_is_missing_of_a_channel_that_is_off_is_no_problem() -> None:
    off = [f"{TELEGRAM}.enabled=false", f"{SLACK}.enabled=false"]

    assert active(loaded([*without(WEBHOOK, f"{TELEGRAM}.webhook_secret"), *SOCKET[1:], *off])) == []


@each("name", [name for name in SECRETS if name != "channels.web.token"])
@each(
    "value, what",
    [
        (None, "is not set"),
        ("", "is empty"),
        (" ", "is empty"),
        ("\t\n", "is empty"),
        ("tiger\nlion", "holds a line break or a control character"),
    ],
)
def test_a_secret_that_is_not_there_is_named_whatever_the_mode(
    name: str, value: str | None, what: str
) -> None:
    environ = {key: text for key, text in secrets_environ().items() if key != variable(name)}
    overrides = HTTP if name == f"{SLACK}.signing_secret" else [*WEBHOOK, *SOCKET]
    overrides = [*without(overrides, name), *references(name)]

    [line] = lines(overrides, environ if value is None else {**environ, variable(name): value})

    assert line.startswith(f"{name}: the environment variable {variable(name)} {what} ")
    assert "tiger" not in line


@each("name", [name for name in SECRETS if name != "channels.web.token"])
@each("value", ["1", "true", '""', '" "', "[]", "1979-05-27", "{a = 'tiger'}", "tiger"])
def test_a_secret_of_the_wrong_type_or_written_out_is_named(name: str, value: str) -> None:
    overrides = HTTP if name == f"{SLACK}.signing_secret" else [*WEBHOOK, *SOCKET]

    [line] = lines([*without(overrides, name), f"{name}={value}"])

    assert line.startswith(f"{name}: is not a reference to a secret (in the option --set); write ")
    assert "tiger" not in line


@each(
    "url, what",
    [
        ("http://bot.example.org/telegram", "is not encrypted: it starts with http://"),
        ("https://bot.example.org", "has no path"),
        ("https://bot.example.org/", "has no path"),
        ("https://bot.example.org:443/telegram", "names the scheme's own port"),
        ("https://me:tiger@bot.example.org/telegram", "is not an address to call"),
        ("https://bot.example.org/telegram?secret=tiger", "is not an address to call"),
        ("bot.example.org/telegram", "is not an address to call"),
        ("https://other.example.org/telegram", "names a host that is not in server.public_origins"),
        ("https://bot.example.org:8443/telegram", "names a host that is not in server.public_origins"),
        ("https://127.0.0.1:9999/telegram", "names a port that Telegram does not call"),
    ],
)
def test_a_webhooks_address_that_cannot_work_is_refused(url: str, what: str) -> None:
    [line] = lines([*WEBHOOK, f"{TELEGRAM}.webhook_url={url}"])

    assert line.startswith(f"{TELEGRAM}.webhook_url: {what}")
    assert "tiger" not in line


def test_a_webhook_on_this_machine_needs_no_encryption_and_no_public_origin() -> None:
    url = "http://127.0.0.1:8765/telegram"

    settings = loaded(
        [
            *without(WEBHOOK, "server.public_origins"),
            f"{TELEGRAM}.webhook_url={url}",
            f"{TELEGRAM}.api_base=http://127.0.0.1:8081",
        ]
    )

    assert settings.channels.telegram.webhook_url == url


@each(
    "override, line",
    [
        (f"{TELEGRAM}.account=Main", "is not 1 to 32 of the characters a-z, 0-9 and -"),
        (f"{DISCORD}.account={'a' * 33}", "is not 1 to 32 of the characters a-z, 0-9 and -"),
        (f"{SLACK}.api_base=slack.com", "is not an address of an API"),
        (f"{SLACK}.api_base=https://me:tiger@slack.com", "holds a user name or a password"),
        (f"{DISCORD}.gateway_url=https://gateway.discord.gg", "is not an address of a gateway"),
        (f"{DISCORD}.gateway_url=wss://", "is not an address of an API"),
        (f"{TELEGRAM}.access=everybody", 'expected "pairing", "list" or "open"'),
        (f"{TELEGRAM}.rooms=sometimes", 'expected "addressed", "may_answer", "all" or "never"'),
        (f"{TELEGRAM}.replies=draft", 'expected "post", "edit" or "plain"'),
        (f"{TELEGRAM}.mode=push", 'expected "polling" or "webhook"'),
        (f"{SLACK}.mode=polling", 'expected "socket" or "http"'),
        (f"{TELEGRAM}.rate=-1", "expected a number from 0 to 1000"),
        (f"{TELEGRAM}.open_messages_per_day=0", "expected a whole number from 1 to 100000"),
        (f"{TELEGRAM}.open_people=0", "expected a whole number from 1 to 100000"),
    ],
)
def test_a_value_out_of_its_bounds_is_refused(override: str, line: str) -> None:
    [found] = lines([override])

    assert found.startswith(f"{override.partition('=')[0]}: {line}")
    assert "tiger" not in found


@pytest.mark.parametrize("access", ["pairing", "list", "open"])
def test_open_to_everybody_needs_nothing_more_even_on_a_public_server(access: str) -> None:
    settings = loaded([*WEBHOOK, "server.host=0.0.0.0", f"{TELEGRAM}.access={access}"])

    assert settings.channels.telegram.access == access
    assert settings.channels.telegram.open_messages_per_day == 100
