"""Real speech through every channel, in the container that the platform sends, heard by the real Whisper.

What is heard is compared with bare faster-whisper hearing the same bytes with the same model.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import pytest
import pytest_asyncio

from bench.voice_raw import Raw, raw_recogniser
from tests.support.gateway_process import free_port
from tests.support.models import require_models
from tests.support.platforms.platform import FakePlatform, Place
from tests.support.town import Town, town
from tests.support.web_client import WebChat
from tests.voice.clips import CLIPS, samples_of
from tests.voice.notes import note
from tests.voice.sounds import music, pink_noise
from voice.settings import VoiceSettings
from voice.wer import normalised_words, word_error_rate
from voice.worker import WhisperTranscriber

pytestmark = [pytest.mark.models, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(900)]

SPOKEN = ("lv_0890", "jfk")
DEAF = "I could not hear any words"
ANSWER = "You said: "
SILENCES: dict[str, Callable[[], bytes]] = {
    "silence": lambda: samples_of(CLIPS["silence"]),
    "noise": pink_noise,
    "music": music,
}
# Telegram calls what its own client records `voice`, and a file with sound in it `audio`.
AUDIO_FILES = {"wav": "audio/x-wav", "mp3": "audio/mpeg", "amr": "audio/amr", "flac": "audio/flac"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """The gateway on all channels, and the bare recogniser beside it."""

    town: Town
    raw: Raw
    token: str
    heard: dict[bytes, str] = field(default_factory=dict)
    """What the bare recogniser has heard: Telegram's notes are Discord's, too."""

    async def allowed_errors(self, notes: dict[str, bytes]) -> float:
        """The bare recogniser's word error rate on these notes, by clip, and 0.02."""
        for data in notes.values():
            if data not in self.heard:
                self.heard[data] = (await self.raw.hear(data)).text
        return _rate({name: self.heard[data] for name, data in notes.items()}) + 0.02


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Scene]:
    models = require_models()
    folder = tmp_path_factory.mktemp("town")
    web = ("channels.web.enabled=true", f"server.port={free_port()}")
    ears = WhisperTranscriber(VoiceSettings(model_dir=models / "whisper-base"))
    async with raw_recogniser(models / "whisper-base") as raw, town(folder, *web, transcriber=ears) as place:
        token = (folder / "data" / "web-token").read_text(encoding="ascii").strip()
        yield Scene(town=place, raw=raw, token=token)


def _rate(heard: dict[str, str]) -> float:
    """Errors over all words of the clips."""
    words = {name: len(normalised_words(CLIPS[name].transcript)) for name in heard}
    errors = sum(word_error_rate(CLIPS[name].transcript, text) * words[name] for name, text in heard.items())
    return errors / sum(words.values())


async def _answered(platform: FakePlatform, chat: Place, number: int) -> str:
    """The bot's text number `number` in a chat, once it is the whole one."""
    await platform.until(
        lambda: len(texts := platform.bot_texts(chat)) == number and _is_whole(texts[-1]), timeout_s=200
    )
    return platform.bot_texts(chat)[-1]


def _is_whole(text: str) -> bool:
    """What was heard, and then the echo of all of it; or that nothing was heard."""
    shown, found, echoed = text.partition(ANSWER)
    return DEAF in text or (bool(found) and normalised_words(echoed) == normalised_words(shown))


def _heard(text: str) -> str:
    """The words of an answer's quotation. It stands above the answer, which says them again."""
    shown, found, _ = text.partition(ANSWER)
    assert found, text
    return shown


async def _spoken_to(
    platform: FakePlatform, notes: dict[str, bytes], mime: str, person: str
) -> dict[str, str]:
    """Sends each note as the platform's own voice note; what the chat then shows as heard."""
    somebody = platform.person(person)
    chat = platform.private_chat(somebody)
    heard: dict[str, str] = {}
    for number, (name, data) in enumerate(notes.items(), start=1):
        await platform.speak(chat, somebody, data, mime=mime)
        heard[name] = _heard(await _answered(platform, chat, number))
    return heard


@pytest.mark.parametrize(
    ("channel", "kind", "mime"),
    [("telegram", "ogg", "audio/ogg"), ("slack", "m4a", "audio/mp4"), ("discord", "ogg", "audio/ogg")],
)
async def test_a_note_of_the_platforms_own_kind_is_heard_as_well_as_by_bare_whisper(
    scene: Scene, channel: str, kind: str, mime: str
) -> None:
    (platform,) = [one for one in scene.town.platforms if one.name == channel]
    notes = {name: note(samples_of(CLIPS[name]), kind) for name in SPOKEN}
    heard = await _spoken_to(platform, notes, mime, "ann")
    assert _rate(heard) <= await scene.allowed_errors(notes), heard


async def test_a_browsers_recording_is_heard_as_well_as_by_bare_whisper(scene: Scene) -> None:
    notes = {name: note(samples_of(CLIPS[name]), "webm") for name in SPOKEN}
    async with WebChat() as chat:
        await chat.connect(scene.town.house.gateway.url, scene.token)
        heard: dict[str, str] = {}
        for name, data in notes.items():
            await chat.send_voice(name, data, mime="audio/webm")
            message_id = await chat.accepted(name)
            answer = await chat.answer(message_id)
            (said,) = {line.text for line in chat.seen.lines_of(message_id, "user") if line.text}
            assert normalised_words(answer.text) == normalised_words(ANSWER + said)
            heard[name] = said
    assert _rate(heard) <= await scene.allowed_errors(notes), heard


@pytest.mark.parametrize("kind", sorted(AUDIO_FILES))
async def test_a_file_with_speech_in_it_is_heard_as_well_as_by_bare_whisper(scene: Scene, kind: str) -> None:
    telegram = scene.town.telegram
    ben = telegram.person(f"ben {kind}")
    chat = telegram.private_chat(ben)
    data = note(samples_of(CLIPS["lv_0890"]), kind)
    telegram.send(chat, ben, "audio", data, duration=5, mime_type=AUDIO_FILES[kind], file_name=f"a.{kind}")
    heard = {"lv_0890": _heard(await _answered(telegram, chat, 1))}
    assert _rate(heard) <= await scene.allowed_errors({"lv_0890": data}), heard


@pytest.mark.parametrize("sound", sorted(SILENCES))
async def test_where_nobody_speaks_every_channel_says_so_and_the_model_is_not_asked(
    scene: Scene, sound: str
) -> None:
    asked = len(scene.town.house.llm.requests)
    for platform, kind, mime in (
        (scene.town.telegram, "ogg", "audio/ogg"),
        (scene.town.slack, "m4a", "audio/mp4"),
        (scene.town.discord, "ogg", "audio/ogg"),
    ):
        eve = platform.person(f"eve {sound}")
        chat = platform.private_chat(eve)
        await platform.speak(chat, eve, note(SILENCES[sound](), kind), mime=mime)
        assert DEAF in await _answered(platform, chat, 1)
    async with WebChat() as chat_page:
        await chat_page.connect(scene.town.house.gateway.url, scene.token)
        await chat_page.send_voice("v", note(SILENCES[sound](), "webm"), mime="audio/webm")
        message_id = await chat_page.accepted("v")
        ended = await chat_page.terminal(message_id)
        assert (ended.type, ended.code) == ("error", "nothing_heard")
        assert DEAF in ended.text
        assert not any(line.text for line in chat_page.seen.lines_of(message_id, "user"))
    assert len(scene.town.house.llm.requests) == asked
