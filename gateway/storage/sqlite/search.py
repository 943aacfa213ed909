"""SQL on the index of what was said, and the part of the store that runs it in its threads.

The index has the words of `gateway.storage.search.terms_of`, not the texts: FTS5 keeps marks in Korean, Greek
and other scripts that `terms_of` takes off. It is filled when somebody searches, and not in a turn's commit,
which would write it page by page. Triggers on the log take out what is forgotten or deleted.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence

from gateway.storage.identities import Identity
from gateway.storage.search import FoundMessage, account_prefix, terms_of
from gateway.storage.sqlite.worker_thread import DatabaseThread

_AT_ONCE = 500
"""Records that are indexed in one transaction, so that a turn waits for no more."""
_NEXT = "SELECT id FROM log WHERE id > (SELECT upto FROM said_upto) ORDER BY id LIMIT 1 OFFSET ?"
_NEWEST = "SELECT coalesce(max(id), 0) FROM log"
_BEHIND = """
    SELECT log.id, json_extract(log.body, '$.text') FROM log
    WHERE log.id > (SELECT upto FROM said_upto) AND log.id <= :upto AND log.kind IN ('user', 'assistant')
        AND json_valid(log.body) AND coalesce(json_extract(log.body, '$.text'), '') <> ''
        AND NOT EXISTS (
            SELECT 1 FROM log AS begun
            WHERE begun.thread = log.thread AND begun.kind = 'session' AND begun.session_id = log.session_id
                AND json_valid(begun.body) AND json_extract(begun.body, '$.mode') = 'otr'
        )"""
_INDEX = "INSERT INTO said (rowid, text) VALUES (?, ?)"
_NOTE = "UPDATE said_upto SET upto = :upto"
# Of a thread in which the person alone writes, in private. Entries whose words were erased name no author.
_THREADS = """
    SELECT thread FROM (
        SELECT thread, json_extract(body, '$.author') AS author, json_extract(body, '$.private') AS private
        FROM inbox
        WHERE json_valid(body)
            AND thread IN (
                SELECT id FROM threads WHERE substr(key, 1, length(:prefix)) = :prefix
                    AND NOT EXISTS (SELECT 1 FROM page_chats WHERE thread = key AND deleted)
            )
    )
    WHERE author IS NOT NULL
    GROUP BY thread
    HAVING min(author = :user AND coalesce(private, 1) <> 0) = 1"""
_FIND = """
    SELECT threads.key, log.kind, json_extract(log.body, '$.text'), log.at
    FROM said JOIN log ON log.id = said.rowid JOIN threads ON threads.id = log.thread
    WHERE said MATCH ? AND log.thread IN (SELECT value FROM json_each(?))
    ORDER BY said.rowid DESC LIMIT ?"""

# The other columns are those of the row with the greatest rowid.
_NEWEST_IN = """
    SELECT threads.key, log.kind, json_extract(log.body, '$.text'), log.at, max(said.rowid)
    FROM said JOIN log ON log.id = said.rowid JOIN threads ON threads.id = log.thread
    WHERE said MATCH ? AND threads.key IN (SELECT value FROM json_each(?))
    GROUP BY threads.key"""


class SqliteSearch:
    """The index in one SQLite file: a part of `SqliteStore`."""

    def __init__(self, writer: Callable[[], DatabaseThread], reader: Callable[[], DatabaseThread]) -> None:
        # Fetched at each call, because a reopened store has new threads.
        self._writer = writer
        self._reader = reader

    async def find(self, words: str, people: Sequence[Identity], *, limit: int) -> tuple[FoundMessage, ...]:
        wanted = terms_of(words)
        if not wanted:
            return ()
        await self._complete()
        return await self._reader().submit(lambda db: _find(db, wanted, people, limit))

    async def newest_in(self, words: str, threads: Collection[str]) -> Mapping[str, FoundMessage]:
        wanted = terms_of(words)
        if not wanted or not threads:
            return {}
        await self._complete()
        values = (_query(wanted), json.dumps(sorted(threads)))

        def work(db: sqlite3.Connection) -> dict[str, FoundMessage]:
            found = [_said(*row[:4]) for row in db.execute(_NEWEST_IN, values)]
            return {said.thread: said for said in found}

        return await self._reader().submit(work)

    async def _complete(self) -> None:
        """Index what was said since the last search."""
        while not await self._writer().submit(_index):
            pass


def _index(db: sqlite3.Connection) -> bool:
    """Index further records; whether none is left."""
    row = db.execute(_NEXT, (_AT_ONCE - 1,)).fetchone()
    upto = db.execute(_NEWEST).fetchone()[0] if row is None else row[0]
    said = db.execute(_BEHIND, {"upto": upto}).fetchall()
    db.executemany(_INDEX, [(record, " ".join(terms_of(str(text)))) for record, text in said])
    db.execute(_NOTE, {"upto": upto})
    return row is None


def _find(
    db: sqlite3.Connection, wanted: Sequence[str], people: Sequence[Identity], limit: int
) -> tuple[FoundMessage, ...]:
    threads: set[int] = set()
    for person in people:
        values = {"prefix": account_prefix(person), "user": person.user}
        threads |= {thread for (thread,) in db.execute(_THREADS, values)}
    listed = "[" + ",".join(map(str, sorted(threads))) + "]"
    return tuple(_said(*row) for row in db.execute(_FIND, (_query(wanted), listed, limit)))


def _query(wanted: Sequence[str]) -> str:
    # A term has letters and digits alone, so it needs no escape.
    return " ".join(f'"{term}"*' for term in wanted)


def _said(thread: str, kind: str, text: str, at: float) -> FoundMessage:
    return FoundMessage(thread=thread, kind="user" if kind == "user" else "assistant", text=text, at=at)
