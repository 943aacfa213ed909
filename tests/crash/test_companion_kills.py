"""kill -9 around a companion's answer and what comes after it: no answer is lost or doubled, no fact is
stored twice, no step of an exercise is skipped or repeated.

Covers: gateway/turns/after_answer.py, gateway/turns/session_memory.py, gateway/turns/session_ends.py.
"""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from gateway.runtime.crash_labels import Label
from pipeline.domain.clock import SystemClock
from tests.support.gateway_process import SCRIPTED, GatewayProcess
from tests.support.web_client import WebChat

pytestmark = pytest.mark.crash

_COMPANION = ('agent.graph="companion"', 'llm.model="scripted:fail:unavailable"', SCRIPTED[1])
_FACT = "I love hiking in the mountains, and I can't calm down"
_STEPS = ("let's do a box breathing exercise", "ok", "done", "ready")


async def _rested(path: Path) -> None:
    """Wait until no job of the memory is left."""
    async with asyncio.timeout(60):
        while True:
            with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
                (left,) = db.execute(
                    "SELECT count(*) FROM jobs WHERE kind IN ('memory', 'session_memory') AND state = 'open'"
                ).fetchone()
            if not left:
                return
            await SystemClock().sleep(0.02)


def _facts(path: Path) -> int:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        return int(db.execute("SELECT count(*) FROM memory_facts").fetchone()[0])


@pytest.mark.parametrize(
    "label", ["turn-commit-before", "turn-commit-after", "memory-before", "memory-after"]
)
async def test_a_message_is_answered_once_and_remembered_once(tmp_path: Path, label: Label) -> None:
    async with GatewayProcess(tmp_path, overrides=_COMPANION) as gateway, WebChat() as chat:
        await gateway.start(crash_at=f"{label}:1")
        await chat.connect(gateway.url, gateway.token)
        await chat.send_text("c1", _FACT)
        await chat.read_to_the_end()
        assert await gateway.wait_exit() == 137
        await gateway.start()
        await chat.connect(gateway.url, gateway.token, after=0)
        await chat.send_text("c1", _FACT)
        await chat.answer(await chat.accepted("c1"))
        await _rested(gateway.store_path)
        await chat.send_text("c2", "thanks")
        await chat.answer(await chat.accepted("c2"))
        await _rested(gateway.store_path)
        assert _facts(gateway.store_path) == 1
        await gateway.stop()
        with closing(sqlite3.connect(gateway.store_path)) as db:
            (answers,) = db.execute("SELECT count(*) FROM log WHERE kind = 'assistant'").fetchone()
        assert answers == 2, "each message has one answer"


@pytest.mark.parametrize("label", ["turn-commit-before", "turn-commit-after"])
async def test_no_step_of_an_exercise_is_skipped_or_repeated(tmp_path: Path, label: Label) -> None:
    async with GatewayProcess(tmp_path, overrides=_COMPANION) as gateway, WebChat() as chat:
        await gateway.start()
        await chat.connect(gateway.url, gateway.token)
        whole = [await _asked(chat, f"w{number}", text) for number, text in enumerate(_STEPS)]
        await _asked(chat, "stop", "stop the exercise")
        await gateway.stop()
        await gateway.start(crash_at=f"{label}:2")
        await chat.connect(gateway.url, gateway.token)
        first = await _asked(chat, "k0", _STEPS[0])
        await chat.send_text("k1", _STEPS[1])
        await chat.read_to_the_end()
        assert await gateway.wait_exit() == 137
        await gateway.start()
        await chat.connect(gateway.url, gateway.token, after=0)
        rest = [await _asked(chat, f"k{number}", _STEPS[number]) for number in (1, 2, 3)]
        assert [first, *rest] == whole
        await gateway.stop()


async def _asked(chat: WebChat, client_id: str, text: str) -> str:
    await chat.send_text(client_id, text)
    return (await chat.answer(await chat.accepted(client_id))).text


_ENDS: tuple[Label, ...] = (
    "session-end-before",
    "session-end-after",
    "session-memory-before",
    "session-memory-after",
)


@pytest.mark.parametrize("label", _ENDS)
async def test_a_session_ends_and_is_remembered_once(tmp_path: Path, label: Label) -> None:
    ends = (*_COMPANION, "agent.session_idle_s=1")
    async with GatewayProcess(tmp_path, overrides=ends) as gateway, WebChat() as chat:
        await gateway.start(crash_at=f"{label}:1")
        await chat.connect(gateway.url, gateway.token)
        await chat.send_text("c1", _FACT)
        await chat.read_to_the_end()
        assert await gateway.wait_exit() == 137
        await gateway.start()
        await _ended(gateway.store_path)
        await _rested(gateway.store_path)
        await gateway.stop()
        with closing(sqlite3.connect(gateway.store_path)) as db:
            (sessions,) = db.execute("SELECT count(*) FROM log WHERE kind = 'session'").fetchone()
        assert sessions == 2
        assert _facts(gateway.store_path) == 1


async def _ended(path: Path) -> None:
    async with asyncio.timeout(60):
        while True:
            with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
                (left,) = db.execute("SELECT count(*) FROM jobs WHERE kind = 'session_end'").fetchone()
            if not left:
                return
            await SystemClock().sleep(0.02)
