"""Live speech at the gateway: from open microphones to messages, through crashes and crowds."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from adapters.channel import Acceptance
from gateway.speech.live_sessions import Accepting, LiveSettings
from gateway.storage.memory import MemoryStore
from gateway.storage.speech import SpeakerKey
from gateway.storage.sqlite import SqliteStore
from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import MediaUnavailable, StorageError
from pipeline.domain.ids import ThreadKey
from pipeline.domain.live import SpeechDropped, SpeechEnded, SpeechFinal, SpeechPartial, SpeechStarted
from pipeline.domain.messages import Author, BargeIn, Inbound, Speech
from tests.gateway.inbox_harness import open_inbox, place
from tests.gateway.live_speech_harness import ANN, BOB, HERE, open_live_speech
from tests.voice.live_harness import pause, speak
from voice.endpointing.flush_policy import FlushSettings
from voice.errors import TranscriberBusy

SENTENCE = "Turn on the lights in the kitchen, please."
WORDS = "the lights that are in the kitchen and the"


async def test_what_somebody_says_becomes_a_message_with_how_it_was_heard() -> None:
    async with open_live_speech(SENTENCE) as harness:
        microphone = await harness.open_stream()
        await harness.speak(microphone, 1.0, 2.0)
        [message] = harness.fake_inbox.messages
        assert (message.thread, message.author, message.text) == (HERE, ANN, SENTENCE)
        assert message.speech == Speech(language="en", confidence=0.9)
        assert message.native_id.startswith("speech:")
        assert harness.events == [
            SpeechStarted(utterance=1),
            SpeechEnded(utterance=1),
            SpeechPartial(utterance=1, text=SENTENCE, stable_chars=len(SENTENCE)),
            SpeechFinal(
                utterance=1, text=SENTENCE, language="en", confidence=0.9, message_id=message.message_id
            ),
        ]


async def test_the_next_utterance_has_the_next_number_and_the_language_that_was_spoken_last() -> None:
    store = MemoryStore()
    await store.open()
    async with open_live_speech(SENTENCE, SENTENCE, store=store) as harness:
        microphone = await harness.open_stream()
        await harness.speak(microphone, 1.0, 2.0)
        await harness.speak(microphone, 1.0, 2.0)
        assert [event.utterance for event in harness.events_of(SpeechFinal)] == [1, 2]
        speaker = SpeakerKey(channel="web", account="local", user="ann")
        assert (await store.voices.preferences_of(speaker)).language == "en"
        again = await harness.open_stream()
        await harness.speak(again, 1.0, 2.0)
        assert harness.scribe.recordings("final")[-1].likely_language == "en"


async def test_a_voice_that_continues_after_the_longest_time_begins_the_next_utterance() -> None:
    short = LiveSettings(flush=FlushSettings(max_s=4.0))
    partials = ["the old", "the old harbour", "the old harbour in", "the old harbour in the north"]
    async with open_live_speech(
        "and then we went to", "the end.", partials=partials, settings=short
    ) as harness:
        harness.answering.add(HERE.encode())
        microphone = await harness.open_stream()
        await harness.speak(microphone, 1.0, 1.0)
        await harness.speak(microphone, 4.0)
        final = harness.events.index(harness.events_of(SpeechFinal)[0])
        assert harness.events[final + 1] == SpeechStarted(utterance=2)
        assert isinstance(harness.events[final + 2], SpeechPartial)
        assert len([item for item in harness.fake_inbox.items if isinstance(item, BargeIn)]) == 2
        await pause(microphone.feed, harness.clock, 4.0)
        assert harness.fake_inbox.said == [("ann", "and then we went to"), ("ann", "the end.")]


async def test_two_people_who_talk_at_once_are_not_mixed() -> None:
    async with open_live_speech("I am Ann and", "I am Bob and", "this was Ann.", "this was Bob.") as harness:
        ann, bob = await harness.open_stream(ANN), await harness.open_stream(BOB)

        def both(pcm: bytes) -> None:
            ann.feed(pcm)
            bob.feed(pcm)

        for _ in range(2):
            await speak(both, harness.clock, 1.0)
            await pause(both, harness.clock, 1.0)
        await pause(both, harness.clock, 2.0)
        assert sorted(harness.fake_inbox.said) == [
            ("ann", "I am Ann and this was Ann."),
            ("bob", "I am Bob and this was Bob."),
        ]
        assert len({recording.speaker for recording in harness.scribe.recordings("final")}) == 2


async def test_speaking_stops_the_answer_at_once_and_quietly_where_one_is_being_given() -> None:
    async with open_live_speech(SENTENCE, SENTENCE) as harness:
        microphone = await harness.open_stream()
        await harness.speak(microphone, 0.5, 2.0)
        assert not [item for item in harness.fake_inbox.items if isinstance(item, BargeIn)]
        harness.answering.add(HERE.encode())
        before = harness.clock.monotonic()
        while not (stops := [item for item in harness.fake_inbox.items if isinstance(item, BargeIn)]):
            await harness.speak(microphone, 0.032)
            await harness.clock.advance(0.0)
            assert harness.clock.monotonic() - before < 0.3
        [stop] = stops
        assert (stop.thread, stop.author) == (HERE, ANN)
        harness.answering.clear()
        await harness.speak(microphone, 0.5, 2.0)
        assert len(harness.fake_inbox.said) == 2


async def test_dictation_that_a_crash_broke_off_arrives_exactly_once(tmp_path: Path) -> None:
    clock = ManualClock()
    thread = place()
    async with open_inbox(tmp_path / "inbox.sqlite3", clock=clock) as receiving:
        async with open_live_speech(
            WORDS, store=receiving.store, inbox=receiving.inbox, clock=clock, crashes=True
        ) as harness:
            microphone = await harness.service.open(thread, Author(id="1"), on_event=harness.events.append)
            await harness.speak(microphone, 1.0, 1.0)
            await _kept(receiving.store)
        assert await _queued(receiving.store, thread) == []
        for _ in range(2):
            async with open_live_speech(store=receiving.store, inbox=receiving.inbox, clock=clock):
                await clock.advance(5.0)
        assert await _queued(receiving.store, thread) == [WORDS]
        [entry] = await receiving.store.open_entries(thread.encode())
        speech = entry.body["speech"]
        assert (speech["language"], speech["confidence"]) == ("en", 0.9), "or it is never asked back"


async def test_a_crash_between_the_message_and_its_buffer_brings_no_second_message(tmp_path: Path) -> None:
    clock = ManualClock()
    thread = place()
    async with open_inbox(tmp_path / "inbox.sqlite3", clock=clock) as receiving:
        dying = Dying(receiving.inbox)
        async with open_live_speech(
            SENTENCE, store=receiving.store, inbox=dying, clock=clock, crashes=True
        ) as harness:
            microphone = await harness.service.open(thread, Author(id="1"), on_event=harness.events.append)
            await harness.speak(microphone, 1.0, 1.0)
            async with asyncio.timeout(60):
                await dying.dead.wait()
        async with open_live_speech(store=receiving.store, inbox=receiving.inbox, clock=clock):
            await clock.advance(5.0)
        assert await _queued(receiving.store, thread) == [SENTENCE]


async def test_speech_that_the_store_cannot_take_is_a_message_when_it_can() -> None:
    async with open_live_speech(SENTENCE) as harness:
        harness.fake_inbox.fails = 2
        microphone = await harness.open_stream()
        await harness.speak(microphone, 1.0, 1.0)
        assert not harness.events_of(SpeechFinal)
        await pause(microphone.feed, harness.clock, 5.0)
        [final] = harness.events_of(SpeechFinal)
        assert isinstance(final, SpeechFinal)
        assert final.confidence == 0.9
        assert harness.fake_inbox.said == [("ann", SENTENCE)]


async def test_a_refused_message_gets_the_reason_of_the_inbox() -> None:
    async with open_live_speech(SENTENCE) as harness:
        harness.fake_inbox.refusal = "Too many of your messages are still waiting."
        microphone = await harness.open_stream()
        await harness.speak(microphone, 1.0, 2.0)
        assert harness.events[-1] == SpeechDropped(
            utterance=1, reason="refused", message="Too many of your messages are still waiting."
        )


async def test_words_that_were_lost_among_others_have_a_separate_number() -> None:
    busy = TranscriberBusy("Too much at once.")
    async with open_live_speech(WORDS, busy, busy) as harness:
        microphone = await harness.open_stream()
        await harness.speak(microphone, 1.0, 1.0)
        await harness.speak(microphone, 1.0, 4.0)
        assert harness.events_of(SpeechDropped) == [
            SpeechDropped(utterance=2, reason="busy", message="Too much at once.")
        ]
        assert [event.utterance for event in harness.events_of(SpeechFinal)] == [1]
        assert harness.fake_inbox.said == [("ann", WORDS)]


async def test_who_opens_a_second_microphone_closes_the_first_and_loses_no_words() -> None:
    async with open_live_speech(WORDS) as harness:
        first = await harness.open_stream()
        await harness.speak(first, 1.0)

        async def reopen() -> None:
            await harness.open_stream()

        await harness.until_done(reopen())
        assert harness.fake_inbox.said == [("ann", WORDS)]
        assert isinstance(harness.events[-1], SpeechDropped)
        assert "another window" in harness.events[-1].message
        with pytest.raises(MediaUnavailable, match="another window"):
            first.feed(b"\0\0")


async def test_only_so_many_people_talk_at_the_same_time() -> None:
    async with open_live_speech(settings=LiveSettings(max_streams=2)) as harness:
        ann = await harness.open_stream(ANN)
        await harness.open_stream(BOB)
        with pytest.raises(MediaUnavailable, match="Too many people"):
            await harness.open_stream(Author(id="cat"))
        await ann.close()
        await harness.open_stream(Author(id="cat"))


async def test_a_microphone_that_no_one_speaks_into_is_closed_and_says_so() -> None:
    async with open_live_speech() as harness:
        microphone = await harness.open_stream()
        await harness.clock.advance(599.0)
        microphone.feed(b"\0\0")
        await harness.clock.advance(3.0)
        [dropped] = harness.events_of(SpeechDropped)
        assert isinstance(dropped, SpeechDropped)
        assert "No one has spoken for 10 min" in dropped.message
        with pytest.raises(MediaUnavailable, match="10 min"):
            microphone.feed(b"\0\0")


async def test_speech_is_over_where_the_sound_itself_stops() -> None:
    async with open_live_speech(SENTENCE) as harness:
        microphone = await harness.open_stream()
        await harness.speak(microphone, 1.0)
        await harness.clock.advance(4.0)
        assert harness.fake_inbox.said == [("ann", SENTENCE)]


async def test_no_microphone_is_opened_where_it_is_switched_off_or_no_one_listens() -> None:
    async with open_live_speech(settings=LiveSettings(enabled=False)) as harness:
        with pytest.raises(MediaUnavailable, match="switched off"):
            await harness.open_stream()
    async with open_live_speech() as harness:
        harness.detector.refusal = "It does not start."
        with pytest.raises(MediaUnavailable, match="It does not start"):
            await harness.open_stream()
        harness.detector.refusal = ""
        await harness.open_stream()


async def test_a_microphone_without_recognition_says_so_and_refuses_sound() -> None:
    async with open_live_speech() as harness:
        microphone = await harness.open_stream()
        harness.detector.refusal = "It does not start again."
        harness.detector.streams[0].lose()
        await harness.clock.advance(0.1)
        [dropped] = harness.events_of(SpeechDropped)
        assert isinstance(dropped, SpeechDropped)
        assert (dropped.reason, dropped.message) == ("unavailable", "It does not start again.")
        with pytest.raises(MediaUnavailable, match="Open the microphone again"):
            microphone.feed(b"\0\0")


async def test_a_gateway_that_ends_makes_messages_of_what_was_said() -> None:
    async with open_live_speech(WORDS) as harness:
        microphone = await harness.open_stream()
        await harness.speak(microphone, 1.0)
        await harness.until_done(harness.service.close())
        assert harness.fake_inbox.said == [("ann", WORDS)]
        with pytest.raises(MediaUnavailable, match="shutting down"):
            await harness.open_stream()


@dataclass(slots=True)
class Dying:
    """An inbox whose process dies right after it has accepted."""

    inbox: Accepting
    dead: asyncio.Event = field(default_factory=asyncio.Event)

    async def accept(self, item: Inbound) -> Acceptance:
        await self.inbox.accept(item)
        self.dead.set()
        raise StorageError("the process is gone")


async def _queued(store: SqliteStore, thread: ThreadKey) -> list[str]:
    return [str(entry.body["text"]) for entry in await store.open_entries(thread.encode())]


async def _kept(store: SqliteStore) -> None:
    """Wait until speech is on the disk."""
    async with asyncio.timeout(60):
        while not await store.voices.buffers():
            pass


async def test_words_show_while_somebody_speaks_and_are_a_message_within_a_second_after_the_pause() -> None:
    partials = ["Turn on", "Turn on the lights"]
    async with open_live_speech(SENTENCE, partials=partials) as harness:
        harness.scribe.takes_s = 0.9
        microphone = await harness.open_stream()
        await harness.speak(microphone, 4.0)
        shown = harness.events_of(SpeechPartial)
        assert [event.text for event in shown if isinstance(event, SpeechPartial)] == partials
        assert not harness.events_of(SpeechEnded)
        silence = harness.clock.monotonic()
        while not harness.fake_inbox.messages:
            await pause(microphone.feed, harness.clock, 0.032)
        assert harness.clock.monotonic() - silence <= LiveSettings().commit_s + 1.0
