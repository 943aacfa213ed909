"""The everyday commands on Telegram, Slack and Discord, typed and pressed: real SDKs, fake platforms."""

from __future__ import annotations

import asyncio
from pathlib import Path

from pipeline.llm.scripted import ScriptedLlm
from tests.support.all_platforms import open_all_platforms
from tests.support.platforms.platform import FakePlatform, Place

_COOK = ('agents.cook.description="Knows recipes"', 'routes.1.also=["cook"]')


async def _ask(platform: FakePlatform, chat: Place, text: str, answer: str) -> str:
    """The newest message of the bot that contains `answer`, after the person wrote `text`."""
    before = len(platform.bot_texts(chat))
    await platform.say(chat, platform.person("ann"), text)
    await platform.until(lambda: any(answer in one for one in platform.bot_texts(chat)[before:]))
    return next(one for one in platform.bot_texts(chat)[before:] if answer in one)


async def _use_the_commands(platform: FakePlatform, chat: Place, llm: ScriptedLlm) -> None:
    first, second, third = (f"{text} on {platform.name}" for text in ("one", "two", "three"))
    await _ask(platform, chat, first, f"You said: {first}")
    await _ask(platform, chat, "/retry", f"You said: {first}")
    await _ask(platform, chat, second, f"You said: {second}")
    await _ask(platform, chat, "/undo", "no longer use your last message")
    await _ask(platform, chat, third, f"You said: {third}")
    seen = [[message.content for message in request.messages[1:]] for request in llm.requests]
    assert [one for one in seen if one[-1] == third] == [[first, f"You said: {first}", third]]
    assert seen.count([first]) == 2
    assert "tokens" in await _ask(platform, chat, "/usage", "Today you have used")
    await _ask(platform, chat, "/agent", "Knows recipes")
    menu = next(one for one in platform.visible(chat) if "cook" in one.buttons)
    await platform.press(chat, platform.person("ann"), menu.native_id, "cook")
    await platform.until(lambda: any("New conversation with cook" in one for one in platform.bot_texts(chat)))
    await platform.until(lambda: not any("cook" in one.buttons for one in platform.visible(chat)))
    status = await _ask(platform, chat, "/status", "Model:")
    assert "Agent: cook" in status.replace("`", "").replace("*", "")


async def test_the_commands_work_typed_and_their_values_by_a_press(tmp_path: Path) -> None:
    llm = ScriptedLlm.echo()
    async with open_all_platforms(tmp_path, *_COOK, llm=llm) as place, asyncio.TaskGroup() as group:
        for platform, chat in place.private():
            group.create_task(_use_the_commands(platform, chat, llm))
