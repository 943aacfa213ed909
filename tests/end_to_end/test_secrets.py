"""Secrets that a model says, in any pieces, reach no one: no event, reply, row, log line or metric."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Sequence
from pathlib import Path

import aiohttp
import pytest

from gateway.config import Secrets
from gateway.config.channels import WEB_TOKEN_FILE
from gateway.runtime.logs import configure_logging
from pipeline.domain.errors import MediaUnavailable, ModelUnavailable
from pipeline.domain.events import ErrorEvent, LlmToken, ResponseComplete
from pipeline.domain.messages import MediaRef
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from pipeline.redaction.known import MARK
from pipeline.redaction.redactor import Redactor
from tests.pipeline.redaction.secrets_made import made_secrets
from tests.support.channel import MemoryChannel
from tests.support.gateway_process import free_port
from tests.support.harness import open_gateway
from voice.errors import TranscriberUnavailable
from voice.transcription.scripted_transcriber import ScriptedTranscriber

MADE = made_secrets(300, seed=11)
TOGETHER = 20


@pytest.fixture
def lines() -> io.StringIO:
    out = io.StringIO()
    configure_logging(level="debug", style="json", redactor=Redactor(), stream=out)
    return out


def pieces(text: str, chosen: random.Random) -> tuple[str, ...]:
    """`text` in pieces of one to nine characters, as models write it."""
    cut: list[str] = []
    while text:
        size = chosen.randint(1, 9)
        cut.append(text[:size])
        text = text[size:]
    return tuple(cut)


def windows(secret: str) -> list[str]:
    """Stretches of the secret that represent all of it: a text that has none of them holds no part of it
    that is of use to anybody."""
    return [secret[at : at + 8] for at in range(5, len(secret) - 8, max(1, len(secret) // 30))]


async def test_none_of_300_secrets_is_seen_or_kept(tmp_path: Path, lines: io.StringIO) -> None:
    chosen = random.Random(5)
    groups = [MADE[at : at + TOGETHER] for at in range(0, len(MADE), TOGETHER)]
    texts = ["\n".join(f"Number {n}: {made.text}" for n, made in enumerate(group)) for group in groups]
    answers = [ScriptedAnswer(chunks=pieces(text, chosen)) for text in texts]
    llm = ScriptedLlm([*answers, ScriptedAnswer(error=ModelUnavailable(f"refused: {MADE[1].text}"))])
    port = free_port()
    web = ("channels.web.enabled=true", f"server.port={port}")
    async with open_gateway(tmp_path, *web, "llm.context_tokens=500000", llm=llm) as harness:
        seen = ""
        for number in range(len(groups)):
            accepted = await harness.channel.say(f"question {number}")
            reply = await harness.channel.reply(accepted.message_id)
            assert reply.text.count(MARK) >= TOGETHER
            await harness.channel.terminal(accepted.message_id)
            events = harness.channel.events_of(accepted.message_id)
            streamed = "".join(event.text for event in events if isinstance(event, LlmToken))
            complete = next(event for event in events if isinstance(event, ResponseComplete))
            assert (
                "".join(streamed.split()) == "".join(complete.content.split()) == "".join(reply.text.split())
            )
            assert _in_order(events)
            seen += f"{streamed}\n{complete.content}\n"
        failed = await harness.channel.say("one more")
        error = await harness.channel.terminal(failed.message_id)
        assert isinstance(error, ErrorEvent)
        seen += error.message + await _metrics(tmp_path, port)
    kept = _everything_in(tmp_path)
    everything = seen + kept + lines.getvalue()
    leaked = [made.kind for made in MADE if any(part in everything for part in windows(made.secret))]
    assert leaked == []
    assert MARK in kept
    assert MARK in lines.getvalue()


async def _metrics(data: Path, port: int) -> str:
    token = (data / WEB_TOKEN_FILE).read_text().strip()
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{port}/metrics", headers=headers) as answer,
    ):
        assert answer.status == 200
        return await answer.text()


def _everything_in(data: Path) -> str:
    return b"".join(path.read_bytes() for path in data.rglob("*") if path.is_file()).decode("latin-1")


def _in_order(events: Sequence[object]) -> bool:
    """Whether each piece's offset counts what was shown before it."""
    shown = 0
    for event in events:
        if isinstance(event, LlmToken):
            if event.offset != shown:
                return False
            shown += len(event.text)
    return True


async def test_a_configured_key_that_a_person_pastes_is_in_no_table(tmp_path: Path) -> None:
    secrets = Secrets(())
    secrets.add("pasted-key-0123456789")
    async with open_gateway(tmp_path, secrets=secrets) as harness:
        said = await harness.channel.say("is pasted-key-0123456789 right?", native_id="n1")
        reply = await harness.channel.reply(said.message_id)
    assert reply.text == "You said: is past[REDACTED] right?"
    kept = _kept(tmp_path)
    assert b"is past[REDACTED] right?" in kept
    assert b"pasted-key-0123456789" not in kept


def _kept(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


async def test_secrets_of_the_mcp_file_are_known_before_any_server_is_started(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("named-in-a-file-123", encoding="utf-8")
    (tmp_path / "key").chmod(0o600)
    env = {"WEATHER_KEY": "file:key", "REGION": "eu-central-1-a"}
    headers = {"Authorization": "Bearer written-in-the-file-1"}
    servers = {"a": {"command": "no-such", "env": env}, "b": {"url": "http://a.test", "headers": headers}}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    said = "keys named-in-a-file-123 and written-in-the-file-1 in eu-central-1-a"
    llm = ScriptedLlm([ScriptedAnswer.of(said)])
    mcp_file = f'tools.mcp_file="{tmp_path / "mcp.json"}"'
    async with open_gateway(tmp_path / "data", mcp_file, llm=llm) as harness:
        asked = await harness.channel.say("hello")
        reply = await harness.channel.reply(asked.message_id)
    assert reply.text == "keys name[REDACTED] and writ[REDACTED] in eu-central-1-a"


async def test_a_provider_that_quotes_a_key_is_logged_without_it_and_people_get_plain_words(
    tmp_path: Path, lines: io.StringIO
) -> None:
    failure = ModelUnavailable("The model cannot be reached now; try again later")
    # Where a cut after 200 characters would have halved it.
    failure.detail = f"litellm.RateLimitError: {'x ' * 85}{_OTHER_KEY} is over its limit"
    llm = ScriptedLlm([ScriptedAnswer(chunks=("a",), error=failure, fail_at=0)])
    async with open_gateway(tmp_path, llm=llm) as harness:
        said = await harness.channel.say("hello")
        reply = await harness.channel.reply(said.message_id)
    assert reply.text == "The model cannot be reached now; try again later"
    (line,) = [text for text in lines.getvalue().splitlines() if "gave no answer" in text]
    assert "litellm.RateLimitError" in line
    assert "is over its limit" in line
    assert not any(window in line for window in windows(_OTHER_KEY))


@pytest.mark.parametrize("fails", ["the recogniser", "the download"])
async def test_what_a_library_says_of_a_recording_is_logged_without_secrets_and_people_get_plain_words(
    tmp_path: Path, lines: io.StringIO, fails: str
) -> None:
    detail = f"The speech model in /srv/models/base cannot be loaded ({'x ' * 85}{_OTHER_KEY} is over)"
    transcriber, channel = ScriptedTranscriber(), MemoryChannel()
    if fails == "the recogniser":
        transcriber = ScriptedTranscriber([TranscriberUnavailable(detail=detail)])
        words = "Recordings cannot be heard here at the moment. Please type your message."
    else:
        words = "Telegram does not give the file out."
        channel = UnwillingChannel(MediaUnavailable(words, detail=detail))
    async with open_gateway(tmp_path, transcriber=transcriber, channel=channel) as harness:
        said = await harness.channel.say("", voice=b"opus")
        reply = await harness.channel.reply(said.message_id)
        error = await harness.channel.terminal(said.message_id)
    assert reply.text == words
    assert isinstance(error, ErrorEvent)
    assert error.message == words
    (line,) = [text for text in lines.getvalue().splitlines() if "a recording was not heard" in text]
    assert "/srv/models/base" in line
    assert "is over" in line
    assert not any(window in line for window in windows(_OTHER_KEY))
    assert b"/srv/models" not in _kept(tmp_path)


class UnwillingChannel(MemoryChannel):
    """Gives no recording out."""

    def __init__(self, error: MediaUnavailable) -> None:
        super().__init__()
        self._error = error

    async def download(self, ref: MediaRef, *, max_bytes: int) -> bytes:
        raise self._error


_OTHER_KEY = "gsk_" + "a1B2c3D4e5" * 4
