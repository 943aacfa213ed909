"""SQL on the index of what was said.

The index has the words of `gateway.storage.search.terms_of`, so it finds the same as the other stores,
whatever the server's locale. A conversation is indexed when somebody searches in it, and not in a turn's
commit. Triggers on the log take out what is forgotten or deleted; texts are read from the log.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from gateway.storage.identities import Identity
from gateway.storage.json_bodies import decode_body
from gateway.storage.postgres.database import Connection, Database
from gateway.storage.postgres.statements import lock, plain
from gateway.storage.search import FoundMessage, account_prefix, terms_of

_AT_ONCE = 500
"""Records that are indexed in one transaction, so that a turn waits for no more."""
_MOST_CHARS = 500
"""Of a word that count: Postgres takes words of up to 2,046 bytes."""
_MOST_BYTES = 900_000
"""Of the words of one record: Postgres takes a megabyte."""
_BEHIND = """
    SELECT DISTINCT log.thread FROM log LEFT JOIN said_upto USING (thread)
    WHERE log.thread = ANY($1::bigint[]) AND log.id > coalesce(upto, 0)"""
# Locked: words that are forgotten while they are indexed are taken out by the trigger afterwards.
_NEXT = """
    SELECT id, kind, session_id, body FROM log
    WHERE thread = $1 AND id > coalesce((SELECT upto FROM said_upto WHERE thread = $1), 0)
    ORDER BY id LIMIT $2 FOR SHARE"""
_OFF_RECORD = """
    SELECT session_id FROM log
    WHERE thread = $1 AND kind = 'session' AND body_json(body)->>'mode' = 'otr'"""
_INDEX = """
    INSERT INTO said (id, thread, words) VALUES ($1, $2, array_to_tsvector($3::text[]))
    ON CONFLICT DO NOTHING"""
_NOTE = """
    INSERT INTO said_upto (thread, upto) VALUES ($1, $2)
    ON CONFLICT (thread) DO UPDATE SET upto = greatest(said_upto.upto, excluded.upto)"""
# Of a thread in which the person alone writes, in private. Entries whose words were erased name no author.
# Read as JSON are only the threads whose entries have the person's id in them, as JSON writes it ($3, $4).
_THREADS = """
    WITH theirs AS MATERIALIZED (
        SELECT DISTINCT inbox.thread FROM threads JOIN inbox ON inbox.thread = threads.id
        WHERE starts_with(threads.key, $1) AND (strpos(inbox.body, $3) > 0 OR strpos(inbox.body, $4) > 0)
            AND NOT EXISTS (SELECT 1 FROM page_chats WHERE page_chats.thread = threads.key AND deleted)
    )
    SELECT thread FROM (
        SELECT inbox.thread, said->>'author' AS author, coalesce(said->>'private', 'true') AS private
        FROM theirs JOIN inbox USING (thread), LATERAL body_json(inbox.body) AS said
    ) AS entries
    WHERE author IS NOT NULL
    GROUP BY thread
    HAVING bool_and(author = $2 AND private <> 'false')"""
_IDS = "SELECT id FROM threads WHERE key = ANY($1::text[])"
_FIND = """
    SELECT threads.key, log.kind, log.body, log.at
    FROM said JOIN log ON log.id = said.id JOIN threads ON threads.id = said.thread
    WHERE said.words @@ ($1::text)::tsquery AND said.thread = ANY($2::bigint[])
    ORDER BY said.id DESC LIMIT $3"""
_NEWEST_IN = """
    SELECT DISTINCT ON (said.thread) threads.key, log.kind, log.body, log.at
    FROM said JOIN log ON log.id = said.id JOIN threads ON threads.id = said.thread
    WHERE said.words @@ ($1::text)::tsquery AND said.thread = ANY($2::bigint[])
    ORDER BY said.thread, said.id DESC"""


class PostgresSearch:
    """The index in a Postgres database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, words: str, people: Sequence[Identity], *, limit: int) -> tuple[FoundMessage, ...]:
        wanted = terms_of(words)
        if not wanted:
            return ()
        threads = await self._database.read(lambda db: _threads_of(db, people))
        await self._complete(threads)
        values = (_query(wanted), threads, limit)
        rows = await self._database.read(lambda db: db.fetch(_FIND, *values))
        return tuple(map(_said, rows))

    async def newest_in(self, words: str, threads: Collection[str]) -> Mapping[str, FoundMessage]:
        wanted = terms_of(words)
        if not wanted or not threads:
            return {}
        keys = [plain(thread) for thread in threads]
        found = await self._database.read(lambda db: db.fetch(_IDS, keys))
        ids = [row["id"] for row in found]
        await self._complete(ids)
        rows = await self._database.read(lambda db: db.fetch(_NEWEST_IN, _query(wanted), ids))
        return {said.thread: said for said in map(_said, rows)}

    async def _complete(self, threads: Sequence[int]) -> None:
        """Index what was said in the threads since they were last searched."""
        behind = await self._database.read(lambda db: db.fetch(_BEHIND, threads))
        for row in behind:
            work = partial(_index, thread=row["thread"])
            while not await self._database.write(work):
                pass


async def _index(db: Connection, thread: int) -> bool:
    """Index further records of a thread; whether none is left."""
    await lock(db, "said")
    rows = await db.fetch(_NEXT, thread, _AT_ONCE)
    off_record = {row["session_id"] for row in await db.fetch(_OFF_RECORD, thread)}
    words = [
        (row["id"], thread, terms)
        for row in rows
        if row["kind"] in ("user", "assistant") and row["session_id"] not in off_record
        if (terms := _indexed(str(decode_body(row["body"]).get("text") or "")))
    ]
    await db.executemany(_INDEX, words)
    if rows:
        await db.execute(_NOTE, thread, rows[-1]["id"])
    return len(rows) < _AT_ONCE


async def _threads_of(db: Connection, people: Sequence[Identity]) -> list[int]:
    threads: set[int] = set()
    for person in people:
        user = plain(person.user)
        written = (json.dumps(user, ensure_ascii=False), json.dumps(user))
        rows = await db.fetch(_THREADS, account_prefix(person), user, *written)
        threads.update(row["thread"] for row in rows)
    return sorted(threads)


def _indexed(text: str) -> list[str]:
    """The different words of a text, as far as the index holds them."""
    size = 0
    words: dict[str, None] = {}
    for term in _cut(terms_of(text)):
        size += 0 if term in words else len(term.encode()) + 4
        if size > _MOST_BYTES:
            break
        words[term] = None
    return list(words)


def _cut(terms: Iterable[str]) -> Iterable[str]:
    return (term[:_MOST_CHARS] for term in terms)


def _query(wanted: Sequence[str]) -> str:
    # A term has letters and digits alone, so it needs no escape.
    return " & ".join(f"'{term}':*" for term in _cut(wanted))


def _said(row: Any) -> FoundMessage:
    return FoundMessage(
        thread=row["key"],
        kind="user" if row["kind"] == "user" else "assistant",
        text=str(decode_body(row["body"]).get("text", "")),
        at=row["at"],
    )
