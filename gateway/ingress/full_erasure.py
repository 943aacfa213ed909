"""Erase everything of a person, on all channels where they are linked: the job behind `parlour people erase`.

Each step may be repeated, and finds what an earlier attempt has left, so that a process that dies in between
continues at its next start. The store's file is made new at the end, so that its file holds no deleted byte.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from functools import partial

from adapters.guests import chats_of, is_guest, person_of
from adapters.web.settings import ACCOUNT, CHANNEL
from gateway.ingress.chat_deletion import ChatDeletion, WhenIdle
from gateway.ingress.thread_stops import ThreadStops
from gateway.people.erasing import FULL_ERASURE, erased_person
from gateway.runtime.crash_labels import CrashLabels
from gateway.storage.erasure import PersonKeys
from gateway.storage.identities import Identity
from gateway.storage.jobs import Job
from gateway.storage.log_records import files_of
from gateway.storage.ports import Lease, RecordKind, Store
from pipeline.domain.clock import Clock
from pipeline.domain.files import FileStore
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import ThreadKey, room_owner

_AGAIN_S = 1.0
_UNSENT_S = 600.0
"""How long an unsent reply may hold up the erasure of its chat, in seconds; then it is not sent any more."""
_MOST_JOBS = 10_000
_WITH_FILES: tuple[RecordKind, ...] = ("user", "assistant", "error", "notice")


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonTraces:
    """What is kept of people outside the store's tables."""

    discard_files: Callable[[ThreadKey], Awaitable[None]]
    """Removes the files of a conversation, of both sides and of commands, and the copies for /undo files."""
    discard_notes: Callable[[str], Awaitable[None]]
    """Removes everything in the workspaces of an owner."""
    forget_changes: Callable[[str], Awaitable[None]]
    """Removes what is kept of an owner's files for /undo files."""
    discard_uploads: Callable[[str], Awaitable[None]]
    """Removes the uploads that wait for a message in the chats whose ids begin so."""
    write_usage: Callable[[], Awaitable[None]]
    """Writes use that was counted and is not stored yet."""
    forget_people: Callable[[Collection[Identity]], None]
    """Forgets what this process has of them in memory."""
    forget_session: Callable[[object], None]
    """Empties the live session of an erased thread."""
    read_again: Callable[[str, object], None]
    """Has the live session of a redacted thread read its log again."""


class FullErasure:
    """Runs the jobs of the kind FULL_ERASURE."""

    def __init__(
        self,
        *,
        store: Store,
        files: FileStore,
        stops: ThreadStops,
        chats: ChatDeletion,
        when_idle: WhenIdle,
        traces: PersonTraces,
        clock: Clock,
        crash_labels: CrashLabels,
    ) -> None:
        self._store = store
        self._files = files
        self._stops = stops
        self._chats = chats
        self._when_idle = when_idle
        self._traces = traces
        self._clock = clock
        self._crash_labels = crash_labels

    async def run(self, job: Job) -> float | None:
        """Erase the person of the job. Returns seconds while something of theirs is in use."""
        person = erased_person(job.body)
        erased = [await self._erase_chat(one) for one in await self._store.erasure.private_threads(person)]
        if not all(erased):
            return _AGAIN_S
        self._crash_labels.reach("person-chats-erased")
        redacted = [await self._redact_room(one, person) for one in await self._store.erasure.rooms(person)]
        if not all(redacted):
            return _AGAIN_S
        await self._forget(person)
        self._crash_labels.reach("person-forgotten")
        await self._store.erasure.compact()
        self._crash_labels.reach("person-compacted")
        return None

    # -- private chats --------------------------------------------------------------------------
    async def _erase_chat(self, key: str) -> bool:
        """Erase a chat; whether it is done."""
        thread = ThreadKey.decode(key)
        if thread.account_key == (CHANNEL, ACCOUNT) and person_of(thread.chat):
            # Of an invited person, who is signed out: the chat is hidden, and its id is not used again.
            await self._chats.begin(thread)
            return False
        await self._stops.stop_present(key)
        now = self._clock.now()
        if any(now - one.created_at < _UNSENT_S for one in await self._store.outbox_open(key)):
            return False
        # Such a job may be about to remember something of the chat.
        if any(one.claimed and one.thread == key for one in await self._store.jobs.listed(limit=_MOST_JOBS)):
            return False
        return await self._when_idle(key, self._erase)

    async def _erase(self, lease: Lease, session: object) -> None:
        thread = ThreadKey.decode(lease.thread)
        await self._traces.discard_files(thread)
        await self._traces.write_usage()
        await self._store.erasure.forget_usage([f"{thread.channel}:{thread.account}:chat:{thread.chat}"])
        if await self._store.page.chats.names([lease.thread]):
            await self._store.page.chats.rename(lease.thread, "")
        chats = self._store.page.chats
        await chats.erase(lease.thread, owner=lease.owner, fence=lease.fence, but_jobs=FULL_ERASURE)
        self._traces.forget_session(session)

    # -- rooms ----------------------------------------------------------------------------------
    async def _redact_room(self, key: str, person: PersonKeys) -> bool:
        return await self._when_idle(key, partial(self._redact, person))

    async def _redact(self, person: PersonKeys, lease: Lease, session: object) -> None:
        book, thread = self._store.erasure, lease.thread
        sessions: set[str] = set()
        for message in await book.messages_in_room(thread, person):
            records = await self._store.read_log(thread, kinds=_WITH_FILES, message_id=message)
            sessions.update(record.session_id for record in records)
            if files := [file.id for record in records for file in files_of(record)]:
                await self._files.discard(ThreadKey.decode(thread), files)
        # No fact of a room names its author: what rests on a conversation with the person goes.
        for one in sessions:
            await self._store.memories.forget_session(room_owner(ThreadKey.decode(thread)), one)
        await book.redact_room(thread, person, owner=lease.owner, fence=lease.fence)
        self._traces.read_again(thread, session)
        self._crash_labels.reach("person-room-redacted")

    # -- everything else ------------------------------------------------------------------------
    async def _forget(self, person: PersonKeys) -> None:
        traces = self._traces
        for key in person.keys:
            await traces.discard_notes(key)
            await traces.forget_changes(key)
            await self._store.memories.erase(key)
        for one in person.identities:
            if (one.channel, one.account) == (CHANNEL, ACCOUNT):
                await traces.discard_uploads(chats_of(one.user if is_guest(one.user) else ""))
        await traces.write_usage()
        await self._store.erasure.forget_person(person, but_jobs=FULL_ERASURE)
        await self._store.erasure.redact_audit(person, at=self._clock.now())
        traces.forget_people(person.identities)
