"""Kept states of graphs, on every store: written with a turn's commit, and never over another turn's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.storage.ports import Store, TurnCommit
from gateway.storage.states import StateChanged, StateWrite
from pipeline.domain.errors import StorageError
from tests.contracts.conftest import Reopen
from tests.contracts.store_values import accepted_with_lease, record, turn


def write(owner: str = "ann", *, revision: int = 0, graph: str = "/shop", **body: object) -> StateWrite:
    return StateWrite(owner=owner, graph=graph, revision=revision, body=body)


async def commit(store: Store, key: str, *states: StateWrite) -> None:
    accepted, lease = await accepted_with_lease(store, key)
    done: TurnCommit = replace(turn(accepted.seq, record("assistant", message=f"msg-{key}")), states=states)
    await store.commit_turn(lease, done)


async def test_a_state_is_read_as_it_was_committed_and_its_revision_grows(
    store: Store, reopen: Reopen
) -> None:
    assert await store.states.read("ann", "/shop") is None
    await commit(store, "1", write(text="A\ud800 语音", items=[1, {"a": None}]))
    first = await store.states.read("ann", "/shop")
    assert first is not None
    assert (first.revision, first.body) == (1, {"text": "A\ud800 语音", "items": [1, {"a": None}]})
    await commit(store, "2", write(revision=1, n=2), write("ben", n=3), write(graph="/other", n=4))
    again = await reopen()
    for owner, graph, expected in (("ann", "/shop", (2, {"n": 2})), ("ben", "/shop", (1, {"n": 3}))):
        found = await again.states.read(owner, graph)
        assert found is not None
        assert (found.revision, found.body) == expected
    assert await again.states.read("ben", "/other") is None


@pytest.mark.parametrize("revision", [0, 2])
async def test_a_commit_with_a_state_that_was_changed_meanwhile_changes_nothing(
    store: Store, revision: int
) -> None:
    await commit(store, "1", write(n=1))
    with pytest.raises(StateChanged):
        await commit(store, "2", write("ben", n=2), write(revision=revision, n=2))
    assert await store.states.read("ben", "/shop") is None
    (open_entry,) = await store.open_entries("telegram:mainbot:-1001234:77")
    assert open_entry.message_id == "msg-2"
    await commit(store, "2", write(revision=1, n=2))


async def test_a_body_that_is_no_plain_data_is_refused_with_the_whole_commit(store: Store) -> None:
    with pytest.raises(StorageError, match="plain JSON"):
        await commit(store, "1", write(n=object()))
    assert await store.states.read("ann", "/shop") is None


async def test_the_states_of_an_owner_are_forgotten_together(store: Store) -> None:
    await commit(store, "1", write(n=1), write(graph="/other", n=2), write("ben", n=3))
    assert await store.states.forget("ann") == 2
    assert await store.states.forget("ann") == 0
    assert await store.states.read("ann", "/shop") is None
    assert await store.states.read("ben", "/shop") is not None
