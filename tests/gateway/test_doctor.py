"""What the doctor finds about hearing and speaking; its other findings are the command line's tests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.config import load
from gateway.doctor import Finding, findings
from pipeline.domain.clock import SystemClock
from tests.support.transcription_server import FakeTranscriptionServer
from tests.voice.voices import voices_dir

NOWHERE = Path("/dev/null")


async def examined(tmp_path: Path, *overrides: str) -> dict[str, Finding]:
    (tmp_path / "models").mkdir()
    usual = (
        f"data.dir={json.dumps(str(tmp_path / 'data'))}",
        f"models.dir={json.dumps(str(tmp_path / 'models'))}",
        "server.port=0",
        'llm.model="scripted:echo"',
        'voice.transcriber="scripted:hello"',
    )
    settings = load(NOWHERE, {}, [*usual, *overrides])
    return {finding.name: finding async for finding in findings(settings, SystemClock())}


async def test_an_endpoint_that_hears_is_asked_and_judged(tmp_path: Path) -> None:
    async with FakeTranscriptionServer() as server:
        key = tmp_path / "key"
        key.write_text("secret")
        key.chmod(0o600)
        found = await examined(
            tmp_path,
            'voice.transcriber="openai/whisper-1"',
            f'voice.api_base="{server.api_base}"',
            f'voice.api_key="file:{key}"',
        )
        assert len(server.requests) == 1
    assert not found["voice"].good
    assert 'was heard as "Hello from the service."' in found["voice"].words


async def test_no_voice_is_no_fault_and_says_how_to_get_one(tmp_path: Path) -> None:
    found = (await examined(tmp_path))["reading aloud"]
    assert found.good
    assert "`parlour models get voice-en`" in found.words
    (tmp_path / "off").mkdir()
    off = (await examined(tmp_path / "off", "voice.replies.enabled=false"))["reading aloud"]
    assert (off.good, off.words) == (True, "switched off (voice.replies.enabled)")


@pytest.mark.models
async def test_a_voice_that_is_there_speaks(tmp_path: Path) -> None:
    folder = json.dumps(str(voices_dir()))
    found = (await examined(tmp_path, f"voice.replies.voices_path={folder}"))["reading aloud"]
    assert found.good
    assert "(en)" in found.words


async def test_a_voice_that_is_damaged_is_red(tmp_path: Path) -> None:
    broken = tmp_path / "voices"
    broken.mkdir()
    (broken / "en_US-x-low.onnx").write_bytes(b"no model")
    (broken / "en_US-x-low.onnx.json").write_text('{"language": {"code": "en_US"}}')
    found = (await examined(tmp_path, f"voice.replies.voices_path={json.dumps(str(broken))}"))[
        "reading aloud"
    ]
    assert not found.good
    assert found.words
