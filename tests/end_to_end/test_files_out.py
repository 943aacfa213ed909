"""A tool's file on its way to people: on each platform, the page, and the terminal."""

from __future__ import annotations

from pathlib import Path

from pipeline.llm.scripted import ScriptedLlm
from tests.support.all_platforms import open_all_platforms
from tests.support.file_talk import SAID, sending, share
from tests.support.pictures import MP3, png
from tests.support.platforms.platform import FakePlatform, Place

_CHART = png(320, 200)
_NARROW = png(2_000, 20)


def shown(platform: FakePlatform, chat: Place) -> list[tuple[str, bytes, str]]:
    """What the person sees of the bot: text, content of a file, and what the file is shown as."""
    return [
        (one.text, one.file, one.file_kind)
        for one in platform.visible(chat)
        if not one.author and not one.native_id.startswith("draft")
    ]


async def test_each_platform_shows_the_text_and_then_the_files_as_what_they_are(tmp_path: Path) -> None:
    names = ("chart.png", "song.mp3", "list.txt")
    llm = ScriptedLlm([answer for _ in range(3) for answer in sending(*names)])
    async with open_all_platforms(tmp_path, llm=llm) as world:
        data = tmp_path / "data"
        for name, content in zip(names, (_CHART, MP3, b"a list"), strict=True):
            share(data, name, content)
        for platform, chat in world.private():
            await platform.say(chat, platform.person("ann"), "send them")
            await platform.until(lambda platform=platform, chat=chat: len(shown(platform, chat)) == 4)
            assert shown(platform, chat) == [
                (SAID, b"", ""),
                ("Caption 0", _CHART, "image"),
                ("Caption 1", MP3, "audio"),
                ("Caption 2", b"a list", "file"),
            ]
