"""The parts of the cluster bench: its server waits for the disk, and every token that it sends is counted."""

from __future__ import annotations

from pathlib import Path

import asyncpg
import pytest

from bench import cluster_bus
from bench.cluster_bus import BusFigures
from bench.cluster_turns import Pair, Round, Side
from bench.processor_time import of_server
from tests.support.gateway_process import ROOT
from tests.support.postgres_fixture import skips_without_postgres
from tests.support.postgres_server import mortal_server
from tests.support.valkey import Valkey


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """So few signals that they take no time."""
    monkeypatch.setattr(cluster_bus, "WAKES", 20)
    monkeypatch.setattr(cluster_bus, "PACED_S", 0.1)
    monkeypatch.setattr(cluster_bus, "AT_ONCE", 1_000)


def _round(done: int, seconds: float) -> Round:
    return Round(done=done, seconds=seconds, gateway_s=0.5, server_s=0.25)


async def test_the_server_waits_for_the_disk(postgres_version: int) -> None:
    folder = ROOT / "build"
    folder.mkdir(exist_ok=True)
    with skips_without_postgres(), mortal_server(postgres_version, on_disk=folder) as server:
        connection = await asyncpg.connect(server.url)
        names = ("fsync", "synchronous_commit", "full_page_writes")
        assert [await connection.fetchval(f"SHOW {name}") for name in names] == ["on"] * 3
        before = of_server(server.pid)
        while of_server(server.pid) == before:  # until its work is seen, in hundredths of a second
            await connection.fetchval("SELECT count(*) FROM generate_series(1, 100_000)")
        await connection.close()
        data = Path(server.url.partition("host=")[2])
        assert data.parent == folder
    assert not _exists(data)


@pytest.mark.usefixtures("few")
async def test_every_token_within_one_process_is_counted() -> None:
    _check(await cluster_bus.measure_within())


@pytest.mark.usefixtures("few")
async def test_every_token_between_two_processes_is_counted(tmp_path: Path) -> None:
    async with Valkey(tmp_path) as server:
        found = await cluster_bus.measure_between("redis", server.url, server.pid)
    _check(found)
    assert found.at_once.gateways_s > 0


def _exists(folder: Path) -> bool:
    return folder.exists()


def _check(found: BusFigures) -> None:
    assert (found.paced.sent, found.at_once.sent) == (80, 1_000)
    assert (found.paced.shown, found.at_once.shown) == (80, 1_000)
    assert 0 < found.wake_p50 <= found.wake_p99
    assert found.busy_p99 > 0


def test_the_ratio_is_that_of_neighbours_and_processor_time_that_of_all_rounds() -> None:
    pair = Pair(
        sqlite=Side(rounds=[_round(10, 1.0), _round(10, 4.0), _round(10, 1.0)]),
        postgres=Side(rounds=[_round(10, 2.0), _round(10, 8.0), _round(10, 9.0)]),
    )

    assert pair.ratio == 2.0
    assert pair.sqlite.per_s == 10.0
    assert pair.postgres.gateway_us == pytest.approx(50_000)
    assert pair.postgres.server_us == pytest.approx(25_000)
