"""`parlour doctor` says what each platform does not let the bot do: what is missing, its effect, the fix."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.cli.channel_checks import channel_findings
from gateway.cli.findings import Finding
from gateway.config import load
from pipeline.domain.clock import SystemClock
from tests.support.platforms.discord import FakeDiscord
from tests.support.platforms.platform import Fault
from tests.support.platforms.slack import FakeSlack
from tests.support.platforms.telegram import FakeTelegram

NOWHERE = Path("/dev/null")


async def permissions(*overrides: str) -> list[tuple[bool, str]]:
    """Whether each finding about permissions is good, and its words."""
    settings = load(NOWHERE, {}, overrides)
    found: list[Finding] = [one async for one in channel_findings(settings, SystemClock())]
    return [(one.good, one.words) for one in found if one.name.endswith(" permissions")]


@pytest.mark.parametrize("make", [FakeSlack, FakeDiscord])
async def test_a_bot_that_was_set_up_by_the_guide_lacks_nothing(
    tmp_path: Path, make: type[FakeSlack | FakeDiscord]
) -> None:
    async with make() as platform:
        assert await permissions(*platform.overrides(tmp_path)) == [(True, "all that the bot needs")]


async def test_telegrams_privacy_mode_is_a_fault_only_where_whole_rooms_are_wanted(tmp_path: Path) -> None:
    async with FakeTelegram() as telegram:
        overrides = telegram.overrides(tmp_path)
        [(good, words)] = await permissions(*overrides)
        [(good_all, words_all)] = await permissions(*overrides, "channels.telegram.rooms=all")
        [(good_may, words_may)] = await permissions(*overrides, "channels.telegram.rooms=may_answer")
        never = await permissions(*overrides, "channels.telegram.rooms=never")
        telegram.state.abilities["can_read_all_group_messages"] = True
        off = await permissions(*overrides, "channels.telegram.rooms=all")

    assert (good, good_all) == (True, False)
    assert words.startswith("optional: privacy mode is on, so groups send it only what is addressed to it: ")
    assert 'rooms = "all" and room_messages = 20 cannot work in groups' in words_all
    assert "/setprivacy" in words_all
    assert (good_may, 'rooms = "may_answer" and' in words_may) == (False, True)
    assert never == off == [(True, "all that the bot needs")]


async def test_a_telegram_bot_that_may_not_join_groups_is_named(tmp_path: Path) -> None:
    async with FakeTelegram() as telegram:
        telegram.state.abilities["can_join_groups"] = False
        [(good, words)] = await permissions(*telegram.overrides(tmp_path))

    assert good
    assert words.startswith("optional: the bot may not join groups: ")
    assert "/setjoingroups" in words


async def test_a_webhook_that_takes_a_polling_bots_messages_is_named_without_its_path(tmp_path: Path) -> None:
    async with FakeTelegram() as telegram:
        telegram.state.updates.webhook = {"url": "https://elsewhere.example.org/secret-path"}
        overrides = (*telegram.overrides(tmp_path), "channels.telegram.rooms=never")
        [(good, words)] = await permissions(*overrides)

    assert good
    assert "a webhook at elsewhere.example.org" in words
    assert "secret-path" not in words


async def test_a_webhook_that_telegram_cannot_reach_is_a_fault_with_telegrams_reason(tmp_path: Path) -> None:
    secret = tmp_path / "hook"
    secret.touch(mode=0o600)
    secret.write_text("a" * 32)
    async with FakeTelegram() as telegram:
        telegram.state.updates.webhook = {"url": "https://bot.example.org/telegram"}
        telegram.state.updates.webhook_error = "Connection refused"
        [(good, words)] = await permissions(
            *telegram.overrides(tmp_path),
            'server.public_origins=["https://bot.example.org"]',
            "channels.telegram.rooms=never",
            "channels.telegram.mode=webhook",
            "channels.telegram.webhook_url=https://bot.example.org/telegram",
            f"channels.telegram.webhook_secret=file:{secret}",
        )

    assert not good
    assert words.startswith("Telegram cannot deliver to webhook_url and says: Connection refused: ")


async def test_each_missing_scope_of_slack_names_what_suffers_and_where_to_add_it(tmp_path: Path) -> None:
    async with FakeSlack() as slack:
        slack.workspace.scopes -= {"files:read", "channels:history", "reactions:write"}
        found = await permissions(*slack.overrides(tmp_path))
        private = await permissions(*slack.overrides(tmp_path), "channels.slack.rooms=never")

    starts = [(good, words.partition(";")[0]) for good, words in found]
    assert starts == [
        (False, "the scope files:read is missing: voice notes cannot be heard"),
        (False, "the scope channels:history is missing: messages in public channels do not arrive"),
        (
            True,
            "optional: the scope reactions:write is missing: direct chats do not show that it is at work",
        ),
    ]
    assert all("Reinstall to Workspace" in words for _, words in found)
    assert [good for good, _ in private] == [False, True]
    assert [
        name in words for name, (_, words) in zip(("files:read", "reactions:write"), private, strict=True)
    ]


async def test_a_discord_permission_that_a_server_does_not_give_is_named_with_the_server(
    tmp_path: Path,
) -> None:
    async with FakeDiscord() as discord:
        discord.rest.servers = {"Home": 274_878_008_320 - (1 << 15), "Work": 1 << 3, "Club": 1 << 10}
        found = await permissions(*discord.overrides(tmp_path))

    starts = [words.partition(":")[0] for _, words in found]
    assert starts == [
        "the permission Send Messages is missing in Club",
        "the permission Send Messages in Threads is missing in Club",
        "the permission Attach Files is missing in Home, Club",
        "the permission Read Message History is missing in Club",
    ]
    assert not any(good for good, _ in found)
    assert all("permissions=274878008384" in words for _, words in found)


async def test_a_discord_bot_in_no_server_is_invited_and_one_with_an_endpoint_gets_no_presses(
    tmp_path: Path,
) -> None:
    async with FakeDiscord() as discord:
        discord.rest.servers = {}
        discord.rest.interactions_endpoint = "https://elsewhere.example.org/interactions"
        found = await permissions(*discord.overrides(tmp_path))
        private = await permissions(*discord.overrides(tmp_path), "channels.discord.rooms=never")

    assert [words.partition(":")[0] for _, words in found] == [
        "the application has an Interactions Endpoint URL",
        "the bot is in no server",
    ]
    assert "https://discord.com/oauth2/authorize?client_id=" in found[1][1]
    assert len(private) == 1


@pytest.mark.parametrize(
    ("make", "method"),
    [(FakeTelegram, "getWebhookInfo"), (FakeDiscord, "guilds")],
)
async def test_a_platform_that_does_not_say_is_red_and_named_as_such(
    tmp_path: Path, make: type[FakeTelegram | FakeDiscord], method: str
) -> None:
    async with make() as platform:
        platform.faults.script.append(Fault(method=method, kind="error_before"))
        [(good, words)] = await permissions(*platform.overrides(tmp_path))

    assert not good
    assert words.startswith("the platform did not say what the bot may do (")
