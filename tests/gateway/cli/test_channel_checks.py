"""`parlour doctor` asks each platform whether the credentials work: real SDKs, fake platforms."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.cli.channel_checks import channel_findings
from gateway.cli.findings import Finding
from gateway.config import load
from pipeline.domain.clock import SystemClock
from tests.support.platforms.discord import FakeDiscord
from tests.support.platforms.slack import FakeSlack
from tests.support.platforms.telegram import FakeTelegram

NOWHERE = Path("/dev/null")
Platform = FakeTelegram | FakeSlack | FakeDiscord
PLATFORMS = [FakeTelegram, FakeSlack, FakeDiscord]


async def found(*overrides: str) -> dict[str, Finding]:
    settings = load(NOWHERE, {}, overrides)
    return {finding.name: finding async for finding in channel_findings(settings, SystemClock())}


def with_secret(given: tuple[str, ...], key: str, value: str, folder: Path) -> list[str]:
    """The overrides, with another secret in place of the one called `key`."""
    path = folder / f"other-{key}"
    path.touch(mode=0o600)
    path.write_text(value)
    kept = [one for one in given if f".{key}=" not in one]
    section = given[0].partition("=")[0].rpartition(".")[0]
    return [*kept, f"{section}.{key}={json.dumps(f'file:{path}')}"]


@pytest.mark.parametrize("make", PLATFORMS)
async def test_a_token_that_works_names_the_bot(tmp_path: Path, make: type[Platform]) -> None:
    async with make() as platform:
        finding = (await found(*platform.overrides(tmp_path)))[f"{platform.name} credentials"]

    assert finding.good
    assert finding.words.startswith("accepted; the bot is ")
    assert "parlour" in finding.words.lower()


@pytest.mark.parametrize(
    ("make", "key", "value"),
    [
        (FakeTelegram, "token", "123456789:AAEabcdefghijklmnopqrstuvwxyz0123456"),
        (FakeSlack, "bot_token", "xoxb-000000000000-0000000000000-abcdefghijklmnopqrstuvwx"),
        (FakeSlack, "app_token", "xapp-1-A0000000000-0000000000000-abcdefabcdefabcdefabcdefabcdefab"),
        (FakeDiscord, "token", "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs"),
    ],
)
async def test_a_token_that_the_platform_refuses_is_red_and_says_what_to_do(
    tmp_path: Path, make: type[Platform], key: str, value: str
) -> None:
    async with make() as platform:
        given = with_secret(platform.overrides(tmp_path), key, value, tmp_path)
        finding = (await found(*given))[f"{platform.name} credentials"]

    assert not finding.good
    assert f"channels.{platform.name}.{key}" in finding.words
    assert value not in finding.words


@pytest.mark.parametrize("make", PLATFORMS)
async def test_a_platform_that_does_not_answer_is_red_and_named_as_such(
    tmp_path: Path, make: type[Platform]
) -> None:
    async with make() as platform:
        given = platform.overrides(tmp_path)
    finding = (await found(*given))[f"{platform.name} credentials"]

    assert not finding.good
    assert finding.words.startswith("the platform gave no usable answer (")
    assert finding.words.endswith("; check the network and try again")


async def test_a_discord_bot_that_may_not_read_messages_is_red(tmp_path: Path) -> None:
    async with FakeDiscord() as platform:
        platform.gateway.content_intent_granted = False
        finding = (await found(*platform.overrides(tmp_path)))["discord credentials"]

    assert not finding.good
    assert "MESSAGE CONTENT INTENT" in finding.words


async def test_of_several_accounts_each_is_asked_and_named(tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    (tmp_path / "second").mkdir()
    async with FakeTelegram() as main, FakeTelegram() as shop:
        first, second = main.overrides(tmp_path / "first"), shop.overrides(tmp_path / "second")
        second = tuple(one.replace("channels.telegram.", "channels.telegram.2.") for one in second)
        findings = await found(
            *first, *second, "channels.telegram.2.account=shop", "channels.telegram.2.access=list"
        )

    assert list(findings) == [
        "telegram (main) credentials",
        "telegram (main) permissions",
        "telegram (main)",
        "telegram (shop) credentials",
        "telegram (shop) permissions",
        "telegram (shop)",
    ]
    assert findings["telegram (main)"].words.startswith("open to everybody")
    assert findings["telegram (shop)"].words == "a stranger is refused, and shown a refusal"
