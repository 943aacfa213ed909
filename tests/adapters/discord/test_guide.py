"""docs/guides/discord.md against the code and the SDK: what it tells a newcomer to click is needed."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from adapters.discord import adapter, backfill
from adapters.discord.gateway import INTENTS
from adapters.discord.outbound import TEXT_CHARS
from adapters.discord.sdk import discord
from adapters.discord.settings import DiscordOptions
from adapters.discord.slash_commands import SLASH_COMMANDS
from adapters.formatting.overflow import FILE_NAME, MAX_PARTS
from pipeline.domain.commands import COMMAND_NAMES
from pipeline.domain.errors import ConfigurationError
from tests.adapters.discord.harness import Bot
from tests.support.platforms.discord import FakeDiscord

GUIDE = (Path(__file__).parents[3] / "docs" / "guides" / "discord.md").read_text(encoding="utf-8")
FLAGS = {
    "View Channels": "view_channel",
    "Send Messages": "send_messages",
    "Send Messages in Threads": "send_messages_in_threads",
    "Add Reactions": "add_reactions",
    "Attach Files": "attach_files",
    "Read Message History": "read_message_history",
}


def invitation() -> dict[str, list[str]]:
    """The invitation's parameters."""
    found = re.search(r"https://discord\.com/oauth2/authorize\?\S+", GUIDE)
    assert found is not None
    return parse_qs(urlsplit(found.group()).query)


def test_the_invitation_asks_for_exactly_the_permissions_of_the_table() -> None:
    table = GUIDE.split("| Permission | What for |")[1].split("\n\n")[0]
    named = re.findall(r"^\| ([A-Z][A-Za-z ]+) \|", table, re.MULTILINE)

    assert sorted(named) == sorted(FLAGS)
    wanted = discord.Permissions(**{FLAGS[name]: True for name in named})
    assert invitation()["permissions"] == [str(wanted.value)]


def test_the_invitation_has_the_scopes_of_a_bot_with_slash_commands() -> None:
    assert invitation()["scope"] == ["bot applications.commands"]


def test_the_switch_that_the_guide_turns_on_is_the_only_privileged_one_that_is_asked_for() -> None:
    privileged = {"presences", "members", "message_content"}
    asked = {name for name, on in INTENTS if on}

    assert asked & privileged == {"message_content"}
    assert "turn **Message Content Intent** on" in GUIDE
    assert "*Presence Intent* and *Server Members Intent* stay off" in GUIDE


def test_the_commands_that_concern_one_person_are_offered_in_direct_chats_only() -> None:
    contexts = {str(command["name"]): command["contexts"] for command in SLASH_COMMANDS}
    assert {name for name, where in contexts.items() if where == [1]} == {
        "history",
        "export",
        "usage",
        "link",
        "unlink",
    }


def test_the_guide_names_every_slash_command_and_the_limits_of_the_code() -> None:
    assert {command["name"] for command in SLASH_COMMANDS} == set(COMMAND_NAMES)
    assert {f"`/{command['name']}`" for command in SLASH_COMMANDS} <= set(re.findall(r"`/\w+`", GUIDE))
    assert f"{TEXT_CHARS:,} characters" in GUIDE
    assert (MAX_PARTS, "up to five messages" in GUIDE) == (5, True)
    assert f"`{FILE_NAME}`" in GUIDE
    assert f"last {DiscordOptions(token=str).backfill_s / 3600:.0f} hours" in GUIDE.replace("\n", " ")
    assert f"{adapter._KNOWN_CHATS} most recent ones" in GUIDE
    assert f"{backfill._PAGE * backfill._PAGES:,} messages" in GUIDE


@pytest.mark.parametrize("broken", ["token", "switch"])
async def test_the_words_under_when_something_is_wrong_are_the_words_of_the_errors(
    fake: FakeDiscord, bot: Bot, broken: str
) -> None:
    fake.gateway.token = "another" if broken == "token" else fake.token
    fake.gateway.content_intent_granted = broken != "switch"
    with pytest.raises(ConfigurationError) as refused:
        await bot.adapter.run(bot.inbox)

    quoted = re.findall(r"`(channels\.discord[^`]+)`", GUIDE)
    assert [words for words in quoted if str(refused.value).startswith(words)]
