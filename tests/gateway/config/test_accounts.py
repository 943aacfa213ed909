"""Several accounts of one channel, [[channels.telegram]]: what each has, and each mistake with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.config import check_config, load
from gateway.config.channels import label_of
from gateway.runtime.crash_labels import LABELS
from tests.gateway.config.support import problem_lines, write_config

_ENVIRON = {"SHOP": "1001:" + "Aa0_-" * 7, "STAFF": "1002:" + "Bb0_-" * 7, "SLACK": "xoxb-one-two-three"}
_TWO = """\
[agents.shop]
system_prompt = "You sell things."

[[channels.telegram]]
account = "shop"
token = "env:SHOP"
agent = "shop"
access = "open"
rate = 5

[[channels.telegram]]
account = "staff"
token = "env:STAFF"
allow = ["dm:7"]

[channels.discord]
enabled = false
"""


def test_each_table_is_an_account_with_its_own_settings(tmp_path: Path) -> None:
    settings = load(write_config(tmp_path, _TWO), _ENVIRON, [])

    accounts = [one for one in settings.channels.accounts() if one.settings.active]

    assert [(one.path, one.key, label_of(one, accounts)) for one in accounts] == [
        ("channels.telegram", ("telegram", "shop"), "telegram (shop)"),
        ("channels.telegram.2", ("telegram", "staff"), "telegram (staff)"),
    ]
    assert [one.settings.access for one in accounts] == ["open", "pairing"]
    assert [(one.settings.rate, one.settings.allow) for one in accounts] == [(5, ()), (None, ("dm:7",))]
    assert str(settings.secret_refs()["channels.telegram.2.token"]) == "env:STAFF"
    assert [(one.agent, one.channel, one.account) for one in settings.every_route] == [
        ("shop", "telegram", "shop")
    ]


def test_a_single_table_is_the_account_main_as_ever(tmp_path: Path) -> None:
    settings = load(write_config(tmp_path, '[channels.telegram]\ntoken = "env:SHOP"\n'), _ENVIRON, [])

    (only,) = [one for one in settings.channels.accounts() if one.settings.active]
    assert (only.path, only.key) == ("channels.telegram", ("telegram", "main"))
    assert label_of(only, settings.channels.accounts()) == "telegram"


def test_the_environment_and_the_command_line_reach_every_account(tmp_path: Path) -> None:
    environ = {**_ENVIRON, "PARLOUR__CHANNELS__TELEGRAM__2__ACCESS": "list"}
    overrides = ["channels.telegram.1.rate=9", "channels.telegram.3.token=env:THIRD"]
    overrides.append("channels.telegram.3.account=third")

    settings = load(write_config(tmp_path, _TWO), {**environ, "THIRD": "1003:" + "Cc0_-" * 7}, overrides)

    first, second, third = (one.settings for one in settings.channels.accounts()[:3])
    assert (first.rate, second.access, third.account) == (9, "list", "third")


def test_check_config_shows_each_account_and_who_answers_there(tmp_path: Path) -> None:
    written: list[str] = []

    assert check_config(write_config(tmp_path, _TWO), _ENVIRON, [], written.append, labels=LABELS) == 0

    text = "".join(written)
    assert "channels.telegram.2.token" in text
    assert "env:STAFF (set, 40 characters)" in text
    assert "  channel telegram, account shop: shop\n  everywhere else: default\n" in text


_STAFF = 'account = "staff"'
_SAME = "name of channels.telegram too"


@pytest.mark.parametrize(
    ("old", "new", "path", "words", "line"),
    [
        (_STAFF, 'account = "shop"', ".2.account", _SAME, 12),
        ('token = "env:STAFF"', 'token = "env:SHOP"', ".2.token", "of channels.telegram.token too", 13),
        ('token = "env:STAFF"', 'token = "env:SLACK"', ".2.token", "is a Slack token", 13),
        ('token = "env:STAFF"\n', "", ".2.token", "set channels.telegram.2.enabled to false", 12),
        ('allow = ["dm:7"]', 'acess = "list"', ".2.acess", "did you mean channels.telegram.access?", 14),
        ('allow = ["dm:7"]', 'access = "all"', ".2.access", 'expected "pairing", "list" or "open"', 14),
        ('["dm:7"]', '["dm:7"]\ndeny = ["7"]', ".2.deny", "whom channels.telegram.2.allow lets in", 15),
        ('agent = "shop"', 'agent = "shopp"', ".agent", 'did you mean "shop"?', 7),
        ('account = "staff"\ntoken = "env:STAFF"\nallow = ["dm:7"]\n', "", ".2", "is an empty table", 11),
    ],
)  # fmt: skip
def test_a_mistake_names_the_account_and_its_line(
    tmp_path: Path, old: str, new: str, path: str, words: str, line: int
) -> None:
    file = write_config(tmp_path, _TWO.replace(old, new))

    (problem,) = problem_lines(file, _ENVIRON)

    assert problem.startswith(f"channels.telegram{path}: ")
    assert words in problem
    assert f"{file}, line {line})" in problem


def test_two_tables_without_a_name_cannot_both_be_main(tmp_path: Path) -> None:
    text = _TWO.replace('account = "shop"\n', "").replace(f"{_STAFF}\n", "")

    (problem,) = problem_lines(write_config(tmp_path, text), _ENVIRON)

    assert problem.startswith(
        'channels.telegram.2.account: is "main", the name of channels.telegram too (in '
    )


def test_two_webhooks_need_two_paths(tmp_path: Path) -> None:
    hook = 'mode = "webhook"\nwebhook_url = "https://bot.example.org/telegram"\nwebhook_secret = "env:HOOK"\n'
    text = _TWO.replace("rate = 5\n", hook).replace('allow = ["dm:7"]\n', hook)
    path = write_config(tmp_path, f'{text}[server]\npublic_origins = ["https://bot.example.org"]\n')

    (line,) = problem_lines(path, {**_ENVIRON, "HOOK": "0123456789abcdef" * 2})

    assert line.startswith("channels.telegram.2.webhook_url: has the same path as that of another account")
