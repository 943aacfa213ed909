"""An upgrade of the data format while real processes of both releases run on one Postgres database."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import asyncpg
import pytest

from gateway.storage.postgres.migration_steps import STEPS
from pipeline.domain.clock import SystemClock
from pipeline.domain.ids import new_id
from tests.support.cluster import Cluster, cluster
from tests.support.gateway_process import GatewayProcess
from tests.support.postgres_fixture import skips_without_postgres
from tests.support.web_client import WebChat

_PATIENCE_S = 240.0
_OLD = len(STEPS)
# One turn at a time, so that what one worker has no room for goes to the other.
_ROOM = "turn.max_running=1"


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Cluster]:
    """An edge and a worker of the old release."""
    async with AsyncExitStack() as stack:
        with skips_without_postgres():
            made = await stack.enter_async_context(cluster(tmp_path))
        edge = made.add("edge", "edge")
        await edge.start()
        await _shows(edge, "web:local up")
        await made.add("old", "work", _ROOM).start()
        yield made


async def test_two_releases_answer_side_by_side_and_the_old_one_is_drained(running: Cluster) -> None:
    edge, old = running.gateways["edge"], running.gateways["old"]
    async with WebChat() as chat:
        await chat.connect(edge.url, edge.token)
        await _ask(chat, "before")
        new = running.add("new", "work", _ROOM, release="0.2.0")
        await new.start()
        assert await _format(running) == (_OLD + 1, 6)
        # The hash of a thread, or chance, decides which of them answers.
        await _until(lambda: _both_answer(edge, old, new))
        await _shows(edge, f"1 process of version 0.2.0 (data format {_OLD + 1}); replace the older ones")
        assert await old.stop() == 0
        answered = await _turns(new)
        await _ask(chat, "after")

        async def answered_by_new() -> bool:
            return await _turns(new) > answered

        await _until(answered_by_new)
        # The edge of the old release starts again beside the new worker, on the newer format.
        assert await edge.stop() == 0
    await edge.start()
    await _shows(edge, "web:local up")
    async with WebChat() as chat:
        await chat.connect(edge.url, edge.token)
        await _ask(chat, "again")


async def test_a_step_that_takes_away_waits_for_the_old_release_to_end(running: Cluster) -> None:
    edge, old = running.gateways["edge"], running.gateways["old"]
    new = running.add("new", "work", _ROOM, release="0.3.0")
    await new.start()
    assert await _format(running) == (_OLD + 1, 6)
    goes = f"the data format goes from {_OLD + 1} to {_OLD + 2}"
    await _shows(new, f"{goes} when the processes of the older release have ended")
    assert "parlour_store_format_waiting 1.0" in await _metrics(new)
    # A release that cannot work without that step does not start yet, and says why.
    later = running.add("later", "work", release="0.4.0")
    await later.spawn()
    assert await later.wait_exit() == 1
    assert f"edge (version 0.1.0, format {_OLD}), old (version 0.1.0, format {_OLD})" in later.log()
    for one in (old, edge):
        assert await one.stop() == 0

    async def applied() -> bool:
        return await _format(running) == (_OLD + 2, _OLD + 1)

    await _until(applied)
    # What is too old now is refused in words, and the new release answers.
    await old.spawn()
    assert await old.wait_exit() == 1
    assert f"which programs from format {_OLD + 1} on can use" in old.log()
    next_edge = running.add("next edge", "edge", release="0.3.0")
    await next_edge.start()
    await _shows(next_edge, "web:local up")
    async with WebChat() as chat:
        await chat.connect(next_edge.url, next_edge.token)
        await _ask(chat, "hello")
    assert "upgrade:" not in await _text(new, "/readyz")


async def _ask(chat: WebChat, words: str) -> None:
    await chat.send_text(words, words)
    assert (await chat.answer(await chat.accepted(words))).text == f"You said: {words}"


async def _both_answer(edge: GatewayProcess, old: GatewayProcess, new: GatewayProcess) -> bool:
    """Ask in several chats at once. Whether both workers have answered since they started."""
    async with AsyncExitStack() as stack:
        chats = {new_id("c"): await stack.enter_async_context(WebChat()) for _ in range(4)}
        for client_id, chat in chats.items():
            await chat.connect(edge.url, edge.token)
            await chat.send_text(client_id, "at once")
        for client_id, chat in chats.items():
            await chat.answer(await chat.accepted(client_id))
    return min(await _turns(old), await _turns(new)) > 0


async def _turns(gateway: GatewayProcess) -> int:
    """How many turns a process has ended."""
    found = re.findall(r"^parlour_turns_total{[^}]*} (\d+)", await _metrics(gateway), re.MULTILINE)
    return sum(map(int, found))


async def _shows(gateway: GatewayProcess, words: str) -> None:
    async def shown() -> bool:
        return words in await _text(gateway, "/readyz")

    await _until(shown)


async def _metrics(gateway: GatewayProcess) -> str:
    return await _text(gateway, "/metrics")


async def _text(gateway: GatewayProcess, path: str) -> str:
    headers = {"Authorization": f"Bearer {gateway.token}"}
    async with aiohttp.ClientSession(headers=headers) as session, session.get(gateway.url + path) as response:
        return await response.text()


async def _format(running: Cluster) -> tuple[int, int]:
    """The data format of the database, and the oldest whose programs can use it."""
    connection = await asyncpg.connect(running.postgres.url)
    try:
        row = await connection.fetchrow("SELECT version, oldest FROM parlour.schema_version")
    finally:
        await connection.close()
    assert row is not None
    return row["version"], row["oldest"]


async def _until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(_PATIENCE_S):
        while not await holds():
            await SystemClock().sleep(0.05)
