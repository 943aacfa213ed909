"""The records of paused runs in memory: used once, and never after something was deleted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.storage.erasure import PersonKeys
from gateway.storage.identities import Identity
from gateway.storage.memory import MemoryStore
from gateway.storage.ports import NewRecord
from gateway.storage.sqlite import SqliteStore
from gateway.turns.paused_runs import PausedRuns, TurnRun
from gateway.turns.run_log import StoreRunLog
from pipeline.graph.run.records import RawRecord

_THREAD, _ASKED = "web:local:1", "msg_1"
_HEAD = {"run": "run_1", "graph": "g", "signature": "s", "entry": "", "inputs": {}}
_FIRST = {"do": "step", "node": "a", "to": ["b"], "head": _HEAD}
_ASKS = {"do": "step", "node": "b", "decision": "pause", "gate": {"id": "g1", "prompt": "?"}}
_ANSWER = {"do": "answer", "gate": {"id": "g1"}, "choice": "approve", "at": 1.0}


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(tmp_path / "db.sqlite3")
    await store.open()
    yield store
    await store.close()


class Turns:
    """Turns of one thread. `reads` counts how often records were read from the store."""

    def __init__(self, store: SqliteStore | MemoryStore) -> None:
        self.paused = PausedRuns(store)
        self.stored: tuple[RawRecord, ...] = ()
        self.reads = 0
        self._store = store

    async def begin(self) -> tuple[StoreRunLog, TurnRun]:
        lease = await self._store.acquire_lease(_THREAD, "me", ttl_s=60.0, now=0.0)
        assert lease is not None
        log = StoreRunLog(self._store, lease, lambda body: NewRecord(
            kind="step", session_id="s", message_id=_ASKED, body=body, at=0.0
        ))  # fmt: skip
        return log, TurnRun(self.paused, log, self._read, _THREAD, _ASKED)

    async def ask(self) -> None:
        """A turn whose run waits for a person."""
        log, run = await self.begin()
        log.append(_FIRST)
        log.append(_ASKS)
        self.stored = (_FIRST, _ASKS)
        await log.barrier()
        run.keep()

    async def _read(self) -> tuple[RawRecord, ...]:
        self.reads += 1
        return self.stored


async def test_an_answer_reads_nothing(store: SqliteStore) -> None:
    turns = Turns(store)
    await turns.ask()
    _, run = await turns.begin()
    assert await run.records() == (_FIRST, _ASKS)
    assert await run.records() == (_FIRST, _ASKS)
    assert turns.reads == 0


async def test_a_run_that_asks_again_is_kept_whole(store: SqliteStore) -> None:
    turns = Turns(store)
    await turns.ask()
    log, run = await turns.begin()
    await run.records()
    log.append(_ANSWER)
    await log.barrier()
    run.keep()
    _, next_run = await turns.begin()
    assert await next_run.records() == (_FIRST, _ASKS, _ANSWER)
    assert turns.reads == 0


async def test_a_turn_that_has_resumed_the_run_owns_its_records(store: SqliteStore) -> None:
    turns = Turns(store)
    await turns.ask()
    log, run = await turns.begin()
    await run.records()
    log.append(_ANSWER)
    await log.barrier()
    # This turn ends without keeping the run, as when its commit fails: the next attempt reads what is stored.
    turns.stored = (_FIRST, _ASKS, _ANSWER)
    assert await run.records() == turns.stored
    _, again = await turns.begin()
    assert await again.records() == turns.stored
    assert turns.reads == 2


@pytest.mark.parametrize("when", ["while it waits", "before the question", "after it was taken"])
async def test_after_an_erasure_the_records_are_read(store: SqliteStore, when: str) -> None:
    async def erase() -> None:
        ann = Identity(channel="web", account="local", user="ann")
        await store.erasure.forget_person(PersonKeys(identities=(ann,), keys=(ann.key,)), but_jobs="none")
        turns.stored = ()

    turns = Turns(store)
    if when == "before the question":
        log, run = await turns.begin()
        log.append(_FIRST)
        await log.barrier()
        await erase()
        log.append(_ASKS)
        await log.barrier()
        run.keep()
    else:
        await turns.ask()
    _, run = await turns.begin()
    if when == "after it was taken":
        assert await run.records() == (_FIRST, _ASKS)
    if when != "before the question":
        await erase()
    assert await run.records() == ()
    assert turns.reads == 1


async def test_a_store_that_cannot_tell_is_always_read() -> None:
    store = MemoryStore()
    await store.open()
    turns = Turns(store)
    await turns.ask()
    _, run = await turns.begin()
    assert await run.records() == (_FIRST, _ASKS)
    assert (turns.reads, len(turns.paused)) == (1, 0)


async def test_few_runs_of_moderate_length_are_kept(store: SqliteStore) -> None:
    paused = PausedRuns(store, most=2)
    for number in range(3):
        paused.keep(_THREAD, f"msg_{number}", (_FIRST,), store.erasures)
    assert paused.take(_THREAD, "msg_0") is None
    assert paused.take(_THREAD, "msg_1") == (_FIRST,)
    assert paused.take(_THREAD, "msg_1") is None
    paused.keep(_THREAD, "long", (_FIRST,) * 1_001, store.erasures)
    assert paused.take(_THREAD, "long") is None
