"""What the doctor says about the processes that share a database."""

from __future__ import annotations

from pathlib import Path

from gateway import __version__
from gateway.cli.cluster_check import cluster_findings
from gateway.cli.database_check import database_findings
from gateway.config import Settings, load
from gateway.storage.formats import Formats, StoreFormat
from gateway.storage.owners import ListedOwner, Owner
from gateway.storage.postgres import PostgresStore
from pipeline.domain.clock import SystemClock
from tests.contracts.store_values import entry

_CLUSTER = (
    'storage.kind="postgres"',
    'storage.url="env:URL_OF_THE_TEST"',
    'bus.kind="postgres"',
    'bus.url="env:URL_OF_THE_TEST"',
    'cluster.role="all"',
)
_TELEGRAM = ("channels.telegram.enabled=true", 'channels.telegram.token="env:TOKEN"')


def _settings(tmp_path: Path, *overrides: str, url: str = "postgresql://h/d") -> Settings:
    values = {"URL_OF_THE_TEST": url, "TOKEN": "123456:" + "a" * 35}
    return load(None, values, [*_CLUSTER, f"data.dir={tmp_path}", *overrides])


def _listed(
    name: str,
    role: str,
    *accounts: str,
    version: str = __version__,
    left_s: float = 5.0,
    newest: int = 1,
) -> ListedOwner:
    owner = Owner(id=f"own_{name}", name=name, role=role, version=version, accounts=accounts)
    formats = Formats(oldest=newest, newest=newest)
    return ListedOwner(owner=owner, left_s=left_s, threads=3, formats=formats)


def test_a_gateway_that_is_alone_has_no_cluster(tmp_path: Path) -> None:
    alone = load(None, {}, [f"data.dir={tmp_path}"])
    assert cluster_findings(alone, [_listed("a", "all")], 0, 0.0) == ()


def test_processes_in_order_are_green_and_each_is_shown(tmp_path: Path) -> None:
    owners = [
        _listed("edge-1", "edge", "telegram:bot"),
        _listed("work-1", "work"),
        _listed("work-0", "work", left_s=-60),
    ]
    general, edge, worker = cluster_findings(_settings(tmp_path), owners, 0, -0.0123)
    assert general.good
    assert general.words == (
        "2 processes alive, 1 ended within a day; the database's clock differs from this machine's by 12 ms"
    )
    assert (edge.name, worker.name) == ("process edge-1", "process work-1")
    assert edge.words.endswith("sends from telegram:bot")
    assert worker.words.startswith(
        f"work, version {__version__}, data format 1; 3 leases; counts as alive for 5 s"
    )


def test_what_is_missing_is_red_with_what_to_do(tmp_path: Path) -> None:
    settings = _settings(tmp_path, *_TELEGRAM)
    (none,) = cluster_findings(settings, [_listed("a", "all", left_s=-1)], 0, 0.0)
    assert not none.good
    assert none.words == "no process is alive; start one with `parlour serve`"
    (workless, *_) = cluster_findings(settings, [_listed("a", "edge")], 2, 0.0)
    assert not workless.good
    assert 'no process runs turns: start a process with cluster.role "work" or "all"' in workless.words
    assert "2 conversations wait for a process that runs turns" in workless.words
    assert "no process has telegram:" in workless.words
    (deaf, *_) = cluster_findings(settings, [_listed("a", "work", version="0.0.9")], 0, 0.0)
    assert 'no process receives messages: start a process with cluster.role "edge" or "all"' in deaf.words
    assert f"the versions 0.0.9, {__version__} run or are installed here" in deaf.words


def test_an_unfinished_upgrade_is_red_and_names_the_older_processes(tmp_path: Path) -> None:
    owners = [
        _listed("edge-1", "edge", version="0.0.9", newest=7),
        _listed("work-1", "work", newest=9),
        _listed("work-2", "work", version="0.0.9", newest=7),
    ]
    waits = StoreFormat(version=8, oldest=7, newest=9)
    (general, *_) = cluster_findings(_settings(tmp_path), owners, 0, 0.0, waits)
    assert not general.good
    old = "older than data format 9: edge-1 (0.0.9), work-2 (0.0.9): replace them by the newer release"
    assert old in general.words
    goes = "the data format goes from 8 to 9 when the processes of the older release have ended"
    assert goes in general.words
    (general, *_) = cluster_findings(_settings(tmp_path), owners[1:2], 0, 0.0, waits)
    assert "the data format goes from 8 to 9 within seconds" in general.words


async def test_the_processes_are_read_from_the_database(tmp_path: Path, postgres_url: str) -> None:
    store = PostgresStore(postgres_url)
    await store.open()
    for name, role in (("one", "edge"), ("two", "work")):
        owner = Owner(id=name, name=name, role=role, version=__version__)
        await store.owners.beat(owner, ttl_s=600.0, now=0.0)
    await store.accept(entry("1"))
    await store.close()
    findings = await database_findings(_settings(tmp_path, url=postgres_url), SystemClock())
    assert [one.name for one in findings] == ["store", "jobs", "cluster", "process one", "process two"]
    assert "1 conversation waits for a process that runs turns" in findings[2].words
