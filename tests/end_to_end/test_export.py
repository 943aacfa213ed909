"""/export in a whole gateway: the content of the file, and what is kept of it."""

from __future__ import annotations

import asyncio
import itertools
import json
from pathlib import Path

from pipeline.domain.messages import Author, SessionCommand
from tests.support.file_reader import FakeFileReader
from tests.support.harness import GatewayHarness, open_gateway
from tests.support.posted_files import message, ref
from tests.support.posting_channel import MemoryPosts

_NUMBERS = itertools.count()


async def ask(harness: GatewayHarness, text: str, *, chat: str = "c1") -> str:
    accepted = await harness.channel.say(text, chat=chat, native_id=f"n{next(_NUMBERS)}")
    return (await harness.channel.reply(accepted.message_id)).text


async def test_the_conversations_of_the_chat_are_sent_as_markdown_in_order(tmp_path: Path) -> None:
    async with open_gateway(tmp_path, 'bot.name="Kim"') as harness:
        assert "nothing on record" in await ask(harness, "/export")
        await ask(harness, "one")
        await ask(harness, "in another chat", chat="c2")
        await ask(harness, "/new")
        await ask(harness, "two")
        await ask(harness, "/undo")
        exported = await ask(harness, "/export")
    lines = [line for line in exported.splitlines() if line]
    assert lines[0].startswith("# Conversation with Kim, 20")
    said = [line for line in lines[1:] if not line.startswith("**")]
    assert said[:2] == ["one", "You said: one"]
    assert said[2:4][0] == "---"
    assert said[4:] == ["two", "You said: two"]
    authors = [line for line in lines if line.startswith("**")]
    assert [line.split("**")[1] for line in authors] == ["You", "Kim", "You", "Kim"]
    assert [line.endswith(", taken out):") for line in authors] == [False, False, True, True]


async def test_files_of_messages_are_named(tmp_path: Path) -> None:
    posts = MemoryPosts(resolution="lookup", file_bytes=1_000_000)
    posts.media = {"d1": b"the plan"}
    async with open_gateway(tmp_path, posts=posts, file_reader=FakeFileReader()):
        await posts.bring(message(posts, 1, "Read it.", ref("d1", "file", "plan.txt", "text/plain", 8)))
        await posts.until(lambda: "You said" in "".join(posts.texts()))
        for number, form in enumerate(("", "jsonl"), 2):
            await posts.bring(_export(posts, number, form))
        await posts.until(lambda: len(_posted(posts)) == 2)
    markdown, lines = _posted(posts)
    assert ":\n\nRead it.\n\nFiles: `plan.txt`\n\n" in markdown
    assert json.loads(lines.splitlines()[0])["files"] == ["plan.txt"]


def _posted(posts: MemoryPosts) -> list[str]:
    return [one.file.decode("utf-8") for one in posts.messages if one.file]


def _export(posts: MemoryPosts, number: int, argument: str = "") -> SessionCommand:
    return SessionCommand(
        message_id=f"m_export{number}",
        native_id=f"export{number}",
        thread=posts.thread(),
        author=Author(id="ann"),
        received_at=0.0,
        name="export",
        argument=argument,
    )


async def test_json_lines_hold_every_version_with_what_it_replaces(tmp_path: Path) -> None:
    async with open_gateway(tmp_path) as harness:
        await ask(harness, "one")
        await ask(harness, "/retry")
        exported = await ask(harness, "/export JSONL")
        assert "Markdown" in await ask(harness, "/export pdf")
    rows = [json.loads(line) for line in exported.splitlines() if not line.startswith("```")]
    assert [(row["role"], row["text"]) for row in rows] == [
        ("user", "one"),
        ("assistant", "You said: one"),
    ] * 2
    assert rows[2]["replaces"] == rows[0]["message_id"]
    assert rows[0]["at"].endswith("+00:00")


async def test_a_long_conversation_is_sent_from_its_newest_part(tmp_path: Path) -> None:
    async with open_gateway(tmp_path) as harness:
        for number in range(12):
            await ask(harness, f"{number} " + "x" * 3_000)
        exported = await ask(harness, "/export")
    assert "The beginning is left out" in exported
    assert "You said: 11 x" in exported
    assert 27_000 < len(exported) < 31_000


async def test_it_is_refused_in_a_room_and_the_copy_is_not_kept(tmp_path: Path) -> None:
    posts = MemoryPosts()
    async with open_gateway(tmp_path, posts=posts) as harness:
        await posts.bring(
            SessionCommand(
                message_id="m_export",
                native_id="export",
                thread=posts.thread(),
                author=Author(id="ann"),
                received_at=0.0,
                name="export",
                private=False,
            )
        )
        await posts.until(lambda: "Others read along" in "".join(posts.texts()))
        await ask(harness, "quokka")
        assert "quokka" in await ask(harness, "/export")
        # The line is erased once it is recorded as sent.
        while "quokka" in str(await harness.records("notice")):  # noqa: ASYNC110 - the store has no event
            await asyncio.sleep(0)
