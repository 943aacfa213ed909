"""Linked identities and link codes in dictionaries."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from gateway.storage.erasure import PersonKeys
from gateway.storage.identities import (
    GROUP_PREFIX,
    Identity,
    JoinRequest,
    JoinResult,
    Left,
    LinkCode,
    Member,
    TryLimits,
    added_up,
    counted_twice,
    judge_join,
)
from gateway.storage.memory.memories import MemoryMemories
from gateway.storage.memory.states import MemoryStates
from gateway.storage.memory.usage import MemoryUsage
from pipeline.domain.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    person: str
    own: str
    """The key that it gets back when it leaves the person."""
    came_from: str = ""
    """What the person began with; of an identity that has left, the person that it left."""
    changed_by: str = ""
    thread: str = ""


class MemoryIdentities:
    """A part of `MemoryStore`. `require_open` raises StorageError if the store is closed."""

    def __init__(
        self,
        require_open: Callable[[], None],
        states: MemoryStates,
        usage: MemoryUsage,
        memories: MemoryMemories,
    ) -> None:
        self._require_open = require_open
        self._states = states
        self._memories = memories
        self._usage = usage
        self._rows: dict[Identity, _Row] = {}
        self._codes: dict[Identity, LinkCode] = {}
        self._tries: list[tuple[str, float]] = []

    async def issue(self, code: LinkCode, *, limit: int) -> bool:
        self._require_open()
        open_codes = {one: held for one, held in self._codes.items() if held.expires_at > code.issued_at}
        self._codes = open_codes
        if sum(one != code.identity for one in open_codes) >= limit:
            return False
        open_codes[code.identity] = code
        return True

    async def cancel(self, code_hash: str) -> None:
        self._require_open()
        self._codes = {one: held for one, held in self._codes.items() if held.code_hash != code_hash}

    async def join(self, request: JoinRequest, limits: TryLimits) -> JoinResult:
        self._require_open()
        identity = request.identity
        row = self._row(identity)
        if row.changed_by == request.message_id:
            return self._joined(identity, row)
        since = request.at - limits.window_s
        self._tries = [(one, at) for one, at in self._tries if at > since]
        own = sum(one == identity.key for one, _ in self._tries)
        if own >= limits.identity or len(self._tries) >= limits.everybody:
            return JoinResult(status="limited")
        codes = self._codes.values()
        found = (one for one in codes if one.code_hash == request.code_hash and one.expires_at > request.at)
        code = next(found, None)
        if code is None:
            self._tries.append((identity.key, request.at))
            return JoinResult(status="wrong")
        asked = self._row(code.identity)
        status = judge_join(
            identity,
            code.identity,
            person=row.person,
            owners=asked.person,
            is_linked=bool(self._others(row.person, identity)),
            members=len(self._others(asked.person, identity)),
            most=request.most,
        )
        return (
            await self._link(request, code, asked, row) if status == "joined" else JoinResult(status=status)
        )

    async def _link(self, request: JoinRequest, code: LinkCode, asked: _Row, row: _Row) -> JoinResult:
        is_new = not asked.person.startswith(GROUP_PREFIX)
        person, source = (request.new_person, asked.person) if is_new else (asked.person, "")
        both = counted_twice(asked.person, row.person)
        if is_new:
            self._rows[code.identity] = _Row(person=person, own=source, thread=code.thread)
            self._states.copy(source, person)
            self._memories.copy(source, person)
        for day in self._usage.days_of((asked.person, row.person)):
            used = await self._usage.of(day, (asked.person, row.person, both))
            self._usage.put(day, person, added_up(used[asked.person], used[row.person], used[both]))
        joined = self._rows[request.identity] = _Row(
            person=person,
            own=row.person,
            came_from=source,
            changed_by=request.message_id,
            thread=request.thread,
        )
        del self._codes[code.identity]
        return self._joined(request.identity, joined)

    def _joined(self, identity: Identity, row: _Row) -> JoinResult:
        others = self._others(row.person, identity)
        return JoinResult(
            status="joined", person=row.person, source=row.came_from, before=row.own, others=others
        )

    async def leave(self, identity: Identity, *, message_id: str, day: str) -> Left:
        self._require_open()
        self._codes.pop(identity, None)
        row = self._row(identity)
        if row.changed_by == message_id:
            return Left(own=row.person, others=self._others(row.came_from, identity))
        others = self._others(row.person, identity)
        if not others:
            return Left(own=row.person, others=())
        used = (await self._usage.of(day, (row.person,)))[row.person]
        self._usage.put(day, row.own, used)
        for one in self._usage.days_of((row.own,)):
            # The person's sums include those from before the link.
            own = (await self._usage.of(one, (row.own,)))[row.own]
            self._usage.put(one, counted_twice(row.own, row.person), own)
        left = replace(row, person=row.own, came_from=row.person, changed_by=message_id)
        self._rows[identity] = left
        return Left(own=row.own, others=others)

    async def linked(self) -> Mapping[Identity, str]:
        self._require_open()
        return {one: row.person for one, row in self._rows.items() if row.person != one.key}

    def keys_of(self, identity: Identity) -> PersonKeys:
        """See `ErasureBook.keys_of`."""
        row = self._row(identity)
        others = [one for one, held in self._rows.items() if held.person == row.person]
        found = dict.fromkeys([identity, *others])
        keys = {identity.key: None, row.person: None}
        for one in found:
            keys |= {one.key: None, self._row(one).own: None}
        return PersonKeys(identities=tuple(found), keys=tuple(keys))

    def threads_of(self, identity: Identity) -> tuple[str, ...]:
        """The private chat where the identity was linked; none if it was not."""
        row = self._rows.get(identity)
        return () if row is None else (row.thread,)

    def drop_of(self, identities: Collection[Identity]) -> None:
        """Forget the links and codes of these."""
        keys = {one.key for one in identities}
        for one in identities:
            self._rows.pop(one, None)
            self._codes.pop(one, None)
        for other, row in self._rows.items():
            if row.came_from in keys:
                self._rows[other] = replace(row, came_from="")
        self._tries = [(key, at) for key, at in self._tries if key not in keys]

    def _row(self, identity: Identity) -> _Row:
        return self._rows.get(identity) or _Row(person=identity.key, own=identity.key)

    def _others(self, person: str, but: Identity) -> tuple[Member, ...]:
        found = [one for one, row in self._rows.items() if row.person == person and one != but]
        found.sort(key=lambda one: (one.channel, one.account, one.user))
        return tuple(Member(identity=one, thread=self._rows[one].thread) for one in found)
