"""/stop, /new and /help: the priority path, a clean slate, and the queue around them.

Covers: gateway/turns/sessions.py.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gateway.storage.ports import Accepted, InboxEntry, Lease, NewEntry
from gateway.storage.sqlite import SqliteStore
from pipeline.domain.events import ErrorEvent, LlmToken, ResponseComplete
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.harness import THREAD, open_gateway
from tests.support.posting_channel import MemoryPosts


def _stuck(*chunks: str, gate: asyncio.Event) -> ScriptedAnswer:
    """An answer that streams `chunks` but the last, and waits for the gate before that."""
    return ScriptedAnswer(chunks=chunks, gate=gate, gate_at=len(chunks) - 1)


async def test_stop_cancels_the_model_stream_and_keeps_what_was_said(tmp_path: Path) -> None:
    llm = ScriptedLlm([_stuck("half ", "an ", "answer", gate=asyncio.Event())])
    async with open_gateway(tmp_path, llm=llm) as harness:
        accepted = await harness.channel.say("tell me a lot")
        await harness.channel.until(
            lambda: sum(isinstance(event, LlmToken) for event in harness.channel.events) == 2
        )
        stop = await harness.channel.say("/stop")
        event = await harness.channel.terminal(accepted.message_id)
        assert isinstance(event, ErrorEvent)
        assert (event.code, event.message) == ("stopped", "Stopped.")
        assert llm.cancelled == 1
        assert (await harness.channel.reply(stop.message_id)).text == "Stopped 1 message."
        assert [record.body["text"] for record in await harness.records("assistant")] == ["half an"]


async def test_stop_also_ends_everything_that_waited_before_it_but_nothing_after(tmp_path: Path) -> None:
    llm = ScriptedLlm([_stuck("x", gate=asyncio.Event())])
    async with open_gateway(tmp_path, llm=llm) as harness:
        running = await harness.channel.say("running")
        await harness.channel.until(lambda: llm.requests)
        queued = [await harness.channel.say(f"queued {number}") for number in range(2)]
        await harness.channel.say("/stop")
        after = await harness.channel.say("after")
        assert (await harness.channel.reply(after.message_id)).text == "You said: after"
        for one in (running, *queued):
            event = await harness.channel.terminal(one.message_id)
            assert isinstance(event, ErrorEvent)
            assert event.code == "stopped"
        assert len(llm.requests) == 2
        said = [record.body["text"] for record in await harness.records("user")]
        assert said == ["running", "queued 0", "queued 1", "after"]


async def test_stop_with_nothing_to_stop_says_so(tmp_path: Path) -> None:
    async with open_gateway(tmp_path) as harness:
        stop = await harness.channel.say("/stop")
        assert (await harness.channel.reply(stop.message_id)).text == "There is nothing to stop."


async def test_stop_in_one_chat_leaves_the_others_alone(tmp_path: Path) -> None:
    gate = asyncio.Event()
    llm = ScriptedLlm([_stuck("kept", gate=gate)])
    async with open_gateway(tmp_path, llm=llm) as harness:
        other = await harness.channel.say("hi", chat="other")
        await harness.channel.until(lambda: llm.requests)
        stop = await harness.channel.say("/stop", chat="mine")
        await harness.channel.reply(stop.message_id)
        gate.set()
        assert (await harness.channel.reply(other.message_id)).text == "kept"


async def test_a_stop_that_a_crash_overtook_still_counts_after_the_restart(tmp_path: Path) -> None:
    llm = ScriptedLlm([_stuck("x", gate=asyncio.Event())])
    async with open_gateway(tmp_path, llm=llm, drain_s=0) as harness:
        doomed = await harness.channel.say("doomed")
        await harness.channel.until(lambda: llm.requests)
        # Only the inbox row of the stop gets written, as if the process died right after it.
        await harness.store.accept(
            NewEntry(
                dedupe_key="console:local:stop",
                thread="console:local:c1",
                message_id="m_stop",
                kind="command",
                body={"native_id": "stop", "author": "owner", "command": "stop"},
                received_at=0.0,
            )
        )
    async with open_gateway(tmp_path) as harness:
        event = await harness.channel.terminal(doomed.message_id)
        assert isinstance(event, ErrorEvent)
        assert event.code == "stopped"
        assert harness.llm.requests == []


async def test_new_gives_the_model_an_empty_history_in_order_with_the_messages_around_it(
    tmp_path: Path,
) -> None:
    async with open_gateway(tmp_path) as harness:
        await harness.channel.say("before")
        new = await harness.channel.say("/new")
        after = await harness.channel.say("after")
        assert (await harness.channel.reply(after.message_id)).text == "You said: after"
        assert (await harness.channel.reply(new.message_id)).role == "session"
        contents = [[m.content for m in request.messages[1:]] for request in harness.llm.requests]
        assert contents == [["before"], ["after"]]
    async with open_gateway(tmp_path) as harness:
        again = await harness.channel.say("later")
        await harness.channel.terminal(again.message_id)
        assert [m.content for m in harness.llm.requests[0].messages[1:]] == [
            "after",
            "You said: after",
            "later",
        ]


async def test_help_is_answered_once_without_the_model(tmp_path: Path) -> None:
    async with open_gateway(tmp_path) as harness:
        accepted = await harness.channel.say("/help")
        reply = await harness.channel.reply(accepted.message_id)
        assert "/stop" in reply.text
        assert harness.llm.requests == []
        assert len(harness.channel.sent) == 1


@pytest.mark.parametrize("text", ["/foo", " /Start_Over@parlour_bot\n", "/foo bar"])
async def test_a_command_that_there_is_not_gets_one_line_and_not_the_model(tmp_path: Path, text: str) -> None:
    async with open_gateway(tmp_path) as harness:
        accepted = await harness.channel.say(text)
        reply = await harness.channel.reply(accepted.message_id)
        assert reply.text.startswith("There is no command `/")
        assert "`/help`" in reply.text
        assert isinstance(await harness.channel.terminal(accepted.message_id), ResponseComplete)
        assert harness.llm.requests == []
        assert [record.body["text"] for record in await harness.records("user")] == [text.strip()]


@pytest.mark.parametrize("text", ["/etc/hosts is what?", "/etc/hosts", "/ foo", "what is /foo"])
async def test_what_only_begins_like_a_command_is_a_message(tmp_path: Path, text: str) -> None:
    async with open_gateway(tmp_path) as harness:
        accepted = await harness.channel.say(text)
        assert (await harness.channel.reply(accepted.message_id)).text == f"You said: {text}"


async def test_a_command_with_words_behind_it_is_not_done_and_says_so(tmp_path: Path) -> None:
    async with open_gateway(tmp_path) as harness:
        accepted = await harness.channel.say("/new please")
        assert (await harness.channel.reply(accepted.message_id)).text.startswith("`/new` takes no words")
        assert harness.llm.requests == []


async def test_in_a_room_a_word_with_a_slash_is_a_message(tmp_path: Path) -> None:
    posts = MemoryPosts()
    async with open_gateway(tmp_path, posts=posts) as harness:
        await posts.receive("/foo", native_id="1", private=False)
        await posts.until(lambda: "You said: ann: /foo" in posts.texts())
        assert len(harness.llm.requests) == 1


class _SlowToHand(SqliteStore):
    """Reads an entry and hands it over only when the test says so, as a busy machine may."""

    held: asyncio.Event
    reading: asyncio.Event

    async def accept(self, entry: NewEntry, *, limit: int | None = None, begin: bool = False) -> Accepted:
        return await super().accept(entry, limit=limit)

    async def next_entry(self, thread: str) -> InboxEntry | None:
        entry = await super().next_entry(thread)
        if entry is not None:
            self.reading.set()
            await self.held.wait()
        return entry


class _SlowToLease(SqliteStore):
    """Gives the lease of a thread only when the test says so."""

    held: asyncio.Event
    reading: asyncio.Event

    async def acquire_lease(self, thread: str, owner: str, *, ttl_s: float, now: float) -> Lease | None:
        if thread == THREAD:  # not that of the account, which is taken at the start
            self.reading.set()
            await self.held.wait()
        return await super().acquire_lease(thread, owner, ttl_s=ttl_s, now=now)


@pytest.mark.parametrize("kind", [_SlowToHand, _SlowToLease])
async def test_a_stop_between_the_reading_of_a_message_and_its_start_is_not_lost(
    tmp_path: Path, kind: type[_SlowToHand | _SlowToLease]
) -> None:
    store = kind(tmp_path / "parlour.sqlite3", synchronous="NORMAL")
    store.held, store.reading = asyncio.Event(), asyncio.Event()
    llm = ScriptedLlm([_stuck("x", gate=asyncio.Event())])
    async with open_gateway(tmp_path, llm=llm, store=store) as harness:
        doomed = await harness.channel.say("doomed")
        await store.reading.wait()
        await harness.channel.say("/stop")
        store.held.set()
        event = await harness.channel.terminal(doomed.message_id)
        assert isinstance(event, ErrorEvent)
        assert event.code == "stopped"
        assert llm.requests == []
