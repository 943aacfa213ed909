"""Pictures in messages that one person sends in quick succession: one turn shows the model all of them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

from gateway.storage.ports import Record
from pipeline.domain.chat import ToolCall
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from pipeline.runtime.arrivals import MEANWHILE
from tests.support.burst_talk import held_answer, scripted
from tests.support.file_reader import PICTURE, SCALED, FakeFileReader
from tests.support.harness import open_gateway
from tests.support.mortal_store import MortalStore
from tests.support.posted_files import message, ref
from tests.support.posting_channel import MemoryPosts

THREAD = "memory:main:c1"
RULES = ("turn.bursts=merge", "turn.burst_s=60", 'llm.model="openai/gpt-4o-mini"')
FIRST, SECOND = ref("p1", "image", "cat.png", "image/png"), ref("p2", "image", "dog.png", "image/png")


def _posts() -> MemoryPosts:
    posts = MemoryPosts()
    posts.media = {"p1": PICTURE + b"a cat", "p2": PICTURE + b"a dog"}
    return posts


def _seen(llm: ScriptedLlm, number: int) -> tuple[str, list[bytes]]:
    """The words above the notes on files, and the pictures, in the last message of a call of the model."""
    request = llm.requests[number]
    asked = request.messages[-1]
    return asked.content.partition("\n\n[Attached")[0], [request.pictures[one.id] for one in asked.pictures]


async def test_a_photo_and_then_a_text_are_one_turn_that_sees_both(tmp_path: Path) -> None:
    posts, (held, _), reader = _posts(), held_answer(), FakeFileReader()
    llm = scripted(held, "A cat.", "Still a cat.")
    async with open_gateway(tmp_path, *RULES, posts=posts, llm=llm, file_reader=reader) as harness:
        await posts.bring(message(posts, 1, "", FIRST))
        await posts.until(lambda: len(llm.requests) == 1)
        await posts.bring(message(posts, 2, "what is this?"))
        await posts.until(lambda: posts.texts() == ["A cat."])
        (answer,) = await harness.records("assistant", thread=THREAD)
        assert answer.body["together"] == ["m_2"]
        said = await harness.records("user", thread=THREAD)
    assert [[one["name"] for one in record.body.get("files", ())] for record in said] == [["cat.png"], []]
    assert len(reader.asked) == 1
    assert _seen(llm, 1) == ("what is this?", [SCALED + b"a cat"])


async def test_a_photo_that_joins_a_text_is_seen_and_later_turns_show_both_pictures(tmp_path: Path) -> None:
    posts, (held, _), (again, _) = _posts(), held_answer(), held_answer()
    llm, after = scripted(held, again, "Two."), scripted("Still two.")
    async with open_gateway(tmp_path, *RULES, posts=posts, llm=llm, file_reader=FakeFileReader()):
        await posts.bring(message(posts, 1, "how many animals?"))
        await posts.until(lambda: len(llm.requests) == 1)
        await posts.bring(message(posts, 2, "this", FIRST))
        await posts.until(lambda: len(llm.requests) == 2)
        await posts.bring(message(posts, 3, "and this", SECOND))
        await posts.until(lambda: posts.texts() == ["Two."])
    posts = _posts()
    async with open_gateway(tmp_path, *RULES, posts=posts, llm=after, file_reader=FakeFileReader()):
        await posts.bring(message(posts, 4, "sure?"))
        await posts.until(lambda: posts.texts() == ["Still two."])
    asked = after.requests[0].messages[1]
    assert asked.content.startswith("how many animals?\nthis\nand this\n\n[Attached: picture")
    assert [one.name for one in asked.pictures] == ["cat.png", "dog.png"]
    assert sorted(after.requests[0].pictures.values()) == [SCALED + b"a cat", SCALED + b"a dog"]


async def test_after_a_death_a_photo_and_a_text_have_one_answer_that_saw_both(tmp_path: Path) -> None:
    store, (held, _), (again, _) = MortalStore(), held_answer(), held_answer()
    before, after, reader = scripted(held, again), scripted("A cat."), FakeFileReader()
    posts = _posts()
    async with open_gateway(
        tmp_path, *RULES, posts=posts, llm=before, file_reader=reader, store=store, drain_s=0.0
    ):
        await posts.bring(message(posts, 1, "", FIRST))
        await posts.until(lambda: len(before.requests) == 1)
        await posts.bring(message(posts, 2, "what is this?"))
        await posts.until(lambda: len(before.requests) == 2)
        await store.die()
    store.revive()
    # The photo is on record: it is not fetched again.
    posts = MemoryPosts()
    async with open_gateway(
        tmp_path, *RULES, posts=posts, llm=after, file_reader=reader, store=store
    ) as harness:
        await posts.until(lambda: posts.texts() == ["A cat."])
        (answer,) = await harness.records("assistant", thread=THREAD)
    assert answer.body["together"] == ["m_2"]
    assert _seen(before, 1) == _seen(after, 0) == ("what is this?", [SCALED + b"a cat"])
    assert len(reader.asked) == 1


async def test_a_photo_that_comes_while_a_tool_runs_has_a_separate_turn(tmp_path: Path) -> None:
    posts, gate = _posts(), asyncio.Event()
    loads = ToolCall(id="l", name="load_tools", arguments='{"groups": ["files"]}')
    tool = ScriptedAnswer(chunks=("Let me look.",), gate=gate, calls=(loads,))
    llm = scripted(tool, "Noon.", "A cat.")
    async with open_gateway(
        tmp_path, *RULES, "turn.while_busy=steer", posts=posts, llm=llm, file_reader=FakeFileReader()
    ) as harness:
        await posts.bring(message(posts, 1, "what time is it?"))
        await posts.until(lambda: len(llm.requests) == 1)
        await posts.bring(replace(message(posts, 2, "and this?", FIRST), received_at=90.0))
        gate.set()
        await posts.until(lambda: "A cat." in posts.texts())
        answers = await harness.records("assistant", thread=THREAD)
    assert len(answers) == 2
    assert not any(MEANWHILE in one.content for one in llm.requests[1].messages)
    assert _seen(llm, 2) == ("and this?", [SCALED + b"a cat"])


class _YieldingStore(MortalStore):
    """A store whose reads of the log let other tasks run first, as those of a database do."""

    async def read_log(self, *args: Any, **kwargs: Any) -> tuple[Record, ...]:
        await asyncio.sleep(0)
        return await super().read_log(*args, **kwargs)


async def test_a_stop_after_a_death_keeps_the_files_of_all_messages_on_record(tmp_path: Path) -> None:
    store, (held, _), (again, _) = _YieldingStore(), held_answer(), held_answer()
    posts, before, after = _posts(), scripted(held, again), scripted("Two animals.")
    async with open_gateway(
        tmp_path, *RULES, posts=posts, llm=before, file_reader=FakeFileReader(), store=store, drain_s=0.0
    ):
        await posts.bring(message(posts, 1, "this", FIRST))
        await posts.until(lambda: len(before.requests) == 1)
        await posts.bring(message(posts, 2, "and this", SECOND))
        await posts.until(lambda: len(before.requests) == 2)
        await store.die()
    store.revive()
    await store.open()
    await store.cancel_open(THREAD)
    posts = MemoryPosts()
    async with open_gateway(
        tmp_path, *RULES, posts=posts, llm=after, file_reader=FakeFileReader(), store=store
    ) as harness:
        await posts.until(lambda: len(posts.texts()) == 1)
        await posts.bring(message(posts, 3, "what did I send?"))
        await posts.until(lambda: posts.texts()[-1] == "Two animals.")
        assert len(await harness.records("error", thread=THREAD)) == 1
    asked = after.requests[0].messages[1]
    assert asked.content.startswith("this\nand this\n\n[Attached: picture")
    assert [one.name for one in asked.pictures] == ["cat.png", "dog.png"]
