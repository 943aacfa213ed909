"""Leave the session of a thread in the cache when its lease is released, and take it up again with the next
lease, in place of reading it from the store.

Every write to a thread's log needs the thread's lease, and each acquisition raises the fence. So what the
holder of fence n left at its end is the whole truth for the holder of fence n + 1, and for no one else.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from gateway.cluster.thread_cache import ThreadCache
from gateway.storage.ports import Lease, Store
from gateway.turns.sessions import SessionState, load_session
from pipeline.domain.chat import message_from_plain, message_to_plain
from pipeline.domain.conversation import Conversation, PastTurn, Source, Summary
from pipeline.domain.files import stored_file_from_plain, stored_file_to_plain
from pipeline.history.stale_results import with_brief

_log = logging.getLogger(__name__)

_FORMAT = 1
"""Another one is not read: releases of before and after share a cache during an upgrade."""


class CachedSessions:
    """Opens sessions from a `ThreadCache`, where there is one, or from the store."""

    def __init__(self, store: Store, cache: ThreadCache | None) -> None:
        self._store = store
        self._cache = cache

    async def open(self, thread: str, lease: Lease | None) -> SessionState:
        """The thread's current session: for the holder of its `lease` the one that the holder before has
        left, or else that of the store. Raises StorageError."""
        found = None if self._cache is None or lease is None else await self._taken(self._cache, lease)
        return found or await load_session(self._store, thread)

    async def leave(self, lease: Lease, session: SessionState) -> None:
        """Leave the session for the next holder, once nothing more is written under the lease. Not one off
        the record."""
        if self._cache is None or session.mode != "normal" or not (session.stored and session.is_whole):
            return
        text = json.dumps(_plain(session), ensure_ascii=False)
        await self._cache.put(lease.thread, lease.fence, text)

    async def close(self) -> None:
        """Disconnect from the cache."""
        if self._cache is not None:
            await self._cache.close()

    async def _taken(self, cache: ThreadCache, lease: Lease) -> SessionState | None:
        text = await cache.take(lease.thread, lease.fence - 1)
        if text is None:
            return None
        try:
            return _session(json.loads(text))
        except (ValueError, KeyError, TypeError) as error:
            _log.warning("a cached thread is not readable", extra={"reason": type(error).__name__})
            return None


def _plain(session: SessionState) -> dict[str, Any]:
    known = session.conversation
    summary = known.summary
    return {
        "format": _FORMAT,
        "session": session.session_id,
        "agent": session.agent,
        "model": session.model,
        "title": session.title,
        "summary": None if summary is None else [summary.text, summary.upto, summary.foreign],
        "turns": [_turn_to_plain(turn) for turn in known.turns],
    }


def _session(plain: Mapping[str, Any]) -> SessionState | None:
    if plain["format"] != _FORMAT:
        return None
    summary = plain["summary"]
    conversation = Conversation(
        summary=None if summary is None else Summary(text=summary[0], upto=summary[1], foreign=summary[2]),
        turns=tuple(map(_turn_from_plain, plain["turns"])),
    )
    session = SessionState(plain["session"], conversation, stored=True, agent=plain["agent"])
    session.model, session.title = plain["model"], plain["title"]
    return session


def _turn_to_plain(turn: PastTurn) -> dict[str, Any]:
    source = turn.source
    return {
        "id": turn.id,
        "at": turn.at,
        "messages": [message_to_plain(message) for message in turn.messages],
        "source": {
            "message_id": source.message_id,
            "root": source.root,
            "text": source.text,
            "author": source.author,
            "answers": source.answers,
            "files": [stored_file_to_plain(file) for file in source.files],
            "attached": source.attached,
        },
    }


def _turn_from_plain(plain: Mapping[str, Any]) -> PastTurn:
    source = dict(plain["source"])
    source["files"] = tuple(map(stored_file_from_plain, source["files"]))
    turn = PastTurn(
        id=plain["id"],
        at=plain["at"],
        messages=tuple(map(message_from_plain, plain["messages"])),
        source=Source(**source),
    )
    return with_brief(turn)
