"""From an answer to a voice message: which words, which language, and what is said when it does not work."""

from __future__ import annotations

import pytest

from adapters.channel import ReadAloud
from gateway.agents.routes import AgentRoutes
from gateway.agents.speech_lookup import SpeechLookup
from gateway.config import DEFAULT_AGENT, AgentSpeech
from gateway.speech.read_aloud import AnswerReader, OwnReader
from gateway.storage.memory import MemoryStore
from gateway.storage.speech import SpeakerKey
from pipeline.domain.errors import MediaUnavailable, StorageError
from pipeline.domain.ids import ThreadKey
from voice.errors import SpeakerUnavailable
from voice.synthesis.scripted_synthesizer import ScriptedSpeaker, SpokenCall

OWNER = SpeakerKey(channel="web", account="local", user="owner")
THREAD = ThreadKey(channel="web", account="local", chat="c_1")


async def test_an_answer_is_read_without_its_markup_in_the_language_of_its_reader() -> None:
    speaker = ScriptedSpeaker(languages=("en", "de"))
    reader = AnswerReader(speaker)
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


async def test_the_page_reads_in_the_language_that_its_owner_spoke_last_else_in_the_agents() -> None:
    store = MemoryStore()
    await store.open()
    speaker = ScriptedSpeaker(languages=("en", "de", "fr"))
    agents = {"m_1": AgentSpeech(), "m_2": AgentSpeech(language="fr", voice="fr_FR-siwis-low")}

    async def speech_of(
        thread: ThreadKey, author: str, *, private: bool, message_id: str = ""
    ) -> AgentSpeech:
        assert (thread, author, private) == (THREAD, OWNER.user, True)
        return agents[message_id]

    reader: ReadAloud = OwnReader(AnswerReader(speaker), store.voices, lambda _thread: OWNER, speech_of)
    await reader.read("Good day.", thread=THREAD, message_id="m_1")
    await reader.read("Bonjour.", thread=THREAD, message_id="m_2")
    await store.voices.remember_language(OWNER, "de")
    await reader.read("Guten Tag.", thread=THREAD, message_id="m_1")
    await reader.read("Guten Tag.", thread=THREAD, message_id="m_2")
    assert [(call.language, call.voice) for call in speaker.calls] == [
        ("en", ""),
        ("fr", "fr_FR-siwis-low"),
        ("de", ""),
        ("de", "fr_FR-siwis-low"),
    ]


async def test_the_page_reads_although_the_store_does_not_answer() -> None:
    store = MemoryStore()
    speaker = ScriptedSpeaker(languages=("en", "de"))
    # A store that is not open fails at each call.
    agents = {DEFAULT_AGENT: AgentSpeech(language="de"), "shop": AgentSpeech()}
    speech_of = SpeechLookup(agents, AgentRoutes(), store)
    with pytest.raises(StorageError):
        await store.current_session(THREAD.encode())

    await OwnReader(AnswerReader(speaker), store.voices, lambda _thread: OWNER, speech_of).read(
        "Good day.", thread=THREAD, message_id="m_1"
    )
    assert speaker.calls == [SpokenCall(text="Good day.", language="en")]
