"""Search in what was said, by reading everything."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import cast

from gateway.storage.identities import Identity
from gateway.storage.json_bodies import decode_body
from gateway.storage.memory.rows import EntryRow, ThreadRow
from gateway.storage.search import SAID_KINDS, FoundMessage, account_prefix, terms_of


class MemorySearch:
    """A part of `MemoryStore`, which passes its rows and its check that the store is open."""

    def __init__(
        self,
        require_open: Callable[[], None],
        threads: Mapping[str, ThreadRow],
        entries: Mapping[int, EntryRow],
        is_deleted: Callable[[str], bool],
    ) -> None:
        self._require_open = require_open
        self._threads = threads
        self._entries = entries
        self._is_deleted = is_deleted

    async def find(self, words: str, people: Sequence[Identity], *, limit: int) -> tuple[FoundMessage, ...]:
        self._require_open()
        wanted = terms_of(words)
        if not wanted:
            return ()
        found: list[tuple[int, FoundMessage]] = []
        for thread in {thread for one in people for thread in self._threads_of(one)}:
            found += self._said(thread, wanted)
        found.sort(key=lambda pair: -pair[0])
        return tuple(said for _, said in found[:limit])

    async def newest_in(self, words: str, threads: Collection[str]) -> Mapping[str, FoundMessage]:
        self._require_open()
        wanted = terms_of(words)
        if not wanted:
            return {}
        found = {key: self._said(key, wanted) for key in threads if key in self._threads}
        return {key: max(said, key=lambda pair: pair[0])[1] for key, said in found.items() if said}

    def _threads_of(self, person: Identity) -> list[str]:
        mine: dict[str, bool] = {}
        for row in self._entries.values():
            body = decode_body(row.body)
            if row.thread.startswith(account_prefix(person)) and "author" in body:
                is_mine = body["author"] == person.user and bool(body.get("private", True))
                mine[row.thread] = mine.get(row.thread, True) and is_mine
        return [thread for thread, alone in mine.items() if alone and not self._is_deleted(thread)]

    def _said(self, thread: str, wanted: Sequence[str]) -> list[tuple[int, FoundMessage]]:
        log = self._threads[thread].log
        off_record = {
            row.record.session_id
            for row in log
            if row.record.kind == "session" and decode_body(row.body).get("mode") == "otr"
        }
        found = []
        for row in log:
            text = str(decode_body(row.body).get("text", ""))
            if row.record.kind not in SAID_KINDS or row.record.session_id in off_record:
                continue
            terms = terms_of(text)
            if all(any(term.startswith(word) for term in terms) for word in wanted):
                kind = cast("str", row.record.kind)
                said = FoundMessage(
                    thread=thread,
                    kind="user" if kind == "user" else "assistant",
                    text=text,
                    at=row.record.at,
                )
                found.append((row.id, said))
        return found
