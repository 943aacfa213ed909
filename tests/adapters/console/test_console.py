"""The terminal conversation: what is sent, what is printed, once, and how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from adapters.channel import Acceptance, OutboundReply
from adapters.console.adapter import THREAD, ConsoleAdapter, ConsoleSettings
from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import InvalidInput, MediaUnavailable, StorageError
from pipeline.domain.events import (
    ApprovalRequired,
    ApprovalResolved,
    ErrorEvent,
    LlmToken,
    ResponseComplete,
    TranscriptReady,
    TurnStarted,
)
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import ApprovalReply, Inbound, InboundMessage, MediaRef, SessionCommand
from pipeline.domain.timeline import EntryRole, TimelineEntry
from tests.adapters.fakes import MemoryInbox, MemoryTimeline

Turn = Callable[["Bot", Inbound], Awaitable[None]]


class Terminal:
    """Lines typed ahead, and everything that was written."""

    def __init__(self, *lines: str) -> None:
        self._lines = lines
        self.text = ""
        self.broken = False

    def write(self, text: str) -> None:
        if self.broken:
            raise BrokenPipeError(32, "Broken pipe")
        self.text += text

    async def lines(self) -> AsyncIterator[str]:
        for line in self._lines:
            yield line


class Bot:
    """The gateway behind the console: accepts, then answers each message in the same breath."""

    def __init__(self, terminal: Terminal, turn: Turn, **options: Any) -> None:
        settings = ConsoleSettings(
            interactive=options.pop("interactive", False),
            text_chars=100,
            settle_s=options.pop("settle_s", 5.0),
        )
        self.timeline = options.pop("timeline", MemoryTimeline())
        self.lines = options.pop("lines", terminal.lines())
        self.adapter = ConsoleAdapter(
            settings, self.timeline, ManualClock(), lines=self.lines, write=terminal.write, **options
        )
        self.inbox = MemoryInbox()
        self._turn = turn

    async def chat(self) -> None:
        """Run the adapter to its own end."""
        async with asyncio.timeout(20):
            await self.adapter.run(self._accept)

    async def _accept(self, item: Inbound) -> Acceptance:
        acceptance = await self.inbox(item)
        if acceptance.status == "accepted":
            await self._turn(self, item)
        return acceptance

    async def stream(self, message_id: str, *pieces: str) -> None:
        offset = 0
        for piece in pieces:
            event = LlmToken(session_id="s", message_id=message_id, text=piece, offset=offset)
            await self.adapter.sender_for(THREAD).send_event(event)
            offset += len(piece)

    async def finish(self, message_id: str, text: str) -> None:
        event = ResponseComplete(session_id="s", message_id=message_id, content=text, entry_id=1)
        await self.adapter.sender_for(THREAD).send_event(event)
        await self.reply(message_id, text)

    async def reply(self, message_id: str, text: str, role: EntryRole = "assistant") -> None:
        await self.adapter.send(
            OutboundReply(
                key=f"{message_id}:{role}",
                thread=THREAD,
                message_id=message_id,
                entry_id=1,
                role=role,
                text=text,
                created_at=1.0,
            )
        )


async def echo(bot: Bot, item: Inbound) -> None:
    assert isinstance(item, InboundMessage)
    await bot.stream(item.message_id, "you said ", item.text)
    await bot.finish(item.message_id, f"you said {item.text}")


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


async def test_errors_are_told_in_words_and_counted() -> None:
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
async def test_a_line_that_cannot_be_taken_is_told_and_the_next_one_counts(
    error: Exception, words: str
) -> None:
    async def turn(bot: Bot, item: Inbound) -> None:
        raise error

    terminal = Terminal("one", "two")
    bot = Bot(terminal, turn)
    await bot.chat()
    assert terminal.text == words * 2
    assert len(bot.inbox.items) == 2


async def test_a_refusal_and_an_overlong_line_are_told() -> None:
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


async def test_a_missing_voice_file_is_told_in_words(tmp_path: Path) -> None:
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


async def test_a_question_is_answered_by_typing_one_of_its_choices() -> None:
    async def turn(bot: Bot, item: Inbound) -> None:
        sender = bot.adapter.sender_for(THREAD)
        ids = {"session_id": "s", "message_id": bot.inbox.items[0].message_id}
        if isinstance(item, InboundMessage):
            question = ApprovalRequired(
                **ids,
                interaction_id="int_1",
                tool_name="shell",
                reasoning="it writes",
                options=("Allow", "Deny"),
                timeout_s=60.0,
            )
            await sender.send_event(TurnStarted(**ids))
            await sender.send_event(question)
        else:
            assert isinstance(item, ApprovalReply)
            assert (item.interaction_id, item.choice) == ("int_1", "Deny")
            await sender.send_event(ApprovalResolved(**ids, interaction_id="int_1", choice="Deny"))
            await bot.finish(bot.inbox.items[0].message_id, "then not")

    terminal = Terminal("write it", " deny ")
    await Bot(terminal, turn).chat()
    assert terminal.text == (
        "shell needs your approval: it writes\nType Allow or Deny within 60 seconds.\n"
        "approval: Deny\nthen not\n"
    )


def _asked(message_id: str, interaction_id: str = "int_1", words: str = "Send 100?") -> ApprovalRequired:
    return ApprovalRequired(
        session_id="s",
        message_id=message_id,
        interaction_id=interaction_id,
        tool_name="ask",
        reasoning=words,
        options=("Approve", "Deny"),
        timeout_s=0.0,
    )


async def test_a_paused_run_is_answered_after_its_turn_and_other_messages_in_between() -> None:
    async def turn(bot: Bot, item: Inbound) -> None:
        sender = bot.adapter.sender_for(THREAD)
        if isinstance(item, ApprovalReply):
            ids = {"session_id": "s", "message_id": item.message_id}
            choice = item.choice
            await sender.send_event(
                ApprovalResolved(**ids, interaction_id=item.interaction_id, choice=choice)
            )
            await bot.finish(item.message_id, f"then {choice}")
        elif isinstance(item, InboundMessage) and item.text == "pay":
            await sender.send_event(_asked(item.message_id))
            await bot.finish(item.message_id, "Send 100? (Approve / Deny)")
        else:
            await echo(bot, item)

    terminal = Terminal("pay", "why approve?", "APPROVE", "approve")
    bot = Bot(terminal, turn)
    await bot.chat()
    assert terminal.text == (
        "ask needs your approval: Send 100?\nType Approve or Deny.\n"
        "Send 100? (Approve / Deny)\nyou said why approve?\n"
        "approval: Approve\nthen Approve\nyou said approve\n"
    )
    assert [type(item) for item in bot.inbox.items] == [
        InboundMessage,
        InboundMessage,
        ApprovalReply,
        InboundMessage,
    ]


async def test_the_questions_of_an_earlier_run_are_asked_again_one_after_the_other() -> None:
    async def turn(bot: Bot, item: Inbound) -> None:
        await bot.finish(item.message_id, f"took {getattr(item, 'interaction_id', 'a message')}")

    timeline = MemoryTimeline()
    timeline.asked[THREAD] = [_asked("m_1"), _asked("m_2", "int_2", "Send 200?")]
    terminal = Terminal("deny", "approve")
    await Bot(terminal, turn, timeline=timeline).chat()
    assert terminal.text == (
        "ask needs your approval: Send 100?\nType Approve or Deny.\n"
        "took int_1\n"
        "ask needs your approval: Send 200?\nType Approve or Deny.\n"
        "took int_2\n"
    )


async def test_a_refused_answer_closes_the_question_and_the_word_is_a_message_again() -> None:
    timeline = MemoryTimeline()
    timeline.asked[THREAD] = [_asked("m_1")]
    terminal = Terminal()

    async def lines() -> AsyncIterator[str]:
        bot.inbox.refuse = "This question has expired; nothing was done."
        yield "deny"
        bot.inbox.refuse = None
        yield "deny"

    bot = Bot(terminal, echo, timeline=timeline, lines=lines())
    await bot.chat()
    assert terminal.text.endswith("not sent: This question has expired; nothing was done.\nyou said deny\n")


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
