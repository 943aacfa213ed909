"""Read a saved workflow before the store is open, while the gateway is built."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from gateway.storage.postgres.database import Database
from gateway.storage.postgres.errors import as_storage_error

_HAS_TABLE = "SELECT to_regclass('parlour.workflow_versions') IS NOT NULL"
_TEXT = """
    SELECT body FROM workflow_versions WHERE name = $1 AND (version = $2 OR ($2 IS NULL AND runs))
    ORDER BY version DESC LIMIT 1"""


def saved_text(url: str, name: str, version: int | None) -> str | None:
    """The text of a saved document in the database: that version, or the newest one that had no mistakes when
    it was saved. None if there is none, or no store yet. Raises StorageError."""
    # In a separate thread: this one may run an event loop.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, _read(url, name, version)).result()


async def _read(url: str, name: str, version: int | None) -> str | None:
    database = Database(url)
    try:
        connection = await database.connect(readonly=True)
        try:
            has_table = await connection.fetchval(_HAS_TABLE)
            text: str | None = await connection.fetchval(_TEXT, name, version) if has_table else None
        finally:
            await connection.close()
    except Exception as error:
        raise as_storage_error(error, database.place) from error
    return text
