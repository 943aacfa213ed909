"""The tables of channels that plug-ins add: typed, and every mistake with its line.

Covers: gateway/config/channel_plugins.py, gateway/config/channel_kinds.py, gateway/config/posting.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.cli.main import main
from gateway.config import check_config, load
from gateway.runtime.crash_labels import LABELS
from tests.gateway.config.support import problem_lines, write_config
from tests.support.channel_plugins import BROKEN, channel_plugins

_ENVIRON = {"KEY": "tiger-tiger", "OTHER": "burning-bright"}
_TWO = """\
[[channels.harbour]]
key = "env:KEY"
berth = 3
access = "list"
allow = ["dm:ann", "room:quay/bob"]
agent = "default"
rate = 5

[[channels.harbour]]
account = "north"
key = "env:OTHER"
"""


@pytest.fixture(autouse=True)
def harbour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    names = {"harbour": "demo_harbour:harbour", "web": "demo_harbour:harbour", **BROKEN}
    with channel_plugins(tmp_path / "site", monkeypatch, **names):
        yield


def test_each_table_is_an_account_with_the_settings_of_the_plug_in(tmp_path: Path) -> None:
    settings = load(write_config(tmp_path, _TWO), _ENVIRON, ["channels.harbour.2.berth=7"])

    accounts = [one for one in settings.channels.accounts() if one.settings.active]
    assert [(one.path, one.key, getattr(one.settings, "berth", 0)) for one in accounts] == [
        ("channels.harbour", ("harbour", "main"), 3),
        ("channels.harbour.2", ("harbour", "north"), 7),
    ]
    assert (accounts[0].settings.access, accounts[0].settings.rate) == ("list", 5)
    assert str(settings.secret_refs()["channels.harbour.2.key"]) == "env:OTHER"
    assert [(one.channel, one.account, one.agent) for one in settings.every_route] == [
        ("harbour", "main", "default")
    ]


def test_a_single_table_and_the_environment_do_as_for_a_shipped_channel(tmp_path: Path) -> None:
    environ = {
        **_ENVIRON,
        "PARLOUR__CHANNELS__HARBOUR__KEY": "env:KEY",
        "PARLOUR__CHANNELS__HARBOUR__BERTH": "2",
    }

    (only,) = [one for one in load(None, environ, []).channels.accounts() if one.settings.active]

    assert (only.key, getattr(only.settings, "berth", 0)) == (("harbour", "main"), 2)


_KEY = '[channels.harbour]\nkey = "env:KEY"\n'
_NORTH = '[[channels.harbour]]\nkey = "env:KEY"\n[[channels.harbour]]\naccount = "north"\n'
_MISTAKES = {
    f"{_KEY}berth = 12": (
        "channels.harbour.berth: expected a whole number from 1 to 9, but 12 was given (in FILE, line 3); "
        "write a number such as 1"
    ),
    '[channels.harbour]\nkey = "tiger-tiger"': (
        "channels.harbour.key: is not a reference to a secret (in FILE, line 2); "
        'write "env:NAME" or "file:PATH" and keep the secret itself out of the configuration'
    ),
    f"{_KEY}birth = 3": (
        "channels.harbour.birth: names no setting (in FILE, line 3); did you mean channels.harbour.berth?"
    ),
    f'{_NORTH}key = "env:OTHER"\nallow = ["x"]': (
        "channels.harbour.2.allow[0]: is none of dm:USER, room:CHAT and room:CHAT/USER (in FILE, line 6); "
        "write ids: as the platform has them, without spaces and slashes"
    ),
    "[channels.harbour]\nberth = 2": (
        "channels.harbour.key: is not set, but other settings of [channels.harbour] are: the channel could "
        "not start (in FILE, line 2); set it to the bot's token by reference, or set "
        "channels.harbour.enabled to false"
    ),
    f"{_KEY}berth = 9": "channels.harbour.berth: is taken (in FILE, line 3); choose another",
    f'{_KEY}agent = "nemo"': (
        "channels.harbour.agent: there is no agent of this name (in FILE, line 3); there are: default"
    ),
    f'{_NORTH}key = "env:KEY"': (
        "channels.harbour.2.key: is the token of channels.harbour.key too (referred to in FILE, line 5); "
        "use another bot's token for each account"
    ),
    "[channels.harbor]\nx = 1": (
        "channels.harbor: names no channel (in FILE, line 1); did you mean channels.harbour?"
    ),
    "[channels.zebra]\nx = 1": (
        "channels.zebra: names no channel (in FILE, line 1); the shipped channels are web, console, "
        "telegram, slack, discord; installed plug-ins add harbour (demo-plugins 1.0), pier (demo-plugins "
        "1.0), reef (demo-plugins 1.0), sand (demo-plugins 1.0), shoal (demo-plugins 1.0), web "
        "(demo-plugins 1.0)"
    ),
    f'[[routes]]\nchannel = "harbor"\nagent = "default"\n{_KEY}': (
        "routes.1.channel: there is no channel 'harbor' (in FILE, line 2); did you mean \"harbour\"?"
    ),
}


@pytest.mark.parametrize("text", _MISTAKES)
def test_a_mistake_names_the_setting_and_its_line(tmp_path: Path, text: str) -> None:
    file = write_config(tmp_path, text)

    lines = problem_lines(file, _ENVIRON)

    assert [one.replace(str(file), "FILE") for one in lines] == [_MISTAKES[text]]


def test_check_config_shows_the_settings_and_the_secret_only_by_its_length(tmp_path: Path) -> None:
    printed: list[str] = []

    code = check_config(write_config(tmp_path, _TWO), _ENVIRON, [], printed.append, labels=LABELS)

    words = " ".join("".join(printed).split())
    assert code == 0
    assert "channels.harbour.berth file" in words
    assert "env:OTHER (set, 14 characters)" in words
    assert "tiger-tiger" not in words
    assert "channel harbour, account main: default" in words


def test_the_table_of_a_broken_plug_in_is_not_read_and_check_config_does_not_pass(tmp_path: Path) -> None:
    file = write_config(
        tmp_path, '[channels.pier]\nanything = {x = "tiger-tiger"}\n[channels.web]\nenabled = true'
    )
    printed: list[str] = []

    settings = load(file, {}, ["channels.pier.more=1"])
    code = check_config(file, {}, [], printed.append, labels=LABELS)

    (left_out,) = settings.channels.added
    assert (left_out.name, left_out.tables) == ("pier", ())
    assert code == 2
    assert printed[0] == (
        "channels.pier: is left out, and its table was not checked: the plug-in demo-plugins 1.0 cannot be "
        "used (RuntimeError: no licence); repair or remove the plug-in, or remove the table; without it the "
        "gateway starts as it is\n"
    )


def test_parlour_plugins_lists_the_channels_and_why_one_is_left_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["plugins"]) == 1

    printed = capsys.readouterr().out.replace("parlour.channels  ", "").replace("(demo-plugins 1.0)  ", "")
    assert printed.splitlines() == [
        "harbour  in use",
        "pier  left out: RuntimeError: no licence",
        "reef  left out: its import took longer than 10 s",
        "sand  left out: TypeError: expected a ChannelKind, not dict",
        "shoal  left out: TypeError: the settings of a ChannelKind are a class derived from PostingSettings",
        "web  left out: ValueError: web is the name of a shipped channel",
    ]
