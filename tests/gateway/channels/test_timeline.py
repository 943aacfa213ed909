"""What a page is shown: durable lines, and what still waits, each once."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.channels.timeline import StoreTimeline
from gateway.storage.codec import new_entry
from gateway.storage.memory import MemoryStore
from gateway.storage.ports import NewRecord, Record, RecordKind
from pipeline.domain.clock import ManualClock, SystemClock
from pipeline.domain.events import EXPIRED, Thought
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Author, InboundMessage
from pipeline.domain.timeline import AskedQuestion
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.gate_graph import OPTIONS, PROMPT, Ledger, answer_to, gate_graph
from tests.support.harness import THREAD, open_gateway
from voice.transcription.scripted_transcriber import ScriptedTranscriber


async def test_a_waiting_message_is_shown_until_its_words_are_on_record(tmp_path: Path) -> None:
    gate = asyncio.Event()
    llm = ScriptedLlm([ScriptedAnswer(chunks=("answer",), gate=gate)])
    key = ThreadKey.decode(THREAD)
    async with open_gateway(tmp_path, llm=llm, transcriber=ScriptedTranscriber(["spoken"])) as harness:
        timeline = StoreTimeline(harness.store, SystemClock())
        running = await harness.channel.say("", voice=b"opus")
        await harness.channel.until(lambda: llm.requests)
        waiting = await harness.channel.say("typed")
        entries = await timeline.entries(key, after=0, limit=50)
        assert [(e.message_id, e.text, e.entry_id > 0, e.spoken) for e in entries] == [
            (running.message_id, "spoken", True, True),
            (waiting.message_id, "typed", False, False),
        ]
        # A page that already shows the transcript must not get a voice note that still waits.
        later = await timeline.entries(key, after=entries[0].entry_id, limit=50)
        assert [e.message_id for e in later] == [waiting.message_id]
        gate.set()
        await harness.channel.reply(waiting.message_id)
        roles = [e.role for e in await timeline.entries(key, after=0, limit=50)]
        assert roles == ["user", "assistant", "user", "assistant"]
        newest = await timeline.entries(key, after=0, limit=1)
        assert [e.text for e in newest] == ["You said: typed"]


class _TurnBegins(MemoryStore):
    """Puts the words of the waiting message on record before one of the reads of the log."""

    at_read = 0
    reads = 0

    async def read_log(self, thread: str, **how: Any) -> tuple[Record, ...]:
        if self.reads == self.at_read:
            lease = await self.acquire_lease(thread, "me", ttl_s=30, now=1.0)
            assert lease is not None
            body = {"text": "hello"}
            row = NewRecord(kind="user", session_id="s", message_id="m1", body=body, at=1.0)
            await self.append(lease, [row])
        self.reads += 1
        return await super().read_log(thread, **how)


@pytest.mark.parametrize("at_read", range(3))
async def test_a_message_whose_turn_begins_while_the_history_is_read_is_shown_once(at_read: int) -> None:
    store, key = _TurnBegins(), ThreadKey.decode(THREAD)
    store.at_read = at_read
    await store.open()
    item = InboundMessage(
        message_id="m1",
        native_id="n1",
        thread=key,
        author=Author(id="u1", name="Ada"),
        received_at=1.0,
        text="hello",
    )
    await store.accept(new_entry(item), limit=10)
    entries = await StoreTimeline(store, ManualClock()).entries(key, after=0, limit=50)
    assert [entry.text for entry in entries] == ["hello"]


async def test_an_open_question_is_the_event_that_asked_it_until_it_is_answered(tmp_path: Path) -> None:
    key = ThreadKey.decode(THREAD)
    graph = gate_graph(Ledger(tmp_path / "ledger"))
    async with open_gateway(tmp_path, graph=graph) as harness:
        message_id = (await harness.channel.say("pay")).message_id
        await harness.channel.reply(message_id)
        asked = [
            event for event in harness.channel.events_of(message_id) if event.type == "approval_required"
        ]
    async with open_gateway(tmp_path, graph=graph) as harness:
        timeline = StoreTimeline(harness.store, SystemClock())
        (question,) = await timeline.questions(key)
        # When it was asked is in the store; the event was sent before that was known.
        assert question.asked_at > 0
        assert [replace(question, asked_at=0.0)] == asked
        assert (question.reasoning, question.options, question.timeout_s) == (PROMPT, OPTIONS, 0.0)
        assert await timeline.questions(replace(key, chat="c2")) == ()
        assert [entry.questions for entry in await timeline.entries(key, after=0, limit=50)] == [(), ()]
        await harness.channel.bring(answer_to(question.interaction_id, "deny"))
        assert await timeline.questions(key) == ()
        # From then on the line that asked has it, with what came of it, also among earlier lines.
        shown = next(e for e in await timeline.entries(key, after=0, limit=50) if e.questions)
        assert (shown.message_id, shown.role) == (message_id, "assistant")
        assert shown.questions == (
            AskedQuestion(
                interaction_id=question.interaction_id,
                tool_name=question.tool_name,
                reasoning=PROMPT,
                options=OPTIONS,
                choice="deny",
                paused=True,
            ),
        )
        assert shown in (await timeline.earlier(key, before=shown.entry_id + 1, limit=1)).entries


async def test_an_open_question_has_only_the_time_that_is_left(tmp_path: Path) -> None:
    clock = ManualClock()
    key = ThreadKey.decode(THREAD)
    graph = gate_graph(Ledger(tmp_path / "ledger"), expires_s=60)
    async with open_gateway(tmp_path, graph=graph, clock=clock) as harness:
        await harness.channel.reply((await harness.channel.say("pay")).message_id)
        timeline = StoreTimeline(harness.store, clock)
        clock.step_wall(45)
        assert [question.timeout_s for question in await timeline.questions(key)] == [15.0]
        clock.step_wall(15)
        assert await timeline.questions(key) == ()
        entries = await timeline.entries(key, after=0, limit=50)
        assert [one.choice for entry in entries for one in entry.questions] == [EXPIRED]


async def test_titles_and_sessions_off_the_record_are_distinguished_and_thoughts_come_back() -> None:
    store, at = MemoryStore(), 1_700_000_000.0
    await store.open()
    lease = await store.acquire_lease(THREAD, "me", ttl_s=30, now=at)
    assert lease is not None
    detail = {"tool_name": "read", "success": True}
    thought = {"stage": "tool_call", "summary": "read -> a.txt", "detail": detail}
    bodies: tuple[tuple[RecordKind, dict[str, Any]], ...] = (
        ("title", {"text": "Tea"}),
        ("assistant", {"text": "Tea.", "thoughts": [thought]}),
        ("session", {"text": "Off the record", "mode": "otr"}),
        ("session", {"text": "New conversation"}),
    )
    records = [
        NewRecord(kind=kind, session_id="s", message_id=f"m{number}", body=body, at=at)
        for number, (kind, body) in enumerate(bodies)
    ]
    await store.append(lease, records)
    entries = await StoreTimeline(store, ManualClock()).entries(ThreadKey.decode(THREAD), after=0, limit=50)
    assert [(entry.role, entry.code) for entry in entries] == [
        ("title", ""),
        ("assistant", ""),
        ("session", "otr"),
        ("session", ""),
    ]
    assert entries[1].thoughts == (Thought(stage="tool_call", summary="read -> a.txt", detail=detail),)


async def _said(store: MemoryStore, thread: str, *records: tuple[RecordKind, str], at: float = 1.0) -> None:
    lease = await store.acquire_lease(thread, "me", ttl_s=30, now=at)
    assert lease is not None
    for number, (kind, text) in enumerate(records):
        row = NewRecord(
            kind=kind, session_id="s", message_id=f"{thread}-{number}", body={"text": text}, at=at + number
        )
        await store.append(lease, [row])
    await store.release_lease(lease)


async def test_a_history_is_read_backwards_to_its_beginning() -> None:
    store = MemoryStore()
    await store.open()
    await _said(store, THREAD, *(("user", str(number)) for number in range(5)), ("step", ""), ("user", "5"))
    timeline, key = StoreTimeline(store, ManualClock()), ThreadKey.decode(THREAD)
    (last,) = await timeline.entries(key, after=0, limit=1)

    first = await timeline.earlier(key, before=last.entry_id, limit=3)
    assert [entry.text for entry in first.entries] == ["2", "3", "4"]
    assert first.next == first.entries[0].entry_id
    second = await timeline.earlier(key, before=first.next, limit=3)
    assert ([entry.text for entry in second.entries], second.next) == (["0", "1"], 0)


async def test_the_chats_of_an_account_are_named_by_their_title_or_their_newest_words() -> None:
    store = MemoryStore()
    await store.open()
    await _said(
        store, "web:local:a", ("user", "Plan a trip"), ("title", "A trip to Rome"), ("user", "thanks")
    )
    await _said(store, "web:local:b", ("user", "  What is\n the tide? "), ("assistant", "It is"), at=50.0)
    await _said(store, "telegram:main:1", ("user", "not here"))
    timeline = StoreTimeline(store, ManualClock())

    chats = await timeline.chats("web", "local", limit=9)

    assert [(one.thread.chat, one.title, one.at) for one in chats] == [
        ("b", "What is the tide?", 51.0),
        ("a", "A trip to Rome", 3.0),
    ]


async def test_a_message_has_the_time_at_which_it_was_sent_before_and_after_its_turn(tmp_path: Path) -> None:
    gate = asyncio.Event()
    llm = ScriptedLlm([ScriptedAnswer(chunks=("answer",), gate=gate)])
    clock, key = ManualClock(), ThreadKey.decode(THREAD)
    async with open_gateway(tmp_path, llm=llm, clock=clock) as harness:
        timeline = StoreTimeline(harness.store, clock)
        await harness.channel.say("first")
        await harness.channel.until(lambda: llm.requests)
        second = await harness.channel.say("second")
        waiting = (await timeline.entries(key, after=0, limit=50))[-1]
        clock.step_wall(90)
        gate.set()
        await harness.channel.reply(second.message_id)
        recorded = [one for one in await timeline.entries(key, after=0, limit=50) if one.text == "second"]
        assert [one.at for one in recorded] == [waiting.at]
