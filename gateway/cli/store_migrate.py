"""`parlour store migrate`: copy everything from the SQLite file into a Postgres database, or back.

All or nothing: the copy becomes visible in one step, once the rows of each table were counted and compared.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from gateway.cli.graph import write_out
from gateway.config import environment, load
from gateway.config.secrets import SecretRef
from gateway.runtime.data_dir import DataDir
from gateway.storage.postgres.table_rows import PostgresTables, database_tables
from gateway.storage.sqlite.table_rows import SqliteTables, file_tables
from gateway.storage.table_copies import TABLES, RowDigest, TableShape, copied
from pipeline.domain.errors import ConfigurationError, StorageError

_OK = 0
_NEW = ".new"
Say = Callable[[str], None]


def run_migrate(options: argparse.Namespace) -> int:
    """Carry out `parlour store migrate`. Raises ParlourError."""
    settings = load(options.config, environment(), options.overrides, secrets=False)
    return migrate_store(settings.data.dir, to=_resolved(options.to), back_from=_resolved(options.back_from))


def _resolved(text: str) -> str:
    """The URL itself, or the one that a reference names. Raises ConfigurationError."""
    if not text.startswith(("env:", "file:")):
        return text
    try:
        return SecretRef.parse(text).resolve()
    except ValueError as error:
        raise ConfigurationError(f"the URL of the database: {error}") from error


def migrate_store(data_dir: Path, *, to: str = "", back_from: str = "") -> int:
    """Copy the store of the data folder into the database with the URL `to`, or that of the database
    `back_from` into the folder. Exit code 0. Raises StorageError, and ConfigurationError while a gateway uses
    the folder; then nothing was changed."""
    data = DataDir.claim(data_dir)
    try:
        if to and not data.store_path.is_file():
            raise StorageError(f"{data.store_path}: there is no store in this data folder")
        if not to and data.store_path.exists():
            raise StorageError(f"{data.store_path}: this data folder has a store; move it away first")
        if to:
            asyncio.run(_to_postgres(data.store_path, to, write_out))
            write_out(
                'done. Set storage.kind = "postgres" and storage.url before you start a gateway. The file '
                f"{data.store_path} is as it was: delete it when you need it no longer, because nothing is "
                "erased in it from now on\n"
            )
        else:
            asyncio.run(_from_postgres(data.store_path, back_from, write_out))
            write_out(
                'done. Set storage.kind = "sqlite" before you start the gateway. The database is unchanged: '
                "drop its schema parlour when you need it no longer\n"
            )
    finally:
        data.release()
    return _OK


async def _to_postgres(path: Path, url: str, say: Say) -> None:
    async with database_tables(url) as target:
        if table := await target.filled():
            raise StorageError(
                f"the database is in use already: its table {table} has rows. Name an empty database, or "
                "drop its schema parlour if no one needs it"
            )
        with file_tables(path) as source:
            for table, shape in _same(target.shapes, source).items():
                before, after = RowDigest(), RowDigest()
                await target.empty(table)
                for rows in source.rows(shape):
                    new = copied(shape, rows)
                    before.add(new)
                    await target.add(shape, new)
                async for stored in target.rows(shape):
                    after.add(stored)
                _compare(table, before, after, say)
            await target.finish(source.last_ids())


async def _from_postgres(path: Path, url: str, say: Say) -> None:
    new = path.with_name(path.name + _NEW)
    _remove(new)
    try:
        async with database_tables(url) as source:
            with file_tables(new) as target:
                for shape in _same(source.shapes, target).values():
                    await _into_file(source, target, shape, say)
                target.finish(await source.last_ids())
    except BaseException:
        _remove(new)
        raise
    _move(new, path)


async def _into_file(source: PostgresTables, target: SqliteTables, shape: TableShape, say: Say) -> None:
    before, after = RowDigest(), RowDigest()
    target.empty(shape.name)
    async for rows in source.rows(shape):
        fresh = copied(shape, rows)
        before.add(fresh)
        target.add(shape, fresh)
    for stored in target.rows(shape):
        after.add(stored)
    _compare(shape.name, before, after, say)


def _same(shapes: Mapping[str, TableShape], file: SqliteTables) -> dict[str, TableShape]:
    """The tables, whose columns both stores have. Raises StorageError."""
    for table in TABLES:
        if file.columns(table) != set(shapes[table].columns):
            raise StorageError(f"the table {table} has other columns in Postgres than in SQLite")
    return {table: shapes[table] for table in TABLES}


def _compare(table: str, before: RowDigest, after: RowDigest, say: Say) -> None:
    if before != after:
        raise StorageError(
            f"the copy of the table {table} differs: {before.rows} rows with the hash {before.hash[:16]} "
            f"became {after.rows} with {after.hash[:16]}; nothing was changed"
        )
    if after.rows:
        say(f"{table}: {after.rows:,} rows, hash {after.hash[:16]}\n")


def _remove(path: Path) -> None:
    """Delete what an attempt that was cut off has left."""
    for one in _files_of(path):
        one.unlink(missing_ok=True)


def _move(new: Path, path: Path) -> None:
    """Give the finished file its name, durably."""
    for one in _files_of(new):
        if one != new:
            one.unlink(missing_ok=True)
    new.rename(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _files_of(path: Path) -> Iterable[Path]:
    return [path, *(path.with_name(path.name + end) for end in ("-wal", "-shm"))]
