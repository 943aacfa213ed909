"""A posting channel in a whole gateway: words in, one message out, previews, questions, drain and restart."""

from __future__ import annotations

import asyncio
from pathlib import Path

from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import (
    ApprovalReply,
    Author,
    InboundMessage,
    MediaRef,
    SessionCommand,
    button_handle,
)
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.gate_graph import Ledger, gate_graph
from tests.support.harness import open_gateway
from tests.support.posting_channel import MemoryPosts, refusal
from voice.transcription.scripted_transcriber import ScriptedTranscriber


async def test_a_message_is_answered_once_where_it_was_asked(tmp_path: Path) -> None:
    posts = MemoryPosts()
    async with open_gateway(tmp_path, posts=posts):
        await posts.receive("hello", native_id="1")
        await posts.receive("hello", native_id="1")
        await posts.receive("there", native_id="2", chat="c2", private=False)
        await posts.until(lambda: len(posts.messages) == 2 and "…" not in posts.texts() + posts.texts("c2"))
        assert posts.texts() == ["You said: hello"]
        assert posts.texts("c2") == ["You said: ann: there"]
        assert [message.reply_handle for message in posts.messages] == ["to-1", "to-2"]


async def test_a_slow_answer_grows_in_its_message(tmp_path: Path) -> None:
    posts = MemoryPosts(resolution="nonce")
    async with open_gateway(tmp_path, posts=posts, llm=ScriptedLlm.from_spec("echo:delay=0.4")):
        await posts.receive("one two three four", native_id="1")
        await posts.until(lambda: posts.texts() == ["You said: one two three four"])
        (message,) = posts.messages
        assert message.versions
        assert all("You said: one two three four".startswith(text.rstrip("…")) for text in message.versions)


async def test_a_stopped_answer_keeps_the_words_that_its_reader_has_seen(tmp_path: Path) -> None:
    posts = MemoryPosts()
    half = ScriptedAnswer(chunks=("half ", "an ", "answer"), gate=asyncio.Event(), gate_at=2)
    async with open_gateway(tmp_path, posts=posts, llm=ScriptedLlm([half])):
        await posts.receive("tell me a lot", native_id="1")
        await posts.until(lambda: posts.texts() == ["half an "])
        await posts.bring(
            SessionCommand(
                message_id="m_2",
                native_id="2",
                thread=posts.thread(),
                author=Author(id="ann"),
                received_at=0.0,
                name="stop",
            )
        )
        await posts.until(lambda: posts.texts()[1:] == ["Stopped 1 message."])
        assert posts.texts()[0] == "half an\n\nStopped."
        assert posts.messages[0].buttons == ()


async def test_a_voice_note_is_answered_below_what_was_heard(tmp_path: Path) -> None:
    posts = MemoryPosts()
    posts.media["v1"] = b"sound"
    heard = ScriptedTranscriber.always("what time is it")
    async with open_gateway(tmp_path, posts=posts, transcriber=heard):
        note = MediaRef(channel="memory", handle="v1", mime="audio/ogg", size=5, kind="voice")
        await posts.bring(
            InboundMessage(
                message_id="m_1",
                native_id="1",
                thread=posts.thread(),
                author=Author(id="ann"),
                received_at=0.0,
                voice=note,
            )
        )
        await posts.until(lambda: "".join(posts.texts()).endswith("said: what time is it"))
        assert "".join(posts.texts()) == "heard: what time is it\nYou said: what time is it"


async def test_the_reply_of_a_paused_run_has_buttons_and_a_press_continues_with_it(tmp_path: Path) -> None:
    posts = MemoryPosts()
    async with open_gateway(tmp_path, posts=posts, graph=gate_graph(Ledger(tmp_path / "ledger"))) as harness:
        await posts.receive("do it", native_id="1")
        await posts.until(lambda: any(message.buttons for message in posts.messages))
        asked = next(message for message in posts.messages if message.buttons)
        thread = posts.thread().encode()
        (question,) = await harness.store.pending_interactions(thread, now=0.0)
        assert asked.buttons == question.options
        press = ApprovalReply(
            message_id="m_press",
            native_id="2",
            thread=posts.thread(),
            author=Author(id="ann"),
            received_at=0.0,
            interaction_id=button_handle(question.id),
            choice="",
            option=0,
        )
        before = len(posts.messages)
        assert (await posts.bring(press)).status == "accepted"
        await posts.until(lambda: len(posts.messages) > before and posts.messages[-1].text != "…")
        again = await posts.bring(press)
        assert (again.status, again.reason) == ("refused", "This question is no longer open.")
        assert again.over, "its buttons may go"


async def test_what_the_platform_did_not_take_is_sent_by_the_next_process(tmp_path: Path) -> None:
    posts = MemoryPosts(resolution="nonce")
    posts.failures.extend([refusal("rate_limit", retry_after_s=3_000.0)])
    async with open_gateway(tmp_path, posts=posts, drain_s=0.1) as harness:
        await posts.receive("hello", native_id="1")
        async with asyncio.timeout(60):
            while not await harness.store.outbox_open() or not posts.calls:  # noqa: ASYNC110 - the store has no event
                await asyncio.sleep(0)
    assert posts.texts() == []
    later = MemoryPosts(resolution="nonce")
    async with open_gateway(tmp_path, posts=later) as harness:
        (row,) = await harness.store.outbox_open()
        assert row.state == "ready"
        assert row.not_before > 0
        assert ThreadKey.decode(row.thread) == later.thread()
