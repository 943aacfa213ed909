"""`parlour init` from the first question to the written files, against fake platforms over real HTTP."""

from __future__ import annotations

import asyncio
import stat
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from gateway.cli.init.command import Choices, init
from gateway.cli.init.given import Given
from gateway.config import check_config
from pipeline.domain.errors import ConfigurationError
from tests.support.openai_server import FakeOpenAiServer
from tests.support.platforms.discord import FakeDiscord
from tests.support.platforms.slack import FakeSlack
from tests.support.platforms.telegram import FakeTelegram

Platform = FakeTelegram | FakeSlack | FakeDiscord
WRONG = "123456789:AAEabcdefghijklmnopqrstuvwxyz0123456"


class Typist:
    """A terminal with a person who types prepared lines, and presses Ctrl-C after the last one."""

    def __init__(self, *lines: str) -> None:
        self._lines = list(lines)
        self.shown: list[str] = []

    def say(self, text: str = "") -> None:
        self.shown.append(text)

    def ask(self, question: str) -> str:
        self.shown.append(question)
        if not self._lines:
            raise KeyboardInterrupt
        return self._lines.pop(0)

    ask_hidden = ask

    @property
    def text(self) -> str:
        return "\n".join(self.shown)

    @property
    def unused(self) -> list[str]:
        return self._lines


def api_of(platform: Platform, **more: str) -> dict[str, str]:
    """The environment that leads the channel to the fake platform."""
    given = {"api_base": f"{platform.base}/api/" if isinstance(platform, FakeSlack) else platform.api_base}
    if isinstance(platform, FakeDiscord):
        given["gateway_url"] = platform.gateway_url
    return {
        f"PARLOUR__CHANNELS__{platform.name.upper()}__{key.upper()}": value for key, value in given.items()
    } | more


async def asked(folder: Path, typist: Typist, environ: dict[str, str], *, tested: bool = True) -> int:
    nothing = Given.of(channels=(), tokens=(), model=None, api_key=None, api_base=None)
    choices = Choices(file=folder / "parlour.toml", interactive=True, tested=tested)
    return await asyncio.to_thread(init, choices, nothing, typist, environ)


async def unasked(
    folder: Path,
    typist: Typist,
    environ: dict[str, str],
    channels: Sequence[str] = (),
    tokens: Sequence[str] = (),
    *,
    tested: bool = True,
    replace: bool = False,
    model: str | None = None,
    api_key: str | None = None,
    api_base: str | None = None,
) -> int:
    given = Given.of(channels=channels, tokens=tokens, model=model, api_key=api_key, api_base=api_base)
    choices = Choices(file=folder / "parlour.toml", interactive=False, tested=tested, replace=replace)
    return await asyncio.to_thread(init, choices, given, typist, environ)


def files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def checked(folder: Path, environ: dict[str, str]) -> str:
    """What `parlour check-config` says last."""
    lines: list[str] = []
    check_config(folder / "parlour.toml", environ, [], lines.append, labels=())
    return lines[-1]


SECRETS = {
    "telegram": ("telegram-token",),
    "slack": ("slack-bot-token", "slack-app-token"),
    "discord": ("discord-token",),
}


def tokens_of(platform: Platform) -> tuple[str, ...]:
    return (platform.bot_token, platform.app_token) if isinstance(platform, FakeSlack) else (platform.token,)


@pytest.mark.parametrize("make", [FakeTelegram, FakeSlack, FakeDiscord])
async def test_a_channel_is_tested_written_with_its_secrets_and_then_valid(
    tmp_path: Path, make: type[Platform]
) -> None:
    async with make() as platform:
        typist = Typist(platform.name, *tokens_of(platform), "")
        environ = api_of(platform, PARLOUR__MODELS__DIR=str(tmp_path / "models"))
        assert await asked(tmp_path, typist, environ) == 0

    assert typist.unused == []
    assert f"ok   {platform.name} credentials: accepted; the bot is " in typist.text
    assert f"{platform.name} permissions: " in typist.text
    names = [f"secrets/{name}" for name in SECRETS[platform.name]]
    assert files_in(tmp_path) == sorted(["parlour.toml", "secrets", *names])
    for name, token in zip(names, tokens_of(platform), strict=True):
        assert (tmp_path / name).read_text() == f"{token}\n"
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
        assert token not in (tmp_path / "parlour.toml").read_text() + typist.text
    assert "pairing" in (tmp_path / "parlour.toml").read_text()
    assert checked(tmp_path, environ) == f"The configuration is valid ({tmp_path / 'parlour.toml'}).\n"
    assert "Who may speak: no one yet." in typist.text
    assert "parlour pair CODE" in typist.text
    assert any(line.startswith("  1. parlour models get") for line in typist.shown)


async def test_a_token_that_is_refused_can_be_typed_again(tmp_path: Path) -> None:
    async with FakeTelegram() as telegram:
        typist = Typist("telegram", WRONG, "", telegram.token, "")
        assert await asked(tmp_path, typist, api_of(telegram)) == 0

    assert "BAD  telegram credentials: " in typist.text
    assert (tmp_path / "secrets/telegram-token").read_text() == f"{telegram.token}\n"
    assert WRONG not in typist.text


async def test_a_token_of_the_wrong_kind_is_refused_without_a_call(tmp_path: Path) -> None:
    async with FakeTelegram() as telegram:
        typist = Typist("telegram", "xoxb-1234567890-abc", "l", "")
        assert await asked(tmp_path, typist, api_of(telegram)) == 0
        assert telegram.calls == []

    assert "channels.telegram.token: is a Slack token; take the token that @BotFather shows" in typist.text
    assert files_in(tmp_path) == ["parlour.toml"]
    assert tomllib.loads((tmp_path / "parlour.toml").read_text())["channels"] == {"web": {"enabled": False}}


async def test_a_platform_that_cannot_be_reached_is_named_and_the_token_kept_if_wanted(
    tmp_path: Path,
) -> None:
    async with FakeTelegram() as telegram:
        environ = api_of(telegram)
    typist = Typist("1 2", WRONG, "k", "local")
    assert await asked(tmp_path, typist, environ) == 0

    assert "the platform gave no usable answer" in typist.text
    assert (tmp_path / "secrets/telegram-token").read_text() == f"{WRONG}\n"
    assert checked(tmp_path, environ).startswith("The configuration is valid")


@pytest.mark.parametrize("lines", range(5))
async def test_ctrl_c_at_any_question_leaves_nothing_behind(tmp_path: Path, lines: int) -> None:
    typist = Typist(*("telegram", "file:", WRONG, "openai/gpt-5-mini", "")[:lines])
    assert await asked(tmp_path, typist, {}, tested=False) == 130

    assert typist.text.endswith("Interrupted. Nothing is written.")
    assert files_in(tmp_path) == []


async def test_a_reference_is_taken_in_place_of_a_token(tmp_path: Path) -> None:
    async with FakeTelegram() as telegram:
        environ = api_of(telegram, BOT=telegram.token)
        typist = Typist("telegram web", "env:not a name", "env:BOT", "")
        assert await asked(tmp_path, typist, environ) == 0

    assert "does not name an environment variable after env:" in typist.text
    assert files_in(tmp_path) == ["parlour.toml"]
    assert (
        tomllib.loads((tmp_path / "parlour.toml").read_text())["channels"]["telegram"]["token"] == "env:BOT"
    )


async def test_an_existing_file_is_replaced_only_after_a_yes_and_kept(tmp_path: Path) -> None:
    (tmp_path / "parlour.toml").write_text("# mine\n")
    refusing = Typist("")
    assert await asked(tmp_path, refusing, {}) == 1
    assert "nothing is changed" in refusing.shown[-1]
    assert files_in(tmp_path) == ["parlour.toml"]

    assert await asked(tmp_path, Typist("y", "web", ""), {}) == 0
    assert (tmp_path / "parlour.toml.bak").read_text() == "# mine\n"
    assert "[channels.web]" in (tmp_path / "parlour.toml").read_text()


async def test_a_secret_that_is_there_is_taken_by_enter_and_replaced_only_after_a_yes(tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    secret = tmp_path / "secrets/telegram-token"
    secret.touch(mode=0o600)
    secret.write_text("old\n")
    typist = Typist("telegram", WRONG, "n", "", "")
    assert await asked(tmp_path, typist, {}, tested=False) == 0
    assert (secret.read_text(), files_in(tmp_path / "secrets")) == ("old\n", ["telegram-token"])

    (tmp_path / "parlour.toml").unlink()
    assert await asked(tmp_path, Typist("telegram", WRONG, "y", ""), {}, tested=False) == 0
    assert secret.read_text() == f"{WRONG}\n"
    assert (tmp_path / "secrets/telegram-token.bak").read_text() == "old\n"


async def test_a_key_that_is_there_is_not_taken_where_the_model_needs_none(tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets/llm-api-key").touch(mode=0o600)
    (tmp_path / "secrets/llm-api-key").write_text("sk-of-another-provider\n")
    typist = Typist("web", "ollama_chat/tiny", "-", "")
    assert await asked(tmp_path, typist, {}, tested=False) == 0

    assert "Enter takes the one in secrets/llm-api-key, - takes none" in typist.text
    assert tomllib.loads((tmp_path / "parlour.toml").read_text())["llm"] == {"model": "ollama_chat/tiny"}


async def test_a_hosted_model_is_asked_and_its_key_stored_as_a_secret(tmp_path: Path) -> None:
    async with FakeOpenAiServer() as server:
        typist = Typist("web", "openai/tiny", "sk-a-key-of-some-length", server.api_base)
        assert await asked(tmp_path, typist, {}) == 0

    assert typist.unused == []
    assert "ok   model: tiny, straight from" in typist.text
    assert "sk-a-key" not in typist.text
    written = tomllib.loads((tmp_path / "parlour.toml").read_text())["llm"]
    assert written == {
        "model": "openai/tiny",
        "api_base": server.api_base,
        "api_key": "file:secrets/llm-api-key",
    }
    assert (tmp_path / "secrets/llm-api-key").read_text() == "sk-a-key-of-some-length\n"
    assert checked(tmp_path, {}).startswith("The configuration is valid")


async def test_a_model_that_cannot_be_reached_may_be_left_for_the_embedded_one(tmp_path: Path) -> None:
    typist = Typist("web", "not a model", "", "", "l")
    assert await asked(tmp_path, typist, {}) == 0

    assert "BAD  model: llm.model: is not the name of a model" in typist.text
    assert tomllib.loads((tmp_path / "parlour.toml").read_text())["llm"] == {"model": "local"}


# -- without a terminal -----------------------------------------------------------------------------


async def test_options_alone_set_two_channels_up(tmp_path: Path) -> None:
    (tmp_path / "token").touch(mode=0o600)
    async with FakeTelegram() as telegram, FakeSlack() as slack:
        (tmp_path / "token").write_text(telegram.token)
        environ = api_of(telegram) | api_of(slack, BOT=slack.bot_token, APP=slack.app_token)
        typist = Typist()
        done = await unasked(
            tmp_path,
            typist,
            environ,
            ("web", "telegram", "slack"),
            ("telegram=file:token", "slack.bot_token=env:BOT", "slack.app_token=env:APP"),
        )

    assert done == 0, typist.text
    assert typist.text.count("ok   ") >= 3
    channels = tomllib.loads((tmp_path / "parlour.toml").read_text())["channels"]
    assert channels["telegram"]["token"] == "file:token"
    assert (channels["slack"]["bot_token"], channels["slack"]["app_token"]) == ("env:BOT", "env:APP")
    assert checked(tmp_path, environ).startswith("The configuration is valid")


async def test_without_a_terminal_a_failed_test_writes_nothing_unless_it_is_wanted(tmp_path: Path) -> None:
    async with FakeTelegram() as telegram:
        environ = api_of(telegram, BOT=WRONG)
        typist = Typist()
        assert await unasked(tmp_path, typist, environ, ("telegram",), ("env:BOT",)) == 1

    assert "BAD  telegram credentials" in typist.text
    assert "add --unchecked to write it as it is" in typist.shown[-1]
    assert files_in(tmp_path) == []
    assert await unasked(tmp_path, Typist(), environ, ("telegram",), ("env:BOT",), tested=False) == 0
    assert files_in(tmp_path) == ["parlour.toml"]


async def test_without_a_terminal_an_existing_file_needs_an_option(tmp_path: Path) -> None:
    (tmp_path / "parlour.toml").write_text("# mine\n")
    typist = Typist()
    assert await unasked(tmp_path, typist, {}) == 1
    assert "With --replace it is replaced, and kept as parlour.toml.bak." in typist.text

    assert await unasked(tmp_path, Typist(), {}, replace=True) == 0
    assert (tmp_path / "parlour.toml.bak").read_text() == "# mine\n"


@pytest.mark.parametrize(
    ("channels", "tokens", "words"),
    [
        (("telegrm",), (), "There is no channel 'telegrm'; there are web, telegram, slack, discord"),
        (("telegram",), (), "channels.telegram.token is missing: add --token telegram.token=file:PATH"),
        (("slack",), ("env:A",), "--token number 1: slack takes slack.bot_token= or slack.app_token="),
        (("telegram",), (WRONG,), "--token number 1 is no reference to a token"),
        (("telegram", "discord"), ("env:A",), "--token number 1 does not say which channel it is for"),
        (
            ("telegram",),
            ("telegram=env:not a name",),
            "--token number 1 does not name an environment variable",
        ),
        (("web",), ("web=env:A",), "--token number 1: web takes no token"),
        (
            (),
            ("telegram=env:A",),
            "--token number 1 is for telegram, which is not chosen: add --channel telegram",
        ),
    ],
)
async def test_options_that_do_not_say_enough_are_named_without_the_token(
    tmp_path: Path, channels: tuple[str, ...], tokens: tuple[str, ...], words: str
) -> None:
    with pytest.raises(ConfigurationError) as raised:
        await unasked(tmp_path, Typist(), {}, channels, tokens)

    assert words in str(raised.value)
    assert WRONG not in str(raised.value)
    assert files_in(tmp_path) == []


async def test_a_key_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="--api-key and --api-base need --model"):
        await unasked(tmp_path, Typist(), {}, api_key="env:KEY")


async def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(ConfigurationError, match=r"cannot be written .*nothing is changed"):
        await unasked(tmp_path / "taken", Typist(), {})
