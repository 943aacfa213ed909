"""Name conversations of the page, and delete them: hide one at once, stop it, and erase its words as a job.

The job is durable with the hiding, so that a process that dies in between erases the words at its next start.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from adapters.guests import GuestRefused
from gateway.ingress.thread_stops import ThreadStops
from gateway.runtime.crash_labels import CrashLabels
from gateway.storage.jobs import Job, NewJob
from gateway.storage.ports import Lease, Store
from pipeline.domain.clock import Clock
from pipeline.domain.ids import ThreadKey, heartbeat_thread

ERASURE: Final = "erasure"
"""The kind of the job. Its key is the thread's."""
_AGAIN_S = 1.0

WhenIdle = Callable[[str, Callable[[Lease, object], Awaitable[None]]], Awaitable[bool]]
"""As `Worker.when_idle`."""


class DeletedChats(Protocol):
    """The deleted conversations, in memory."""

    def is_deleted(self, thread: ThreadKey) -> bool: ...

    def note_deleted(self, thread: ThreadKey) -> None:
        """Nothing is accepted in the conversation from now on."""
        ...


class ChatDeletion:
    """Implements `adapters.guests.PageChats`. `added` is called after a job is durable; `close_links` ends
    the links to the files of a conversation, and `discard_files` deletes the files."""

    def __init__(
        self,
        *,
        store: Store,
        deleted: DeletedChats,
        stops: ThreadStops,
        when_idle: WhenIdle,
        added: Callable[[tuple[NewJob, ...]], None],
        close_links: Callable[[ThreadKey], None],
        discard_files: Callable[[ThreadKey], Awaitable[None]],
        clock: Clock,
        crash_labels: CrashLabels,
    ) -> None:
        self._store = store
        self._deleted = deleted
        self._stops = stops
        self._when_idle = when_idle
        self._added = added
        self._close_links = close_links
        self._discard_files = discard_files
        self._clock = clock
        self._crash_labels = crash_labels

    def is_deleted(self, thread: ThreadKey) -> bool:
        return self._deleted.is_deleted(thread)

    async def name_of(self, thread: ThreadKey) -> str:
        key = thread.encode()
        return (await self._store.page.chats.names((key,))).get(key, "")

    async def rename(self, thread: ThreadKey, name: str) -> None:
        if not await self._exists(thread):
            raise GuestRefused("there is no such conversation")
        await self._store.page.chats.rename(thread.encode(), name)

    async def delete(self, thread: ThreadKey) -> None:
        if await self._exists(thread):
            await self.begin(thread)

    async def begin(self, thread: ThreadKey) -> None:
        """Hide the conversation, and have it erased soon. Repeatable. Raises StorageError."""
        key = thread.encode()
        job = NewJob(kind=ERASURE, key=key, thread=key, due=self._clock.now())
        await self._store.page.chats.begin_deletion(key, job)
        self._deleted.note_deleted(thread)
        self._close_links(thread)
        self._crash_labels.reach("deletion-begun")
        await self._stops.stop(key)
        await self._stops.stop(heartbeat_thread(thread).encode())
        self._added((job,))

    async def run(self, job: Job) -> float | None:
        """Erase the words of the job's conversation. Returns seconds if it is still in use."""
        thread = ThreadKey.decode(job.thread)
        self._close_links(thread)
        # Its heartbeats first: with the conversation's own words the job is done.
        heartbeats = heartbeat_thread(thread).encode()
        if await self._has_words(heartbeats) and not await self._is_erased(heartbeats):
            return _AGAIN_S
        return None if await self._is_erased(job.thread) else _AGAIN_S

    async def _is_erased(self, key: str) -> bool:
        """Stop the thread and erase its words; False while it is still in use."""
        await self._stops.stop(key)
        return not await self._store.outbox_open(key) and await self._when_idle(key, self._erase)

    async def _exists(self, thread: ThreadKey) -> bool:
        """Whether there is anything in the conversation, so that nothing is kept about any other id."""
        return not self.is_deleted(thread) and await self._has_words(thread.encode())

    async def _has_words(self, key: str) -> bool:
        return bool(await self._store.read_log(key, limit=1) or await self._store.open_entries(key))

    async def _erase(self, lease: Lease, _session: object) -> None:
        await self._discard_files(ThreadKey.decode(lease.thread))
        # Of all chats: a transcript that is missing is made again when its recording comes once more.
        await self._store.voices.forget_transcripts()
        self._crash_labels.reach("erase-before")
        chats = self._store.page.chats
        await chats.erase(lease.thread, owner=lease.owner, fence=lease.fence, but_jobs=ERASURE)
        self._crash_labels.reach("erase-after")
