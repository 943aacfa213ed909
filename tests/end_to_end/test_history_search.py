"""/history WORDS in a whole gateway: whose words are found, how they look, and what is kept of a search."""

from __future__ import annotations

import itertools
from pathlib import Path

from pipeline.domain.messages import Author, SessionCommand
from tests.support.harness import GatewayHarness, open_gateway
from tests.support.posting_channel import MemoryPosts

_NUMBERS = itertools.count()


def _stored(data: Path) -> bytes:
    return b"".join(path.read_bytes() for path in data.glob("parlour.sqlite3*"))


async def ask(harness: GatewayHarness, text: str, *, chat: str = "c1") -> str:
    accepted = await harness.channel.say(text, chat=chat, native_id=f"n{next(_NUMBERS)}")
    return (await harness.channel.reply(accepted.message_id)).text


async def test_own_conversations_are_found_with_day_and_author_also_from_other_chats(tmp_path: Path) -> None:
    async with open_gateway(tmp_path) as harness:
        await ask(harness, "where is the **green** tea?")
        await ask(harness, "/new")
        await ask(harness, "more tea: " + "x" * 300, chat="c2")
        lines = (await ask(harness, "/history Tea")).splitlines()
        assert lines[0] == "The newest of what I found:"
        assert len(lines) == 6
        assert lines[2].endswith("…")
        assert len(lines[2]) < 200
        assert lines[5].endswith(", you: where is the green tea?")
        assert lines[4].endswith(", I: You said: where is the green tea?")
        assert "found nothing" in await ask(harness, "/history coffee")
        assert "Write what you look for" in await ask(harness, "/history")
    async with open_gateway(tmp_path) as harness:
        assert "green" in await ask(harness, "/history green")


async def test_another_persons_words_and_a_rooms_are_not_found(tmp_path: Path) -> None:
    posts = MemoryPosts()
    async with open_gateway(tmp_path, posts=posts) as harness:
        await posts.receive("tea of ann", native_id="1")
        await posts.receive("tea of ben", native_id="2", chat="c2", author="ben")
        await posts.receive("tea in the room", native_id="3", chat="c3", private=False)
        for chat in ("c1", "c2", "c3"):
            await posts.until(lambda: bool(posts.texts(chat)))  # noqa: B023 - used before the next turn
        assert "found nothing" in await ask(harness, "/history tea")
        for number, (private, words) in enumerate([(False, "Others read along"), (True, "tea of ann")]):
            await posts.bring(
                SessionCommand(
                    message_id=f"m_history{number}",
                    native_id=f"history{number}",
                    thread=posts.thread("c1" if private else "c3"),
                    author=Author(id="ann"),
                    received_at=0.0,
                    name="history",
                    argument="tea",
                    private=private,
                )
            )
            chat = "c1" if private else "c3"
            await posts.until(lambda: words in "".join(posts.texts(chat)))  # noqa: B023 - as above
        assert "ben" not in "".join(posts.texts("c1"))
        assert "room" not in "".join(posts.texts("c1"))


async def test_off_the_record_a_search_works_and_neither_its_words_nor_its_result_are_kept(
    tmp_path: Path,
) -> None:
    async with open_gateway(tmp_path) as harness:
        await ask(harness, "green tea")
        await ask(harness, "/otr")
        await ask(harness, "green unicorn")
        found = await ask(harness, "/history green")
        assert "green tea" in found
        assert "unicorn" not in found
        await ask(harness, "/history zinnia")
    stored = _stored(tmp_path)
    assert b"zinnia" not in stored
    assert b"unicorn" not in stored
