"""The data format of a Postgres database."""

from __future__ import annotations

from gateway.storage.formats import StoreFormat
from gateway.storage.postgres.database import Database


class PostgresFormats:
    """`FormatBook` on a Postgres database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def current(self) -> StoreFormat:
        return await self._database.format()

    async def upgrade(self) -> StoreFormat:
        return await self._database.upgrade()
