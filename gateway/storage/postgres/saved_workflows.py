"""SQL on saved workflow documents and their runs."""

from __future__ import annotations

from typing import Any, Final

from gateway.storage.postgres.database import Connection, Database
from gateway.storage.postgres.statements import lock, plain
from gateway.storage.saved_workflows import SavedRun, SavedSummary

DROP_RUN: Final = "DELETE FROM workflow_runs WHERE thread = $1"
_NEWEST_OF = "SELECT coalesce(max(version), 0) FROM workflow_versions WHERE name = $1"
_ADD = "INSERT INTO workflow_versions (name, version, body, runs, saved_at) VALUES ($1, $2, $3, $4, $5)"
_NEWEST = """
    SELECT DISTINCT ON (name) name, version, runs, saved_at FROM workflow_versions
    ORDER BY name, version DESC"""
_VERSIONS = """
    SELECT name, version, runs, saved_at FROM workflow_versions WHERE name = $1 ORDER BY version DESC"""
_TEXT = "SELECT body FROM workflow_versions WHERE name = $1 AND version = $2"
_NEWEST_TEXT = """
    SELECT body FROM workflow_versions WHERE name = $1 AND runs ORDER BY version DESC LIMIT 1"""
_DELETE = ("DELETE FROM workflow_versions WHERE name = $1", "DELETE FROM workflow_runs WHERE name = $1")
_RUN_COLUMNS = "thread, message_id, name, version, at"
_NOTE = f"""
    INSERT INTO workflow_runs ({_RUN_COLUMNS}) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (thread) DO NOTHING"""  # noqa: S608 - constants of this module
_RUN_IN = f"SELECT {_RUN_COLUMNS} FROM workflow_runs WHERE thread = $1"  # noqa: S608 - constants of this module
_RUNS_OF = f"""
    SELECT {_RUN_COLUMNS} FROM workflow_runs WHERE name = $1 AND starts_with(thread, $2)
    ORDER BY at DESC, thread LIMIT $3"""  # noqa: S608 - constants of this module


class PostgresSavedWorkflows:
    """Saved documents in a Postgres database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def save(self, name: str, text: str, *, base: int, runs: bool, at: float) -> int | None:
        async def change(db: Connection) -> int | None:
            await lock(db, f"workflow {plain(name)}")
            if await db.fetchval(_NEWEST_OF, plain(name)) != base:
                return None
            await db.execute(_ADD, plain(name), base + 1, plain(text), bool(runs), at)
            return base + 1

        return await self._database.write(change)

    async def newest(self) -> tuple[SavedSummary, ...]:
        return await self._summaries(_NEWEST)

    async def versions(self, name: str) -> tuple[SavedSummary, ...]:
        return await self._summaries(_VERSIONS, plain(name))

    async def text(self, name: str, version: int) -> str | None:
        text: str | None = await self._database.read(lambda db: db.fetchval(_TEXT, plain(name), version))
        return text

    async def newest_text(self, name: str) -> str | None:
        """The text of the newest version that had no mistakes when it was saved; None if there is none."""
        text: str | None = await self._database.read(lambda db: db.fetchval(_NEWEST_TEXT, plain(name)))
        return text

    async def delete(self, name: str, *, base: int) -> bool:
        async def change(db: Connection) -> bool:
            await lock(db, f"workflow {plain(name)}")
            if not base or await db.fetchval(_NEWEST_OF, plain(name)) != base:
                return False
            for statement in _DELETE:
                await db.execute(statement, plain(name))
            return True

        return await self._database.write(change)

    async def note_run(self, run: SavedRun) -> None:
        values = (run.thread, run.message_id, plain(run.name), run.version, run.at)

        async def change(db: Connection) -> None:
            await db.execute(_NOTE, *values)

        await self._database.write(change)

    async def run_in(self, thread: str) -> SavedRun | None:
        row = await self._database.read(lambda db: db.fetchrow(_RUN_IN, thread))
        return None if row is None else SavedRun(**dict(row))

    async def runs_of(self, name: str, *, threads: str, limit: int) -> tuple[SavedRun, ...]:
        rows = await self._database.read(lambda db: db.fetch(_RUNS_OF, plain(name), threads, limit))
        return tuple(SavedRun(**dict(row)) for row in rows)

    async def _summaries(self, sql: str, *values: Any) -> tuple[SavedSummary, ...]:
        rows = await self._database.read(lambda db: db.fetch(sql, *values))
        return tuple(SavedSummary(**dict(row)) for row in rows)
