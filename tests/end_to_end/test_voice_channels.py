"""Real speech through every channel, in the container that the platform sends, heard by the real Whisper.

How well Whisper hears notes of every kind is measured by `make eval NAME=transcription`; here the way to it
may cost a word or two of a sentence.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import pytest
import pytest_asyncio

from tests.support.all_platforms import AllPlatforms, open_all_platforms
from tests.support.file_reader import FakeFileReader
from tests.support.gateway_process import free_port
from tests.support.models import require_models
from tests.support.platforms.platform import FakePlatform, Place
from tests.support.web_client import WebChat
from tests.voice.clips import CLIPS, samples_of
from tests.voice.notes import note
from tests.voice.sounds import music, pink_noise
from voice.settings import TranscriptionSettings
from voice.transcription.whisper_transcriber import WhisperTranscriber
from voice.wer import normalised_words, word_error_rate

pytestmark = [pytest.mark.models, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(900)]

CLIP = CLIPS["lv_0890"]
TWO_WORDS = 2 / len(normalised_words(CLIP.transcript))
DEAF = "I could not hear any words"
ANSWER = "You said: "
SILENCES: dict[str, Callable[[], bytes]] = {
    "silence": lambda: samples_of(CLIPS["silence"]),
    "noise": pink_noise,
    "music": music,
}
# Telegram calls what its own client records `voice`, and a file with sound in it `audio`.
AUDIO_FILES = {"mp3": "audio/mpeg", "amr": "audio/amr"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """The gateway on all channels."""

    setup: AllPlatforms
    token: str


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Scene]:
    models = require_models()
    folder = tmp_path_factory.mktemp("platforms")
    web = ("channels.web.enabled=true", f"server.port={free_port()}")
    transcriber = WhisperTranscriber(TranscriptionSettings(model_dir=models / "whisper-base", workers=1))
    async with open_all_platforms(
        folder, *web, transcriber=transcriber, file_reader=FakeFileReader()
    ) as place:
        token = (folder / "data" / "web-token").read_text(encoding="ascii").strip()
        yield Scene(setup=place, token=token)


def _note(kind: str) -> bytes:
    """The clip as a note of one kind."""
    return note(samples_of(CLIP), kind)


def _is_understood(heard: str) -> bool:
    """Whether what was heard is the clip, but for two words."""
    return word_error_rate(CLIP.transcript, heard) <= TWO_WORDS


async def _answered(platform: FakePlatform, chat: Place, number: int) -> str:
    """The bot's text number `number` in a chat, once it is the whole one."""
    await platform.until(
        lambda: len(texts := platform.bot_texts(chat)) == number and _is_whole(texts[-1]), timeout_s=200
    )
    return platform.bot_texts(chat)[-1]


async def _said(platform: FakePlatform, chat: Place, number: int) -> None:
    """Waits for the bot's text number `number` in a chat."""
    await platform.until(lambda: len(platform.bot_texts(chat)) == number, timeout_s=200)


def _is_whole(text: str) -> bool:
    """What was heard, and then the echo of all of it; or that nothing was heard."""
    shown, found, echoed = text.partition(ANSWER)
    return DEAF in text or (bool(found) and normalised_words(echoed) == normalised_words(shown))


def _heard(text: str) -> str:
    """The words of an answer's quotation. It is above the answer, which says them again."""
    shown, found, _ = text.partition(ANSWER)
    assert found, text
    return shown


@pytest.mark.parametrize(
    ("channel", "kind", "mime"),
    [("telegram", "ogg", "audio/ogg"), ("slack", "m4a", "audio/mp4"), ("discord", "ogg", "audio/ogg")],
)
async def test_a_note_of_the_platforms_own_kind_is_heard(
    scene: Scene, channel: str, kind: str, mime: str
) -> None:
    (platform,) = [one for one in scene.setup.platforms if one.name == channel]
    ann = platform.person("ann")
    chat = platform.private_chat(ann)
    await platform.speak(chat, ann, _note(kind), mime=mime)
    heard = _heard(await _answered(platform, chat, 1))
    assert _is_understood(heard), heard


async def test_a_browsers_recording_is_heard(scene: Scene) -> None:
    async with WebChat() as chat:
        await chat.connect(scene.setup.harness.gateway.url, scene.token)
        await chat.send_voice("note", _note("webm"), mime="audio/webm")
        message_id = await chat.accepted("note")
        answer = await chat.answer(message_id)
        (said,) = {line.text for line in chat.seen.lines_of(message_id, "user") if line.text}
        assert normalised_words(answer.text) == normalised_words(ANSWER + said)
    assert _is_understood(said), said


@pytest.mark.parametrize("kind", sorted(AUDIO_FILES))
async def test_what_is_said_in_a_sound_file_reaches_the_model_as_the_content_of_that_file(
    scene: Scene, kind: str
) -> None:
    telegram, requests = scene.setup.telegram, scene.setup.harness.llm.requests
    ben = telegram.person(f"ben {kind}")
    chat = telegram.private_chat(ben)
    name = f"said.{kind}"
    telegram.send(chat, ben, "audio", _note(kind), duration=5, mime_type=AUDIO_FILES[kind], file_name=name)
    await _said(telegram, chat, 1)
    note_line, _, content = requests[-1].messages[-1].content.partition("\n")
    assert note_line == f'[Attached: sound file "{name}"; what is said in it follows]'
    heard = content.partition("\n")[2].partition("\n[/FILE]")[0]
    assert _is_understood(heard), heard


@pytest.mark.parametrize("sound", sorted(SILENCES))
async def test_where_no_one_speaks_every_channel_says_so_and_the_model_is_not_asked(
    scene: Scene, sound: str
) -> None:
    asked = len(scene.setup.harness.llm.requests)
    for platform, kind, mime in (
        (scene.setup.telegram, "ogg", "audio/ogg"),
        (scene.setup.slack, "m4a", "audio/mp4"),
        (scene.setup.discord, "ogg", "audio/ogg"),
    ):
        eve = platform.person(f"eve {sound}")
        chat = platform.private_chat(eve)
        await platform.speak(chat, eve, note(SILENCES[sound](), kind), mime=mime)
        assert DEAF in await _answered(platform, chat, 1)
    async with WebChat() as chat_page:
        await chat_page.connect(scene.setup.harness.gateway.url, scene.token)
        await chat_page.send_voice("v", note(SILENCES[sound](), "webm"), mime="audio/webm")
        message_id = await chat_page.accepted("v")
        ended = await chat_page.terminal(message_id)
        assert (ended.type, ended.code) == ("error", "nothing_heard")
        assert DEAF in ended.text
        assert not any(line.text for line in chat_page.seen.lines_of(message_id, "user"))
    assert len(scene.setup.harness.llm.requests) == asked
