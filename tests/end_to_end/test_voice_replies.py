"""Answers that are read aloud: off until somebody asks for it, for that person only, and never twice."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.speech.read_aloud import BRIEF_CHARACTERS
from gateway.speech.speaker_language import speaker_of
from gateway.storage.ports import Committed, Lease, TurnCommit
from gateway.storage.sqlite import SqliteStore
from pipeline.domain.clock import ManualClock
from pipeline.domain.command_types import CommandName
from pipeline.domain.errors import StorageError
from pipeline.domain.messages import Author, BargeIn, SessionCommand
from tests.support.all_platforms import open_all_platforms
from tests.support.harness import open_gateway
from tests.support.platforms.platform import FakePlatform, Place
from tests.support.posting_channel import MemoryPosts, refusal
from voice.errors import SpeakerUnavailable
from voice.synthesis.scripted_synthesizer import ScriptedSpeaker
from voice.synthesis.synthesizer import SpokenAudio
from voice.transcription.scripted_transcriber import ScriptedTranscriber


def voices(platform: FakePlatform, place: Place) -> list[bytes]:
    return [shown.voice for shown in platform.visible(place) if shown.voice and not shown.author]


async def test_on_each_platform_a_voice_message_follows_the_answer_of_anyone_who_wants_one(
    tmp_path: Path,
) -> None:
    speaker = ScriptedSpeaker()
    async with open_all_platforms(tmp_path, speaker=speaker) as place:
        for platform, chat in place.private():
            ann = platform.person("ann")
            await platform.say(chat, ann, "before")
            await platform.until(lambda: "You said: before" in platform.bot_texts(chat))  # noqa: B023 - used before the next turn
            await platform.say(chat, ann, "/voice")
            await platform.until(lambda: any("Voice replies are on" in t for t in platform.bot_texts(chat)))  # noqa: B023 - as above
            await platform.say(chat, ann, "**one** two")
            await platform.until(lambda: len(voices(platform, chat)) == 1)  # noqa: B023 - as above
            assert platform.bot_texts(chat)[-2] == "You said: one two", "the words come first"
            await platform.say(chat, ann, "/voice")
            await platform.until(lambda: any("replies are off" in t for t in platform.bot_texts(chat)))  # noqa: B023 - as above
            await platform.say(chat, ann, "after")
            await platform.until(lambda: "You said: after" in platform.bot_texts(chat))  # noqa: B023 - as above
        for platform, chat in place.private("ben"):
            await platform.say(chat, platform.person("ben"), "me too")
            await platform.until(lambda: "You said: me too" in platform.bot_texts(chat))  # noqa: B023 - as above
    assert [call.text for call in speaker.calls] == ["You said: one two."] * 3
    for platform, chat in place.private():
        (sound,) = voices(platform, chat)
        assert sound.startswith(b"OggS")
    for platform, chat in place.private("ben"):
        assert voices(platform, chat) == []


async def test_in_a_room_only_the_one_who_asked_for_it_is_answered_by_voice(tmp_path: Path) -> None:
    posts = MemoryPosts()
    async with open_gateway(tmp_path, posts=posts, speaker=ScriptedSpeaker()) as harness:
        await posts.bring(command("voice", posts, author="ann"))
        await posts.until(lambda: "replies are on" in "".join(posts.texts()))
        await posts.receive("from ben", native_id="1", author="ben", private=False)
        await posts.receive("from ann", native_id="2", author="ann", private=False)
        await posts.until(lambda: len(posts.voices) == 1)
        await harness.gateway.stop()
        (voiced,) = posts.voices
        assert (voiced.reply_handle, voiced.key) == ("to-2", f"{posts.messages[-1].key[:-2]}:v")


async def test_voice_auto_answers_a_voice_note_by_voice_and_a_text_in_writing(
    tmp_path: Path,
) -> None:
    speaker, long = ScriptedSpeaker(), ScriptedTranscriber.always("a long story " * 40)
    async with open_all_platforms(tmp_path, speaker=speaker, transcriber=long) as place:
        for platform, chat in place.private():
            ann = platform.person("ann")
            await platform.say(chat, ann, "/voice auto fast short")
            await platform.until(lambda: any("are automatic" in t for t in platform.bot_texts(chat)))  # noqa: B023 - used before the next turn
            await platform.say(chat, ann, "typed")
            await platform.until(lambda: "You said: typed" in platform.bot_texts(chat))  # noqa: B023 - as above
            await platform.speak(chat, ann, b"OggS" + platform.name.encode(), mime="audio/ogg")
            await platform.until(lambda: len(voices(platform, chat)) == 1)  # noqa: B023 - as above
    assert len(speaker.calls) == 3
    assert {call.speed for call in speaker.calls} == {1.25}
    assert all(100 < len(call.text) <= BRIEF_CHARACTERS + 1 for call in speaker.calls)
    assert not any("typed" in call.text for call in speaker.calls)


async def test_where_no_one_can_speak_the_command_says_so(tmp_path: Path) -> None:
    posts = MemoryPosts()
    async with open_gateway(tmp_path, "voice.replies.enabled=false", posts=posts):
        await posts.bring(command("voice", posts))
        await posts.until(lambda: "I cannot send voice messages here." in posts.texts())
        assert len(posts.texts()) == 1


async def test_an_answer_arrives_in_writing_when_it_cannot_be_read_aloud(tmp_path: Path) -> None:
    posts = MemoryPosts()
    speaker = ScriptedSpeaker(failures=[SpeakerUnavailable("The speaker has a cold.")])
    async with open_gateway(tmp_path, posts=posts, speaker=speaker):
        await posts.bring(command("voice", posts))
        await posts.receive("one", native_id="1")
        await posts.until(lambda: "You said: one" in posts.texts())
        await posts.receive("two", native_id="2")
        await posts.until(lambda: len(posts.voices) == 1)
    assert [call.text for call in speaker.calls] == ["You said: one.", "You said: two."]
    assert posts.texts().count("You said: one") == 1


@pytest.mark.parametrize(("done", "failed", "shown"), [(True, 1, 1), (False, 1, 2), (False, 6, 7)])
async def test_a_post_that_may_have_arrived_is_not_repeated_and_one_that_surely_did_not_is(
    tmp_path: Path, done: bool, failed: int, shown: int
) -> None:
    posts = MemoryPosts()
    async with open_gateway(tmp_path, posts=posts, speaker=ScriptedSpeaker()):
        await posts.bring(command("voice", posts))
        await posts.until(lambda: "replies are on" in "".join(posts.texts()))
        refused = refusal("transient" if done else "rate_limit", retry_after_s=0.01, done=done)
        failures = iter([refused] * failed)
        posts.judge = lambda method: next(failures, None) if method == "voice" else None
        await posts.receive("one", native_id="1")
        await posts.until(lambda: len(posts.voices) == 1)
        await posts.receive("two", native_id="2")
        await posts.until(lambda: len(posts.voices) == 2)
    assert len([call for call in posts.calls if call.startswith("voice ")]) == shown + 1
    assert len({voiced.key for voiced in posts.voices}) == 2


async def test_a_voice_message_that_waits_for_its_platform_holds_up_no_answer(tmp_path: Path) -> None:
    posts = MemoryPosts()
    async with open_gateway(tmp_path, posts=posts, speaker=ScriptedSpeaker(), drain_s=0.1):
        await posts.bring(command("voice", posts))
        await posts.until(lambda: "replies are on" in "".join(posts.texts()))
        busy = refusal("transient", retry_after_s=50.0)
        posts.judge = lambda method: busy if method == "voice" else None
        await posts.receive("one", native_id="1")
        await posts.until(lambda: any(call.startswith("voice ") for call in posts.calls))
        await posts.receive("two", native_id="2")
        await posts.until(lambda: "You said: two" in posts.texts())
    assert posts.voices == []


async def test_a_speaker_that_never_ends_holds_up_neither_the_chat_nor_the_shutdown(tmp_path: Path) -> None:
    posts, speaker = MemoryPosts(), Endless()
    async with open_gateway(tmp_path, posts=posts, speaker=speaker, drain_s=0.1):
        await posts.bring(command("voice", posts))
        await posts.until(lambda: "replies are on" in "".join(posts.texts()))
        await posts.receive("one", native_id="1")
        await posts.receive("two", native_id="2")
        await posts.until(lambda: "You said: two" in posts.texts())
    assert speaker.calls, "it was asked"
    later = MemoryPosts()
    async with open_gateway(tmp_path, posts=later, speaker=ScriptedSpeaker()):
        await later.receive("three", native_id="3")
        await later.until(lambda: len(later.voices) == 1)
    assert later.texts() == ["You said: three"]


class Endless(ScriptedSpeaker):
    """Begins to speak and never ends."""

    async def speak(
        self, text: str, *, language: str = "en", voice: str = "", speed: float = 1.0
    ) -> SpokenAudio:
        await super().speak(text, language=language, voice=voice, speed=speed)
        await asyncio.Event().wait()
        raise AssertionError("no one sets it")


async def test_a_stop_by_speaking_is_not_announced(tmp_path: Path) -> None:
    posts = MemoryPosts()
    async with open_gateway(tmp_path, posts=posts) as harness:
        await posts.bring(
            BargeIn(
                message_id="m_stop",
                native_id="speech-stop:1",
                thread=posts.thread(),
                author=Author(id="ann"),
                received_at=0.0,
            )
        )
        await posts.receive("one", native_id="1")
        await posts.until(lambda: posts.texts() == ["You said: one"])
        assert posts.texts() == ["You said: one"]
        assert await harness.records("notice") == []


def command(name: CommandName, posts: MemoryPosts, *, author: str = "ann") -> SessionCommand:
    return SessionCommand(
        message_id=f"m_{name}",
        native_id=f"c-{name}",
        thread=posts.thread(),
        author=Author(id=author),
        received_at=0.0,
        name=name,
    )


class _FailsOnce(SqliteStore):
    """Cannot commit the first turn of one chat, as on a full disk."""

    failed = False

    async def commit_turn(self, lease: Lease, commit: TurnCommit) -> Committed:
        if not self.failed and lease.thread.endswith(":c1"):
            self.failed = True
            raise StorageError("the disk is full")
        return await super().commit_turn(lease, commit)


async def test_a_command_that_is_done_again_after_one_in_another_chat_changes_nothing(tmp_path: Path) -> None:
    posts, clock = MemoryPosts(), ManualClock()
    store = _FailsOnce(tmp_path / "parlour.sqlite3", synchronous="NORMAL")
    first = command("voice", posts)
    second = replace(first, message_id="m_second", native_id="second", thread=posts.thread("c2"))
    speaker = ScriptedSpeaker()
    async with open_gateway(tmp_path, posts=posts, store=store, speaker=speaker, clock=clock) as harness:
        await posts.bring(first)
        await posts.until(lambda: store.failed)
        await posts.bring(second)
        await posts.until(lambda: posts.texts("c2") == ["Voice replies are off."])
        await clock.advance(5)
        await posts.until(lambda: posts.texts("c1") == ["Voice replies are off."])
        preferences = await harness.store.voices.preferences_of(speaker_of(posts.thread(), "ann"))
        assert preferences.reading.mode == "off"
