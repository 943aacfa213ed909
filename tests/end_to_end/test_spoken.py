"""Spoken words the whole way: asked back when hardly understood, in rooms, in their speaker's language."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from adapters.web.settings import PACKAGED_PAGE
from gateway.access.policy import AccessRule
from gateway.storage.codec import new_entry
from gateway.storage.ports import Committed, Lease, TurnCommit
from gateway.storage.speech import SpeakerKey
from gateway.storage.sqlite import SqliteStore
from pipeline.domain.clock import SystemClock
from pipeline.domain.errors import StorageError
from pipeline.domain.events import ApprovalRequired, LlmToken
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Author, BargeIn, InboundMessage, MediaRef, SessionCommand, Speech
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.gate_graph import answer_to
from tests.support.harness import THREAD, open_gateway
from tests.support.posting_channel import MemoryPosts
from voice.errors import NothingHeard
from voice.transcriber import OnProgress, Recording
from voice.transcript import SpeechChunk, Transcript
from voice.transcription.scripted_transcriber import ScriptedTranscriber

OWNER = SpeakerKey(channel="console", account="local", user="owner")


def mumbled(text: str = "by milk", confidence: float = 0.3) -> Transcript:
    chunk = SpeechChunk(text=text, start_s=0.0, end_s=2.0, confidence=confidence, no_speech_probability=0.1)
    return Transcript(chunks=(chunk,), language="de", language_probability=0.9, audio_seconds=2.0)


@pytest.mark.parametrize(
    ("choice", "answer", "asked_model"),
    [
        ("Send", "You said: by milk", True),
        ("Edit", "```\nby milk\n```", False),
        ("Retry", "say it again", False),
    ],
)
async def test_hardly_understood_words_wait_for_their_speaker(
    tmp_path: Path, choice: str, answer: str, *, asked_model: bool
) -> None:
    async with open_gateway(tmp_path, transcriber=ScriptedTranscriber([mumbled()])) as harness:
        accepted = await harness.channel.say("", voice=b"opus")
        asked = await harness.channel.reply(accepted.message_id)
        assert asked.text == "I heard: “by milk”\n(Send / Edit / Retry)"
        assert (asked.heard, harness.llm.requests) == ("", [])
        (question,) = [e for e in harness.channel.events if isinstance(e, ApprovalRequired)]
        page = (PACKAGED_PAGE / "questions.js").read_text()
        assert f"CONFIRM = '{question.tool_name}'" in page, "the page knows this question by who asks it"

        await harness.channel.bring(answer_to(question.interaction_id, choice))

        assert answer in (await harness.channel.reply("m_answer")).text
        assert bool(harness.llm.requests) == asked_model
        if asked_model:
            assert "(Voice input in de, confidence 30%:" in harness.llm.requests[0].messages[0].content


@pytest.mark.parametrize(("said", "confirmed"), [("Send.", True), ("send", True), ("Send it please", False)])
async def test_a_question_may_be_answered_by_voice(tmp_path: Path, said: str, *, confirmed: bool) -> None:
    async with open_gateway(tmp_path, transcriber=ScriptedTranscriber([mumbled(), said])) as harness:
        first = await harness.channel.say("", voice=b"mumbled")
        await harness.channel.reply(first.message_id)

        second = await harness.channel.say("", voice=b"clear")

        words = "by milk" if confirmed else said
        assert (await harness.channel.reply(second.message_id)).text == f"You said: {words}"
        pending = await harness.store.pending_interactions(THREAD, now=SystemClock().now())
        assert bool(pending) != confirmed


@pytest.mark.parametrize(("said", "confirmed"), [("Send.", True), ("Please send it.", False)])
async def test_a_question_may_be_answered_by_live_speech(
    tmp_path: Path, said: str, *, confirmed: bool
) -> None:
    async with open_gateway(tmp_path, transcriber=ScriptedTranscriber([mumbled()])) as harness:
        first = await harness.channel.say("", voice=b"mumbled")
        await harness.channel.reply(first.message_id)

        spoken = live(said, Speech(language="en", confidence=0.9))
        assert (await harness.channel.bring(spoken)).status == "accepted"

        words = "by milk" if confirmed else said
        assert (await harness.channel.reply("m_live")).text == f"You said: {words}"
        assert (await harness.channel.bring(spoken)).status == "duplicate"
        pending = await harness.store.pending_interactions(THREAD, now=SystemClock().now())
        assert bool(pending) != confirmed


class Faltering(SqliteStore):
    """It fails once at ending a turn that says nothing, as if the process died there."""

    failed = False

    async def commit_turn(self, lease: Lease, commit: TurnCommit) -> Committed:
        if not self.failed and not commit.records:
            self.failed = True
            raise StorageError("the disk is full")
        return await super().commit_turn(lease, commit)


async def test_a_spoken_answer_that_was_cut_off_is_not_a_message_as_well(tmp_path: Path) -> None:
    store = Faltering(tmp_path / "parlour.sqlite3", synchronous="NORMAL")
    transcriber = ScriptedTranscriber([mumbled(), "Send", "Send"])
    async with open_gateway(tmp_path, store=store, transcriber=transcriber) as harness:
        first = await harness.channel.say("", voice=b"mumbled")
        await harness.channel.reply(first.message_id)

        second = await harness.channel.say("", voice=b"clear")

        assert (await harness.channel.reply(second.message_id)).text == "You said: by milk"
        assert store.failed
        assert [record.body["text"] for record in await harness.records("user")] == ["by milk", "Send"]
        assert len(transcriber.calls) == 2, "what was taken as an answer is not heard again"


async def test_a_spoken_answer_of_somebody_else_is_a_message(tmp_path: Path) -> None:
    posts = MemoryPosts()
    rule = AccessRule.of(mode="list", allow=["room:c1"])
    transcriber = ScriptedTranscriber([mumbled(), "Send"])
    async with open_gateway(tmp_path, posts=posts, rule=rule, transcriber=transcriber) as harness:
        await posts.bring(room_note(posts, "1", addressed=True))
        await posts.until(lambda: "I heard" in "".join(posts.texts()))
        await posts.bring(room_note(posts, "2", addressed=True, author="bob"))
        await posts.until(lambda: "You said: bob: Send" in "".join(posts.texts()))
        pending = await harness.store.pending_interactions(posts.thread().encode(), now=0.0)
        assert len(pending) == 1


async def test_the_question_outlives_a_restart(tmp_path: Path) -> None:
    async with open_gateway(tmp_path, transcriber=ScriptedTranscriber([mumbled()])) as harness:
        accepted = await harness.channel.say("", voice=b"opus")
        await harness.channel.reply(accepted.message_id)
        (question,) = [e for e in harness.channel.events if isinstance(e, ApprovalRequired)]
    async with open_gateway(tmp_path, transcriber=ScriptedTranscriber()) as harness:
        await harness.channel.bring(answer_to(question.interaction_id, "Send"))
        assert (await harness.channel.reply("m_answer")).text == "You said: by milk"


async def test_live_speech_is_a_message_that_was_spoken(tmp_path: Path) -> None:
    async with open_gateway(tmp_path) as harness:
        await harness.channel.bring(live("buy bread", Speech(language="en", confidence=0.8)))
        assert (await harness.channel.reply("m_live")).text == "You said: buy bread"
        assert [record.body for record in await harness.records("user")] == [
            {"text": "buy bread", "spoken": True, "language": "en", "confidence": 0.8}
        ]
        assert "(Voice input in en, confidence 80%:" in harness.llm.requests[0].messages[0].content


async def test_a_speakers_language_is_remembered_for_the_next_note(tmp_path: Path) -> None:
    unsure = replace(mumbled("ja", 0.9), language="nl", language_probability=0.4)
    transcriber = ScriptedTranscriber([mumbled("guten tag", 0.9), unsure])
    async with open_gateway(tmp_path, transcriber=transcriber) as harness:
        for note in (b"one", b"two"):
            accepted = await harness.channel.say("", voice=note)
            await harness.channel.reply(accepted.message_id)
        assert [call.recording.likely_language for call in transcriber.calls] == [None, "de"]
        assert {call.recording.speaker for call in transcriber.calls} == {"console:local:owner"}
        assert (await harness.store.voices.preferences_of(OWNER)).language == "de"


async def test_what_was_not_heard_of_a_long_note_is_said(tmp_path: Path) -> None:
    long = replace(mumbled("once upon a time", 0.9), truncated=True, audio_seconds=300.0)
    async with open_gateway(tmp_path, transcriber=ScriptedTranscriber([long])) as harness:
        accepted = await harness.channel.say("", voice=b"opus")
        reply = await harness.channel.reply(accepted.message_id)
        assert "[Only the first 5 minutes of the recording were heard.]" in reply.text


@pytest.mark.parametrize(
    ("hear_rooms", "said", "answered"),
    [
        (True, "Parlor, what is the time?", True),
        (True, "Otto come here", True),
        (True, "shall we go home", False),
        (False, "Parlour, what is the time?", False),
    ],
)
async def test_a_note_in_a_room_counts_when_it_names_the_bot(
    tmp_path: Path, said: str, *, hear_rooms: bool, answered: bool
) -> None:
    posts = MemoryPosts()
    transcriber = ScriptedTranscriber([said, "Parlour, are you there?"])
    rule = AccessRule.of(mode="list", allow=["room:c1"], hear_rooms=hear_rooms)
    called = 'bot.called=["Otto"]'
    async with open_gateway(tmp_path, called, posts=posts, rule=rule, transcriber=transcriber) as harness:
        overheard = await posts.bring(room_note(posts, "1"))
        assert overheard.status == ("accepted" if hear_rooms else "refused")
        await posts.bring(room_note(posts, "2", addressed=True))
        last = "Parlour, are you there?" if hear_rooms else said
        asked = harness.llm.requests
        await posts.until(lambda: any(one.messages[-1].content.endswith(f"ann: {last}") for one in asked))
        await posts.until(lambda: len(posts.texts()) > 0)

        heard = any(one.messages[-1].content.endswith(f"ann: {said}") for one in asked)
        assert heard == (answered or not hear_rooms)
        assert len(harness.llm.requests) == 1 + answered
        if hear_rooms and not answered:
            assert said not in "".join(posts.texts()), "what is not for the bot leaves no trace"
            log = await harness.records(thread=posts.thread().encode())
            assert not any(said in str(record.body) for record in log)


async def test_a_note_in_a_room_that_cannot_be_heard_is_nobodys_business(tmp_path: Path) -> None:
    posts = MemoryPosts()
    rule = AccessRule.of(mode="list", allow=["room:c1"], hear_rooms=True)
    transcriber = ScriptedTranscriber([NothingHeard(), "and now"])
    async with open_gateway(tmp_path, posts=posts, rule=rule, transcriber=transcriber):
        await posts.bring(room_note(posts, "1"))
        await posts.bring(room_note(posts, "2", addressed=True))
        await posts.until(lambda: "You said: ann: and now" in "".join(posts.texts()))
        assert "".join(posts.texts()) == "heard: and now\nYou said: ann: and now"


class Hesitant(ScriptedTranscriber):
    """Answers when `go` is set."""

    def __init__(self, *answers: str) -> None:
        super().__init__(answers)
        self.asked, self.go = asyncio.Event(), asyncio.Event()

    async def transcribe(self, recording: Recording, *, on_progress: OnProgress | None = None) -> Transcript:
        self.asked.set()
        transcript = await super().transcribe(recording, on_progress=on_progress)
        await self.go.wait()
        return transcript


async def test_a_note_that_is_being_heard_keeps_no_place_at_the_model(tmp_path: Path) -> None:
    transcriber = Hesitant("by milk")
    async with open_gateway(tmp_path, "turn.max_running=1", transcriber=transcriber) as harness:
        note = await harness.channel.say("", voice=b"opus", chat="c2")
        await transcriber.asked.wait()
        typed = await harness.channel.say("hello")
        assert (await harness.channel.reply(typed.message_id)).text == "You said: hello"
        transcriber.go.set()
        assert (await harness.channel.reply(note.message_id)).text == "You said: by milk"


async def test_a_stop_ends_listening_in_a_room_without_a_word_about_the_note(tmp_path: Path) -> None:
    posts = MemoryPosts()
    rule = AccessRule.of(mode="list", allow=["room:c1"], hear_rooms=True)
    transcriber = Hesitant("Parlour, are you there?")
    async with open_gateway(tmp_path, posts=posts, rule=rule, transcriber=transcriber) as harness:
        await posts.bring(room_note(posts, "1"))
        await transcriber.asked.wait()
        stop = SessionCommand(
            message_id="m_stop",
            native_id="stop:1",
            thread=posts.thread(),
            author=Author(id="owner"),
            received_at=0.0,
            name="stop",
            private=False,
        )
        await posts.bring(stop)
        await posts.until(lambda: any("Stopped" in text or "nothing" in text for text in posts.texts()))
        assert (len(posts.texts()), harness.llm.requests) == (1, [])


async def test_strangers_in_a_room_are_never_listened_to(tmp_path: Path) -> None:
    posts = MemoryPosts()
    rule = AccessRule.of(mode="list", allow=["room:elsewhere"], hear_rooms=True)
    transcriber = ScriptedTranscriber.always("Parlour, open the window")
    async with open_gateway(tmp_path, posts=posts, rule=rule, transcriber=transcriber):
        refused = await posts.bring(room_note(posts, "1"))
        assert (refused.status, refused.reason, transcriber.calls) == ("refused", "", [])


async def test_speaking_over_an_answer_stops_it_without_a_line_and_takes_nothing_back(tmp_path: Path) -> None:
    half = ScriptedAnswer(chunks=("half an", " answer"), gate=asyncio.Event(), gate_at=1)
    llm = ScriptedLlm([half, ScriptedAnswer(chunks=("yes",))])
    async with open_gateway(tmp_path, llm=llm) as harness:
        first = await harness.channel.say("tell me a story")
        await harness.channel.until(lambda: any(isinstance(e, LlmToken) for e in harness.channel.events))
        second = await harness.channel.say("are you there")

        stop = await harness.channel.bring(barge_in())

        assert (await harness.channel.reply(first.message_id)).text == "Stopped."
        assert (await harness.channel.reply(second.message_id)).text == "yes"
        assert [reply.message_id for reply in harness.channel.sent] == [first.message_id, second.message_id]
        assert stop.message_id not in {record.message_id for record in await harness.records()}


async def test_speaking_over_an_answer_that_has_just_ended_does_not_stop_the_next(tmp_path: Path) -> None:
    asked = asyncio.Event()
    llm = ScriptedLlm(
        [ScriptedAnswer(chunks=("yes",)), ScriptedAnswer(chunks=("still", " here"), gate=asked)]
    )
    async with open_gateway(tmp_path, llm=llm) as harness:
        first = await harness.channel.say("tell me a story")
        await harness.channel.reply(first.message_id)
        spoken_at = SystemClock().now()
        second = await harness.channel.say("are you there")
        await harness.channel.until(lambda: len(llm.requests) == 2)

        await harness.channel.bring(barge_in(spoken_at))
        asked.set()

        assert (await harness.channel.reply(second.message_id)).text == "still here"


async def test_a_barge_in_that_a_crash_cut_off_stops_nothing_afterwards(tmp_path: Path) -> None:
    llm = ScriptedLlm([ScriptedAnswer(chunks=("x",), gate=asyncio.Event())])
    async with open_gateway(tmp_path, llm=llm, drain_s=0) as harness:
        first = await harness.channel.say("tell me a story")
        await harness.channel.until(lambda: llm.requests)
        await harness.store.accept(new_entry(barge_in()))
    async with open_gateway(tmp_path) as harness:
        assert (await harness.channel.reply(first.message_id)).text == "You said: tell me a story"


def barge_in(at: float | None = None) -> BargeIn:
    return BargeIn(
        message_id="m_barge_in",
        native_id="speech-stop:1",
        thread=ThreadKey(channel="console", account="local", chat="c1"),
        author=Author(id="owner"),
        received_at=SystemClock().now() if at is None else at,
    )


def live(text: str, speech: Speech) -> InboundMessage:
    return InboundMessage(
        message_id="m_live",
        native_id="speech:1",
        thread=ThreadKey(channel="console", account="local", chat="c1"),
        author=Author(id="owner"),
        received_at=1_700_000_000.0,
        text=text,
        speech=speech,
    )


def room_note(
    posts: MemoryPosts, native_id: str, *, addressed: bool = False, author: str = "ann"
) -> InboundMessage:
    posts.media[native_id] = b"sound"
    return InboundMessage(
        message_id=f"m_{native_id}",
        native_id=native_id,
        thread=posts.thread(),
        author=Author(id=author),
        received_at=0.0,
        voice=MediaRef(channel="memory", handle=native_id, mime="audio/ogg", size=5, kind="voice"),
        addressed=addressed,
        private=False,
    )
