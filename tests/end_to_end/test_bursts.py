"""Messages that one person sends in quick succession, and those that come while a turn runs."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from adapters.channel import Acceptance
from pipeline.domain.chat import ToolCall
from pipeline.domain.events import ErrorEvent, MessageJoined, ResponseComplete
from pipeline.domain.messages import Author, InboundMessage
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from pipeline.runtime.arrivals import MEANWHILE
from tests.support.burst_talk import asked_in, held_answer, one_answer, scripted
from tests.support.harness import THREAD, GatewayHarness, open_gateway
from tests.support.mortal_store import MortalStore
from tests.support.posting_channel import MemoryPosts

MERGE, STEER, INTERRUPT = "turn.bursts=merge", "turn.while_busy=steer", "turn.while_busy=interrupt"


async def _answers(harness: GatewayHarness) -> list[str]:
    return [str(record.body["text"]) for record in await harness.records("assistant")]


async def _say_whileasked_in(harness: GatewayHarness, *texts: str, at: float = 0.0) -> list[Acceptance]:
    """Say the first text, and the others once the model works on it."""
    channel = harness.channel
    asked = len(harness.llm.requests)
    said = [await channel.say(texts[0])]
    await channel.until(lambda: len(harness.llm.requests) > asked)
    said += [await channel.say(text, at=at) for text in texts[1:]]
    return said


async def test_two_messages_in_the_window_get_one_answer_that_names_both(tmp_path: Path) -> None:
    held, _ = held_answer()
    llm = scripted(held, "Both.")
    async with open_gateway(tmp_path, MERGE, llm=llm) as harness:
        first, second = await _say_whileasked_in(harness, "the red one", "no, the blue one", at=1.2)
        end = await harness.channel.terminal(first.message_id)
        assert isinstance(end, ResponseComplete)
        reply = await harness.channel.reply(first.message_id)
        records = await harness.records("user")
        (answer,) = await harness.records("assistant")
        assert await harness.store.open_entries(THREAD) == ()
    assert asked_in(llm, 1) == "the red one\nno, the blue one"
    assert [(one.message_id, one.body.get("turn", "")) for one in records] == [
        (first.message_id, ""),
        (second.message_id, first.message_id),
    ]
    assert answer.body["together"] == [second.message_id]
    assert reply.text == "Both."
    assert [one.joined for one in harness.channel.events if isinstance(one, MessageJoined)] == [
        second.message_id
    ]
    assert len(harness.channel.sent) == 1


async def test_a_later_turn_sees_the_burst_as_one_message_also_after_a_restart(tmp_path: Path) -> None:
    held, _ = held_answer()
    llm = scripted(held, "Both.", "Third.", "Fourth.")
    async with open_gateway(tmp_path, MERGE, llm=llm) as harness:
        first, _ = await _say_whileasked_in(harness, "one", "two")
        await harness.channel.terminal(first.message_id)
        third = await harness.channel.say("three", at=60)
        await harness.channel.terminal(third.message_id)
    async with open_gateway(tmp_path, MERGE, llm=llm) as harness:
        fourth = await harness.channel.say("four", at=120)
        await harness.channel.terminal(fourth.message_id)
    for request, end in ((llm.requests[2], ["three"]), (llm.requests[3], ["three", "Third.", "four"])):
        assert [one.content for one in request.messages[1:]] == ["one\ntwo", "Both.", *end]


async def test_a_message_after_the_window_has_a_separate_turn(tmp_path: Path) -> None:
    held, gate = held_answer("First.")
    llm = scripted(held, "Second.")
    async with open_gateway(tmp_path, MERGE, llm=llm) as harness:
        said = await _say_whileasked_in(harness, "one", "two", at=1.3)
        gate.set()
        for one in said:
            await harness.channel.terminal(one.message_id)
        assert await _answers(harness) == ["First.", "Second."]
    assert len(llm.requests) == 2


async def test_a_turn_that_has_shown_a_word_does_not_begin_again(tmp_path: Path) -> None:
    gate = asyncio.Event()
    llm = scripted(ScriptedAnswer(chunks=("First ", "answer."), gate=gate, gate_at=1), "Second.")
    async with open_gateway(tmp_path, MERGE, llm=llm) as harness:
        first = await harness.channel.say("one")
        await harness.channel.until(lambda: any(one.type == "llm_token" for one in harness.channel.events))
        second = await harness.channel.say("two")
        gate.set()
        for one in (first, second):
            await harness.channel.terminal(one.message_id)
        assert await _answers(harness) == ["First answer.", "Second."]


async def test_with_each_every_message_has_an_answer(tmp_path: Path) -> None:
    held, gate = held_answer("First.")
    llm = scripted(held, "Second.")
    async with open_gateway(tmp_path, "turn.bursts=each", STEER, llm=llm) as harness:
        said = await _say_whileasked_in(harness, "one", "two")
        gate.set()
        for one in said:
            await harness.channel.terminal(one.message_id)
        assert await _answers(harness) == ["First.", "Second."]


async def test_messages_that_wait_for_a_turn_are_answered_together(tmp_path: Path) -> None:
    held, gate = held_answer("First.")
    llm = scripted(held, "Rest.")
    async with open_gateway(tmp_path, MERGE, "turn.while_busy=queue", llm=llm) as harness:
        first, second, _ = await _say_whileasked_in(harness, "one", "two", "three", at=30)
        gate.set()
        await harness.channel.terminal(second.message_id)
        assert await _answers(harness) == ["First.", "Rest."]
    assert asked_in(llm, 1) == "two\nthree"
    assert first.message_id != second.message_id


async def test_people_of_a_room_are_answered_one_by_one(tmp_path: Path) -> None:
    held, gate = held_answer("To ann.")
    llm, posts = scripted(held, "To bob.", "To ann again."), MemoryPosts()
    async with open_gateway(tmp_path, MERGE, STEER, llm=llm, posts=posts):
        for number, author in enumerate(("ann", "bob", "ann")):
            await posts.bring(
                InboundMessage(
                    message_id=f"m{number}",
                    native_id=f"n{number}",
                    thread=posts.thread("room"),
                    author=Author(id=author),
                    received_at=0.0,
                    text=f"{author} {number}",
                    private=False,
                )
            )
        gate.set()
        await posts.until(lambda: posts.texts("room") == ["To ann.", "To bob.", "To ann again."])
    asked = [asked_in(llm, number).splitlines()[-1] for number in range(3)]
    assert asked == ["ann: ann 0", "bob: bob 1", "ann: ann 2"]


def _tool() -> ScriptedAnswer:
    return ScriptedAnswer.calling(ToolCall(id="l", name="load_tools", arguments='{"groups": ["files"]}'))


async def test_a_message_during_a_turn_reaches_the_model_after_the_tool(tmp_path: Path) -> None:
    gate = asyncio.Event()
    tool = ScriptedAnswer(chunks=("Let me look.",), gate=gate, gate_at=1, calls=_tool().calls)
    llm = scripted(tool, "For Paris.", "Later.")
    async with open_gateway(tmp_path, MERGE, STEER, llm=llm) as harness:
        channel = harness.channel
        first = await channel.say("the weather in Rome")
        await channel.until(lambda: any(one.type == "llm_token" for one in channel.events))
        second = await channel.say("I mean Paris", at=30)
        gate.set()
        await channel.terminal(first.message_id)
        third = await channel.say("thanks", at=60)
        await channel.terminal(third.message_id)
        (answer, _) = await harness.records("assistant")
        assert await harness.store.open_entries(THREAD) == ()
        users = await harness.records("user")
    assert [one.role for one in llm.requests[1].messages[-3:]] == ["assistant", "tool", "user"]
    assert asked_in(llm, 1) == f"{MEANWHILE}\nI mean Paris"
    assert answer.body["steered"] == [second.message_id]
    assert [one.message_id for one in users] == [first.message_id, second.message_id, third.message_id]
    later = [one.content for one in llm.requests[2].messages if one.role == "user"]
    assert later == ["the weather in Rome", f"{MEANWHILE}\nI mean Paris", "thanks"]


async def test_a_message_that_interrupts_stops_the_turn_and_the_next_sees_both(tmp_path: Path) -> None:
    gate = asyncio.Event()
    llm = scripted(ScriptedAnswer(chunks=("Rome is", " sunny."), gate=gate, gate_at=1), "Paris is wet.")
    async with open_gateway(tmp_path, MERGE, INTERRUPT, llm=llm) as harness:
        channel = harness.channel
        first = await channel.say("the weather in Rome")
        await channel.until(lambda: any(one.type == "llm_token" for one in channel.events))
        second = await channel.say("I mean Paris", at=30)
        end = await channel.terminal(first.message_id)
        await channel.terminal(second.message_id)
    assert isinstance(end, ErrorEvent)
    assert end.code == "stopped"
    words = [one.content for one in llm.requests[1].messages[1:]]
    assert words[0] == "the weather in Rome"
    assert words[1].startswith("Rome")
    assert words[-1] == "I mean Paris"


async def test_a_message_that_interrupts_a_turn_without_a_word_joins_it(tmp_path: Path) -> None:
    held, _ = held_answer()
    llm = scripted(held, "Both.")
    async with open_gateway(tmp_path, MERGE, INTERRUPT, llm=llm) as harness:
        first, _ = await _say_whileasked_in(harness, "Rome", "or Paris", at=30)
        await harness.channel.terminal(first.message_id)
        assert await _answers(harness) == ["Both."]
    assert asked_in(llm, 1) == "Rome\nor Paris"


async def test_stop_ends_a_burst(tmp_path: Path) -> None:
    first_held, _ = held_answer()
    second_held, _ = held_answer()
    llm = scripted(first_held, second_held, "Later.")
    async with open_gateway(tmp_path, MERGE, llm=llm) as harness:
        channel = harness.channel
        first, second = await _say_whileasked_in(harness, "one", "two")
        await channel.until(lambda: len(llm.requests) == 2)
        await channel.say("/stop")
        end = await channel.terminal(first.message_id)
        assert isinstance(end, ErrorEvent)
        later = await channel.say("three", at=60)
        await channel.terminal(later.message_id)
        assert await harness.store.open_entries(THREAD) == ()
        users = await harness.records("user")
    assert [one.message_id for one in users] == [first.message_id, second.message_id, later.message_id]
    assert llm.requests[2].messages[1].content == "one\ntwo"


async def test_off_the_record_no_word_of_a_burst_is_kept(tmp_path: Path) -> None:
    held, _ = held_answer()
    llm = scripted(held, "Both.")
    async with open_gateway(tmp_path, MERGE, llm=llm) as harness:
        await harness.channel.say("/otr")
        first, _ = await _say_whileasked_in(harness, "a secret", "another secret")
        await harness.channel.reply(first.message_id)
        assert await harness.records("user") == []
        bodies = [body for _, body in await harness.store.newest_entries(limit=10)]
    assert asked_in(llm, 1) == "a secret\nanother secret"
    assert not any("text" in body for body in bodies)


def _room(
    store: MortalStore, data: Path, llm: ScriptedLlm, *rules: str
) -> AbstractAsyncContextManager[GatewayHarness]:
    """A gateway on a store that outlives it."""
    return open_gateway(data, MERGE, *rules, llm=llm, store=store, drain_s=0.0)


async def test_a_death_after_a_merge_leaves_one_answer_to_both(tmp_path: Path) -> None:
    store, (held, _), (again, _) = MortalStore(), held_answer(), held_answer()
    before, after = scripted(held, again), scripted("Both.")
    async with _room(store, tmp_path, before) as harness:
        first, second = await _say_whileasked_in(harness, "one", "two")
        await harness.channel.until(lambda: len(before.requests) == 2)
        await store.die()
    store.revive()
    async with _room(store, tmp_path, after) as harness:
        assert await one_answer(harness, first.message_id, second.message_id) == "Both."
    assert asked_in(before, 1) == asked_in(after, 0) == "one\ntwo"


@pytest.mark.parametrize("dies", ["as it joins", "once the model has it"])
async def test_a_death_after_steering_gives_the_message_to_the_run_once(tmp_path: Path, dies: str) -> None:
    store, gate, (held, _) = MortalStore(), asyncio.Event(), held_answer()
    tool = ScriptedAnswer(chunks=("Let me look.",), gate=gate, gate_at=1, calls=_tool().calls)
    before, after = scripted(tool, held), scripted("For Paris.", "More.")
    async with _room(store, tmp_path, before, STEER) as harness:
        channel = harness.channel
        first = await channel.say("the weather in Rome")
        await channel.until(lambda: any(one.type == "llm_token" for one in channel.events))
        second = await channel.say("I mean Paris", at=30)
        store.left = 0 if dies == "as it joins" else -1
        gate.set()
        await channel.until(lambda: store.died or len(before.requests) == 2)
        await store.die()
    store.revive()
    async with _room(store, tmp_path, after, STEER) as harness:
        answer = await one_answer(harness, first.message_id, second.message_id)
    assert answer.endswith("For Paris.")
    assert len(after.requests) == 1
    assert [one.content for one in after.requests[0].messages if MEANWHILE in one.content] == [
        f"{MEANWHILE}\nI mean Paris"
    ]


async def test_an_edit_of_one_message_of_a_burst_stops_the_turn_and_is_answered(tmp_path: Path) -> None:
    (held, _), (again, _) = held_answer(), held_answer()
    llm, posts = scripted(held, again, "Red and blue."), MemoryPosts()
    async with open_gateway(tmp_path, MERGE, llm=llm, posts=posts) as harness:
        await posts.bring(_post(posts, 1, "red"))
        await posts.until(lambda: len(llm.requests) == 1)
        await posts.bring(_post(posts, 2, "bleu"))
        await posts.until(lambda: len(llm.requests) == 2)
        await posts.bring(_post(posts, 3, "blue", edits=2))
        await posts.until(lambda: posts.texts()[-1:] == ["Red and blue."])
        assert await harness.store.open_entries(posts.thread("c1").encode()) == ()
    assert llm.requests[2].messages[1].content == "red\nbleu"
    assert asked_in(llm, 2) == "blue"


async def test_the_reply_to_a_burst_goes_to_its_last_message(tmp_path: Path) -> None:
    held, _ = held_answer()
    llm, posts = scripted(held, "Both."), MemoryPosts()
    async with open_gateway(tmp_path, MERGE, llm=llm, posts=posts) as harness:
        await posts.bring(_post(posts, 1, "red"))
        await posts.until(lambda: len(llm.requests) == 1)
        await posts.bring(_post(posts, 2, "blue"))
        await posts.until(lambda: posts.texts() == ["Both."])
        row = await harness.store.outbox_row("m1")
    assert row is not None
    assert row.body["reply_handle"] == "h2"


def _post(posts: MemoryPosts, number: int, text: str, *, edits: int = 0) -> InboundMessage:
    return InboundMessage(
        message_id=f"m{number}",
        native_id=f"n{number}",
        thread=posts.thread("c1"),
        author=Author(id="ann"),
        received_at=0.0,
        text=text,
        edited=edits > 0,
        place=str(edits or number),
        reply_handle=f"h{number}",
    )
