"""The language and the voice of an agent: its prompt, the hint for the recogniser, and reading aloud.

Covers: gateway/agents/speech_lookup.py, gateway/config/agent_speech.py, gateway/speech/speaker_language.py.
"""

from __future__ import annotations

from pathlib import Path

from tests.end_to_end.test_spoken import room_note
from tests.end_to_end.test_voice_replies import command
from tests.support.all_platforms import open_all_platforms
from tests.support.gateway_process import free_port
from tests.support.harness import open_gateway
from tests.support.posting_channel import MemoryPosts
from tests.support.web_client import WebChat
from voice.synthesis.scripted_synthesizer import ScriptedSpeaker
from voice.transcription.scripted_transcriber import ScriptedTranscriber

_DEFAULT = ('agent.language="de"', 'agent.voice="de_DE-anna-low"')
_SHOP = ('agents.shop.language="fr-ca"', 'agents.shop.voice="fr_FR-siwis-low"')
_TO_ANN = ('routes.1.agent="shop"', 'routes.1.person="ann"')


async def test_on_each_platform_an_agent_has_its_language_and_its_voice(tmp_path: Path) -> None:
    speaker = ScriptedSpeaker(languages=("fr", "de"))
    transcriber = ScriptedTranscriber(["bonjour"] * 3, language="fr")
    route = ('routes.1.agent="shop"', 'routes.1.kind="private"')
    settings = (*_DEFAULT, *_SHOP, *route)
    async with open_all_platforms(tmp_path, *settings, speaker=speaker, transcriber=transcriber) as place:
        for platform, chat in place.private():
            ann = platform.person("ann")
            await platform.say(chat, ann, "/voice")
            await platform.until(lambda: any("Voice replies are on" in t for t in platform.bot_texts(chat)))  # noqa: B023 - used before the next turn
            await platform.speak(chat, ann, b"OggS" + platform.name.encode(), mime="audio/ogg")
            await platform.until(lambda: any(one.voice and not one.author for one in platform.visible(chat)))  # noqa: B023 - as above
        llm = place.harness.llm
    assert [call.recording.likely_language for call in transcriber.calls] == ["fr"] * 3
    assert {(call.language, call.voice) for call in speaker.calls} == {("fr-CA", "fr_FR-siwis-low")}
    assert len(speaker.calls) == 3
    for request in llm.requests:
        assert (
            "Answer in French (fr-CA), unless the user writes in another language."
            in request.messages[0].content
        )


async def test_on_the_page_an_answer_is_read_in_the_voice_of_the_agent_that_gave_it(tmp_path: Path) -> None:
    speaker = ScriptedSpeaker(languages=("fr", "de"))
    port = free_port()
    web = ("channels.web.enabled=true", f"server.port={port}", 'routes.1.also=["shop"]')
    async with open_gateway(tmp_path, *_DEFAULT, *_SHOP, *web, speaker=speaker) as harness, WebChat() as page:
        token = (tmp_path / "web-token").read_text(encoding="ascii").strip()
        await page.connect(f"http://127.0.0.1:{port}", token)
        await page.send_text("1", "guten Tag")
        first = await page.answer(await page.accepted("1"))
        await page.send_text("2", "/agent shop")
        await page.accepted("2")
        await page.send_text("3", "bonjour")
        second = await page.answer(await page.accepted("3"))
        prompts = [request.messages[0].content for request in harness.llm.requests]
        for number, line in enumerate((first, second, first)):
            await page.listen(f"s{number}", line.entry_id)
    assert ["German" in prompt for prompt in prompts] == [True, False]
    assert ["French" in prompt for prompt in prompts] == [False, True]
    assert [(call.language, call.voice) for call in speaker.calls] == [
        ("de", "de_DE-anna-low"),
        ("fr-CA", "fr_FR-siwis-low"),
        ("de", "de_DE-anna-low"),
    ]


async def test_the_language_that_a_person_spoke_last_counts_before_the_agents(tmp_path: Path) -> None:
    posts, speaker = MemoryPosts(), ScriptedSpeaker(languages=("fr", "en"))
    transcriber = ScriptedTranscriber(["hello", "hello again"], language="en")
    settings = (*_DEFAULT, *_SHOP, *_TO_ANN)
    async with open_gateway(tmp_path, *settings, posts=posts, transcriber=transcriber, speaker=speaker):
        await posts.bring(command("voice", posts, author="ann"))
        for number in (1, 2):
            await posts.bring(room_note(posts, str(number), addressed=True, author="ann"))
            await posts.until(lambda: len(posts.voices) == number)  # noqa: B023 - used before the next turn
    assert [call.recording.likely_language for call in transcriber.calls] == ["fr", "en"]
    assert [(call.language, call.voice) for call in speaker.calls] == [("en", "fr_FR-siwis-low")] * 2
