"""The rows of MemoryStore and its books, which share them."""

from __future__ import annotations

from gateway.storage.append_errors import fence_lost
from gateway.storage.memory.blobs import MemoryBlobs
from gateway.storage.memory.bursts import MemoryBursts
from gateway.storage.memory.changes import MemoryChanges
from gateway.storage.memory.crash_counts import MemoryDeaths
from gateway.storage.memory.crises import MemoryCrises
from gateway.storage.memory.erasure import MemoryErasure
from gateway.storage.memory.expiries import MemoryExpiries
from gateway.storage.memory.feedback import MemoryFeedback
from gateway.storage.memory.file_changes import MemoryFileChanges
from gateway.storage.memory.finished import MemoryFinished
from gateway.storage.memory.formats import MemoryFormats
from gateway.storage.memory.identities import MemoryIdentities
from gateway.storage.memory.jobs import MemoryJobs
from gateway.storage.memory.memories import MemoryMemories
from gateway.storage.memory.owners import MemoryOwners
from gateway.storage.memory.page_chats import MemoryPage
from gateway.storage.memory.pairings import MemoryPairings
from gateway.storage.memory.rows import EntryRow, InteractionRow, ReplyRow, ThreadRow
from gateway.storage.memory.seals import Keys
from gateway.storage.memory.search import MemorySearch
from gateway.storage.memory.shield import MemoryShield
from gateway.storage.memory.speech import MemoryVoices
from gateway.storage.memory.states import MemoryStates
from gateway.storage.memory.usage import MemoryUsage
from gateway.storage.ports import Accepted, Lease, SentPart
from pipeline.domain.errors import StorageError


class MemoryBooks:
    """The rows and the books, as properties of a store."""

    def __init__(self) -> None:
        self._open, self._last_record_id = False, 0
        self._threads: dict[str, ThreadRow] = {}
        self._keys: Keys = {}
        self._entries: dict[int, EntryRow] = {}
        self._accepted: dict[str, Accepted] = {}
        self._outbox: dict[int, ReplyRow] = {}
        self._outbox_ids: dict[str, int] = {}
        self._shown: dict[str, dict[int, SentPart]] = {}
        self._interactions: dict[str, InteractionRow] = {}
        check, self.deaths = self._require_open, MemoryDeaths(self._require_open, self._entries)
        self.owners = MemoryOwners(check, self._threads, self.deaths)
        self.formats = MemoryFormats(check)
        self.pairings, self.voices = MemoryPairings(check), MemoryVoices(check)
        self.jobs, self.states = MemoryJobs(check, self.owners.is_live), MemoryStates(check)
        self.file_changes, self.bursts = MemoryFileChanges(check), MemoryBursts(self._fenced)
        self.blobs = MemoryBlobs(check, self._threads, self._keys)
        self.expiries, self.crises = MemoryExpiries(check, self._interactions), MemoryCrises(check)
        self.feedback = MemoryFeedback(check, self._outbox, self._entries, self._shown)
        self.usage, self.memories = MemoryUsage(check), MemoryMemories(check)
        self.identities = MemoryIdentities(check, self.states, self.usage, self.memories)
        given, rows = (check, self._entries), (self._threads, self._entries, self._outbox, self._interactions)
        self.shield, self.finished = MemoryShield(check), MemoryFinished(*given)
        self.page = MemoryPage(check, *rows, self.jobs, self.states, self.feedback, self.shield)
        self.search = MemorySearch(check, *rows[:2], self.page.is_deleted)
        self.erasure, self.changes = MemoryErasure(check, *rows, self), MemoryChanges(*given, self)

    erasures = None
    """Reading from memory costs nothing."""

    def _require_open(self) -> None:
        if not self._open:
            raise StorageError("the store is closed")

    def _thread(self, key: str) -> ThreadRow:
        return self._threads.setdefault(key, ThreadRow(keys=self._keys))

    def _peek(self, key: str) -> ThreadRow:
        """The thread's row for reading; an empty one for an unknown thread."""
        return self._threads.get(key) or ThreadRow(keys=self._keys)

    def _fenced(self, lease: Lease) -> ThreadRow:
        self._require_open()
        row = self._peek(lease.thread)
        if (row.fence, row.owner) != (lease.fence, lease.owner):
            raise fence_lost(lease)
        return row
