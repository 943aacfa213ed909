"""A tool's file on its way to people: on each platform, the page, and the terminal."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import pytest
from aiohttp import ClientSession

from adapters.channel import OutboundReply
from adapters.console.adapter import THREAD
from adapters.console.conversation import TerminalConversation
from adapters.console.screen import Screen
from gateway.app.components import Foundation
from gateway.channels.timeline import StoreTimeline
from gateway.turns.journal import StoreJournal
from pipeline.domain.clock import SystemClock
from pipeline.domain.command_types import CommandName
from pipeline.domain.files import FileStore, StoredFile
from pipeline.domain.messages import Author, SessionCommand
from pipeline.llm.scripted import ScriptedLlm
from tests.support.all_platforms import open_all_platforms
from tests.support.file_talk import SAID, sending, share
from tests.support.gateway_process import free_port
from tests.support.harness import open_gateway
from tests.support.pictures import MP3, png
from tests.support.platforms.platform import FakePlatform, Place
from tests.support.posting_channel import MemoryPosts

_CHART = png(320, 200)
_NARROW = png(2_000, 20)


def shown(platform: FakePlatform, chat: Place) -> list[tuple[str, bytes, str]]:
    """What the person sees of the bot: text, content of a file, and what the file is shown as."""
    return [
        (one.text, one.file, one.file_kind)
        for one in platform.visible(chat)
        if not one.author and not one.native_id.startswith("draft")
    ]


def _has(platform: FakePlatform, chat: Place, number: int) -> bool:
    return len(shown(platform, chat)) == number


async def test_each_platform_shows_the_text_and_then_the_files_as_what_they_are(tmp_path: Path) -> None:
    names = ("chart.png", "song.mp3", "list.txt")
    llm = ScriptedLlm([answer for _ in range(3) for answer in sending(*names)])
    async with open_all_platforms(tmp_path, llm=llm) as world:
        data = tmp_path / "data"
        for name, content in zip(names, (_CHART, MP3, b"a list"), strict=True):
            share(data, name, content)
        for platform, chat in world.private():
            await platform.say(chat, platform.person("ann"), "send them")
            await platform.until(partial(_has, platform, chat, 4))
            assert shown(platform, chat) == [
                (SAID, b"", ""),
                ("Caption 0", _CHART, "image"),
                ("Caption 1", MP3, "audio"),
                ("Caption 2", b"a list", "file"),
            ]


async def test_a_picture_that_telegram_refuses_as_one_comes_as_a_document(tmp_path: Path) -> None:
    async with open_all_platforms(tmp_path, llm=ScriptedLlm(sending("narrow.png"))) as world:
        share(tmp_path / "data", "narrow.png", _NARROW)
        chat = world.telegram.private_chat(world.telegram.person("ann"))
        await world.telegram.say(chat, world.telegram.person("ann"), "send it")
        await world.telegram.until(lambda: len(shown(world.telegram, chat)) == 2)
        assert shown(world.telegram, chat)[1] == ("Caption 0", _NARROW, "file")


async def test_a_file_that_is_too_large_for_discord_comes_as_a_link_that_opens_it(tmp_path: Path) -> None:
    large = b"x" * 10_500_000
    port = free_port()
    settings = (
        "channels.web.enabled=true",
        f"server.port={port}",
        f'server.public_origins=["http://127.0.0.1:{port}"]',
    )
    async with open_all_platforms(tmp_path, *settings, llm=ScriptedLlm(sending("large.txt"))) as world:
        share(tmp_path / "data", "large.txt", large)
        chat = world.discord.private_chat(world.discord.person("ann"))
        await world.discord.say(chat, world.discord.person("ann"), "send it")
        await world.discord.until(lambda: len(shown(world.discord, chat)) == 2)
        words, content, _ = shown(world.discord, chat)[1]
        assert content == b""
        assert "too large to send here" in words
        link = words.partition("7 days: ")[2].strip("<>")
        async with ClientSession() as session, session.get(link) as answer:
            assert await answer.read() == large
            assert "large.txt" in answer.headers["Content-Disposition"]


async def test_off_the_record_a_file_is_sent_and_then_no_longer_stored(tmp_path: Path) -> None:
    posts = MemoryPosts(resolution="lookup", file_bytes=1_000_000)
    share(tmp_path, "chart.png", _CHART)
    async with open_gateway(tmp_path, llm=ScriptedLlm(sending("chart.png")), posts=posts) as harness:
        await posts.bring(_command(posts, "otr"))
        await posts.receive("send it", native_id="n1")
        await posts.until(lambda: bool(posts.messages) and posts.messages[-1].file == _CHART)
        while await harness.store.outbox_open():  # noqa: ASYNC110 - the store has no event
            await asyncio.sleep(0.01)
        # The row is sent first, and the file is discarded right after.
        async with asyncio.timeout(60):
            while _stored(tmp_path):  # noqa: ASYNC110 - nor has the folder
                await asyncio.sleep(0.01)
        assert [message.file for message in posts.messages if message.file] == [_CHART]


def test_the_terminal_names_each_file_and_where_it_is() -> None:
    lines: list[str] = []
    screen = Screen(lines.append, bot_name="Bot", prompt="")
    conversation = TerminalConversation(screen, lambda file: f"/data/{file.name}")
    file = StoredFile(
        id="a" * 64, kind="image", mime="image/png", size=1_200, name="a.png", about="3 by 4", caption="June"
    )
    reply = OutboundReply(
        key="k",
        thread=THREAD,
        message_id="m1",
        entry_id=2,
        role="assistant",
        text="Here.",
        created_at=1.0,
        files=(file,),
    )
    conversation.show_reply(reply)
    conversation.show_reply(reply)
    assert "".join(lines).count("June [a.png, 3 by 4, 1.2 KB: /data/a.png]") == 1


def _stored(data: Path) -> list[Path]:
    return [path for path in (data / "files").rglob("*") if path.is_file()]


class _Exports:
    """Session commands that answer everything with a file."""

    def __init__(self, files: FileStore) -> None:
        self._files = files

    async def run(self, item: SessionCommand, journal: StoreJournal, *, stopped: int) -> None:
        del stopped
        file = await self._files.put(
            item.thread, b"all of it", kind="file", mime="text/plain", name="talk.txt"
        )
        await journal.commit_notice("Here is the conversation.", files=(file,))


async def test_the_line_of_a_command_may_come_with_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build(base: Foundation, *_more: object) -> _Exports:
        return _Exports(base.files)

    monkeypatch.setattr("gateway.app.bootstrap.build_commands", build)
    posts = MemoryPosts(resolution="lookup", file_bytes=1_000_000)
    async with open_gateway(tmp_path, posts=posts) as harness:
        await posts.bring(_command(posts, "help"))
        await posts.until(lambda: len(posts.messages) == 2)
        assert [(message.text, message.file) for message in posts.messages] == [
            ("Here is the conversation.", b""),
            ("", b"all of it"),
        ]
        entries = await StoreTimeline(harness.store, SystemClock()).entries(posts.thread(), after=0, limit=9)
        assert [(entry.role, [file.name for file in entry.files]) for entry in entries] == [
            ("notice", ["talk.txt"])
        ]


def _command(posts: MemoryPosts, name: CommandName) -> SessionCommand:
    return SessionCommand(
        message_id=f"m_{name}",
        native_id=name,
        thread=posts.thread(),
        author=Author(id="ann"),
        received_at=1.0,
        name=name,
    )
