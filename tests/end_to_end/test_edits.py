"""Messages that their authors edit or delete, on a posting channel in a whole gateway."""

from __future__ import annotations

import asyncio
from pathlib import Path

from adapters.channel import Acceptance
from pipeline.domain.messages import Author, InboundMessage, Withdrawal
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.harness import open_gateway
from tests.support.posting_channel import MemoryPosts


async def _write(
    posts: MemoryPosts, text: str, *, place: str, version: int = 0, author: str = "ann", chat: str = "c1"
) -> Acceptance:
    """A message, or a later version of it."""
    native_id = f"{chat}:{place}:{version}"
    return await posts.bring(
        InboundMessage(
            message_id=f"m_{native_id}",
            native_id=native_id,
            thread=posts.thread(chat),
            author=Author(id=author),
            received_at=0.0,
            text=text,
            edited=version > 0,
            place=place,
        )
    )


async def _delete(posts: MemoryPosts, place: str, chat: str = "c1") -> Acceptance:
    return await posts.bring(
        Withdrawal(
            message_id=f"m_gone_{place}",
            native_id=f"{place}:deleted",
            thread=posts.thread(chat),
            author=Author(id=""),
            received_at=0.0,
            place=place,
        )
    )


def _asked(llm: ScriptedLlm) -> list[str]:
    return [request.messages[-1].content for request in llm.requests]


async def test_the_answer_to_an_edited_message_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    posts = MemoryPosts()
    async with open_gateway(tmp_path, posts=posts):
        await _write(posts, "tea in Lonodn", place="1")
        await posts.until(lambda: posts.texts() == ["You said: tea in Lonodn"])
        await _write(posts, "tea in London", place="1", version=1)
        await posts.until(lambda: posts.texts() == ["You said: tea in London"])
        await _write(posts, "tea in Paris", place="1", version=2)
        await posts.until(lambda: posts.texts() == ["You said: tea in Paris"])
        (message,) = posts.messages
        assert [text for text in message.versions if text.startswith("You")] == [
            "You said: tea in Lonodn",
            "You said: tea in London",
        ]


async def test_an_edit_ends_the_answer_in_progress_and_is_answered_in_its_place(tmp_path: Path) -> None:
    posts = MemoryPosts()
    half = ScriptedAnswer(chunks=("half ", "an ", "answer"), gate=asyncio.Event(), gate_at=2)
    llm = ScriptedLlm([half, ScriptedAnswer.of("a whole one")])
    async with open_gateway(tmp_path, posts=posts, llm=llm):
        await _write(posts, "tell me", place="1")
        await posts.until(lambda: posts.texts() == ["half an "])
        await _write(posts, "tell me all", place="1", version=1)
        await posts.until(lambda: posts.texts() == ["a whole one"])
    assert llm.cancelled == 1


async def test_an_edit_of_a_message_that_waits_is_asked_in_its_place(tmp_path: Path) -> None:
    posts, gate = MemoryPosts(), asyncio.Event()
    llm = ScriptedLlm([ScriptedAnswer(chunks=("first",), gate=gate), ScriptedAnswer.of("second")])
    async with open_gateway(tmp_path, posts=posts, llm=llm):
        await _write(posts, "one", place="1")
        await posts.until(lambda: len(llm.requests) == 1)
        await _write(posts, "tow", place="2")
        await _write(posts, "two", place="2", version=1)
        gate.set()
        await posts.until(lambda: posts.texts() == ["first", "second"])
    assert _asked(llm) == ["one", "two"]


async def test_a_deleted_message_that_waits_is_neither_asked_nor_kept(tmp_path: Path) -> None:
    posts, gate = MemoryPosts(), asyncio.Event()
    llm = ScriptedLlm([ScriptedAnswer(chunks=("first",), gate=gate), ScriptedAnswer.of("third")])
    async with open_gateway(tmp_path, posts=posts, llm=llm) as harness:
        await _write(posts, "one", place="1")
        await posts.until(lambda: len(llm.requests) == 1)
        await _write(posts, "two", place="2")
        assert (await _delete(posts, "2")).status == "accepted"
        await _write(posts, "three", place="3")
        gate.set()
        await posts.until(lambda: posts.texts() == ["first", "third"])
        thread = posts.thread().encode()
        said = [record.body["text"] for record in await harness.records("user", thread=thread)]
        assert said == ["one", "three"]
        entries = await harness.store.newest_entries(limit=10)
        assert [body.get("text") for _, body in entries] == ["three", None, "one"]
    assert _asked(llm) == ["one", "three"]


async def test_deleting_a_message_stops_its_answer(tmp_path: Path) -> None:
    posts = MemoryPosts()
    half = ScriptedAnswer(chunks=("half ", "an ", "answer"), gate=asyncio.Event(), gate_at=2)
    llm = ScriptedLlm([half, ScriptedAnswer.of("yes")])
    async with open_gateway(tmp_path, posts=posts, llm=llm):
        await _write(posts, "tell me", place="1")
        await posts.until(lambda: posts.texts() == ["half an "])
        await _delete(posts, "1")
        await posts.until(lambda: posts.texts() == ["half an\n\nStopped."])
        await _write(posts, "still there?", place="2")
        await posts.until(lambda: posts.texts()[1:] == ["yes"])
    assert llm.cancelled == 1


async def test_a_deletion_of_another_message_or_in_another_chat_ends_nothing(tmp_path: Path) -> None:
    posts, gate = MemoryPosts(), asyncio.Event()
    llm = ScriptedLlm([ScriptedAnswer(chunks=("first",), gate=gate)])
    async with open_gateway(tmp_path, posts=posts, llm=llm):
        await _write(posts, "one", place="1")
        await posts.until(lambda: len(llm.requests) == 1)
        await _delete(posts, "9")
        await _delete(posts, "1", chat="c2")
        await _delete(posts, "")
        gate.set()
        await posts.until(lambda: posts.texts() == ["first"])
    assert llm.cancelled == 0
