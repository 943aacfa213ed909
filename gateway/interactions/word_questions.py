"""Remember which chats have no open question that any words answer, so that a message need not look for one.

Every question of a process is noted here when it is recorded. So only the first message of a chat after a
start reads the store. Where several processes share the store, the turn that asks may run in another one:
then each message reads it.
"""

from __future__ import annotations

from gateway.storage.ports import Store
from pipeline.domain.bounded_dict import BoundedDict
from pipeline.domain.clock import Clock

_MOST = 10_000
"""Threads remembered."""


class WordQuestions:
    """The threads in which any words may be an answer."""

    def __init__(self, store: Store, clock: Clock, *, shared: bool = False) -> None:
        """`shared`: turns run in other processes too."""
        self._shared = shared
        self._store = store
        self._clock = clock
        self.without = BoundedDict[str, None](_MOST)
        """The threads that are known to have no such question."""
        self._asked = 0

    def asked(self, thread: str) -> None:
        """Note that a question was recorded in the thread."""
        self._asked += 1
        self.without.pop(thread, None)

    async def may_be_open(self, thread: str) -> bool:
        """Whether the thread has such a question. Raises StorageError."""
        if thread in self.without:
            return False
        asked = self._asked
        pending = await self._store.pending_interactions(thread, now=self._clock.now())
        if any(one.asks == "words" for one in pending):
            return True
        if asked == self._asked and not self._shared:
            self.without[thread] = None
        return False
