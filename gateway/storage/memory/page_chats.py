"""Names and deletions of conversations in dictionaries."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from gateway.storage.append_errors import fence_lost
from gateway.storage.heartbeats import state_in
from gateway.storage.inbox_items import native_id_of
from gateway.storage.jobs import NewJob
from gateway.storage.json_bodies import FORGOTTEN, encode_body
from gateway.storage.memory.feedback import MemoryFeedback
from gateway.storage.memory.jobs import MemoryJobs
from gateway.storage.memory.page_people import MemoryPagePeople
from gateway.storage.memory.rows import EntryRow, InteractionRow, ReplyRow, ThreadRow
from gateway.storage.memory.saved_workflows import MemorySavedWorkflows
from gateway.storage.memory.shield import MemoryShield
from gateway.storage.memory.states import MemoryStates
from gateway.storage.ports import Lease


class MemoryPage:
    """The page's books: a part of `MemoryStore`, whose tables it shares. `require_open` raises StorageError
    if the store is closed."""

    def __init__(
        self,
        require_open: Callable[[], None],
        threads: dict[str, ThreadRow],
        entries: Mapping[int, EntryRow],
        outbox: Mapping[int, ReplyRow],
        interactions: dict[str, InteractionRow],
        jobs: MemoryJobs,
        states: MemoryStates,
        feedback: MemoryFeedback,
        shield: MemoryShield,
    ) -> None:
        self._require_open = require_open
        self._threads = threads
        self._entries = entries
        self._outbox = outbox
        self._interactions = interactions
        self._jobs = jobs
        self._states = states
        self._feedback = feedback
        self._shield = shield
        self._names: dict[str, str] = {}
        self._deleted: set[str] = set()
        self.people = MemoryPagePeople(require_open, self._cancel_all, jobs)
        self.workflows = MemorySavedWorkflows(require_open)

    @property
    def chats(self) -> MemoryPage:
        """Itself: names and deletions."""
        return self

    async def rename(self, thread: str, name: str) -> None:
        self._require_open()
        self._names[thread] = name

    async def names(self, threads: Collection[str]) -> Mapping[str, str]:
        self._require_open()
        return {one: self._names[one] for one in threads if self._names.get(one) and one not in self._deleted}

    async def all_names(self) -> Mapping[str, str]:
        """Every name, also those of deleted conversations."""
        self._require_open()
        return dict(self._names)

    async def deleted(self) -> frozenset[str]:
        self._require_open()
        return frozenset(self._deleted)

    def is_deleted(self, thread: str) -> bool:
        """Whether `Store.threads_of` leaves it out."""
        return thread in self._deleted

    async def begin_deletion(self, thread: str, job: NewJob) -> None:
        self._require_open()
        self._jobs.add_now([(job, encode_body(job.body))])
        self._names.pop(thread, None)
        self._deleted.add(thread)
        self._cancel(self._threads.get(thread))

    async def erase(self, thread: str, *, owner: str, fence: int, but_jobs: str) -> None:
        self._require_open()
        row = self._threads.get(thread)
        if row is None or (row.fence, row.owner) != (fence, owner):
            raise fence_lost(Lease(thread=thread, owner=owner, fence=fence, expires_at=0.0))
        for session in {one.record.session_id for one in row.log}:
            await self._states.forget(f"session:{session}")
            self._shield.taints.drop_of(session)
        row.log.clear()
        row.user_records.clear()
        row.unfinished.clear()
        for entry in self._entries.values():
            if entry.thread == thread:
                left: dict[str, Any] = {"native_id": native_id_of(entry.view().body)}
                entry.body, entry.outcome = encode_body(left), entry.outcome or "cancelled"
                entry.keys.pop(entry.message_id, None)
        for reply in self._outbox.values():
            if reply.thread == thread:
                reply.body, reply.state = FORGOTTEN, "failed" if reply.is_open else reply.state
        for key in [key for key, one in self._interactions.items() if one.interaction.thread == thread]:
            del self._interactions[key]
        self._jobs.drop_of(thread, but=but_jobs)
        self._feedback.drop_of(thread)
        self._shield.permissions.drop_of(thread)
        self.workflows.drop_of(thread)
        await self._states.forget(thread)
        self._states.drop_graph(state_in(thread))

    def _cancel_all(self, prefix: str) -> None:
        for key, thread in self._threads.items():
            if key.startswith(prefix):
                self._cancel(thread)

    @staticmethod
    def _cancel(thread: ThreadRow | None) -> None:
        for entry in () if thread is None else thread.unfinished.values():
            entry.cancelled = True
