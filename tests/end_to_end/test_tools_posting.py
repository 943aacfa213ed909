"""Tools on a posting channel, where anybody may be in the room: who is asked, who counts, whose things."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from gateway.storage.codec import new_entry
from gateway.storage.sqlite import SqliteStore
from pipeline.domain.chat import ToolCall
from pipeline.domain.messages import Author, SessionCommand
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.harness import open_gateway
from tests.support.posting_channel import MemoryPosts, Message


def _load(group: str) -> ScriptedAnswer:
    arguments = json.dumps({"groups": [group]})
    return ScriptedAnswer.calling(ToolCall(id="l", name="load_tools", arguments=arguments))


def _asking(name: str, **arguments: Any) -> ScriptedAnswer:
    return ScriptedAnswer.calling(ToolCall(id="c", name=name, arguments=json.dumps(arguments)))


def _writing(*after: str) -> ScriptedLlm:
    answers = [ScriptedAnswer.of(words) for words in after]
    return ScriptedLlm([_load("files"), _asking("write_file", path="a.txt", text="hello"), *answers])


def _stop(posts: MemoryPosts, native_id: str) -> SessionCommand:
    return SessionCommand(
        message_id=f"m_{native_id}",
        native_id=native_id,
        thread=posts.thread(),
        author=Author(id="ann"),
        received_at=1_700_000_000.0,
        name="stop",
    )


def _written(data: Path) -> list[str]:
    return [path.read_text() for path in data.glob("workspace/people/*/files/a.txt")]


async def _asked(posts: MemoryPosts, chat: str = "c1") -> Message:
    """The message with the question's buttons."""

    def found() -> list[Message]:
        return [
            one for one in posts.messages if one.thread.chat == chat and one.buttons[:2] == ("Allow", "Deny")
        ]

    await posts.until(lambda: bool(found()))
    return found()[0]


def _press(asked: Message, *, author: str, chat: str = "c1", name: str = "p") -> dict[str, Any]:
    return {
        "kind": "press",
        "id": name,
        "chat": chat,
        "from": author,
        "bot": False,
        "private": False,
        "message": asked.native_id,
        "data": asked.data[0],
    }


async def _answered(posts: MemoryPosts, words: str, chat: str = "c1") -> None:
    await posts.until(lambda: any(text.endswith(words) for text in posts.texts(chat)))


async def test_in_a_room_only_the_author_of_the_message_can_allow_a_tool(tmp_path: Path) -> None:
    posts = MemoryPosts()
    async with open_gateway(tmp_path, posts=posts, llm=_writing("Done.")):
        await posts.receive("write it down", native_id="1", author="ann", private=False)
        asked = await _asked(posts)
        assert any(b"hello" in message.file for message in posts.messages), "all of it is above the buttons"
        eves = _press(asked, author="eve", name="p1")
        elsewhere = _press(asked, author="ann", chat="c2", name="p2")
        anns = _press(asked, author="ann", name="p3")
        assert await posts.take(eves) == "This question is for somebody else."
        assert await posts.take(elsewhere) == "This question is no longer open."
        assert _written(tmp_path) == []
        assert await posts.take(anns) == "Noted."
        await _answered(posts, "Done.")
    assert _written(tmp_path) == ["hello"]


@pytest.mark.parametrize("words", ["allow", "ALLOW ", "1"])
async def test_typed_words_answer_as_a_press_does_and_are_no_message(tmp_path: Path, words: str) -> None:
    posts, llm = MemoryPosts(), _writing("Done.")
    async with open_gateway(tmp_path, posts=posts, llm=llm):
        await posts.receive("write it down", native_id="1")
        await _asked(posts)
        assert (await posts.receive(words, native_id="2")).status == "accepted"
        assert (await posts.receive(words, native_id="2")).status == "duplicate"
        await _answered(posts, "Done.")
    assert _written(tmp_path) == ["hello"]
    assert len(llm.requests) == 3


async def test_another_chat_is_answered_while_one_waits_for_a_person(tmp_path: Path) -> None:
    posts = MemoryPosts()
    one_at_a_time = "turn.max_running=1"
    async with open_gateway(tmp_path, one_at_a_time, posts=posts, llm=_writing("Hello you.", "Done.")):
        await posts.receive("write it down", native_id="1")
        asked = await _asked(posts)
        await posts.receive("hello", native_id="2", chat="c2", author="eve")
        await _answered(posts, "Hello you.", "c2")
        assert _written(tmp_path) == []
        await posts.take(_press(asked, author="ann"))
        await _answered(posts, "Done.")
    assert _written(tmp_path) == ["hello"]


async def test_one_persons_notes_are_no_one_elses(tmp_path: Path) -> None:
    posts = MemoryPosts()
    llm = ScriptedLlm(
        [
            _load("notes"),
            _asking("write_note", title="Bread", text="buy rye"),
            ScriptedAnswer.of("Kept."),
            _load("notes"),
            _asking("read_notes"),
            ScriptedAnswer.of("None of yours."),
        ]
    )
    async with open_gateway(tmp_path, posts=posts, llm=llm):
        await posts.receive("note it", native_id="1", author="ann")
        await _answered(posts, "Kept.")
        await posts.receive("my notes?", native_id="2", author="eve", chat="c2")
        await _answered(posts, "None of yours.", "c2")
    assert "There are no notes." in llm.requests[-1].messages[-1].content


async def test_a_stop_while_a_person_is_waited_for_needs_no_room_at_the_model(tmp_path: Path) -> None:
    posts, thinking = MemoryPosts(), asyncio.Event()
    slow = ScriptedAnswer(chunks=("Hello ", "you."), gate=thinking, gate_at=1)
    llm = ScriptedLlm([_load("files"), _asking("write_file", path="a.txt", text="hello"), slow])
    async with open_gateway(tmp_path, "turn.max_running=1", posts=posts, llm=llm):
        await posts.receive("write it down", native_id="1")
        asked = await _asked(posts)
        await posts.receive("hello", native_id="2", chat="c2", author="eve")
        await posts.until(lambda: any("Hello" in text for text in posts.texts("c2")))
        await posts.bring(_stop(posts, "3"))
        await _answered(posts, "Stopped.")
        assert await posts.take(_press(asked, author="ann")) == "This question is no longer open."
        thinking.set()
        await _answered(posts, "Hello you.", "c2")
    assert _written(tmp_path) == []


async def test_a_stop_that_is_delivered_again_takes_back_no_later_question(tmp_path: Path) -> None:
    posts, llm = MemoryPosts(), _writing("Done.")
    async with open_gateway(tmp_path, posts=posts, llm=llm):
        assert (await posts.bring(_stop(posts, "1"))).status == "accepted"
        await posts.receive("write it down", native_id="2")
        asked = await _asked(posts)
        assert (await posts.bring(_stop(posts, "1"))).status == "duplicate"
        assert await posts.take(_press(asked, author="ann")) == "Noted."
        await _answered(posts, "Done.")
    assert _written(tmp_path) == ["hello"]


async def test_a_shutdown_does_not_wait_for_a_person_whose_answer_it_could_not_take(tmp_path: Path) -> None:
    posts = MemoryPosts()
    async with asyncio.timeout(30), open_gateway(tmp_path, posts=posts, llm=_writing(), drain_s=3_600):
        await posts.receive("write it down", native_id="1")
        await _asked(posts)
    again = MemoryPosts()
    async with open_gateway(tmp_path, posts=again, llm=ScriptedLlm([ScriptedAnswer.of("Done.")])):
        await again.take(_press(await _asked(again), author="ann"))
        await _answered(again, "Done.")
    assert _written(tmp_path) == ["hello"]


async def test_a_stop_that_a_crash_left_takes_the_question_back(tmp_path: Path) -> None:
    posts, store = MemoryPosts(), SqliteStore(tmp_path / "parlour.sqlite3", synchronous="NORMAL")
    async with open_gateway(tmp_path, posts=posts, llm=_writing()):
        await posts.receive("write it down", native_id="1")
        asked = await _asked(posts)
    await store.open()
    await store.accept(new_entry(_stop(posts, "2")))
    await store.close()
    async with open_gateway(tmp_path, posts=posts):
        await _answered(posts, "Stopped 1 message.")
        assert await posts.take(_press(asked, author="ann")) == "This question is no longer open."
    assert _written(tmp_path) == []
