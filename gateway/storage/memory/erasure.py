"""The erasure of people in dictionaries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from gateway.storage.append_errors import fence_lost
from gateway.storage.erasure import (
    DROPPED,
    PersonKeys,
    Redaction,
    RoomMessage,
    erasure_record,
    quoted_ids,
    redacted_audit,
    redaction_of,
)
from gateway.storage.identities import Identity
from gateway.storage.inbox_items import native_id_of
from gateway.storage.json_bodies import FORGOTTEN, encode_body
from gateway.storage.memory.crises import MemoryCrises
from gateway.storage.memory.feedback import MemoryFeedback
from gateway.storage.memory.file_changes import MemoryFileChanges
from gateway.storage.memory.identities import MemoryIdentities
from gateway.storage.memory.jobs import MemoryJobs
from gateway.storage.memory.pairings import MemoryPairings
from gateway.storage.memory.rows import EntryRow, InteractionRow, ReplyRow, ThreadRow
from gateway.storage.memory.shield import MemoryShield
from gateway.storage.memory.speech import MemoryVoices
from gateway.storage.memory.states import MemoryStates
from gateway.storage.memory.usage import MemoryUsage
from gateway.storage.ports import Lease
from pipeline.domain.ids import ThreadKey


class Tables(Protocol):
    """The parts of a `MemoryStore` that hold something of people."""

    identities: MemoryIdentities
    states: MemoryStates
    crises: MemoryCrises
    shield: MemoryShield
    usage: MemoryUsage
    jobs: MemoryJobs
    voices: MemoryVoices
    pairings: MemoryPairings
    feedback: MemoryFeedback
    file_changes: MemoryFileChanges


class MemoryErasure:
    """A part of `MemoryStore`, whose tables it shares. `require_open` raises StorageError if the store is
    closed."""

    def __init__(
        self,
        require_open: Callable[[], None],
        threads: Mapping[str, ThreadRow],
        entries: Mapping[int, EntryRow],
        outbox: Mapping[int, ReplyRow],
        interactions: dict[str, InteractionRow],
        store: Tables,
    ) -> None:
        self._require_open = require_open
        self._threads = threads
        self._entries = entries
        self._outbox = outbox
        self._interactions = interactions
        self._store = store

    async def keys_of(self, identity: Identity) -> PersonKeys:
        self._require_open()
        return self._store.identities.keys_of(identity)

    async def private_threads(self, person: PersonKeys) -> tuple[str, ...]:
        self._require_open()
        written = self._written_in(person, private=True)
        linked = [thread for one in person.identities for thread in self._store.identities.threads_of(one)]
        found = dict.fromkeys([*written, *linked])
        return tuple(key for key in found if self._is_left(key))

    async def rooms(self, person: PersonKeys) -> tuple[str, ...]:
        self._require_open()
        found = dict.fromkeys(self._written_in(person, private=False))
        for key in self._threads:
            gone = self._redaction(key, person)
            if gone.entries:
                found[key] = None
        return tuple(found)

    async def messages_in_room(self, thread: str, person: PersonKeys) -> tuple[str, ...]:
        self._require_open()
        return tuple(sorted(self._redaction(thread, person).turns))

    async def redact_room(self, thread: str, person: PersonKeys, *, owner: str, fence: int) -> None:
        self._require_open()
        row = self._threads.get(thread)
        if row is None or (row.fence, row.owner) != (fence, owner):
            raise fence_lost(Lease(thread=thread, owner=owner, fence=fence, expires_at=0.0))
        gone, users = self._redaction(thread, person), _users_of(thread, person)
        for seq in gone.entries:
            left = {"native_id": native_id_of(self._entries[seq].view().body)}
            self._entries[seq].body = encode_body(left)
        bodies = [gone.left_of(one.record.kind, one.record.message_id) for one in row.log]
        for one, body in zip(row.log, bodies, strict=True):
            one.body = one.body if body is None else body
        row.log[:] = [one for one, body in zip(row.log, bodies, strict=True) if body != DROPPED]
        for reply in self._outbox.values():
            if reply.thread == thread and reply.new.message_id in gone.turns:
                reply.body = FORGOTTEN
        for key, asked in list(self._interactions.items()):
            view = asked.view()
            if view.thread == thread and gone.concerns(view.body, view.allowed_users, users):
                del self._interactions[key]

    async def forget_person(self, person: PersonKeys, *, but_jobs: str) -> None:
        self._require_open()
        store, identities, keys = self._store, person.identities, frozenset(person.keys)
        for key in person.keys:
            await store.states.forget(key)
            await store.shield.asked.forget(key)
            await store.crises.forget(key)
        store.usage.drop_of(keys)
        store.jobs.drop_of_person(keys, identities, but=but_jobs)
        store.voices.drop_of(keys, identities)
        store.pairings.drop_of(identities)
        store.feedback.drop_of_people(identities)
        store.shield.permissions.drop_of_people(identities)
        store.file_changes.forget_authors(identities)
        store.identities.drop_of(identities)

    async def forget_usage(self, scopes: Sequence[str]) -> None:
        self._require_open()
        self._store.usage.drop_of(frozenset(scopes))

    async def redact_audit(self, person: PersonKeys, *, at: float) -> int:
        book = self._store.shield.audit
        head = await book.head()
        redacted = None if head is None else redacted_audit(book.rows, head, person)
        if head is None or redacted is None:
            return 0
        book.rewrite(redacted.rows, redacted.head, quoted_ids(person))
        await book.append([erasure_record(head, redacted.named, at)])
        return redacted.named

    async def compact(self) -> None:
        self._require_open()

    def _written_in(self, person: PersonKeys, *, private: bool) -> list[str]:
        found = []
        for entry in self._entries.values():
            body = entry.view().body
            is_theirs = body.get("author") in _users_of(entry.thread, person)
            if is_theirs and bool(body.get("private", True)) == private:
                found.append(entry.thread)
        return found

    def _redaction(self, thread: str, person: PersonKeys) -> Redaction:
        entries = [
            RoomMessage(seq=one.seq, message_id=one.message_id, joined=one.joined, body=one.view().body)
            for one in self._entries.values()
            if one.thread == thread and not one.view().body.get("private", True)
        ]
        row = self._threads[thread]
        said = [
            (one.record.message_id, one.view(thread).body) for one in row.log if one.record.kind == "user"
        ]
        return redaction_of(entries, said, _users_of(thread, person))

    def _is_left(self, thread: str) -> bool:
        row = self._threads.get(thread)
        return row is not None and bool(row.unfinished or any(one.record.kind != "notice" for one in row.log))


def _users_of(thread: str, person: PersonKeys) -> frozenset[str]:
    account = ThreadKey.decode(thread).account_key
    return frozenset(one.user for one in person.identities if (one.channel, one.account) == account)
