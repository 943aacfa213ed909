"""The terminal conversation: what is sent, what is printed, once, and how it ends."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from adapters.channel import OutboundReply
from adapters.console.adapter import THREAD
from pipeline.domain.errors import InvalidInput, MediaUnavailable, StorageError
from pipeline.domain.events import (
    ErrorEvent,
    LlmToken,
    TranscriptReady,
)
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Inbound, InboundMessage, MediaRef, SessionCommand
from pipeline.domain.timeline import TimelineEntry
from tests.adapters.console.harness import Bot, Terminal, echo
from tests.adapters.fakes import MemoryTimeline


async def test_piped_lines_are_messages_and_each_answer_is_printed_once() -> None:
    terminal = Terminal("one", "", "  ", "two")
    bot = Bot(terminal, echo)
    await bot.chat()
    assert terminal.text == "you said one\nyou said two\n"
    assert [item.text for item in bot.inbox.items if isinstance(item, InboundMessage)] == ["one", "two"]
    assert {item.thread for item in bot.inbox.items} == {THREAD}
    assert len({item.native_id for item in bot.inbox.items}) == 2
    assert bot.adapter.health().state == "down"
    assert not bot.adapter.failed


async def test_a_person_sees_a_prompt_and_the_bots_name() -> None:
    terminal = Terminal("hi")
    await Bot(terminal, echo, interactive=True).chat()
    assert terminal.text == "you: Parlour: you said hi\nyou: \n"


async def test_the_final_text_is_printed_when_the_stream_was_another() -> None:
    async def turn(bot: Bot, item: Inbound) -> None:
        await bot.stream(item.message_id, "draft")
        await bot.finish(item.message_id, "final")

    terminal = Terminal("hi")
    await Bot(terminal, turn).chat()
    assert terminal.text == "draft\nfinal\n"


async def test_the_final_text_is_not_printed_again_for_its_blank_lines() -> None:
    async def turn(bot: Bot, item: Inbound) -> None:
        await bot.stream(item.message_id, "one\n\n\ntwo")
        await bot.finish(item.message_id, "one\n\ntwo")

    terminal = Terminal("hi")
    await Bot(terminal, turn).chat()
    assert terminal.text == "one\n\n\ntwo\n"


async def test_a_piece_after_a_gap_waits_for_the_final_text() -> None:
    async def turn(bot: Bot, item: Inbound) -> None:
        await bot.stream(item.message_id, "one ")
        late = LlmToken(session_id="s", message_id=item.message_id, text="three", offset=8)
        await bot.adapter.sender_for(THREAD).send_event(late)
        await bot.finish(item.message_id, "one two three")

    terminal = Terminal("hi")
    await Bot(terminal, turn).chat()
    assert terminal.text == "one \none two three\n"


async def test_an_answer_without_events_is_printed_from_the_reply() -> None:
    async def turn(bot: Bot, item: Inbound) -> None:
        await bot.reply(item.message_id, "from the log")
        await bot.finish(item.message_id, "from the log")

    terminal = Terminal("hi")
    await Bot(terminal, turn).chat()
    assert terminal.text == "from the log\n"


async def test_an_answer_that_comes_later_is_waited_for_at_the_end_of_input() -> None:
    terminal = Terminal("hi")
    accepted = asyncio.Event()

    async def turn(bot: Bot, item: Inbound) -> None:
        accepted.set()

    bot = Bot(terminal, turn)
    async with asyncio.TaskGroup() as group:
        chatting = group.create_task(bot.chat())
        await accepted.wait()
        for _ in range(20):
            await asyncio.sleep(0)
        assert not chatting.done()
        await bot.finish(bot.inbox.items[0].message_id, "at last")
    assert terminal.text == "at last\n"


async def test_errors_are_reported_in_words_and_counted() -> None:
    async def turn(bot: Bot, item: Inbound) -> None:
        event = ErrorEvent(
            session_id="s", message_id=item.message_id, code="model", message="no model", recoverable=True
        )
        await bot.stream(item.message_id, "half")
        await bot.adapter.sender_for(THREAD).send_event(event)
        await bot.reply(item.message_id, "no model", "error")

    terminal = Terminal("hi")
    bot = Bot(terminal, turn)
    await bot.chat()
    assert terminal.text == "half\nerror: no model\n"
    assert bot.adapter.failed


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (StorageError("the disk is full"), "not sent: the disk is full\n"),
        (KeyError("secret"), "not sent: something went wrong in the gateway; its log says more\n"),
    ],
)
async def test_a_line_that_cannot_be_taken_is_reported_and_the_next_one_counts(
    error: Exception, words: str
) -> None:
    async def turn(bot: Bot, item: Inbound) -> None:
        raise error

    terminal = Terminal("one", "two")
    bot = Bot(terminal, turn)
    await bot.chat()
    assert terminal.text == words * 2
    assert len(bot.inbox.items) == 2


async def test_a_refusal_and_an_overlong_line_are_reported() -> None:
    terminal = Terminal("x" * 101, "hi")
    bot = Bot(terminal, echo)
    bot.inbox.refuse = "the queue is full"
    await bot.chat()
    assert terminal.text == "not sent: 101 characters, the limit is 100\nnot sent: the queue is full\n"


async def test_commands_are_commands_and_their_notice_is_printed() -> None:
    async def turn(bot: Bot, item: Inbound) -> None:
        assert isinstance(item, SessionCommand)
        if item.name != "stop":
            await bot.reply(item.message_id, f"about {item.name}", "notice")

    terminal = Terminal("/help", "/new", "/stop")
    bot = Bot(terminal, turn, settle_s=0.0)
    await bot.chat()
    assert terminal.text == "about help\nabout new\n"
    assert len(bot.inbox.items) == 3


async def test_a_person_may_stop_an_answer_that_is_being_written() -> None:
    async def turn(bot: Bot, item: Inbound) -> None:
        if isinstance(item, InboundMessage):
            await bot.stream(item.message_id, "on and ")
        else:
            await bot.finish(bot.inbox.items[0].message_id, "on and on")
            await bot.reply(item.message_id, "stopped", "notice")

    terminal = Terminal("tell me", "/stop")
    await Bot(terminal, turn, interactive=True).chat()
    assert terminal.text == "you: Parlour: on and \nParlour: on and on\nyou: \nstopped\nyou: \n"


async def test_control_characters_of_a_model_cannot_reach_the_terminal() -> None:
    async def turn(bot: Bot, item: Inbound) -> None:
        await bot.stream(item.message_id, "a\x1b", "[2J\r\n\x9b\u202e\ud800\x07\tb ")
        await bot.finish(item.message_id, "a\x1b[2J\r\n\x9b\u202e\ud800\x07\tb ")

    terminal = Terminal("hi")
    await Bot(terminal, turn).chat()
    assert terminal.text == "a\\x1b[2J\n\\x9b\\u202e\\ud800\\x07\tb \n"


async def test_emoji_families_and_joined_scripts_are_printed_as_they_are() -> None:
    text = "👨\u200d👩\u200d👧 می\u200cخواهم क्\u200dष שלום\u200f"  # noqa: RUF001 - these scripts are the subject

    async def turn(bot: Bot, item: Inbound) -> None:
        await bot.finish(item.message_id, text)

    terminal = Terminal("hi")
    await Bot(terminal, turn).chat()
    assert terminal.text == text + "\n"


async def test_a_voice_file_is_the_first_message_and_its_transcript_is_shown(tmp_path: Path) -> None:
    note = tmp_path / "note.wav"
    note.write_bytes(b"RIFF")

    async def turn(bot: Bot, item: Inbound) -> None:
        assert isinstance(item, InboundMessage)
        assert item.voice is not None
        assert await bot.adapter.download(item.voice, max_bytes=4) == b"RIFF"
        event = TranscriptReady(
            session_id="s", message_id=item.message_id, text="hello", language="en", confidence=0.9
        )
        await bot.adapter.sender_for(THREAD).send_event(event)
        await bot.finish(item.message_id, "hi there")

    terminal = Terminal()
    bot = Bot(terminal, turn, lines=None, voice_files=(note,))
    await bot.chat()
    assert terminal.text == 'heard: "hello"\nhi there\n'
    (item,) = bot.inbox.items
    assert isinstance(item, InboundMessage)
    assert item.voice is not None
    assert (item.voice.handle, item.voice.size, item.voice.channel) == (str(note), 4, "console")


async def test_a_missing_voice_file_is_reported_in_words(tmp_path: Path) -> None:
    terminal = Terminal("hi")
    bot = Bot(terminal, echo, voice_files=(tmp_path / "none.wav", tmp_path))
    await bot.chat()
    assert f"the voice file {tmp_path}/none.wav cannot be read: No such file" in terminal.text
    assert f"the voice file {tmp_path} cannot be read: not a file" in terminal.text
    assert terminal.text.endswith("you said hi\n")
    assert bot.adapter.failed


async def test_only_readable_files_within_the_limit_can_be_downloaded(tmp_path: Path) -> None:
    note = tmp_path / "note.wav"
    note.write_bytes(b"12345")
    adapter = Bot(Terminal(), echo).adapter
    for handle in (str(tmp_path), "note.wav", str(tmp_path / "none.wav"), ""):
        with pytest.raises(MediaUnavailable):
            await adapter.download(MediaRef(channel="console", handle=handle), max_bytes=10)
    with pytest.raises(MediaUnavailable, match="larger than 4 bytes"):
        await adapter.download(MediaRef(channel="console", handle=str(note)), max_bytes=4)
    with pytest.raises(MediaUnavailable):
        await adapter.download(MediaRef(channel="web", handle=str(note)), max_bytes=10)


async def test_messages_of_an_earlier_run_are_waited_for_first() -> None:
    timeline = MemoryTimeline()
    timeline.add(THREAD, TimelineEntry(entry_id=1, message_id="m_0", role="user", text="done", at=1.0))
    timeline.add(THREAD, TimelineEntry(entry_id=0, message_id="m_1", role="user", text="open", at=1.0))
    terminal = Terminal()
    bot = Bot(terminal, echo, lines=None, timeline=timeline)
    async with asyncio.TaskGroup() as group:
        chatting = group.create_task(bot.chat())
        for _ in range(20):
            await asyncio.sleep(0)
        assert not chatting.done()
        await bot.finish("m_1", "the earlier answer")
    assert terminal.text == "1 earlier messages still wait; their answers come first\nthe earlier answer\n"


async def test_an_unreadable_earlier_conversation_does_not_stop_a_new_one() -> None:
    timeline = MemoryTimeline()
    timeline.error = StorageError("read error")
    terminal = Terminal("hi")
    await Bot(terminal, echo, timeline=timeline).chat()
    assert terminal.text == "the earlier conversation cannot be read: read error\nyou said hi\n"


async def test_a_reader_that_went_away_ends_the_chat_and_leaves_the_answer_undelivered() -> None:
    delivered: list[bool] = []

    async def turn(bot: Bot, item: Inbound) -> None:
        terminal.broken = True
        await bot.stream(item.message_id, "piece")
        with pytest.raises(BrokenPipeError):
            await bot.reply(item.message_id, "answer")
        delivered.append(False)

    terminal = Terminal("hi", "again")
    bot = Bot(terminal, turn)
    await bot.chat()
    assert delivered == [False]
    assert len(bot.inbox.items) == 1


async def test_a_reply_for_another_thread_is_refused() -> None:
    reply = OutboundReply(
        key="k",
        thread=ThreadKey(channel="console", account="local", chat="elsewhere"),
        message_id="m",
        entry_id=1,
        role="assistant",
        text="x",
        created_at=1.0,
    )
    with pytest.raises(InvalidInput, match="thread"):
        await Bot(Terminal(), echo).adapter.send(reply)


@pytest.mark.parametrize("interactive", [True, False])
async def test_quit_ends_the_conversation_after_what_was_asked(interactive: bool) -> None:
    terminal = Terminal("one", " /QUIT ", "two")
    bot = Bot(terminal, echo, interactive=interactive)
    await bot.chat()
    assert [item.text for item in bot.inbox.items if isinstance(item, InboundMessage)] == ["one"]
    assert "you said one\n" in terminal.text


async def test_what_the_arrow_keys_write_is_not_sent() -> None:
    bot = Bot(Terminal("\x1b[A", "\x1bOB", "he\x1b[Dllo\x1b[1;5C\x7f", "tab\tstays"), echo, interactive=True)
    await bot.chat()
    texts = [item.text for item in bot.inbox.items if isinstance(item, InboundMessage)]
    assert texts == ["hello", "tab\tstays"]
