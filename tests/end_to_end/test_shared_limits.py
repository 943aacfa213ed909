"""Limits of a minute over several processes: messages of a person, wrong tokens of a network."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp

from gateway.cluster.shared_counts import LocalCounts
from pipeline.domain.clock import SystemClock
from tests.support.cluster import cluster
from tests.support.postgres_fixture import skips_without_postgres
from tests.support.processes import Process, Processes

_PATIENCE_S = 240.0


async def test_the_next_holder_of_an_account_continues_its_counts(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        # No time passes but what the second edge needs to get the account.
        gateways = Processes(folder=tmp_path, stack=stack, settings=("limits.messages_per_minute=3",))
        gateways.counts = LocalCounts(gateways.clock)
        first, standby = await gateways.start("edge"), await gateways.start("edge")
        for number in range(2):
            assert (await _said(first, number)).startswith("accepted")
        await gateways.clock.advance(0.0)
        await first.stop()
        async with asyncio.TaskGroup() as group:
            third = group.create_task(_said(standby, 2))
            while not third.done():
                await gateways.clock.advance(0.1)
        assert third.result().startswith("accepted")
        refused = await _said(standby, 3)
        assert refused.startswith("refused Please slow down: you may send 3 messages a minute.")
        await gateways.clock.advance(61.0)
        assert (await _said(standby, 4)).startswith("accepted")


async def _said(process: Process, number: int) -> str:
    taken = await process.channel.say(f"n{number}", native_id=f"n{number}")
    return f"{taken.status} {taken.reason}"


async def test_wrong_tokens_at_one_process_count_at_the_next(tmp_path: Path) -> None:
    with skips_without_postgres():
        async with cluster(tmp_path) as running:
            edges = [running.add(f"edge{number}", "edge") for number in range(2)]
            for edge in edges:
                await edge.spawn()
            for edge in edges:
                await _until_served(edge.url)
            for _ in range(6):
                await _wrong(edges[0].url)
            # The second process learns of them by its first wrong token.
            async with asyncio.timeout(_PATIENCE_S):
                while not (await _wrong(edges[1].url)).startswith("429"):
                    await SystemClock().sleep(0.05)
            await running.valkey.kill()
            async with asyncio.timeout(_PATIENCE_S):
                while "limits degraded: redis fails" not in await _readiness(edges[1].url):
                    assert (await _wrong(edges[1].url)).startswith("4")


async def _until_served(url: str) -> None:
    async with asyncio.timeout(_PATIENCE_S):
        while True:
            try:
                await _readiness(url)
            except aiohttp.ClientError:
                await SystemClock().sleep(0.05)
            else:
                return


async def _readiness(url: str) -> str:
    async with aiohttp.ClientSession() as session, session.get(f"{url}/readyz") as response:
        return await response.text()


async def _wrong(url: str) -> str:
    """What the metrics say to a wrong token."""
    headers = {"Authorization": "Bearer wrong"}
    async with aiohttp.ClientSession(headers=headers) as session, session.get(f"{url}/metrics") as response:
        return f"{response.status} {await response.text()}"
