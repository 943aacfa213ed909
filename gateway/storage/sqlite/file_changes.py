"""SQL on the changes of files, and the part of the store that runs it in its threads."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from gateway.storage.file_changes import FileChange, FileState, NewChange
from gateway.storage.json_bodies import storable_text
from gateway.storage.sqlite.worker_thread import DatabaseThread

_WHOSE = "action, tool, root, path, thread, message_id, author, owner, is_foreign"
_NEW = f"{_WHOSE}, at, before, before_mode, after, after_mode"
_INSERT = f"INSERT INTO file_changes ({_NEW}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - a constant
_SELECT = f"SELECT {_NEW}, id, undone_by, undone_at FROM file_changes "  # noqa: S608 - a constant
_SETTLE = "UPDATE file_changes SET after = ?, after_mode = ? WHERE id = ?"
_REMOVE = "DELETE FROM file_changes WHERE id = ?"
_UNDOING = "UPDATE file_changes SET undone_by = ? WHERE id = ?"
_UNDONE_BY = f"{_SELECT} WHERE undone_by = ? AND undone_by <> '' ORDER BY id LIMIT 1"
_UNDONE = "UPDATE file_changes SET undone_at = ? WHERE id = ?"
_OF_PATH = f"{_SELECT} WHERE root = ? AND path = ? ORDER BY id"
_OF_ACTION = f"{_SELECT} WHERE action = ? ORDER BY id"
_FIND = f"{_SELECT} WHERE id = ?"
_OF_THREAD = f"{_SELECT} WHERE thread = ? AND undone_at = 0 AND tool <> '' ORDER BY id DESC LIMIT 1"
_ALL_OF_THREAD = f"{_SELECT} WHERE thread = ? AND tool <> '' ORDER BY id"
_LINK = """UPDATE file_changes SET action = '', tool = '', thread = '', message_id = '', author = '',
    owner = '', before = ?, before_mode = ? WHERE id = ?"""
_NAMED = f"""{_SELECT} WHERE :name = '' OR path = :name OR substr(path, -length(:name) - 1) = '/' || :name
    ORDER BY id DESC LIMIT :limit"""
_PRUNE = """
    DELETE FROM file_changes WHERE at < :before OR id IN (
        SELECT id FROM (
            SELECT id, row_number() OVER (PARTITION BY root, path ORDER BY id DESC) AS place FROM file_changes
        ) WHERE place > :most
    )"""
_MADE = "INSERT INTO made_folders (root, path) VALUES (?, ?) ON CONFLICT DO NOTHING"
_BELOW = (
    "c.root = made_folders.root AND c.path >= made_folders.path || '/' AND c.path < made_folders.path || '0'"
)
"""'0' is the character after '/'."""
_SPARE = f"""SELECT NOT EXISTS (SELECT 1 FROM file_changes AS c WHERE {_BELOW} AND c.undone_at = 0
        AND c.id NOT IN (SELECT value FROM json_each(?)))
    FROM made_folders WHERE root = ? AND path = ?"""  # noqa: S608 - a constant
_GONE = "DELETE FROM made_folders WHERE root = ? AND path = ?"
_FORGET_FOLDERS = (
    f"DELETE FROM made_folders WHERE NOT EXISTS (SELECT 1 FROM file_changes AS c WHERE {_BELOW})"  # noqa: S608 - a constant
)
_CONTENTS = "SELECT before FROM file_changes UNION SELECT after FROM file_changes WHERE after IS NOT NULL"

_FORGET = """
    DELETE FROM file_changes WHERE EXISTS (
        SELECT 1 FROM file_changes AS own
        WHERE own.owner = ? AND own.root = file_changes.root AND own.path = file_changes.path)"""


class SqliteFileChanges:
    """The changes of files in one SQLite file: a part of `SqliteStore`."""

    def __init__(self, writer: Callable[[], DatabaseThread], reader: Callable[[], DatabaseThread]) -> None:
        # Fetched at each call, because a reopened store has new threads.
        self._writer = writer
        self._reader = reader

    async def begin(
        self, changes: Sequence[NewChange], folders: Sequence[tuple[str, str]] = ()
    ) -> tuple[int, ...]:
        def work(db: sqlite3.Connection) -> tuple[int, ...]:
            db.executemany(_MADE, [(storable_text(root), storable_text(path)) for root, path in folders])
            return tuple(int(db.execute(_INSERT, _values(one)).lastrowid or 0) for one in changes)

        return await self._writer().submit(work)

    async def settle(self, after: Mapping[int, FileState | None]) -> None:
        def work(db: sqlite3.Connection) -> None:
            for change_id, state in after.items():
                if state is None:
                    db.execute(_REMOVE, (change_id,))
                else:
                    db.execute(_SETTLE, (state.content, state.mode, change_id))

        await self._writer().submit(work)

    async def mark_undoing(self, ids: Sequence[int], by: str) -> None:
        def work(db: sqlite3.Connection) -> None:
            db.executemany(_UNDOING, [(by, one) for one in ids])

        await self._writer().submit(work)

    async def undone_by(self, by: str) -> FileChange | None:
        return next(iter(await self._all(_UNDONE_BY, (by,))), None)

    async def mark_undone(self, ids: Sequence[int], at: float) -> None:
        def work(db: sqlite3.Connection) -> None:
            db.executemany(_UNDONE, [(at, one) for one in ids])

        await self._writer().submit(work)

    async def of_path(self, root: str, path: str) -> tuple[FileChange, ...]:
        return await self._all(_OF_PATH, (storable_text(root), storable_text(path)))

    async def is_spare(self, root: str, folder: str, without: Collection[int]) -> bool:
        values = (json.dumps(sorted(without)), storable_text(root), storable_text(folder))
        row = await self._reader().submit(lambda db: db.execute(_SPARE, values).fetchone())
        return row is not None and bool(row[0])

    async def forget_folders(self, root: str, folders: Sequence[str]) -> None:
        def work(db: sqlite3.Connection) -> None:
            db.executemany(_GONE, [(storable_text(root), storable_text(folder)) for folder in folders])

        await self._writer().submit(work)

    async def of_action(self, action: str) -> tuple[FileChange, ...]:
        return await self._all(_OF_ACTION, (action,))

    async def find(self, change_id: int) -> FileChange | None:
        return next(iter(await self._all(_FIND, (change_id,))), None)

    async def newest_of_thread(self, thread: str) -> FileChange | None:
        return next(iter(await self._all(_OF_THREAD, (thread,))), None)

    async def named(self, name: str, *, limit: int) -> tuple[FileChange, ...]:
        return await self._all(_NAMED, {"name": storable_text(name), "limit": limit})

    async def of_thread(self, thread: str) -> tuple[FileChange, ...]:
        return await self._all(_ALL_OF_THREAD, (thread,))

    async def detach(self, removed: Collection[int], links: Mapping[int, FileState]) -> None:
        def work(db: sqlite3.Connection) -> None:
            db.executemany(_REMOVE, [(one,) for one in removed])
            db.executemany(_LINK, [(state.content, state.mode, one) for one, state in links.items()])
            db.execute(_FORGET_FOLDERS)

        await self._writer().submit(work)

    async def prune(self, *, before: float, most: int) -> int:
        values = {"before": before, "most": most}
        return await self._writer().submit(lambda db: _removed(db, _PRUNE, values))

    async def forget(self, owner: str) -> int:
        return await self._writer().submit(lambda db: _removed(db, _FORGET, (owner,)))

    async def contents(self) -> frozenset[str]:
        rows = await self._reader().submit(lambda db: db.execute(_CONTENTS).fetchall())
        return frozenset(row[0] for row in rows if row[0])

    async def _all(
        self, sql: str, values: tuple[str | int, ...] | dict[str, str | int]
    ) -> tuple[FileChange, ...]:
        rows = await self._reader().submit(lambda db: db.execute(sql, values).fetchall())
        return tuple(map(_change, rows))


def _removed(db: sqlite3.Connection, sql: str, values: tuple[str] | dict[str, float]) -> int:
    """How many changes `sql` removes; folders below which no change is recorded are forgotten with them."""
    removed = db.execute(sql, values).rowcount
    db.execute(_FORGET_FOLDERS)
    return removed


def _values(change: NewChange) -> tuple[str | int | float | None, ...]:
    after = change.after
    return (
        change.action,
        change.tool,
        storable_text(change.root),
        storable_text(change.path),
        change.thread,
        change.message_id,
        storable_text(change.author),
        storable_text(change.owner),
        change.foreign,
        change.at,
        change.before.content,
        change.before.mode,
        None if after is None else after.content,
        None if after is None else after.mode,
    )


def _change(row: tuple[Any, ...]) -> FileChange:
    (
        action,
        tool,
        root,
        path,
        thread,
        message_id,
        author,
        owner,
        foreign,
        at,
        *states,
        change_id,
        undone_by,
        undone_at,
    ) = row
    before, before_mode, after, after_mode = states
    return FileChange(
        action=action,
        tool=tool,
        root=root,
        path=path,
        thread=thread,
        message_id=message_id,
        author=author,
        owner=owner,
        foreign=bool(foreign),
        at=at,
        before=FileState(content=before, mode=before_mode),
        after=None if after is None else FileState(content=after, mode=after_mode),
        id=change_id,
        undone_by=undone_by,
        undone_at=undone_at,
    )
