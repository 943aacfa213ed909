"""What the database and the platforms say after a fault run of a cluster."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import asyncpg

from tests.support.platforms.platform import FakePlatform


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFigures:
    """What the database says in the end."""

    messages: int
    unanswered: int
    """Messages without exactly one answer on record."""
    unsent: int
    """Answers that are not on record as sent exactly once."""
    order_errors: int
    """Neighbouring entries of a thread whose answers are in another order."""
    begun_again: int
    """Turns that another process, or the same one after a restart, has begun again."""


async def _rows(url: str, query: str, *values: object) -> list[asyncpg.Record]:
    connection = await asyncpg.connect(url, server_settings={"search_path": "parlour"})
    try:
        return list(await connection.fetch(query, *values))
    finally:
        await connection.close()


async def stored_figures(url: str) -> StoredFigures:
    """What the database at `url` says of all messages and answers."""
    rows = await _rows(
        url,
        """
            SELECT inbox.seq, inbox.thread, inbox.attempts, inbox.outcome,
                (SELECT count(*) FROM log WHERE log.thread = inbox.thread
                    AND log.message_id = inbox.message_id AND kind = 'assistant') AS answers,
                (SELECT min(id) FROM log WHERE log.thread = inbox.thread
                    AND log.message_id = inbox.message_id AND kind = 'assistant') AS place,
                (SELECT array_agg(state) FROM outbox WHERE outbox.thread = inbox.thread
                    AND outbox.message_id = inbox.message_id) AS states
            FROM inbox WHERE inbox.kind = 'message' ORDER BY inbox.thread, inbox.seq""",
    )
    return StoredFigures(
        messages=len(rows),
        unanswered=sum(row["outcome"] != "answered" or row["answers"] != 1 for row in rows),
        unsent=sum(row["states"] != ["sent"] for row in rows),
        order_errors=sum(
            one["thread"] == other["thread"] and (one["place"] or 0) > (other["place"] or 0)
            for one, other in pairwise(rows)
        ),
        begun_again=sum(max(0, row["attempts"] - 1) for row in rows),
    )


async def accepted_texts(url: str) -> Sequence[str]:
    """The texts of all messages, in the order in which they were accepted. A platform delivers again what a
    frozen process did not acknowledge, and by then later messages are accepted."""
    rows = await _rows(
        url,
        "SELECT body FROM inbox WHERE kind = 'message' ORDER BY seq",
    )
    return [json.loads(row["body"])["text"] for row in rows]


async def running_turns(url: str, name: str) -> Sequence[str]:
    """The ids of the messages whose turns the newest process with this name has begun and not ended."""
    rows = await _rows(
        url,
        """
            SELECT inbox.message_id FROM inbox JOIN threads ON threads.id = inbox.thread
            WHERE inbox.kind = 'message' AND inbox.outcome IS NULL AND inbox.attempts > inbox.excused
                AND threads.owner =
                    (SELECT id FROM owners WHERE name = $1 ORDER BY expires_at DESC LIMIT 1)""",
        name,
    )
    return [row["message_id"] for row in rows]


async def takeovers(url: str, killed_at: Mapping[str, float]) -> list[float]:
    """Seconds from the Unix time of each kill, by the message whose turn it interrupted, to the first record
    of the turn that was begun again."""
    rows = await _rows(
        url,
        """
            SELECT log.message_id, array_agg(log.at ORDER BY log.id) AS at FROM log
            WHERE log.message_id = ANY($1) AND log.kind IN ('user', 'step', 'assistant')
            GROUP BY log.message_id""",
        [*killed_at],
    )
    found = []
    for row in rows:
        killed = killed_at[row["message_id"]]
        found += [at - killed for at in row["at"] if at > killed][:1]
    return sorted(found)


def shrunk_edits(platform: FakePlatform) -> int:
    """How often an edit left a shorter answer than the one before on the same message."""
    longest: dict[str, int] = {}
    shrunk = 0
    for call in platform.calls:
        if "edit" not in call.method.lower() and "update" not in call.method.lower():
            continue
        payload = call.payload
        native = str(payload.get("message_id") or payload.get("ts") or payload.get("id") or "")
        place = str(payload.get("chat_id") or payload.get("channel") or "")
        text = payload.get("text") or payload.get("content")
        if not native or not isinstance(text, str) or call.status >= 400 or not text.startswith("You said"):
            continue
        key = f"{place}/{native}"
        shrunk += len(text) < longest.get(key, 0)
        longest[key] = max(longest.get(key, 0), len(text))
    return shrunk
