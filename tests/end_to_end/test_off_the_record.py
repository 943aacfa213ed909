"""Off the record: what is said is in no byte of the data folder once it is answered, whatever happens.

Covers: gateway/storage/sqlite/secure_overwrite.py, gateway/turns/journal.py.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from adapters.channel import Failure
from gateway.turns.commands import OTR_OFF_TEXT, OTR_ON_TEXT
from pipeline.domain.clock import ManualClock
from pipeline.domain.messages import Author, SessionCommand
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.channel import MemoryChannel
from tests.support.harness import GatewayHarness, open_gateway
from tests.support.posting_channel import MemoryPosts, refusal
from voice.transcription.scripted_transcriber import ScriptedTranscriber

SECRET = "zebrafish"
"""In everything that is said off the record, and nowhere else."""


def found_in(data: Path, word: str = SECRET) -> list[str]:
    """Where the word is: the names of the files below `data`, the log of the database included."""
    files = [path for path in data.rglob("*") if path.is_file()]
    assert any(path.suffix == ".sqlite3" for path in files)
    return [path.name for path in files if word.encode() in path.read_bytes()]


async def nothing_left(data: Path) -> None:
    """The log is emptied right behind the write that forgets, or when no one reads."""
    for _ in range(500):
        if not found_in(data):
            return
        await asyncio.sleep(0.01)
    raise AssertionError(found_in(data))


async def say(harness: GatewayHarness, text: str, number: int, voice: bytes | None = None) -> str:
    """Say it, and wait for the answer to be sent and put on record."""
    accepted = await harness.channel.say(text, native_id=f"n{number}", voice=voice)
    reply = await harness.channel.reply(accepted.message_id)
    await _all_sent(harness)
    return reply.text


async def _all_sent(harness: GatewayHarness) -> None:
    for _ in range(2_000):
        if not await harness.store.outbox_open():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("a reply is still waiting")


def echo(count: int) -> ScriptedLlm:
    return ScriptedLlm(
        [ScriptedAnswer(chunks=(f"Answer {n}: ", SECRET * (1 + 60 * n))) for n in range(count)]
    )


async def test_nothing_of_a_conversation_is_left_and_the_model_remembers_it(tmp_path: Path) -> None:
    llm = echo(6)
    async with open_gateway(tmp_path, llm=llm) as harness:
        assert await say(harness, "/otr", 0) == OTR_ON_TEXT
        for number in range(1, 6):
            # Long and short ones: some take their own pages, some lie between others.
            await say(harness, f"{number} {SECRET} " * (number % 3 * 40 + 1), number)
        remembered = [message.content for message in llm.requests[-1].messages]
        assert sum(SECRET in content for content in remembered) == 9
        await nothing_left(tmp_path)
        assert [record.body["text"] for record in await harness.records("session", "notice")] == [OTR_ON_TEXT]
        assert await harness.records("user", "step", "summary", "title") == []
        assert {record.body["text"] for record in await harness.records("assistant")} == {""}
    assert found_in(tmp_path) == []


async def test_the_mode_survives_a_restart_and_the_words_do_not(tmp_path: Path) -> None:
    async with open_gateway(tmp_path, llm=echo(1)) as harness:
        await say(harness, "/otr", 0)
        await say(harness, f"remember {SECRET}", 1)
    llm = echo(2)
    async with open_gateway(tmp_path, llm=llm) as harness:
        await say(harness, f"what was it? {SECRET}?", 2)
        assert [message.role for message in llm.requests[0].messages] == ["system", "user"]
        await nothing_left(tmp_path)
        assert await say(harness, "/otr", 3) == OTR_OFF_TEXT
        await say(harness, "on the record: quokka", 4)
        assert len(await harness.records("user")) == 1
    assert found_in(tmp_path, "quokka") == ["parlour.sqlite3"]


async def test_new_ends_it_too_and_what_was_said_is_not_shown_to_the_model(tmp_path: Path) -> None:
    llm = echo(2)
    async with open_gateway(tmp_path, llm=llm) as harness:
        await say(harness, "/otr", 0)
        await say(harness, f"about {SECRET}", 1)
        await say(harness, "/new", 2)
        await say(harness, "hello", 3)
        assert [message.role for message in llm.requests[1].messages] == ["system", "user"]
        assert [record.body["text"] for record in await harness.records("user")] == ["hello"]


async def test_a_message_cut_off_is_answered_again_and_then_forgotten(tmp_path: Path) -> None:
    held = ScriptedLlm([ScriptedAnswer(chunks=("x",), gate=asyncio.Event())])
    async with open_gateway(tmp_path, llm=held, drain_s=0) as harness:
        await say(harness, "/otr", 0)
        accepted = await harness.channel.say(f"tell me of {SECRET}", native_id="n1")
        await harness.channel.until(lambda: held.requests)
    assert found_in(tmp_path) == [], "accepted, and sealed"
    async with open_gateway(tmp_path, llm=echo(1)) as harness:
        assert SECRET in (await harness.channel.reply(accepted.message_id)).text
        await _all_sent(harness)
        await nothing_left(tmp_path)
        assert await harness.records("step", "user") == []


async def test_a_reply_is_kept_until_it_is_sent_and_then_forgotten(tmp_path: Path) -> None:
    channel = MemoryChannel()
    async with open_gateway(tmp_path, channel=channel, llm=echo(1), drain_s=0.1) as harness:
        await say(harness, "/otr", 0)
        channel.failures.append(Failure(kind="rate_limit", message="slow down", retry_after_s=1.0))
        accepted = await channel.say(SECRET, native_id="n1")
        await channel.terminal(accepted.message_id)
    async with open_gateway(tmp_path) as harness:
        assert SECRET in (await harness.channel.reply(accepted.message_id)).text
        await _all_sent(harness)
        await nothing_left(tmp_path)


async def test_a_reply_that_is_given_up_is_forgotten_too(tmp_path: Path) -> None:
    channel = MemoryChannel()
    async with open_gateway(tmp_path, channel=channel, llm=echo(1)) as harness:
        await say(harness, "/otr", 0)
        channel.failures.append(Failure(kind="permission", message="not allowed"))
        accepted = await channel.say(SECRET, native_id="n1")
        await channel.terminal(accepted.message_id)
        await _all_sent(harness)
        await nothing_left(tmp_path)


async def test_a_reply_for_a_channel_that_is_gone_is_forgotten_after_a_day(tmp_path: Path) -> None:
    posts, clock = MemoryPosts(previews=False), ManualClock()
    async with open_gateway(tmp_path, posts=posts, llm=echo(1), clock=clock, drain_s=0.1) as harness:
        command = SessionCommand(
            message_id="m_otr",
            native_id="otr",
            thread=posts.thread(),
            author=Author(id="ann"),
            received_at=clock.now(),
            name="otr",
        )
        await posts.bring(command)
        await posts.until(lambda: bool(posts.texts()))
        await _all_sent(harness)
        posts.failures.append(refusal("rate_limit", retry_after_s=3_600))
        await posts.receive(SECRET, native_id="n1")
        await posts.until(lambda: not posts.failures)
        assert len(await harness.store.outbox_open()) == 1
    await clock.advance(25 * 3_600)
    async with open_gateway(tmp_path, clock=clock) as harness:
        assert await harness.store.outbox_open() == ()
        await nothing_left(tmp_path)


async def test_a_failed_answer_and_its_beginning_are_forgotten(tmp_path: Path) -> None:
    llm = ScriptedLlm([ScriptedAnswer(chunks=(f"{SECRET} and ", SECRET), gate=asyncio.Event(), gate_at=1)])
    async with open_gateway(tmp_path, llm=llm) as harness:
        await say(harness, "/otr", 0)
        await harness.channel.say(f"continue about {SECRET}", native_id="n1")
        await harness.channel.until(lambda: any(SECRET in str(event) for event in harness.channel.events))
        await say(harness, "/stop", 2)
        await _all_sent(harness)
        await nothing_left(tmp_path)


async def test_a_voice_note_and_its_transcript_are_forgotten(tmp_path: Path) -> None:
    transcriber = ScriptedTranscriber([f"I say {SECRET}", f"again {SECRET}"])
    async with open_gateway(tmp_path, transcriber=transcriber, llm=echo(2)) as harness:
        await say(harness, "/otr", 0)
        assert SECRET in await say(harness, "", 1, voice=b"opus")
        assert SECRET in await say(harness, "", 2, voice=b"opus")
        assert len(transcriber.calls) == 2, "the same sound is heard again: its words were not kept"
        await nothing_left(tmp_path)
