"""SQL that reads the inbox, the threads and pending questions."""

from __future__ import annotations

import json
from typing import Final

from gateway.storage.inbox_items import item_of
from gateway.storage.json_bodies import SEALED_TEXT, decode_body
from gateway.storage.ports import InboxEntry, Interaction, OutboxRow, SentPart
from gateway.storage.postgres.call_queue import Row
from gateway.storage.postgres.seals import Keys, readable

OPEN_THREADS: Final = """
    SELECT key FROM threads JOIN
        (SELECT thread, min(seq) AS first FROM inbox WHERE outcome IS NULL GROUP BY thread) AS waiting
        ON waiting.thread = threads.id
    ORDER BY first"""
OPEN_ENTRIES: Final = """
    SELECT seq, message_id, kind, body, received_at, attempts, excused, cancelled, joined, steered
    FROM inbox WHERE thread = (SELECT id FROM threads WHERE key = $1) AND outcome IS NULL
    ORDER BY seq LIMIT $2"""
NEWEST_ENTRIES: Final = """
    SELECT key, message_id, body FROM inbox JOIN threads ON threads.id = inbox.thread
    ORDER BY seq DESC LIMIT $1"""
# The last code point is an upper bound for every chat id.
SPOKEN_IN: Final = """
    SELECT key FROM (
        SELECT t.key,
               (SELECT max(id) FROM log WHERE thread = t.id) AS newest,
               EXISTS (SELECT 1 FROM inbox WHERE thread = t.id AND outcome IS NULL) AS waits
        FROM threads AS t WHERE t.key >= $1 AND t.key < $1 || chr(1114111)
            AND NOT EXISTS (SELECT 1 FROM page_chats WHERE thread = t.key AND deleted)
    ) AS spoken WHERE newest IS NOT NULL OR waits
    ORDER BY newest IS NULL DESC, newest DESC LIMIT $2"""
COUNTS: Final = """SELECT
    (SELECT count(*) FROM inbox WHERE outcome IS NULL) AS inbox_open,
    (SELECT count(*) FROM inbox WHERE outcome IS NOT NULL) AS inbox_done,
    (SELECT count(*) FROM outbox WHERE state IN ('ready', 'sending')) AS outbox_open,
    (SELECT count(*) FROM log) AS records"""
_REPLY = """
    SELECT o.id, o.key, t.key AS thread, message_id, entry_id, body, state, attempts, not_before, created_at,
        receipt, error
    FROM outbox AS o JOIN threads AS t ON t.id = o.thread """
ALL_REPLIES: Final = _REPLY + "WHERE state IN ('ready', 'sending') ORDER BY o.id"
REPLIES_OF_THREAD: Final = _REPLY + "WHERE state IN ('ready', 'sending') AND t.key = $1 ORDER BY o.id"
REPLY: Final = _REPLY + "WHERE o.id = $1"
REPLY_BY_KEY: Final = _REPLY + "WHERE o.key = $1"
RECEIPTS: Final = """
    SELECT o.receipt FROM outbox AS o JOIN threads AS t ON t.id = o.thread
    WHERE o.state = 'sent' AND (t.key = $1 OR (t.key > $1 || ':' AND t.key < $1 || ';'))
    ORDER BY o.id DESC LIMIT 20"""
SHOWN: Final = "SELECT part, native_id, final, at FROM shown WHERE key = $1 ORDER BY part"
_QUESTION = """
    SELECT i.id, t.key AS thread, session_id, kind, options, allowed_users, action_hash, created_at,
        i.expires_at, body, choice
    FROM interactions AS i JOIN threads AS t ON t.id = i.thread """
QUESTION: Final = _QUESTION + "WHERE i.id = $1"
PENDING: Final = (
    _QUESTION + "WHERE t.key = $1 AND answered_at IS NULL AND i.expires_at > $2 ORDER BY created_at, n"
)


def entry_of(thread: str, row: Row, keys: Keys) -> InboxEntry:
    """The entry of a row of `OPEN_ENTRIES`."""
    kind, message_id, received_at = row["kind"], row["message_id"], row["received_at"]
    body = readable(keys, message_id, row["body"])
    return InboxEntry(
        seq=row["seq"],
        thread=thread,
        message_id=message_id,
        kind=kind,
        body=body,
        item=item_of(kind, thread, message_id, received_at, body),
        received_at=received_at,
        attempts=row["attempts"],
        excused=row["excused"],
        cancelled=row["cancelled"],
        joined=row["joined"],
        steered=row["steered"],
        sealed=row["body"].startswith(SEALED_TEXT),
    )


def reply_of(row: Row) -> OutboxRow:
    """The reply of a row of the outbox."""
    values = dict(row)
    return OutboxRow(**values | {"body": decode_body(values["body"])})


def part_of(row: Row) -> SentPart:
    """The part of a row of `SHOWN`."""
    return SentPart(**dict(row))


def question_of(row: Row, keys: Keys) -> Interaction:
    """The interaction of a row of `QUESTION` or `PENDING`."""
    return Interaction(
        id=row["id"],
        thread=row["thread"],
        session_id=row["session_id"],
        kind=row["kind"],
        options=tuple(json.loads(row["options"])),
        allowed_users=tuple(json.loads(row["allowed_users"])),
        action_hash=row["action_hash"],
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        body=readable(keys, row["id"], row["body"]),
    )
