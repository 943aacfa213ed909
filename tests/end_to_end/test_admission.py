"""Admission: who is let in, what is refused, and what a full queue or a broken store says.

Covers: gateway/ingress/inbox.py.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gateway.storage.ports import Interaction, NewEntry
from gateway.storage.sqlite import SqliteStore
from pipeline.domain.errors import StorageError
from pipeline.domain.events import ErrorEvent
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import ApprovalReply, Author, InboundMessage
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.harness import THREAD, GatewayHarness, open_gateway


async def test_a_stranger_is_refused_and_costs_nothing(tmp_path: Path) -> None:
    async with open_gateway(tmp_path) as harness:
        refused = await harness.channel.say("let me in", author="stranger")
        assert (refused.status, refused.reason) == ("refused", "You are not allowed to use this bot.")
        assert (await harness.store.counts()).inbox_open == 0
        assert harness.llm.requests == []


async def test_a_channel_without_a_rule_is_refused(tmp_path: Path) -> None:
    async with open_gateway(tmp_path) as harness:
        unknown = InboundMessage(
            message_id="m",
            native_id="n",
            thread=ThreadKey(channel="carrier-pigeon", account="coop", chat="c"),
            author=Author(id="owner"),
            received_at=0.0,
            text="coo",
        )
        assert (await harness.channel.bring(unknown)).status == "refused"


async def test_a_full_queue_refuses_in_words_but_still_takes_a_stop(tmp_path: Path) -> None:
    llm = ScriptedLlm([ScriptedAnswer(chunks=("x",), gate=asyncio.Event())])
    async with open_gateway(tmp_path, "turn.max_queue_per_thread=2", llm=llm) as harness:
        await harness.channel.say("one")
        await harness.channel.say("two")
        full = await harness.channel.say("three")
        assert full.status == "refused"
        assert "still waiting" in full.reason
        assert (await harness.channel.say("hi", chat="another")).status == "accepted"
        stop = await harness.channel.say("/stop")
        assert stop.status == "accepted"
        await harness.channel.reply(stop.message_id)


async def test_a_redelivery_is_recognised_in_a_full_queue(tmp_path: Path) -> None:
    llm = ScriptedLlm([ScriptedAnswer(chunks=("x",), gate=asyncio.Event())])
    async with open_gateway(tmp_path, "turn.max_queue_per_thread=2", llm=llm, drain_s=0) as harness:
        await harness.channel.say("one", native_id="n1")
        await harness.channel.say("two", native_id="n2")
        assert (await harness.channel.say("two", native_id="n2")).status == "duplicate"


async def test_after_a_restart_the_queue_bound_counts_what_was_left(tmp_path: Path) -> None:
    def stuck() -> ScriptedLlm:
        return ScriptedLlm([ScriptedAnswer(chunks=("x",), gate=asyncio.Event())])

    async with open_gateway(tmp_path, "turn.max_queue_per_thread=2", llm=stuck(), drain_s=0) as harness:
        await harness.channel.say("one")
        await harness.channel.say("two")
    async with open_gateway(tmp_path, "turn.max_queue_per_thread=2", llm=stuck(), drain_s=0) as harness:
        assert (await harness.channel.say("three")).status == "refused"


async def test_a_store_that_cannot_write_raises_so_that_the_channel_does_not_ack(tmp_path: Path) -> None:
    async with open_gateway(tmp_path) as harness:
        await harness.store.close()
        with pytest.raises(StorageError):
            await harness.channel.say("hi")


class _StopsOnce(SqliteStore):
    """Fails the first marking of a stopped queue, as a full disk may."""

    failed = False

    async def cancel_open(self, thread: str, *, up_to_seq: int | None = None, from_seq: int = 0) -> int:
        if not self.failed:
            self.failed = True
            raise StorageError("the disk is full")
        return await super().cancel_open(thread, up_to_seq=up_to_seq, from_seq=from_seq)


async def test_a_stop_that_got_only_into_the_inbox_counts_when_it_is_delivered_again(tmp_path: Path) -> None:
    llm = ScriptedLlm([ScriptedAnswer(chunks=("x",), gate=asyncio.Event())])
    store = _StopsOnce(tmp_path / "parlour.sqlite3", synchronous="NORMAL")
    async with open_gateway(tmp_path, llm=llm, store=store) as harness:
        running = await harness.channel.say("running")
        await harness.channel.until(lambda: llm.requests)
        with pytest.raises(StorageError):
            await harness.channel.say("/stop", native_id="stop-1")
        assert (await harness.channel.say("/stop", native_id="stop-1")).status == "duplicate"
        event = await harness.channel.terminal(running.message_id)
        assert isinstance(event, ErrorEvent)
        assert event.code == "stopped"


async def test_an_entry_that_cannot_be_read_back_is_set_aside_in_words(tmp_path: Path) -> None:
    async with open_gateway(tmp_path) as harness:
        await harness.store.accept(
            NewEntry(
                dedupe_key="broken",
                thread=THREAD,
                message_id="m_broken",
                kind="message",
                body={"native_id": "n", "author": "owner"},
                received_at=0.0,
            )
        )
        fine = await harness.channel.say("fine")
        assert (await harness.channel.reply(fine.message_id)).text == "You said: fine"
        event = await harness.channel.terminal("m_broken")
        assert isinstance(event, ErrorEvent)
        assert event.code == "unreadable"


async def test_behind_a_backlog_waiting_is_not_failing(tmp_path: Path) -> None:
    # Each takes 0.6 s. Together they take longer than the time that each is given.
    llm = ScriptedLlm.echo(delay_s=0.2)
    async with open_gateway(tmp_path, "turn.max_running=1", "turn.timeout_s=4", llm=llm) as harness:
        accepted = [await harness.channel.say("hi", chat=f"c{number}") for number in range(8)]
        for one in accepted:
            assert (await harness.channel.reply(one.message_id)).text == "You said: hi"


async def _ask(harness: GatewayHarness) -> None:
    await harness.store.open_interaction(
        Interaction(
            id="q1",
            thread=THREAD,
            session_id="s",
            kind="tool",
            options=("approve", "deny"),
            allowed_users=("owner",),
            action_hash="abc",
            created_at=0.0,
            expires_at=10**12,
        )
    )


def _answer(interaction: str, choice: str, chat: str = "c1") -> ApprovalReply:
    return ApprovalReply(
        message_id="m",
        native_id="n",
        thread=ThreadKey(channel="console", account="local", chat=chat),
        author=Author(id="owner"),
        received_at=0.0,
        interaction_id=interaction,
        choice=choice,
    )


async def test_an_answer_to_a_question_passes_a_busy_queue_and_counts_once(tmp_path: Path) -> None:
    llm = ScriptedLlm([ScriptedAnswer(chunks=("x",), gate=asyncio.Event())])
    async with open_gateway(tmp_path, llm=llm, drain_s=0) as harness:
        await harness.channel.say("busy")
        await harness.channel.until(lambda: llm.requests)
        await _ask(harness)
        assert (await harness.channel.bring(_answer("q1", "approve"))).status == "accepted"
        again = await harness.channel.bring(_answer("q1", "deny"))
        assert (again.status, again.reason) == ("refused", "This question has already been answered.")


@pytest.mark.parametrize(
    ("interaction", "choice", "chat", "words"),
    [
        ("q9", "approve", "c1", "no such question"),
        ("q1", "maybe", "c1", "not one of the offered answers"),
        ("q1", "approve", "another-chat", "no such question"),
    ],
)
async def test_an_answer_that_fits_nothing_is_refused_in_words(
    tmp_path: Path, interaction: str, choice: str, chat: str, words: str
) -> None:
    async with open_gateway(tmp_path) as harness:
        await _ask(harness)
        refused = await harness.channel.bring(_answer(interaction, choice, chat))
        assert refused.status == "refused"
        assert words in refused.reason
