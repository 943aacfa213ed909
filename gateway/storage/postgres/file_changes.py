"""SQL on the changes of files."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from gateway.storage.file_changes import FileChange, FileState, NewChange
from gateway.storage.postgres.database import Connection, Database
from gateway.storage.postgres.statements import changed, plain

_WHOSE = "action, tool, root, path, thread, message_id, author, owner, is_foreign"
_NEW = f"{_WHOSE}, at, before, before_mode, after, after_mode"
_INSERT = f"""
    INSERT INTO file_changes ({_NEW})
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) RETURNING id"""  # noqa: S608 - a constant
_SELECT = f"SELECT {_NEW}, id, undone_by, undone_at FROM file_changes "  # noqa: S608 - a constant
_SETTLE = "UPDATE file_changes SET after = $1, after_mode = $2 WHERE id = $3"
_REMOVE = "DELETE FROM file_changes WHERE id = $1"
_UNDOING = "UPDATE file_changes SET undone_by = $1 WHERE id = ANY($2::bigint[])"
_UNDONE_BY = f"{_SELECT} WHERE undone_by = $1 AND undone_by <> '' ORDER BY id LIMIT 1"
_UNDONE = "UPDATE file_changes SET undone_at = $1 WHERE id = ANY($2::bigint[])"
_OF_PATH = f"{_SELECT} WHERE root = $1 AND path = $2 ORDER BY id"
_OF_ACTION = f"{_SELECT} WHERE action = $1 ORDER BY id"
_FIND = f"{_SELECT} WHERE id = $1"
_OF_THREAD = f"{_SELECT} WHERE thread = $1 AND undone_at = 0 AND tool <> '' ORDER BY id DESC LIMIT 1"
_ALL_OF_THREAD = f"{_SELECT} WHERE thread = $1 AND tool <> '' ORDER BY id"
_LINK = """UPDATE file_changes SET action = '', tool = '', thread = '', message_id = '', author = '',
    owner = '', before = $1, before_mode = $2 WHERE id = $3"""
_NAMED = f"""{_SELECT} WHERE $1::text = '' OR path = $1 OR right(path, length($1) + 1) = '/' || $1
    ORDER BY id DESC LIMIT $2"""
_PRUNE = """
    DELETE FROM file_changes WHERE at < $1 OR id IN (
        SELECT id FROM (
            SELECT id, row_number() OVER (PARTITION BY root, path ORDER BY id DESC) AS place FROM file_changes
        ) AS ranked WHERE place > $2
    )"""
_MADE = "INSERT INTO made_folders (root, path) VALUES ($1, $2) ON CONFLICT DO NOTHING"
_BELOW = "c.root = made_folders.root AND starts_with(c.path, made_folders.path || '/')"
_SPARE = f"""SELECT NOT EXISTS (SELECT 1 FROM file_changes AS c WHERE {_BELOW} AND c.undone_at = 0
        AND c.id <> ALL($1::bigint[]))
    FROM made_folders WHERE root = $2 AND path = $3"""  # noqa: S608 - a constant
_GONE = "DELETE FROM made_folders WHERE root = $1 AND path = $2"
_FORGET_FOLDERS = (
    f"DELETE FROM made_folders WHERE NOT EXISTS (SELECT 1 FROM file_changes AS c WHERE {_BELOW})"  # noqa: S608 - a constant
)
_CONTENTS = "SELECT before FROM file_changes UNION SELECT after FROM file_changes WHERE after IS NOT NULL"
_FORGET = """
    DELETE FROM file_changes WHERE EXISTS (
        SELECT 1 FROM file_changes AS own
        WHERE own.owner = $1 AND own.root = file_changes.root AND own.path = file_changes.path)"""


class PostgresFileChanges:
    """The changes of files in a Postgres database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(
        self, changes: Sequence[NewChange], folders: Sequence[tuple[str, str]] = ()
    ) -> tuple[int, ...]:
        async def change(db: Connection) -> tuple[int, ...]:
            made = sorted((plain(root), plain(path)) for root, path in folders)
            await db.executemany(_MADE, made)
            return tuple([int(await db.fetchval(_INSERT, *_values(one))) for one in changes])

        return await self._database.write(change)

    async def settle(self, after: Mapping[int, FileState | None]) -> None:
        async def change(db: Connection) -> None:
            for change_id, state in sorted(after.items()):
                if state is None:
                    await db.execute(_REMOVE, change_id)
                else:
                    await db.execute(_SETTLE, state.content, state.mode, change_id)

        await self._database.write(change)

    async def mark_undoing(self, ids: Sequence[int], by: str) -> None:
        await self._write(_UNDOING, by, list(ids))

    async def undone_by(self, by: str) -> FileChange | None:
        return next(iter(await self._all(_UNDONE_BY, by)), None)

    async def mark_undone(self, ids: Sequence[int], at: float) -> None:
        await self._write(_UNDONE, at, list(ids))

    async def of_path(self, root: str, path: str) -> tuple[FileChange, ...]:
        return await self._all(_OF_PATH, plain(root), plain(path))

    async def is_spare(self, root: str, folder: str, without: Collection[int]) -> bool:
        values = (list(without), plain(root), plain(folder))
        return bool(await self._database.read(lambda db: db.fetchval(_SPARE, *values)))

    async def forget_folders(self, root: str, folders: Sequence[str]) -> None:
        async def change(db: Connection) -> None:
            await db.executemany(_GONE, [(plain(root), plain(folder)) for folder in sorted(folders)])

        await self._database.write(change)

    async def of_action(self, action: str) -> tuple[FileChange, ...]:
        return await self._all(_OF_ACTION, action)

    async def find(self, change_id: int) -> FileChange | None:
        return next(iter(await self._all(_FIND, change_id)), None)

    async def newest_of_thread(self, thread: str) -> FileChange | None:
        return next(iter(await self._all(_OF_THREAD, thread)), None)

    async def named(self, name: str, *, limit: int) -> tuple[FileChange, ...]:
        return await self._all(_NAMED, plain(name), limit)

    async def of_thread(self, thread: str) -> tuple[FileChange, ...]:
        return await self._all(_ALL_OF_THREAD, thread)

    async def detach(self, removed: Collection[int], links: Mapping[int, FileState]) -> None:
        async def change(db: Connection) -> None:
            await db.executemany(_REMOVE, [(one,) for one in sorted(removed)])
            await db.executemany(_LINK, [(state.content, state.mode, one) for one, state in links.items()])
            await db.execute(_FORGET_FOLDERS)

        await self._database.write(change)

    async def prune(self, *, before: float, most: int) -> int:
        return await self._removed(_PRUNE, before, most)

    async def forget(self, owner: str) -> int:
        return await self._removed(_FORGET, plain(owner))

    async def contents(self) -> frozenset[str]:
        rows = await self._database.read(lambda db: db.fetch(_CONTENTS))
        return frozenset(row[0] for row in rows if row[0])

    async def _all(self, sql: str, *values: Any) -> tuple[FileChange, ...]:
        rows = await self._database.read(lambda db: db.fetch(sql, *values))
        return tuple(_change(tuple(row)) for row in rows)

    async def _write(self, sql: str, *values: Any) -> None:
        async def change(db: Connection) -> None:
            await db.execute(sql, *values)

        await self._database.write(change)

    async def _removed(self, sql: str, *values: Any) -> int:
        """How many changes `sql` removes; folders below which no change is recorded are forgotten with
        them."""

        async def change(db: Connection) -> int:
            removed = changed(await db.execute(sql, *values))
            await db.execute(_FORGET_FOLDERS)
            return removed

        return await self._database.write(change)


def _values(change: NewChange) -> tuple[Any, ...]:
    after = change.after
    return (
        change.action,
        change.tool,
        plain(change.root),
        plain(change.path),
        change.thread,
        change.message_id,
        plain(change.author),
        plain(change.owner),
        bool(change.foreign),
        change.at,
        change.before.content,
        change.before.mode,
        None if after is None else after.content,
        None if after is None else after.mode,
    )


def _change(row: tuple[Any, ...]) -> FileChange:
    *whose, is_foreign, at, before, before_mode, after, after_mode, change_id, undone_by, undone_at = row
    action, tool, root, path, thread, message_id, author, owner = whose
    return FileChange(
        action=action,
        tool=tool,
        root=root,
        path=path,
        thread=thread,
        message_id=message_id,
        author=author,
        owner=owner,
        foreign=is_foreign,
        at=at,
        before=FileState(content=before, mode=before_mode),
        after=None if after is None else FileState(content=after, mode=after_mode),
        id=change_id,
        undone_by=undone_by,
        undone_at=undone_at,
    )
