"""The memory in dictionaries."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

from gateway.storage.memories import (
    decode_arc,
    decode_fact,
    decode_held,
    decode_profile,
    encode_arc,
    encode_fact,
    encode_held,
    encode_profile,
    next_profile,
    renewed,
    require_valid,
    same_statement,
    storable_owner,
    without_rules,
)
from gateway.storage.memory.memory_index import DictionaryIndex
from pipeline.memory.candidates import Held
from pipeline.memory.ports import FactVector, MemoryCounts, MemoryWrites, Question, Remembered, Written
from pipeline.memory.recall import find_arcs, find_by_words, joined, places_for_newest
from pipeline.memory.values import Fact, Profile, SessionArc
from pipeline.memory.vectors import nearest, packed


@dataclass(slots=True)
class _Owned:
    """What is kept of one owner."""

    facts: dict[int, Fact] = field(default_factory=dict)
    arcs: list[SessionArc] = field(default_factory=list)
    profile: Profile = field(default_factory=Profile)
    held: dict[tuple[str, str], tuple[float, Held]] = field(default_factory=dict)
    """By session and id of the candidate."""
    keys: dict[str, float] = field(default_factory=dict)
    vectors: dict[int, tuple[str, bytes]] = field(default_factory=dict)

    def number_of(self, fact_id: str) -> int | None:
        return next((number for number, fact in self.facts.items() if fact.id == fact_id), None)

    def put(self, number: int, fact: Fact) -> None:
        self.facts[number] = fact
        if not fact.is_live:
            self.vectors.pop(number, None)

    def drop(self, numbers: Collection[int]) -> None:
        for number in numbers:
            del self.facts[number]
            self.vectors.pop(number, None)


class MemoryMemories:
    """A part of `MemoryStore`. `require_open` raises StorageError if the store is closed."""

    def __init__(self, require_open: Callable[[], None]) -> None:
        self._require_open = require_open
        self._owners: dict[str, _Owned] = {}
        self._last = 0
        self._added: Callable[[], None] | None = None

    async def counts(self, owner: str) -> MemoryCounts:
        owned = self._of(owner)
        live = sum(fact.is_live for fact in owned.facts.values())
        return MemoryCounts(facts=live, arcs=len(owned.arcs), rules=len(owned.profile.rules))

    async def facts(self, owner: str, *, limit: int | None = None) -> tuple[Fact, ...]:
        live = [fact for fact in self._of(owner).facts.values() if fact.is_live]
        return tuple(reversed(live))[:limit]

    async def find_facts(self, owner: str, question: Question, *, limit: int) -> tuple[Fact, ...]:
        owned = self._of(owner)
        index = DictionaryIndex(owned.facts)
        hits = find_by_words(index, question.text, limit=limit)
        near: tuple[tuple[int, float], ...] = ()
        if question.vector:
            stored = [
                (number, vector)
                for number, (model, vector) in sorted(owned.vectors.items())
                if model == question.vector_model
            ]
            near = nearest(question.vector, stored, limit=limit)
        most = places_for_newest(question.text, hits, near)
        newest = [number for number, fact in reversed(owned.facts.items()) if fact.is_live][:most]
        return tuple(owned.facts[number] for number in joined(hits, near, newest, limit=limit))

    async def everything(self, owner: str) -> Remembered:
        owned = self._of(owner)
        return Remembered(
            facts=tuple(owned.facts.values()),
            arcs=tuple(reversed(await self.arcs(owner))),
            held=tuple(held for _, held in owned.held.values()),
            profile=owned.profile,
        )

    async def arcs(
        self, owner: str, *, since: float = 0.0, limit: int | None = None
    ) -> tuple[SessionArc, ...]:
        numbered = [pair for pair in enumerate(self._of(owner).arcs) if pair[1].ended_at >= since]
        numbered.sort(key=lambda pair: (-pair[1].ended_at, -pair[0]))
        return tuple(arc for _, arc in numbered[:limit])

    async def find_arcs(
        self, owner: str, question: Question, *, since: float, limit: int
    ) -> tuple[SessionArc, ...]:
        return find_arcs(await self.arcs(owner, since=since), question.text, limit=limit)

    async def profile(self, owner: str) -> Profile:
        return self._of(owner).profile

    async def write_profile(self, owner: str, profile: Profile) -> Profile:
        new = decode_profile(encode_profile(next_profile(self._of(owner).profile, profile)))
        self._own(owner).profile = new
        return new

    async def write(self, owner: str, writes: MemoryWrites) -> Written:
        require_valid(writes)
        # Encoded first, so that nothing is written if one value is no plain data.
        facts = [
            decode_fact(encode_fact(one), one.last_referenced_at, one.dormant_at, one.superseded_by)
            for one in writes.facts
        ]
        held = [decode_held(encode_held(one)) for one in writes.held]
        arc = None if writes.arc is None else decode_arc(encode_arc(writes.arc))
        if writes.key in self._of(owner).keys:
            return Written(repeated=True)
        if writes.profile is not None:
            await self.write_profile(owner, writes.profile)
        owned = self._own(owner)
        owned.keys[writes.key] = writes.at
        if not owned.profile.enabled:
            if writes.ends_session:
                self._drop_held_of(owned, writes.session_id)
            return Written(disabled=True)
        written = self._write_facts(owned, facts, writes)
        if written.facts and self._added is not None:
            self._added()
        for one in held:
            owned.held.setdefault((writes.session_id, one.candidate.id), (writes.at, one))
        if arc is not None:
            owned.arcs = [one for one in owned.arcs if one.session_id != arc.session_id] + [arc]
        if writes.ends_session:
            self._drop_held_of(owned, writes.session_id)
        return written

    def _write_facts(self, owned: _Owned, facts: Sequence[Fact], writes: MemoryWrites) -> Written:
        stored_as: dict[str, str] = {}
        added = again = 0
        for fact in facts:
            known = (one for one in owned.facts.values() if one.is_live and one.triple == fact.triple)
            same = same_statement(fact, known)
            number = owned.number_of(fact.id if same is None else same.id)
            if number is None:
                self._last += 1
                owned.put(self._last, fact)
                added += 1
                continue
            stored_as[fact.id] = owned.facts[number].id
            owned.put(number, renewed(owned.facts[number], writes.at))
            again += 1
        for old_id, new_id in writes.supersedes:
            new, number = stored_as.get(new_id, new_id), owned.number_of(old_id)
            if number is not None and old_id != new:
                owned.put(number, replace(owned.facts[number], superseded_by=new))
        for fact_id in writes.dormant:
            if (number := owned.number_of(fact_id)) is not None:
                owned.put(number, replace(owned.facts[number], dormant_at=writes.at))
        return Written(facts=added, renewed=again)

    async def held(self, owner: str, session_id: str) -> tuple[Held, ...]:
        held = self._of(owner).held
        return tuple(one for (session, _), (_, one) in held.items() if session == session_id)

    async def forget(self, owner: str, item_ids: Sequence[str]) -> int:
        owned = self._of(owner)
        named = [number for number, fact in owned.facts.items() if fact.id in item_ids]
        gone = len(named)
        waiting, numbers = [owned.facts[number].id for number in named], dict.fromkeys(named)
        while waiting:
            replaced = waiting.pop()
            for number, fact in owned.facts.items():
                if fact.superseded_by == replaced and number not in numbers:
                    numbers[number] = None
                    waiting.append(fact.id)
        owned.drop(numbers)
        arcs = [arc for arc in owned.arcs if arc.session_id not in item_ids]
        gone += len(owned.arcs) - len(arcs)
        owned.arcs = arcs
        gone += self._drop_held(owned, lambda _session, item: item in item_ids)
        owned.profile, rules = without_rules(owned.profile, item_ids)
        return gone + rules

    async def forget_session(self, owner: str, session_id: str) -> int:
        owned = self._of(owner)
        numbers = [number for number, fact in owned.facts.items() if fact.source_session_id == session_id]
        owned.drop(numbers)
        arcs = [arc for arc in owned.arcs if arc.session_id != session_id]
        gone = len(numbers) + len(owned.arcs) - len(arcs) + self._drop_held_of(owned, session_id)
        owned.arcs = arcs
        return gone

    async def erase(self, owner: str) -> int:
        owned = self._of(owner)
        self._owners.pop(storable_owner(owner), None)
        rules = len(owned.profile.rules) + len(owned.profile.archived_rules)
        return len(owned.facts) + len(owned.arcs) + len(owned.held) + rules + (owned.profile.revision > 0)

    async def prune(self, *, before: float) -> int:
        self._require_open()
        gone = 0
        for owned in self._owners.values():
            old = [number for number, fact in owned.facts.items() if fact.last_referenced_at < before]
            owned.drop(old)
            arcs = [arc for arc in owned.arcs if arc.ended_at >= before]
            held = {key: pair for key, pair in owned.held.items() if pair[0] >= before}
            gone += len(old) + len(owned.arcs) - len(arcs) + len(owned.held) - len(held)
            owned.arcs, owned.held = arcs, held
            owned.keys = {key: at for key, at in owned.keys.items() if at >= before}
        return gone

    def watch(self, added: Callable[[], None]) -> None:
        self._added = added

    async def without_vector(self, model: str, *, limit: int) -> tuple[tuple[str, Fact], ...]:
        self._require_open()
        found = sorted(
            (number, owner, fact)
            for owner, owned in self._owners.items()
            for number, fact in owned.facts.items()
            if fact.is_live and owned.vectors.get(number, ("",))[0] != model
        )
        return tuple((owner, fact) for _, owner, fact in found[:limit])

    async def write_vectors(self, model: str, vectors: Sequence[FactVector]) -> None:
        for one in vectors:
            owned = self._of(one.owner)
            number = owned.number_of(one.fact_id)
            if number is not None and owned.facts[number].is_live:
                owned.vectors[number] = (model, packed(one.vector))

    def copy(self, source: str, target: str) -> None:
        """Copy the facts, arcs and profile of the owner `source` to `target`, of whom nothing is kept."""
        known = self._owners.get(storable_owner(source))
        if known is None:
            return
        owned = self._own(target)
        for fact in known.facts.values():
            self._last += 1
            owned.put(self._last, fact)
        owned.arcs, owned.profile = list(known.arcs), known.profile

    def _drop_held_of(self, owned: _Owned, session_id: str) -> int:
        return self._drop_held(owned, lambda session, _item: session == session_id)

    def _drop_held(self, owned: _Owned, goes: Callable[[str, str], bool]) -> int:
        gone = [key for key in owned.held if goes(*key)]
        for key in gone:
            del owned.held[key]
        return len(gone)

    def _of(self, owner: str) -> _Owned:
        """What is kept of the owner, to read or to change what is there."""
        self._require_open()
        return self._owners.get(storable_owner(owner)) or _Owned()

    def _own(self, owner: str) -> _Owned:
        """As `_of`, to add something."""
        return self._owners.setdefault(storable_owner(owner), _Owned())
