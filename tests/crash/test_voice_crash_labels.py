"""Death around a voice message: the written answer comes once, the voice message once or not at all."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gateway.runtime.crash_labels import Label
from tests.support.forked_children import child_up
from tests.support.harness import open_gateway
from tests.support.platforms.platform import FakePlatform, Person, Place
from tests.support.platforms.telegram import FakeTelegram
from voice.synthesis.scripted_synthesizer import ScriptedSpeaker

pytestmark = pytest.mark.crash

_CRASHED = 137


@pytest.mark.parametrize(
    ("label", "voices"),
    [("receipt-before", 1), ("receipt-after", 0), ("voice-before", 0), ("voice-after", 1)],
)
async def test_death_at_a_label_never_gives_a_second_voice_message(
    tmp_path: Path, label: Label, voices: int
) -> None:
    async with FakeTelegram() as platform:
        overrides = platform.overrides(tmp_path)
        data = tmp_path / "data"
        ann = platform.person("ann")
        chat = platform.private_chat(ann)
        async with open_gateway(data, *overrides, speaker=ScriptedSpeaker()):
            await platform.say(chat, ann, "/voice")
            await platform.until(lambda: "replies are on" in "".join(platform.bot_texts(chat)))

        await _die_of(platform, chat, ann, "one two", label, overrides, tmp_path)

        async with open_gateway(data, *overrides, speaker=ScriptedSpeaker()):
            await platform.say(chat, ann, "three")
            await platform.until(lambda: len(_voices(platform, chat)) == voices + 1, timeout_s=120)
        texts = platform.bot_texts(chat)
        assert [texts.count("You said: one two"), texts.count("You said: three")] == [1, 1]
        assert len(_voices(platform, chat)) == voices + 1


@pytest.mark.parametrize("label", ["turn-commit-before", "turn-commit-after"])
async def test_death_while_voice_replies_are_turned_on_leaves_them_on_and_says_so(
    tmp_path: Path, label: Label
) -> None:
    async with FakeTelegram() as platform:
        overrides = platform.overrides(tmp_path)
        data = tmp_path / "data"
        ann = platform.person("ann")
        chat = platform.private_chat(ann)
        await _die_of(platform, chat, ann, "/voice", label, overrides, tmp_path)

        async with open_gateway(data, *overrides, speaker=ScriptedSpeaker()):
            await platform.say(chat, ann, "three")
            await platform.until(lambda: len(_voices(platform, chat)) == 1, timeout_s=120)
        said = [text for text in platform.bot_texts(chat) if "Voice replies" in text]
        assert len(said) == 1
        assert "replies are on" in said[0]


async def _die_of(
    platform: FakeTelegram,
    chat: Place,
    ann: Person,
    text: str,
    label: Label,
    overrides: tuple[str, ...],
    folder: Path,
) -> None:
    """Say `text` to a gateway on `folder`/data, which dies of it."""
    arguments = (str(folder / "data"), label, *overrides)
    async with child_up("tests.support.speaking_child", *arguments, log=folder / "child.log") as child:
        await platform.say(chat, ann, text)
        async with asyncio.timeout(60):
            assert await child.wait() == _CRASHED


def _voices(platform: FakePlatform, place: Place) -> list[bytes]:
    return [shown.voice for shown in platform.visible(place) if shown.voice and not shown.author]
