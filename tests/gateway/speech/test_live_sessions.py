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
from pipeline.domain.messages import Author, Inbound, SessionCommand, Speech
from tests.gateway.inbox_harness import open_door, place
from tests.gateway.live_speech_harness import ANN, BOB, HERE, open_room
from tests.voice.live_harness import pause, speak
from voice.endpointing.flush_policy import FlushSettings
from voice.errors import TranscriberBusy

SENTENCE = "Turn on the lights in the kitchen, please."
WORDS = "the lights that are in the kitchen and the"


async def test_what_somebody_says_becomes_a_message_with_how_it_was_heard() -> None:
    async with open_room(SENTENCE) as room:
        microphone = await room.sit()
        await room.hear(microphone, 1.0, 2.0)
        [message] = room.letterbox.messages
        assert (message.thread, message.author, message.text) == (HERE, ANN, SENTENCE)
        assert message.speech == Speech(language="en", confidence=0.9)
        assert message.native_id.startswith("speech:")
        assert room.events == [
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
    async with open_room(SENTENCE, SENTENCE, store=store) as room:
        microphone = await room.sit()
        await room.hear(microphone, 1.0, 2.0)
        await room.hear(microphone, 1.0, 2.0)
        assert [event.utterance for event in room.told(SpeechFinal)] == [1, 2]
        speaker = SpeakerKey(channel="web", account="local", user="ann")
        assert (await store.voices.preferences_of(speaker)).language == "en"
        again = await room.sit()
        await room.hear(again, 1.0, 2.0)
        assert room.scribe.recordings("final")[-1].likely_language == "en"


async def test_a_voice_that_goes_on_after_the_longest_time_begins_the_next_utterance() -> None:
    short = LiveSettings(flush=FlushSettings(max_s=4.0))
    partials = ["the old", "the old harbour", "the old harbour in", "the old harbour in the north"]
    async with open_room("and then we went to", "the end.", partials=partials, settings=short) as room:
        room.answering.add(HERE.encode())
        microphone = await room.sit()
        await room.hear(microphone, 1.0, 1.0)
        await room.hear(microphone, 4.0)
        final = room.events.index(room.told(SpeechFinal)[0])
        assert room.events[final + 1] == SpeechStarted(utterance=2)
        assert isinstance(room.events[final + 2], SpeechPartial)
        assert len([item for item in room.letterbox.items if isinstance(item, SessionCommand)]) == 2
        await pause(microphone.feed, room.clock, 4.0)
        assert room.letterbox.said == [("ann", "and then we went to"), ("ann", "the end.")]


async def test_two_people_who_talk_at_once_are_not_mixed() -> None:
    async with open_room("I am Ann and", "I am Bob and", "this was Ann.", "this was Bob.") as room:
        ann, bob = await room.sit(ANN), await room.sit(BOB)

        def both(pcm: bytes) -> None:
            ann.feed(pcm)
            bob.feed(pcm)

        for _ in range(2):
            await speak(both, room.clock, 1.0)
            await pause(both, room.clock, 1.0)
        await pause(both, room.clock, 2.0)
        assert sorted(room.letterbox.said) == [
            ("ann", "I am Ann and this was Ann."),
            ("bob", "I am Bob and this was Bob."),
        ]
        assert len({recording.speaker for recording in room.scribe.recordings("final")}) == 2


async def test_speaking_stops_the_answer_at_once_and_quietly_where_one_is_being_given() -> None:
    async with open_room(SENTENCE, SENTENCE) as room:
        microphone = await room.sit()
        await room.hear(microphone, 0.5, 2.0)
        assert not [item for item in room.letterbox.items if isinstance(item, SessionCommand)]
        room.answering.add(HERE.encode())
        before = room.clock.monotonic()
        while not (stops := [item for item in room.letterbox.items if isinstance(item, SessionCommand)]):
            await room.hear(microphone, 0.032)
            await room.clock.advance(0.0)
            assert room.clock.monotonic() - before < 0.3
        [stop] = stops
        assert (stop.name, stop.quiet, stop.thread, stop.author) == ("stop", True, HERE, ANN)
        room.answering.clear()
        await room.hear(microphone, 0.5, 2.0)
        assert len(room.letterbox.said) == 2


async def test_dictation_that_a_crash_broke_off_arrives_exactly_once(tmp_path: Path) -> None:
    clock = ManualClock()
    thread = place()
    async with open_door(tmp_path / "door.sqlite3", clock=clock) as door:
        async with open_room(WORDS, store=door.store, inbox=door.inbox, clock=clock, crashes=True) as room:
            microphone = await room.desk.open(thread, Author(id="1"), on_event=room.events.append)
            await room.hear(microphone, 1.0, 1.0)
            await _kept(door.store)
        assert await _queued(door.store, thread) == []
        for _ in range(2):
            async with open_room(store=door.store, inbox=door.inbox, clock=clock):
                await clock.advance(5.0)
        assert await _queued(door.store, thread) == [WORDS]
        [entry] = await door.store.open_entries(thread.encode())
        assert entry.body["speech"] == {"language": "en", "confidence": 0.9}, "or it is never asked back"


async def test_a_crash_between_the_message_and_its_buffer_brings_no_second_message(tmp_path: Path) -> None:
    clock = ManualClock()
    thread = place()
    async with open_door(tmp_path / "door.sqlite3", clock=clock) as door:
        dying = Dying(door.inbox)
        async with open_room(SENTENCE, store=door.store, inbox=dying, clock=clock, crashes=True) as room:
            microphone = await room.desk.open(thread, Author(id="1"), on_event=room.events.append)
            await room.hear(microphone, 1.0, 1.0)
            async with asyncio.timeout(60):
                await dying.dead.wait()
        async with open_room(store=door.store, inbox=door.inbox, clock=clock):
            await clock.advance(5.0)
        assert await _queued(door.store, thread) == [SENTENCE]


async def test_speech_that_the_store_cannot_take_is_a_message_when_it_can() -> None:
    async with open_room(SENTENCE) as room:
        room.letterbox.fails = 2
        microphone = await room.sit()
        await room.hear(microphone, 1.0, 1.0)
        assert not room.told(SpeechFinal)
        await pause(microphone.feed, room.clock, 5.0)
        [final] = room.told(SpeechFinal)
        assert isinstance(final, SpeechFinal)
        assert final.confidence == 0.9
        assert room.letterbox.said == [("ann", SENTENCE)]


async def test_a_refused_message_is_told_in_the_words_of_the_door() -> None:
    async with open_room(SENTENCE) as room:
        room.letterbox.refusal = "Too many of your messages are still waiting."
        microphone = await room.sit()
        await room.hear(microphone, 1.0, 2.0)
        assert room.events[-1] == SpeechDropped(
            utterance=1, reason="refused", message="Too many of your messages are still waiting."
        )


async def test_words_that_were_lost_among_others_have_a_number_of_their_own() -> None:
    busy = TranscriberBusy("Too much at once.")
    async with open_room(WORDS, busy, busy) as room:
        microphone = await room.sit()
        await room.hear(microphone, 1.0, 1.0)
        await room.hear(microphone, 1.0, 4.0)
        assert room.told(SpeechDropped) == [
            SpeechDropped(utterance=2, reason="busy", message="Too much at once.")
        ]
        assert [event.utterance for event in room.told(SpeechFinal)] == [1]
        assert room.letterbox.said == [("ann", WORDS)]


async def test_who_opens_a_second_microphone_closes_the_first_and_loses_no_words() -> None:
    async with open_room(WORDS) as room:
        first = await room.sit()
        await room.hear(first, 1.0)

        async def reopen() -> None:
            await room.sit()

        await room.until_done(reopen())
        assert room.letterbox.said == [("ann", WORDS)]
        assert isinstance(room.events[-1], SpeechDropped)
        assert "another window" in room.events[-1].message
        with pytest.raises(MediaUnavailable, match="another window"):
            first.feed(b"\0\0")


async def test_only_so_many_people_talk_at_the_same_time() -> None:
    async with open_room(settings=LiveSettings(max_streams=2)) as room:
        ann = await room.sit(ANN)
        await room.sit(BOB)
        with pytest.raises(MediaUnavailable, match="Too many people"):
            await room.sit(Author(id="cat"))
        await ann.close()
        await room.sit(Author(id="cat"))


async def test_a_microphone_that_nobody_speaks_into_is_closed_and_says_so() -> None:
    async with open_room() as room:
        microphone = await room.sit()
        await room.clock.advance(599.0)
        microphone.feed(b"\0\0")
        await room.clock.advance(3.0)
        [dropped] = room.told(SpeechDropped)
        assert isinstance(dropped, SpeechDropped)
        assert "Nobody has spoken for 10 min" in dropped.message
        with pytest.raises(MediaUnavailable, match="10 min"):
            microphone.feed(b"\0\0")


async def test_speech_is_over_where_the_sound_itself_stops() -> None:
    async with open_room(SENTENCE) as room:
        microphone = await room.sit()
        await room.hear(microphone, 1.0)
        await room.clock.advance(4.0)
        assert room.letterbox.said == [("ann", SENTENCE)]


async def test_no_microphone_is_opened_where_it_is_switched_off_or_nobody_listens() -> None:
    async with open_room(settings=LiveSettings(enabled=False)) as room:
        with pytest.raises(MediaUnavailable, match="switched off"):
            await room.sit()
    async with open_room() as room:
        room.detector.refusal = "It does not start."
        with pytest.raises(MediaUnavailable, match="It does not start"):
            await room.sit()
        room.detector.refusal = ""
        await room.sit()


async def test_a_microphone_without_ears_says_so_and_refuses_sound() -> None:
    async with open_room() as room:
        microphone = await room.sit()
        room.detector.refusal = "It does not start again."
        room.detector.streams[0].lose()
        await room.clock.advance(0.1)
        [dropped] = room.told(SpeechDropped)
        assert isinstance(dropped, SpeechDropped)
        assert (dropped.reason, dropped.message) == ("unavailable", "It does not start again.")
        with pytest.raises(MediaUnavailable, match="Open the microphone again"):
            microphone.feed(b"\0\0")


async def test_a_gateway_that_ends_makes_messages_of_what_was_said() -> None:
    async with open_room(WORDS) as room:
        microphone = await room.sit()
        await room.hear(microphone, 1.0)
        await room.until_done(room.desk.close())
        assert room.letterbox.said == [("ann", WORDS)]
        with pytest.raises(MediaUnavailable, match="shutting down"):
            await room.sit()


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
    async with open_room(SENTENCE, partials=partials) as room:
        room.scribe.takes_s = 0.9
        microphone = await room.sit()
        await room.hear(microphone, 4.0)
        shown = room.told(SpeechPartial)
        assert [event.text for event in shown if isinstance(event, SpeechPartial)] == partials
        assert not room.told(SpeechEnded)
        silence = room.clock.monotonic()
        while not room.letterbox.messages:
            await pause(microphone.feed, room.clock, 0.032)
        assert room.clock.monotonic() - silence <= LiveSettings().commit_s + 1.0
