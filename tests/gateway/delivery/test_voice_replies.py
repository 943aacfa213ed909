"""From an answer to a voice message: which words, which language, and what is said when it does not work."""

from __future__ import annotations

import pytest

from adapters.channel import ReadAloud
from gateway.speech.read_aloud import AnswerReader, OwnReader
from gateway.storage.memory import MemoryStore
from gateway.storage.speech import SpeakerKey
from pipeline.domain.errors import MediaUnavailable
from voice.errors import SpeakerUnavailable
from voice.synthesis.scripted_synthesizer import ScriptedSpeaker, SpokenCall

OWNER = SpeakerKey(channel="web", account="local", user="owner")


async def test_an_answer_is_read_without_its_markup_in_the_language_of_its_reader() -> None:
    speaker = ScriptedSpeaker(languages=("en", "de"))
    reader: ReadAloud = AnswerReader(speaker)
    clip = await reader.read("# Hallo\n\n**Welt**", language="de")
    assert speaker.calls == [SpokenCall(text="Hallo.\nWelt.", language="de")]
    assert clip.mime == "audio/ogg"
    assert clip.data.startswith(b"OggS")
    assert clip.seconds == pytest.approx(0.8)
    assert 0 < len(clip.waveform) <= 256


async def test_an_unknown_language_is_english_if_it_is_written_so() -> None:
    speaker = ScriptedSpeaker()
    reader = AnswerReader(speaker)
    await reader.read("Hello, naïve Ünal.")
    assert speaker.calls[0].language == "en"
    with pytest.raises(MediaUnavailable, match="no voice here for the language"):
        await reader.read("Привет, как дела? OK.")
    assert len(speaker.calls) == 1


async def test_a_language_without_a_voice_is_not_read_by_another_voice() -> None:
    speaker = ScriptedSpeaker()
    with pytest.raises(MediaUnavailable, match="no voice here for the language"):
        await AnswerReader(speaker).read("Guten Tag.", language="de")
    assert speaker.calls == []


async def test_what_has_no_words_is_not_read() -> None:
    with pytest.raises(MediaUnavailable, match="nothing in this answer"):
        await AnswerReader(ScriptedSpeaker()).read("🎉")


async def test_the_reason_of_a_speaker_that_fails_is_for_the_log_and_not_for_people(
    caplog: pytest.LogCaptureFixture,
) -> None:
    speaker = ScriptedSpeaker(failures=[SpeakerUnavailable("[Errno 2] /srv/voices/en.onnx")])
    with pytest.raises(MediaUnavailable) as reported:
        await AnswerReader(speaker).read("Hello.")
    assert str(reported.value) == "This answer could not be read aloud. It is there in writing."
    assert [record.__dict__["reason"] for record in caplog.records] == ["[Errno 2] /srv/voices/en.onnx"]


async def test_the_page_reads_in_the_language_that_its_owner_spoke_last() -> None:
    store = MemoryStore()
    await store.open()
    speaker = ScriptedSpeaker(languages=("en", "de"))
    reader: ReadAloud = OwnReader(AnswerReader(speaker), store.voices, OWNER)
    await reader.read("Good day.")
    await store.voices.remember_language(OWNER, "de")
    await reader.read("Guten Tag.")
    await reader.read("Good day.", language="en")
    assert [call.language for call in speaker.calls] == ["en", "de", "en"]
