"""The reaction that says that a message is taken, on every platform, until the answer is there.

Covers: gateway/delivery/acknowledgements.py, adapters/acknowledging.py.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pipeline.llm.scripted import ScriptedLlm
from tests.support.all_platforms import AllPlatforms, open_all_platforms
from tests.support.platforms.platform import FakePlatform

SLOW = "echo:delay=0.4"
TAKEN = [f'channels.{name}.reactions="taken"' for name in ("telegram", "slack", "discord")]


def _shown(place: AllPlatforms) -> dict[str, bool]:
    """Whether the bot has a reaction on any message, by platform."""
    return {
        "telegram": any(place.telegram.state.reactions.values()),
        "slack": bool(place.slack.workspace.reactions),
        "discord": bool(place.discord.rest.reactions.shown),
    }


def _calls(place: AllPlatforms) -> dict[str, list[str]]:
    methods = {"setMessageReaction", "reactions.add", "reactions.remove", "react", "unreact"}
    return {
        one.name: [call.method for call in one.calls if call.method in methods] for one in place.platforms
    }


async def _answered(place: AllPlatforms, platform: FakePlatform, *, private: bool) -> None:
    """A message is sent, has a reaction, and has none."""
    ann = platform.person("ann")
    chat = platform.private_chat(ann) if private else platform.room("lounge", ann)
    await platform.say(chat, ann, "one two")
    await platform.until(lambda: _shown(place)[platform.name])
    await platform.until(lambda: not _shown(place)[platform.name])


@pytest.mark.parametrize("private", [True, False], ids=["private", "room"])
async def test_a_message_has_a_reaction_until_its_answer_is_there(tmp_path: Path, private: bool) -> None:
    llm = ScriptedLlm.from_spec(SLOW)
    async with open_all_platforms(tmp_path, *TAKEN, llm=llm) as place, asyncio.TaskGroup() as group:
        for platform in place.platforms:
            group.create_task(_answered(place, platform, private=private))
    assert _calls(place) == {
        "telegram": ["setMessageReaction", "setMessageReaction"],
        "slack": ["reactions.add", "reactions.remove"],
        "discord": ["react", "unreact"],
    }


async def test_none_shows_no_reaction_and_unset_shows_what_it_always_did(tmp_path: Path) -> None:
    none = 'channels.slack.reactions="none"'
    async with open_all_platforms(tmp_path, none, llm=ScriptedLlm.from_spec(SLOW)) as place:
        for platform, chat in place.private():
            await platform.say(chat, platform.person("ann"), "one two three four five six")
        for platform, chat in place.private():
            answer = "You said: one two three four five six"
            await platform.until(lambda: platform.bot_texts(chat) == [answer])  # noqa: B023 - used before the next turn
    assert _calls(place) == {"telegram": [], "slack": [], "discord": []}
