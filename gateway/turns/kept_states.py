"""Read and write the state of a turn's graph that outlives its runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gateway.storage.ports import Committed, Lease, Store, TurnCommit
from gateway.storage.states import StateChanged, StateWrite
from gateway.turns.sessions import SessionState
from pipeline.graph.definition.elements import Lifetime
from pipeline.runtime.kept_state import KeptValues, StateChange, Stored

_TRIES = 5


class KeptStates:
    """The kept states of one turn: its session's and its author's. Off the record there are none.

    `person` gives the key of the author as a person, which may change while the turn runs."""

    def __init__(self, store: Store, session: SessionState, person: Callable[[], str]) -> None:
        self._store = store
        self.agent = ""
        """The name of the agent that answers, as two agents may run graphs of the same name; empty for the
        default one."""
        self._session = session
        own = f"session:{session.session_id}"
        self._owners: dict[Lifetime, Callable[[], str]] = {"session": lambda: own, "person": person}

    async def read(self, graph: str) -> Stored:
        """The stored state of the graph of that name, by lifetime."""
        if self._session.mode == "otr":
            return {}
        graph = self._key(graph)
        found = {lives: (await self._read(owner(), graph))[0] for lives, owner in self._owners.items()}
        return {lives: kept for lives, kept in found.items() if kept is not None}

    async def commit(self, lease: Lease, commit: TurnCommit, change: StateChange | None) -> Committed:
        """Commit the turn with its change of state. Raises as `Store.commit_turn`."""
        if change is None or self._session.mode == "otr" or not change.lifetimes:
            return await self._store.commit_turn(lease, commit)
        for _ in range(_TRIES - 1):
            try:
                return await self._store.commit_turn(lease, await self._with(commit, change))
            except StateChanged:
                # Another chat of the same person: combine again with what it has written.
                continue
        return await self._store.commit_turn(lease, await self._with(commit, change))

    def _key(self, graph: str) -> str:
        return f"{self.agent}/{graph}"

    async def _with(self, commit: TurnCommit, change: StateChange) -> TurnCommit:
        writes, graph = [], self._key(change.graph.name)
        for lives in change.lifetimes:
            owner = self._owners[lives]()
            stored, revision = await self._read(owner, graph)
            kept = change.applied(lives, stored)
            body = {"version": kept.version, "values": kept.values, "foreign": kept.foreign}
            write = StateWrite(owner=owner, graph=graph, revision=revision, body=body)
            writes.append(write)
        return replace(commit, states=tuple(writes))

    async def _read(self, owner: str, graph: str) -> tuple[KeptValues | None, int]:
        """The stored values and their revision; None and 0 without any."""
        found = await self._store.states.read(owner, graph)
        if found is None:
            return None, 0
        body = found.body
        values = KeptValues(
            version=str(body["version"]), values=body["values"], foreign=str(body.get("foreign", ""))
        )
        return values, found.revision
