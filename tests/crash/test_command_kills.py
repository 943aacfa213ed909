"""Death around /undo and /retry: each changes the conversation once, and the right turn of it.

Covers: gateway/turns/last_turn.py.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gateway.runtime.crash_labels import Label
from tests.support.gateway_process import GatewayProcess, slow_echo
from tests.support.web_client import WebChat

pytestmark = pytest.mark.crash

_LABELS: tuple[Label, ...] = ("inbox-commit-after", "turn-commit-before", "turn-commit-after", "send-before")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Left:
    """What a gateway left that answered two messages in a chat and was stopped."""

    data: Path
    chat: str | None
    ids: tuple[str, ...]
    """Of the messages."""


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> _Left:
    """The same for each death."""
    return asyncio.run(_leave(tmp_path_factory.mktemp("left")))


async def _leave(folder: Path) -> _Left:
    async with GatewayProcess(folder, overrides=slow_echo(0.01)) as gateway, WebChat() as chat:
        await gateway.start()
        await chat.connect(gateway.url, gateway.token)
        ids = []
        for key in ("one", "two"):
            await chat.send_text(key, key)
            ids.append(await chat.accepted(key))
            await chat.answer(ids[-1])
        # Without a kill: an unsent answer would be sent at the next start, and reach the label first.
        assert await gateway.stop() == 0
        return _Left(data=gateway.data_dir, chat=chat.chat, ids=tuple(ids))


@pytest.fixture
async def gateway(tmp_path: Path, left: _Left) -> AsyncIterator[GatewayProcess]:
    async with GatewayProcess(tmp_path, overrides=slow_echo(0.01)) as gateway:
        shutil.copytree(left.data, gateway.data_dir)
        yield gateway


def _bodies(gateway: GatewayProcess, kind: str) -> list[dict[str, Any]]:
    """The bodies of the records of one kind, oldest first."""
    db = sqlite3.connect(gateway.store_path)
    try:
        rows = db.execute("SELECT body FROM log WHERE kind = ? ORDER BY id", (kind,)).fetchall()
    finally:
        db.close()
    return [json.loads(body) for (body,) in rows]


@pytest.mark.parametrize("label", _LABELS)
@pytest.mark.parametrize("command", ["/undo", "/retry"])
async def test_a_command_that_a_kill_interrupts_changes_one_turn_once(
    gateway: GatewayProcess, left: _Left, label: Label, command: str
) -> None:
    async with WebChat(chat=left.chat) as chat:
        await gateway.start(crash_at=f"{label}:1")
        await chat.connect(gateway.url, gateway.token)
        await chat.send_text("c", command)
        await chat.read_to_the_end()
        assert await gateway.wait_exit() == 137
        await gateway.start()
        await chat.connect(gateway.url, gateway.token)
        await chat.send_text("c", command)
        await chat.accepted("c")
        await chat.send_text("three", "three")
        await chat.answer(await chat.accepted("three"))
    removed = [body["removed"] for body in _bodies(gateway, "notice") if "removed" in body]
    replaced = [body["replaces"] for body in _bodies(gateway, "user") if "replaces" in body]
    answers = [body["text"] for body in _bodies(gateway, "assistant")]
    if command == "/undo":
        assert (removed, replaced) == ([left.ids[1]], [])
        assert answers == [f"You said: {text}" for text in ("one", "two", "three")]
    else:
        assert (removed, replaced) == ([], [left.ids[1]])
        assert answers == [f"You said: {text}" for text in ("one", "two", "two", "three")]
