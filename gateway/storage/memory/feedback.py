"""Feedback in a dictionary."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from gateway.storage.feedback import LOOKED_THROUGH, Feedback, ShownPart, ShownReply, Value, shown_reply
from gateway.storage.identities import Identity
from gateway.storage.json_bodies import decode_body, storable_text
from gateway.storage.memory.rows import EntryRow, ReplyRow
from gateway.storage.ports import SentPart

_Key = tuple[str, str, str, str]


class MemoryFeedback:
    """A part of `MemoryStore`, of which it reads the rows. `require_open` raises StorageError if the store is
    closed."""

    def __init__(
        self,
        require_open: Callable[[], None],
        replies: Mapping[int, ReplyRow],
        entries: Mapping[int, EntryRow],
        shown: Mapping[str, Mapping[int, SentPart]],
    ) -> None:
        self._require_open = require_open
        self._replies = replies
        self._entries = entries
        self._shown = shown
        self._given: dict[_Key, tuple[Feedback, bool]] = {}
        """By answer and person: the newest feedback, and whether it still counts."""

    def drop_of(self, thread: str) -> None:
        """Delete the feedback on answers in `thread`."""
        self._given = {key: one for key, one in self._given.items() if one[0].thread != thread}

    def drop_of_people(self, identities: Collection[Identity]) -> None:
        """Delete the feedback of these people."""
        places = {(one.channel, one.account, one.user) for one in identities}
        self._given = {key: one for key, one in self._given.items() if key[1:] not in places}

    async def give(self, feedback: Feedback) -> bool:
        self._require_open()
        given = replace(feedback, user=storable_text(feedback.user), name=storable_text(feedback.name))
        known = self._given.get(_key(given))
        if known is None:
            self._given[_key(given)] = (given, True)
            return True
        before, counts = known
        if given.at < before.at or (counts and before.value == given.value):
            return False
        # As in the other stores, the answer's facts are those of the first time.
        self._given[_key(given)] = (replace(before, value=given.value, name=given.name, at=given.at), True)
        return True

    async def take_back(self, feedback: Feedback) -> bool:
        self._require_open()
        known = self._given.get(_key(feedback))
        if known is None:
            self._given[_key(feedback)] = (feedback, False)
            return False
        before, counts = known
        if not counts or before.value != feedback.value or feedback.at < before.at:
            return False
        self._given[_key(feedback)] = (replace(before, at=feedback.at), False)
        return True

    async def of_thread(self, thread: str) -> Mapping[str, Value]:
        self._require_open()
        given = [one for one, counts in self._given.values() if counts and one.thread == thread]
        return {one.message_id: one.value for one in sorted(given, key=lambda one: one.at)}

    async def listed(self, *, since: float = 0.0, limit: int) -> tuple[Feedback, ...]:
        self._require_open()
        given = [one for one, counts in self._given.values() if counts and one.at >= since]
        return tuple(sorted(given, key=lambda one: -one.at)[:limit])

    async def reply_shown_by(self, chat: str, native_id: str) -> ShownReply | None:
        self._require_open()
        for row_id in sorted(self._replies, reverse=True)[:LOOKED_THROUGH]:
            row = self._replies[row_id]
            shown = row.state == "sent" and native_id in row.receipt.split(",")
            if shown and _in_chat(row.thread, chat):
                return _reply(row)
        return None

    async def reply_to(self, message_id: str) -> ShownReply | None:
        self._require_open()
        found = (row for row in self._replies.values() if row.new.key == message_id)
        row = next(found, None)
        return None if row is None else _reply(row)

    async def part_shown_by(self, chat: str, native_id: str) -> ShownPart | None:
        self._require_open()
        for entry in self._entries.values():
            if entry.outcome is not None or not _in_chat(entry.thread, chat):
                continue
            for part in self._shown.get(entry.message_id, {}).values():
                if part.final and part.native_id == native_id:
                    return ShownPart(thread=entry.thread, part=part.part)
        return None


def _key(feedback: Feedback) -> _Key:
    return feedback.message_id, feedback.channel, feedback.account, storable_text(feedback.user)


def _in_chat(thread: str, chat: str) -> bool:
    return thread == chat or thread.startswith(f"{chat}:")


def _reply(row: ReplyRow) -> ShownReply:
    return shown_reply(row.new.message_id, row.thread, decode_body(row.body))
