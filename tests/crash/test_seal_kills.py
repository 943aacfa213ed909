"""The gateway dies in a turn off the record: the turn ends in the next process, and nothing that was said is
in any file, before and after.

Covers: gateway/storage/sealing.py, gateway/storage/sqlite/seals.py, gateway/storage/postgres/seals.py.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import asyncpg
import pytest

from gateway.storage.postgres import PostgresStore
from tests.contracts.store_values import NOW, entry, lease_on, record, reply, sender, turn
from tests.support.gateway_process import SCRIPTED, GatewayProcess
from tests.support.postgres_fixture import skips_without_postgres
from tests.support.postgres_server import MortalServer, mortal_server
from tests.support.web_client import WebChat

pytestmark = pytest.mark.crash

_CRASHED = 137
_KEPT, _SECRET = "quokka", "zebrafish"
"""Said on the record and off it, and nowhere else."""
_SIZE = "SELECT pg_relation_size('seal_keys')"
_ON_POSTGRES = ('storage.kind="postgres"', 'storage.url="env:DATABASE_OF_THE_TEST"')


@pytest.fixture(scope="module")
def server(postgres_version: int) -> Iterator[MortalServer]:
    """A server whose files these tests read."""
    with skips_without_postgres(), mortal_server(postgres_version) as server:
        yield server


@pytest.fixture
async def on_postgres(
    tmp_path: Path, server: MortalServer, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[GatewayProcess]:
    monkeypatch.setenv("DATABASE_OF_THE_TEST", server.url)
    connection = await asyncpg.connect(server.url)
    await connection.execute("DROP SCHEMA IF EXISTS parlour CASCADE")
    await connection.close()
    async with GatewayProcess(tmp_path, overrides=(*SCRIPTED, *_ON_POSTGRES)) as gateway:
        yield gateway


@pytest.fixture
async def on_sqlite(tmp_path: Path) -> AsyncIterator[GatewayProcess]:
    async with GatewayProcess(tmp_path, overrides=SCRIPTED) as gateway:
        yield gateway


def _files_with(folder: Path, what: bytes) -> list[str]:
    found = [path for path in folder.rglob("*") if path.is_file() and what in path.read_bytes()]
    return [str(path.relative_to(folder)) for path in found]


async def _on_the_servers_disk(server: MortalServer, what: bytes) -> list[str]:
    """The files of the server that have it, with everything written out that it has in memory."""
    connection = await asyncpg.connect(server.url)
    await connection.execute("CHECKPOINT")
    await connection.close()
    return _files_with(server.data, what)


async def _unfinished(url: str) -> int:
    """The number of kept keys, which is that of unfinished messages and unsent answers."""
    connection = await asyncpg.connect(url)
    kept: int = await connection.fetchval("SELECT count(*) FROM parlour.seal_keys")
    unsent = "SELECT count(*) FROM parlour.outbox WHERE state IN ('ready', 'sending')"
    waiting = "SELECT count(*) FROM parlour.inbox WHERE outcome IS NULL"
    counted = await connection.fetchval(unsent) + await connection.fetchval(waiting)
    await connection.close()
    assert kept == counted
    return kept


async def _ask(chat: WebChat, client_id: str, text: str) -> str:
    await chat.send_text(client_id, text)
    return (await chat.answer(await chat.accepted(client_id))).text


async def _go_off_the_record(gateway: GatewayProcess, chat: WebChat) -> None:
    await gateway.start()
    await chat.connect(gateway.url, gateway.token)
    await _ask(chat, "c1", _KEPT)
    await chat.send_text("c2", "/otr")
    await chat.wait_for(lambda frame: frame["type"] == "entry" and frame["role"] == "session")
    assert await gateway.stop() == 0


async def _die_in_the_turn(gateway: GatewayProcess, chat: WebChat, label: str) -> None:
    await gateway.start(crash_at=f"{label}:1")
    await chat.connect(gateway.url, gateway.token)
    await chat.send_text("c3", _SECRET)
    await chat.read_to_the_end()
    assert await gateway.wait_exit() == _CRASHED


async def _continues(gateway: GatewayProcess, chat: WebChat) -> None:
    await gateway.start()
    await chat.connect(gateway.url, gateway.token)
    # The answer to the first one may have been shown before this page was there.
    assert _SECRET in await _ask(chat, "c4", f"again {_SECRET}")
    assert await gateway.stop() == 0


@pytest.mark.parametrize("label", ["inbox-commit-after", "turn-commit-before", "receipt-before"])
async def test_a_turn_off_the_record_continues_in_sqlite(
    on_sqlite: GatewayProcess, tmp_path: Path, label: str
) -> None:
    async with WebChat() as chat:
        await _go_off_the_record(on_sqlite, chat)
        await _die_in_the_turn(on_sqlite, chat, label)
        assert _files_with(tmp_path, _KEPT.encode()) != []
        assert _files_with(tmp_path, _SECRET.encode()) == [], "unfinished, and sealed"
        await _continues(on_sqlite, chat)
    assert _files_with(tmp_path, _SECRET.encode()) == []


@pytest.mark.parametrize("label", ["inbox-commit-after", "turn-commit-before", "receipt-before"])
async def test_a_turn_off_the_record_continues_on_postgres(
    on_postgres: GatewayProcess, server: MortalServer, tmp_path: Path, label: str
) -> None:
    async with WebChat() as chat:
        await _go_off_the_record(on_postgres, chat)
        await _die_in_the_turn(on_postgres, chat, label)
        assert await _on_the_servers_disk(server, _SECRET.encode()) == []
        assert await _unfinished(server.url) == 1
        await _continues(on_postgres, chat)
    on_record = await _on_the_servers_disk(server, _KEPT.encode())
    assert any(name.startswith("pg_wal/") for name in on_record)
    assert any(name.startswith("base/") for name in on_record)
    assert await _on_the_servers_disk(server, _SECRET.encode()) == []
    assert _files_with(tmp_path, _SECRET.encode()) == []
    assert await _unfinished(server.url) == 0


async def test_a_deleted_key_leaves_no_page_in_the_servers_file(postgres_url: str) -> None:
    store = PostgresStore(postgres_url)
    await store.open()
    accepted, account = await store.accept(entry("1")), await sender(store)
    whole = turn(accepted.seq, record("notice", text=_SECRET), outbox=(reply(),))
    committed = await store.commit_turn(await lease_on(store), replace(whole, sealed=True))
    ((before,),) = await store.database.fetch(_SIZE)
    await store.mark_sent(account, committed.outbox_ids[0], "native", NOW, forget=True)
    await store.check_writable()  # what was begun before it is done
    ((after,),) = await store.database.fetch(_SIZE)
    assert (before > 0, after) == (True, 0)
    await store.close()
