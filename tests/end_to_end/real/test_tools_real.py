"""The embedded model uses tools: a question of the time, a note and a reminder, as people ask for them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from pipeline.domain.clock import SystemClock
from tests.support.gateway_process import GatewayProcess, free_port, up
from tests.support.models import require_models
from tests.support.platforms.telegram import FakeTelegram
from tests.support.web_client import WebChat

pytestmark = [pytest.mark.models, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(900)]

_PATIENCE_S = 600.0
_SETTINGS = (
    "llm.max_tokens=60",
    "llm.temperature=0",
    "llm.timeout_s=600",
    "turn.timeout_s=900",
    'voice.transcriber="scripted:hello"',
    "agent.titles=false",
)


@pytest_asyncio.fixture(loop_scope="session")
async def served(tmp_path: Path) -> AsyncIterator[tuple[GatewayProcess, FakeTelegram]]:
    """A gateway with the real model, on the web and on a fake Telegram."""
    models = f"models.dir={json.dumps(str(require_models()))}"
    async with FakeTelegram(lenient=True) as telegram:
        overrides = (models, "llm.local.model=0.5b", *_SETTINGS, *telegram.overrides(tmp_path))
        async with GatewayProcess(tmp_path, overrides=overrides, port=free_port(), executed=True) as gateway:
            await gateway.start()
            await up(gateway, "telegram")
            yield gateway, telegram


async def test_on_the_page_the_time_is_looked_up_a_note_is_kept_and_a_reminder_is_set(
    served: tuple[GatewayProcess, FakeTelegram],
) -> None:
    gateway, _ = served
    async with WebChat() as chat:
        await chat.connect(gateway.url, gateway.token)
        done = await _asked(chat, "time", "What time is it in Tokyo?")
        assert [event["tool_name"] for event in done] == ["current_time"]
        assert done[0]["success"]

        done = await _asked(chat, "note", "Remember that my bike code is 4711.")
        assert [(event["tool_name"], event["success"]) for event in done] == [("write_note", True)]
        assert "4711" in _notes(gateway)

        done = await _asked(chat, "later", "Remind me in 10 minutes to stretch.")
        assert [(event["tool_name"], event["success"]) for event in done] == [("remind_me", True)]
        ((text,),) = _rows(gateway, "SELECT json_extract(body, '$.text') FROM jobs")
        assert "stretch" in text.lower()

        assert await _asked(chat, "plain", "What is the capital of France?") == []


async def test_in_telegram_a_note_is_kept_and_said_to_be(
    served: tuple[GatewayProcess, FakeTelegram],
) -> None:
    gateway, telegram = served
    ann = telegram.person("ann")
    chat = telegram.private_chat(ann)
    await telegram.say(chat, ann, "Remember that my bike code is 4711.")
    await telegram.until(lambda: bool(telegram.bot_texts(chat)), timeout_s=_PATIENCE_S)
    await telegram.until(lambda: "4711" in _notes(gateway), timeout_s=_PATIENCE_S)
    ((kind,),) = _rows(gateway, "SELECT count(*) FROM log WHERE kind = 'assistant'")
    assert kind == 1


async def _asked(chat: WebChat, client_id: str, text: str) -> list[dict[str, Any]]:
    """The finished actions of the message's turn; the turn must end in an answer."""
    await chat.send_text(client_id, text)
    done: list[dict[str, Any]] = []
    deadline = SystemClock().monotonic() + _PATIENCE_S
    while True:
        try:
            frame = await chat.receive()
        except TimeoutError:  # no frame for long: a busy machine reads prompts slowly
            assert SystemClock().monotonic() < deadline
            continue
        event = frame.get("event", {})
        if event.get("type") == "action_completed":
            done.append(event)
        elif event.get("type") in ("response_complete", "error"):
            assert event["type"] == "response_complete", event
            return done


def _notes(gateway: GatewayProcess) -> str:
    """The texts of all notes on the disk."""
    folders = gateway.data_dir.glob("workspace/people/*/notes/*")
    return "\n".join(path.read_text(encoding="utf-8") for path in folders)


def _rows(gateway: GatewayProcess, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(f"file:{gateway.store_path}?mode=ro", uri=True)) as db:
        return db.execute(query).fetchall()
