"""`/voice`: what each word changes, and what the person reads about it."""

from __future__ import annotations

import pytest

from gateway.speech.speaker_language import speaker_of
from gateway.storage.memory import MemoryStore
from gateway.storage.speech import ReadAloudWishes
from gateway.turns.voice_command import NO_VOICE_TEXT, VOICE_OFF_TEXT, VoiceCommand, wished
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Author, SessionCommand, parse_command
from tests.support.tables import each

OFF, ON, AUTO = (ReadAloudWishes(), ReadAloudWishes(mode="on"), ReadAloudWishes(mode="auto"))
THREAD = ThreadKey(channel="telegram", account="main", chat="1001")


class VoiceHarness:
    """The command of one person, where answers can be read aloud or not."""

    def __init__(self, *, can_speak: bool = True) -> None:
        self.store = MemoryStore()
        self._command = VoiceCommand(self.store.voices, lambda _thread: can_speak)
        self._sent = 0

    async def say(self, text: str, message_id: str = "") -> str:
        self._sent += 1
        parsed = parse_command(text)
        assert parsed is not None
        command = SessionCommand(
            message_id=message_id or f"m_{self._sent}",
            native_id=f"n_{self._sent}",
            thread=THREAD,
            author=Author(id="ann"),
            received_at=0.0,
            name=parsed.name,
            argument=parsed.argument,
        )
        return await self._command.run(command)

    async def wishes(self) -> ReadAloudWishes:
        return (await self.store.voices.preferences_of(speaker_of(THREAD, "ann"))).reading


@pytest.fixture
async def voice() -> VoiceHarness:
    harness = VoiceHarness()
    await harness.store.open()
    return harness


@each(
    "before, words, after",
    [
        (OFF, "", ON),
        (ON, "", OFF),
        (AUTO, "", OFF),
        (OFF, "auto", AUTO),
        (ON, "auto", AUTO),
        (AUTO, "on", ON),
        (ON, "off", OFF),
        (OFF, "off", OFF),
        (OFF, "slow", ReadAloudWishes(mode="on", speed=0.8)),
        (AUTO, "fast short", ReadAloudWishes(mode="auto", speed=1.25, brief=True)),
        (ReadAloudWishes(mode="on", speed=1.25, brief=True), "normal long", ON),
        (ReadAloudWishes(mode="on", speed=1.25, brief=True), "", ReadAloudWishes(speed=1.25, brief=True)),
        (OFF, "off fast", ReadAloudWishes(speed=1.25)),
    ],
)
def test_words_change_what_they_name_and_nothing_else(
    before: ReadAloudWishes, words: str, after: ReadAloudWishes
) -> None:
    assert wished(before, words.split()) == after


async def test_the_line_says_how_answers_are_read(voice: VoiceHarness) -> None:
    said = await voice.say("/voice AUTO fast short")
    assert said.startswith("Voice replies are automatic: ")
    assert "I speak fast. Of long answers I read the beginning." in said
    assert await voice.wishes() == ReadAloudWishes(mode="auto", speed=1.25, brief=True)


async def test_a_word_that_it_does_not_know_changes_nothing(voice: VoiceHarness) -> None:
    assert (await voice.say("/voice auto `loud`")).endswith("not `'loud'`.")
    assert await voice.wishes() == OFF


async def test_a_command_that_is_repeated_after_a_crash_changes_nothing(voice: VoiceHarness) -> None:
    first = await voice.say("/voice", "m_same")
    assert await voice.say("/voice", "m_same") == first
    assert await voice.wishes() == ON


async def test_where_no_one_can_speak_it_can_only_be_turned_off() -> None:
    mute = VoiceHarness(can_speak=False)
    await mute.store.open()
    assert await mute.say("/voice auto") == NO_VOICE_TEXT
    assert await mute.say("/voice off") == VOICE_OFF_TEXT
