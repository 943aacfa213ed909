"""kill -9 again and again while many reminders are due at once: each is said exactly once, in its order.

Covers: gateway/scheduling/jobs.py.
"""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gateway.scheduling.reminders import REMINDER
from gateway.storage.jobs import NewJob
from gateway.storage.sqlite import SqliteStore
from pipeline.domain.clock import SystemClock
from tests.support.gateway_process import GatewayProcess
from tests.support.kill_harness import final_lines
from tests.support.store_file import integrity
from tests.support.web_client import WebChat

pytestmark = [pytest.mark.crash, pytest.mark.soak, pytest.mark.timeout(400)]

_CHATS = 20
_SETTLE_S = 120.0
_POLL_S = 0.005
_CLOCK = SystemClock()


async def test_every_job_that_is_due_is_done_exactly_once_whenever_the_process_is_killed(
    tmp_path: Path, record_property: Callable[[str, object], None], *, soak: bool
) -> None:
    jobs, kills, chance = (1_000, 10, random.Random(31)) if soak else (400, 4, random.Random(30))
    async with GatewayProcess(tmp_path) as gateway:
        chats = await _chats(gateway)
        expected = await _make_due(gateway.store_path, chats, jobs)
        left = [jobs]
        # By the work that is done, not by time: then the kills hit it on a machine of any speed.
        for goal in sorted((chance.randrange(jobs // 4, jobs) for _ in range(kills)), reverse=True):
            await gateway.start()
            await _until(partial(_at_most, gateway.store_path, goal))
            await gateway.kill()
            left.append(_open_jobs(gateway.store_path))
        await gateway.start()
        await _until(lambda: not _unfinished(gateway.store_path))
        said = {chat: await final_lines(chat, gateway) for chat in chats}
        assert await gateway.stop() == 0
    record_property("job kill run", json.dumps({"jobs": jobs, "kills": kills, "left": left}))

    for chat, texts in expected.items():
        assert [line.text for line in said[chat] if line.role == "notice"] == texts
    assert _open_jobs(gateway.store_path) == 0
    assert integrity(gateway.store_path) == "ok"
    # A busy machine may kill late: what counts is that kills hit the work.
    assert any(0 < one < jobs for one in left), "the kills missed the work: the run proves nothing"


async def _chats(gateway: GatewayProcess) -> Mapping[str, tuple[str, Mapping[str, Any]]]:
    """By the id of a chat in which somebody has spoken: its thread, and the body of the message."""
    await gateway.start()
    for _ in range(_CHATS):
        async with WebChat() as chat:
            await chat.connect(gateway.url, gateway.token)
            await chat.send_text("hello", "hello")
            await chat.answer(await chat.accepted("hello"))
    assert await gateway.stop() == 0
    store = SqliteStore(gateway.store_path)
    await store.open()
    spoken = await store.newest_entries(limit=_CHATS)
    await store.close()
    return {thread.rsplit(":", 1)[1]: (thread, body) for thread, body in spoken}


async def _make_due(
    path: Path, chats: Mapping[str, tuple[str, Mapping[str, Any]]], jobs: int
) -> dict[str, list[str]]:
    """Store that many reminders, all due; the lines that each chat must show, in order."""
    expected: dict[str, list[str]] = {chat: [] for chat in chats}
    now = _CLOCK.now()
    store = SqliteStore(path, synchronous="NORMAL")
    await store.open()
    for number in range(jobs):
        chat = list(chats)[number % len(chats)]
        thread, body = chats[chat]
        details = {"text": f"number {number}", "author": body["author"], "private": True}
        job = NewJob(
            kind=REMINDER, key=f"rem_{number}", thread=thread, due=now - 60 + number / 100, body=details
        )
        await store.jobs.add(job)
        expected[chat].append(f"Reminder: number {number}")
    await store.close()
    return expected


async def _until(reached: Callable[[], bool]) -> None:
    """Wait until it is, for two minutes at most: what is not done then fails the test."""
    ends = _CLOCK.monotonic() + _SETTLE_S
    while not reached() and _CLOCK.monotonic() < ends:
        await _CLOCK.sleep(_POLL_S)


def _at_most(path: Path, jobs: int) -> bool:
    return _open_jobs(path) <= jobs


def _open_jobs(path: Path) -> int:
    return _number(path, "SELECT count(*) FROM jobs")


def _unfinished(path: Path) -> int:
    return _open_jobs(path) + _number(path, "SELECT count(*) FROM inbox WHERE outcome IS NULL")


def _number(path: Path, sql: str) -> int:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        return int(db.execute(sql).fetchone()[0])
