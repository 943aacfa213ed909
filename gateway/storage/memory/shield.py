"""What conversations have read, what people have allowed and were asked, and the evaluator's calls."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from gateway.storage.identities import Identity, wrote
from gateway.storage.json_bodies import storable_text
from gateway.storage.memory.audit import MemoryAudit
from gateway.storage.shield import HOUR_S
from pipeline.shield.levels import UNLABELLED, Labels
from pipeline.shield.ports import Permission


class MemoryShield:
    """A part of `MemoryStore`."""

    def __init__(self, require_open: Callable[[], None]) -> None:
        self.audit = MemoryAudit(require_open)
        self.taints = MemoryTaints(require_open)
        self.permissions = MemoryPermissions(require_open)
        self.evaluator_calls = MemoryEvaluatorCalls(require_open)
        self.asked = MemoryAsked(require_open)


class MemoryTaints:
    """A part of `MemoryStore`. `require_open` raises StorageError if the store is closed."""

    def __init__(self, require_open: Callable[[], None]) -> None:
        self._require_open = require_open
        self._labels: dict[str, Labels] = {}

    async def read(self, session_id: str) -> Labels:
        self._require_open()
        return self._labels.get(session_id, UNLABELLED)

    async def write(self, session_id: str, labels: Labels) -> None:
        self._require_open()
        self._labels[session_id] = replace(
            labels,
            sources=tuple(map(storable_text, labels.sources)),
            suspects=tuple(map(storable_text, labels.suspects)),
        )

    def drop_of(self, session_id: str) -> None:
        """Forget what a conversation has read."""
        self._labels.pop(session_id, None)


class MemoryPermissions:
    """A part of `MemoryStore`. `require_open` raises StorageError if the store is closed."""

    def __init__(self, require_open: Callable[[], None]) -> None:
        self._require_open = require_open
        self._given: dict[tuple[str, str, str, str], Permission] = {}
        self._last = 0

    async def add(self, permission: Permission) -> int:
        self._require_open()
        given = replace(
            permission, target=storable_text(permission.target), person=storable_text(permission.person)
        )
        key = (given.session_id, given.person, given.type, given.target)
        known = self._given.get(key)
        if known is None:
            self._last += 1
        self._given[key] = replace(given, id=self._last if known is None else known.id)
        return self._given[key].id

    async def of(self, session_id: str, person: str) -> tuple[Permission, ...]:
        self._require_open()
        found = [one for one in self._given.values() if _is(one, session_id, person)]
        return tuple(sorted(found, key=lambda one: one.id))

    async def revoke(self, session_id: str, person: str, permission_id: int | None) -> int:
        self._require_open()
        gone = [
            key
            for key, one in self._given.items()
            if _is(one, session_id, person) and permission_id in (None, one.id)
        ]
        for key in gone:
            del self._given[key]
        return len(gone)

    def drop_of(self, thread: str) -> None:
        """Forget all permissions of a thread."""
        self._given = {key: one for key, one in self._given.items() if one.thread != thread}

    def drop_of_people(self, identities: Collection[Identity]) -> None:
        """Forget what these people have allowed."""
        self._given = {
            key: one for key, one in self._given.items() if not wrote(identities, one.thread, one.person)
        }


class MemoryEvaluatorCalls:
    """A part of `MemoryStore`. `require_open` raises StorageError if the store is closed."""

    def __init__(self, require_open: Callable[[], None]) -> None:
        self._require_open = require_open
        self._calls: dict[str, int] = {}

    async def take(self, day: str, most: int) -> bool:
        self._require_open()
        calls = self._calls.get(day, 0)
        if calls >= most:
            return False
        self._calls[day] = calls + 1
        return True


class MemoryAsked:
    """A part of `MemoryStore`. `require_open` raises StorageError if the store is closed."""

    def __init__(self, require_open: Callable[[], None]) -> None:
        self._require_open = require_open
        self._asked: dict[str, tuple[str, float]] = {}
        """Person and time, by question."""

    async def count(self, person: str, question: str, *, now: float, most: int) -> bool:
        self._require_open()
        person = storable_text(person)
        recent = {key: (whom, min(at, now)) for key, (whom, at) in self._asked.items() if at > now - HOUR_S}
        self._asked = recent
        if question in recent:
            return True
        if sum(whom == person for whom, _at in recent.values()) >= most:
            return False
        recent[question] = person, now
        return True

    async def forget(self, person: str) -> None:
        self._require_open()
        self._asked = {key: one for key, one in self._asked.items() if one[0] != storable_text(person)}


def _is(one: Permission, session_id: str, person: str) -> bool:
    return (one.session_id, one.person) == (session_id, storable_text(person))
