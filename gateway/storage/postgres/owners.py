"""The processes that share the database, by the database's clock."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Final

from gateway.storage.formats import Formats, too_old
from gateway.storage.lease import Lease
from gateway.storage.owners import KEPT_S, UNTIL_GONE, ListedOwner, Owner
from gateway.storage.postgres.call_queue import Row
from gateway.storage.postgres.database import Connection, Database
from gateway.storage.postgres.statements import plain
from pipeline.domain.errors import StorageError

_BEAT: Final = """
    WITH before AS (SELECT expires_at > unix_now() AS live FROM owners WHERE id = $1)
    INSERT INTO owners (id, name, role, version, accounts, expires_at, oldest_format, newest_format)
        VALUES ($1, $2, $3, $4, $5, unix_now() + $6::float8, $7, $8)
    ON CONFLICT (id) DO UPDATE SET name = excluded.name, role = excluded.role, version = excluded.version,
        accounts = excluded.accounts, expires_at = excluded.expires_at
    RETURNING (SELECT live FROM before)"""
_FORGET: Final = "DELETE FROM owners WHERE expires_at < unix_now() - $1::float8"
_RETIRE: Final = "UPDATE owners SET expires_at = least(expires_at, unix_now()) WHERE id = $1"
_STILL: Final = "SELECT key FROM threads WHERE key = ANY ($1::text[]) AND owner = $2"
_CLAIM: Final = "SELECT thread, new_fence FROM claim_threads($1, $2, $3)"
UNOWNED: Final = "SELECT count(*) FROM unowned"
LISTED: Final = """
    SELECT id, name, role, version, accounts, expires_at - unix_now() AS left_s, oldest_format, newest_format,
        (SELECT count(*) FROM threads WHERE threads.owner = owners.id) AS threads
    FROM owners ORDER BY name, id"""


class PostgresOwners:
    """`OwnerBook` on a Postgres database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def beat(self, owner: Owner, *, ttl_s: float, now: float) -> bool:  # noqa: ARG002 - the database has a clock
        accounts = json.dumps(owner.accounts)
        form = self._database.formats
        values = (
            owner.id,
            plain(owner.name),
            owner.role,
            owner.version,
            accounts,
            ttl_s,
            form.oldest,
            form.newest,
        )

        async def report(db: Connection) -> bool | None:
            live: bool | None = await db.fetchval(_BEAT, *values)
            await db.execute(_FORGET, KEPT_S)
            return live

        live = await self._database.write(report)
        if not live:
            # While this one did not count as alive, a newer process may have taken away what it uses. One
            # that begins to do so now sees this report.
            await self._require_usable(owner.id)
        return live is not False

    async def _require_usable(self, owner_id: str) -> None:
        found = await self._database.settled_format()
        if not found.is_usable:
            await self.retire(owner_id)
            raise StorageError(too_old(self._database.place, found))

    async def retire(self, owner_id: str) -> None:
        await self._database.write(lambda db: db.execute(_RETIRE, owner_id))

    async def still(self, owner_id: str, keys: Collection[str]) -> frozenset[str]:
        rows = await self._database.fetch(_STILL, list(keys), owner_id)
        return frozenset(row["key"] for row in rows)

    async def claim(self, owner_id: str, *, limit: int, now: float) -> tuple[Lease, ...]:  # noqa: ARG002 - as above
        rows = await self._database.write(lambda db: db.fetch(_CLAIM, owner_id, UNTIL_GONE, limit))
        return tuple(
            Lease(thread=thread, owner=owner_id, fence=fence, expires_at=UNTIL_GONE) for thread, fence in rows
        )

    async def unowned(self, *, now: float) -> int:  # noqa: ARG002 - as above
        return int((await self._database.fetch(UNOWNED))[0][0])

    async def listed(self, *, now: float) -> tuple[ListedOwner, ...]:  # noqa: ARG002 - as above
        return tuple(listed_owner(row) for row in await self._database.fetch(LISTED))


def listed_owner(row: Row) -> ListedOwner:
    """The owner of a row of `LISTED`."""
    owner = Owner(
        id=row["id"],
        name=row["name"],
        role=row["role"],
        version=row["version"],
        accounts=tuple(json.loads(row["accounts"])),
    )
    formats = Formats(oldest=row["oldest_format"], newest=row["newest_format"])
    return ListedOwner(owner=owner, left_s=row["left_s"], threads=row["threads"], formats=formats)
