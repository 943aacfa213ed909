"""Secrets that a model says, in any pieces, reach nobody: no event, reply, row, log line or metric."""

from __future__ import annotations

import io
import logging
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import aiohttp
import pytest

from gateway.config.channels import WEB_TOKEN_FILE
from gateway.logs import configure_logging
from pipeline.domain.errors import ModelUnavailable
from pipeline.domain.events import ErrorEvent, LlmToken, ResponseComplete
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from pipeline.redaction.known import MARK
from pipeline.redaction.redactor import Redactor
from tests.pipeline.redaction.secrets_made import made_secrets
from tests.support.gateway_process import free_port
from tests.support.house import open_house

MADE = made_secrets(300, seed=11)
TOGETHER = 20


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    out = io.StringIO()
    configure_logging(level="debug", style="json", redactor=Redactor(), stream=out)
    yield out
    root.handlers[:] = handlers
    root.setLevel(level)
    for package in ("gateway", "adapters", "pipeline", "voice"):
        logging.getLogger(package).setLevel(logging.NOTSET)


def pieces(text: str, chosen: random.Random) -> tuple[str, ...]:
    """`text` in pieces of one to nine characters, as models write it."""
    cut: list[str] = []
    while text:
        size = chosen.randint(1, 9)
        cut.append(text[:size])
        text = text[size:]
    return tuple(cut)


def windows(secret: str) -> list[str]:
    """Stretches of the secret that stand for all of it: a text that has none of them holds no part of it
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
    async with open_house(tmp_path, *web, "llm.context_tokens=500000", llm=llm) as house:
        seen = ""
        for number in range(len(groups)):
            accepted = await house.channel.say(f"question {number}")
            reply = await house.channel.reply(accepted.message_id)
            assert reply.text.count(MARK) >= TOGETHER
            await house.channel.terminal(accepted.message_id)
            events = house.channel.events_of(accepted.message_id)
            streamed = "".join(event.text for event in events if isinstance(event, LlmToken))
            complete = next(event for event in events if isinstance(event, ResponseComplete))
            assert (
                "".join(streamed.split()) == "".join(complete.content.split()) == "".join(reply.text.split())
            )
            assert _in_order(events)
            seen += f"{streamed}\n{complete.content}\n"
        failed = await house.channel.say("one more")
        error = await house.channel.terminal(failed.message_id)
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
